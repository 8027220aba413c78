"""`weft lake repair`, `rebuild` and `skip`: repair a damaged lake."""

import sys
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.kit.options import Flag
from weft.cli.lake import confirm, open_whole
from weft.lake.layout import is_drain

Where = Annotated[Path | None, Parameter(name="--lake")]
HEAP_MB: Final = 512
Streams = Annotated[list[str] | None, Parameter(name="--stream", negative="")]


def repair(*, lake: Where = None, stream: Streams = None, force: Flag = False, json: Flag = False) -> None:
    """Make the checkpoint of a job anew from the state of its tables, after it was lost or replaced by an older copy.

    First it removes what a power cut has left of a table's newest commit, as a driver does when it starts.
    All tables of the job go back to the last batch that all of them have; then `weft lake run` goes on there without
    doubling or skipping rows. The rest of the old checkpoint is kept beside the new one. A job that is whole is not
    changed. Needs no Java.

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        stream: only the jobs of these streams.
        force: make the checkpoint anew even if nothing seems wrong.
        json: one JSON line per job.
    """
    from weft.pipeline.lease import Lease
    from weft.pipeline.logtail import remove_torn
    from weft.pipeline.mending.repair import repair as mend

    layout = open_whole(lake)
    with Lease(layout, "samples") as lease:
        done = 0
        for name, files in remove_torn(layout).items():
            done += 1
            line = f"{name}: {', '.join(files)} of its log had been torn by a power cut, and is removed"
            _tell({"table": name, "removed": files}, [line], as_json=json)
        for repaired in mend(layout, _kinds(stream), lease.epoch, is_forced=force):
            done += 1
            _tell(repaired._asdict(), _repair_lines(repaired), as_json=json)
    if not done and not json:
        print("nothing to repair: every checkpoint fits its tables")


def rebuild(
    table: str,
    /,
    *,
    lake: Where = None,
    since: date | None = None,
    yes: Flag = False,
    heap_mb: int = HEAP_MB,
    json: Flag = False,
) -> None:
    """Rebuild a table from the tables that it is made from, then those made from it: `weft lake rebuild silver.values`.

    Use it when the program or the rules have improved since the rows were made. Each table is replaced in one commit;
    until then readers see the old rows, and afterwards with `--as-of`.

    Args:
        table: `silver.STREAM` (and its quarantine), silver.values, gold.rollup_1m, 1h, 1d, or gold.latest.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        since: the first UTC day that may change, like 2026-11-01; default: all.
        yes: allow the loss of rows that cannot be made again because bronze no longer has them.
        heap_mb: heap of the JVM in MiB.
        json: one JSON line per table.
    """
    from weft.pipeline.job import Job, JobOptions, SamplesJob
    from weft.pipeline.lease import Lease
    from weft.pipeline.logtail import remove_torn
    from weft.pipeline.mending.rebuild import Rebuild, Wish, made_anew_with, refuse_what_has_no_source
    from weft.pipeline.rules import rules_of
    from weft.pipeline.session import Options, session
    from weft.pipeline.settings import settings_of

    layout, (kind, wanted) = open_whole(lake), _table(table)
    refuse_what_has_no_source(kind, wanted)
    settings = settings_of(layout)
    with Lease(layout, "samples") as lease:
        remove_torn(layout)
        options = Options(heap_mb=heap_mb, log=layout.runs() / "spark.log", inherited=(lease.descriptor,))
        spark = session(options._replace(settings=settings.spark_texts))
        try:
            about = JobOptions(rules=rules_of(settings), anew=made_anew_with(wanted))
            is_samples = kind.stream == "samples"
            job = (
                SamplesJob(layout, spark, lease.epoch, about)
                if is_samples
                else Job(kind, layout, spark, lease.epoch, about)
            )
            for done in Rebuild(job, Wish(wanted, since, may_lose=yes)).run():
                _tell(done._asdict(), [f"{done.table}: {done.before:,} rows before, {done.after:,} now"], as_json=json)
        finally:
            spark.stop()


def _table(name: str) -> tuple[Any, Any]:
    """The job that writes a table, and the table."""
    from weft.pipeline.kinds import KINDS
    from weft.pipeline.tables import ALL

    for kind in KINDS.values():
        if name in ALL and ALL[name] in kind.tables:
            return kind, ALL[name]
    raise UserError("no-table", f"no job makes a table {name!r}", "weft lake ls; a layer and a name: silver.values")


def skip(
    segment: str, /, *, stream: str, reason: str, lake: Where = None, yes: Flag = False, json: Flag = False
) -> None:
    """Give up a segment whose rows are gone, so that its job goes on: `weft lake skip DRAIN:7 --stream samples …`.

    Its records then count as lost in gold.completeness, with this reason. A segment that can be read, or whose rows are
    in the tables, is refused.

    Args:
        segment: drain and number, as `weft lake run` and `weft lake verify` print it: DRAIN:N.
        stream: the stream of the segment.
        reason: why, in a few words; kept with the lost numbers for ever.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        yes: do not ask.
        json: the outcome as one JSON line.
    """
    from weft.pipeline.lease import Lease
    from weft.pipeline.mending.skip import skip as give_up

    layout = open_whole(lake)
    place = _place(stream, segment)
    confirm(f"give up what segment {segment} of {stream} held", yes=yes)
    with Lease(layout, "samples"):
        done = give_up(layout, place, reason)
    lost = f"{done.rows:,} rows, {done.numbers:,} numbers: lost, {done.reason!r}"
    _tell(done._asdict(), [f"{stream} {done.drain}:{done.number}: {lost}"], as_json=json)


def _place(stream: str, segment: str) -> Any:
    from weft.pipeline.mending.skip import Place

    drain, _, number = segment.partition(":")
    (kind,) = _kinds([stream])
    if not is_drain(drain) or not number.isdecimal():
        raise UserError("no-segment", f"{segment!r} names no segment", "DRAIN:N, a drain's 32 hex digits and a number")
    return Place(kind.stream, drain, int(number))


def _repair_lines(repaired: Any) -> list[str]:
    """A repair as text."""
    where = f"behind batch {repaired.batch}" if repaired.batch >= 0 else "from the beginning"
    lines = [f"{repaired.job}: {repaired.why}; it goes on {where}, {repaired.missing:,} numbers missing there"]
    return lines + [f"  {table} was at batch {batch}" for table, batch in repaired.taken_back.items()]


def _kinds(streams: list[str] | None) -> list[Any]:
    from weft.pipeline.kinds import KINDS

    if unknown := [name for name in streams or () if name not in KINDS]:
        raise UserError("no-stream", f"there is no stream {unknown[0]!r}", ", ".join(KINDS))
    return [kind for kind in KINDS.values() if streams is None or kind.stream in streams]


def _tell(facts: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
    sys.stdout.write((msgspec.json.encode(facts).decode() if as_json else "\n".join(lines)) + "\n")
