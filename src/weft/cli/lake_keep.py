"""`weft lake compact`, `retain`, `forget`, `vacuum` and `history`: the upkeep of tables, by hand.

A driver (`weft lake run`) does all of this by itself, except forgetting. Commands that change a table need the lake's
lease, so they are refused with exit status 75 while a driver runs.
"""

from contextlib import nullcontext
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.kit.options import Flag
from weft.cli.lake import confirm, open_whole

Where = Annotated[Path | None, Parameter(name="--lake")]
LEASE: Final = "samples"
MIB: Final = 1 << 20
HOURS_PER_DAY: Final = 24


def compact(*, lake: Where = None, dry_run: Flag = False, json: Flag = False) -> None:
    """Join small files of the tables to a few sorted ones: files of past days, and today's if they are many.

    The rows do not change. `weft lake run` does this every quarter of an hour by itself. Needs no Java.

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        dry_run: only say what would be joined.
        json: one JSON line per new file.
    """
    from weft.pipeline.lease import Lease
    from weft.pipeline.upkeep import compact as compacting
    from weft.pipeline.upkeep.log import exchange

    layout = open_whole(lake)
    if dry_run:
        bundles = list(compacting.due(layout, _today()))
        for bundle in bundles:
            facts = {"table": bundle.table.full_name, "files": len(bundle.files), "rows": bundle.rows}
            _tell(facts | {"bytes_before": bundle.size}, "{table}: {files:,} files, {rows:,} rows", as_json=json)
        _say_if_none(len(bundles), "no small files to join", as_json=json)
        return
    with Lease(layout, LEASE) as lease:
        bundles = list(compacting.due(layout, _today()))
        for bundle in bundles:
            wanted = compacting.joined(layout, bundle)
            exchange(layout, wanted, lease.epoch)
            line = "{table}: {files:,} files to one, {rows:,} rows, {bytes_before:,} to {bytes_after:,} bytes"
            _tell(compacting.result_of(wanted)._asdict(), line, as_json=json)
    _say_if_none(len(bundles), "no small files to join", as_json=json)


def retain(*, lake: Where = None, dry_run: Flag = False, json: Flag = False) -> None:
    """Remove days that are older than `[lake.keep]` in the lake's lake.toml allows, layer by layer.

    `weft lake run` does this every quarter of an hour by itself. Removals are recorded in meta.forgotten. Needs no
    Java.

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        dry_run: only say what would go.
        json: one JSON line per table.
    """
    from weft.pipeline.lease import Lease
    from weft.pipeline.settings import settings_of
    from weft.pipeline.upkeep import remove
    from weft.pipeline.upkeep import retain as retaining
    from weft.pipeline.upkeep.marks import is_uneven
    from weft.pipeline.upkeep.tally import subtract_removals

    layout = open_whole(lake)
    keep = settings_of(layout).keep
    line = "{table}: {rows:,} rows in {files:,} files, older than {days} days; {waiting:,} files wait for a fold"

    def facts_of(old: retaining.Old) -> dict[str, Any]:
        rows = sum(file.rows for file in old.files)
        facts = {"table": old.table.full_name, "rows": rows, "files": len(old.files)}
        return facts | {"days": old.days, "waiting": old.waiting}

    if dry_run:
        due = list(retaining.due(layout, keep, _today()))
        for old in due:
            _tell(facts_of(old), line, as_json=json)
        _say_if_none(len(due), "no day is older than lake.toml allows", as_json=json)
        return
    with Lease(layout, LEASE) as lease:
        due = list(retaining.due(layout, keep, _today()))
        for old in due:
            if old.files and not is_uneven(layout, old.table):
                remove.whole(layout, old.table, old.files, old.reason, lease.epoch)
            _tell(facts_of(old), line, as_json=json)
        subtract_removals(layout, lease.epoch)
    _say_if_none(len(due), "no day is older than lake.toml allows", as_json=json)


def forget(
    *,
    origin: str | None = None,
    series: int | None = None,
    before: str | None = None,
    stream: str | None = None,
    why: str = "",
    lake: Where = None,
    dry_run: Flag = False,
    yes: Flag = False,
    json: Flag = False,
) -> None:
    """Remove data on purpose: rows that match all given options, of an origin, of a series, or from before a day.

    meta.forgotten records who did it, when and why; completeness and `weft lake check` then say forgotten instead of
    missing. Segments keep the rows until they are retired (48 h), older versions of the tables until `weft lake vacuum`.

    `weft lake forget --origin 0b9e4c1d7a224f539c105d6e7f8091a2 --why "left the company"`

    Args:
        origin: the origin of the rows: a node's UUID as 32 hex digits, or a name.
        series: key of a series, as in silver.series.
        before: rows with a time before this day, YYYY-MM-DD in UTC.
        stream: only rows of this stream.
        why: the reason, for those who come later.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        dry_run: only say what would go.
        yes: do not ask.
        json: one JSON line per table.
    """
    from weft.pipeline.eventlog import note
    from weft.pipeline.lease import Lease
    from weft.pipeline.upkeep import forget as forgetting

    layout = open_whole(lake)
    choice = forgetting.Choice(origin, series, _day(before), stream)
    found = forgetting.found(layout, choice)
    if dry_run or not yes:
        for one in found:
            _tell(one._asdict(), "{table}: {rows:,} rows in {files:,} files would go", as_json=json)
    if dry_run or not (found or yes):
        _say_if_none(len(found), "no row of a table fits", as_json=json)
        return
    confirm(f"remove {sum(one.rows for one in found):,} rows for ever", yes=yes)
    with Lease(layout, LEASE) as lease:
        done = 0
        for one in forgetting.forget(layout, choice, why, lease.epoch):
            done += 1
            note(layout, "forgotten", table=one.table, rows=one.rows, why=why)
            _tell(one._asdict(), "{table}: {rows:,} rows forgotten, {files:,} files", as_json=json)
    _say_if_none(done, "no row of a table fits", as_json=json)


def vacuum(*, lake: Where = None, hours: int | None = None, dry_run: Flag = False, json: Flag = False) -> None:
    """Delete files that no version of a table needs any more: of failed attempts, and of old versions.

    `weft lake run` does this every day by itself, for `unreferenced` days of `[lake.keep]`.

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        hours: delete files that were unneeded and unchanged for so long; at least 1. Older versions can then not be queried.
        dry_run: only say what would be deleted.
        json: one JSON line per file.
    """
    from weft.pipeline.lease import Lease
    from weft.pipeline.settings import settings_of
    from weft.pipeline.upkeep import vacuum as vacuuming

    layout = open_whole(lake)
    age = settings_of(layout).keep.unreferenced * HOURS_PER_DAY if hours is None else hours
    files = vacuuming.stale(layout, age)
    with nullcontext() if dry_run else Lease(layout, LEASE):
        count = size = 0
        for file in files if dry_run else vacuuming.delete(layout, files):
            count, size = count + 1, size + file.size
            if json:
                _tell({"table": file.table, "path": file.path, "bytes": file.size}, "", as_json=True)
            elif dry_run:
                print(file.path)
    if not json:
        print(f"{count:,} files, {size / MIB:,.1f} MiB {'would be' if dry_run else 'were'} deleted")


def history(table: str, /, *, lake: Where = None, limit: int = 20, json: Flag = False) -> None:
    """List the versions of a table, the newest first: what made them, when, and what they contain.

    `weft lake history silver.samples --limit 100`

    Args:
        table: e.g. `silver.samples`.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        limit: at most so many versions.
        json: one JSON line per version.
    """
    from weft.pipeline.upkeep.history import versions

    for version in versions(open_whole(lake), table, limit):
        at = datetime.fromtimestamp(version.at_ms / 1000, UTC)
        _tell(version._asdict(), f"{version.version:8,}  {at:%Y-%m-%d %H:%M:%S}  {version.what}", as_json=json)


def _today() -> date:
    return datetime.now(UTC).date()


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UserError("bad-day", f"{text!r} is no day", "--before 2026-11-21") from None


def _say_if_none(done: int, why: str, *, as_json: bool) -> None:
    """Print a sentence if nothing was done, so that people do not take silence for a failure."""
    if not done and not as_json:
        print(f"nothing to do: {why}")


def _tell(facts: dict[str, Any], line: str, *, as_json: bool) -> None:
    print(msgspec.json.encode(facts, enc_hook=str).decode() if as_json else line.format(**facts), flush=True)
