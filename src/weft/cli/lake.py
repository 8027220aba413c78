"""`weft lake`: shows the contents of a lake, and runs the jobs that make its tables."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import App, Parameter

from weft.base.errors import UserError
from weft.cli.home import home_of, place_of
from weft.cli.kit.exits import DONE, NOT_SO
from weft.cli.kit.lines import print_compact
from weft.cli.kit.options import Flag
from weft.lake.layout import STREAMS, Layout
from weft.lake.manifest import Manifest, SegmentFault

if TYPE_CHECKING:
    from weft.lake.schemas import Schema

app = App(name="lake", help="Show what a lake contains, and run the jobs that make its tables.")

Where = Annotated[Path | None, Parameter(name="--lake")]
"""The lake's directory; default: $WEFT_LAKE, else ./lake."""

ROOMS: Final[dict[str, tuple[str, str]]] = {
    "run": ("weft.cli.lake_run:run", "Make tables of the drained records, once or continuously."),
    "check": ("weft.cli.lake_run:check", "Compare the tables with the drained records, number by number."),
    "cluster": ("weft.cli.lake_cluster:cluster", "Run a Spark cluster on this machine."),
    "repair": ("weft.cli.lake_mend:repair", "Make a lost checkpoint anew from the state of its tables."),
    "rebuild": ("weft.cli.lake_mend:rebuild", "Rebuild a table from the tables that it is made from."),
    "tune": ("weft.cli.lake_tune:tune", "Make Spark start with less work on this machine."),
    "skip": ("weft.cli.lake_mend:skip", "Give up a segment whose rows are gone, with a reason."),
    "compact": ("weft.cli.lake_keep:compact", "Join small files of the tables to a few sorted ones."),
    "retain": ("weft.cli.lake_keep:retain", "Remove days that are older than the lake's lake.toml allows."),
    "forget": ("weft.cli.lake_keep:forget", "Remove data on purpose: of an origin, of a series, or from before a day."),
    "vacuum": ("weft.cli.lake_keep:vacuum", "Delete files that no version of a table needs any more."),
    "history": ("weft.cli.lake_keep:history", "List the versions of a table: what made them, and when."),
    "missing": ("weft.cli.lake_missing:missing", "List records that are not in the lake, since when and why."),
    "quarantine": ("weft.cli.lake_quarantine:app", "Rows that silver refused: ls, show, retry."),
    "anomalies": ("weft.cli.lake_anomalies:anomalies", "List series that behaved unusually, and why."),
    "fetch": ("weft.cli.lake_fetch:fetch_lake", "Copy what is new of a lake, also of one in an object store."),
    "import": ("weft.cli.lake_import:import_logs", "Read sample logs of other systems into the lake."),
    "export": ("weft.cli.lake_export:export", "Write a table, or a part of it, to a file."),
}
for _name, (_where, _what) in ROOMS.items():
    # The help of one command shows its whole docstring, the list of commands only these words.
    app.command(_where, name=_name, help=None if ["lake", _name] == sys.argv[1:3] else _what)


@app.command
def ls(*, lake: Where = None, json: Flag = False) -> None:
    """List streams and tables: number of rows and bytes, and when the last row arrived.

    `weft lake ls --lake ./lake`

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        json: one JSON object.
    """
    from weft.lake.summary import streams_of, summarize

    home = open_drained(lake)
    drained = [summary for stream in streams_of(home) for summary in _proved(summarize, home, stream)]
    tables = [_table(home, path) for path in sorted(home.tables().glob("*/*")) if (path / "_delta_log").is_dir()]
    if json:
        print_compact({"lake": str(home.root), "drained": drained, "tables": tables})
        return
    print(f"{'drained':24} {'rows':>14} {'bytes':>14} {'segments':>9}  last received")
    for entry in drained:
        name = f"{entry.stream} {entry.drain[:8]}"
        print(f"{name:24} {entry.rows:14,} {entry.bytes:14,} {entry.segments:9,}  {_instant(entry.last_received)}")
    print(f"\n{'table':24} {'rows':>14} {'bytes':>14} {'version':>9}  last commit")
    for table in tables:
        name = table["table"]
        print(
            f"{name:24} {table['rows']:14,} {table['bytes']:14,} {table['version']:9,}  {_instant(table['committed'])}"
        )


@app.command
def schema(table: str, /, *, json: Flag = False) -> None:
    """Columns, types and meanings: of a stream's segments (`samples`), or of a table (`silver.samples`).

    `weft lake schema silver.samples`

    Args:
        table: a stream, or layer and name of a table or view.
        json: the columns as a JSON object.
    """
    found = _schemas()
    if table not in found:
        raise UserError("no-table", f"there is no table {table!r}", ", ".join(found))
    if json:
        columns = [{"name": c.name, "type": c.type, "optional": c.optional, "doc": c.doc} for c in found[table].columns]
        print_compact({"table": table, "columns": columns})
    else:
        print(found[table].markdown())


@app.command
def segments(
    stream: str = "samples", /, *, lake: Where = None, since: int = 1, limit: int | None = None, json: Flag = False
) -> None:
    """List the segments of a stream, and verify that each follows the one before it.

    `weft lake segments logs --since 100 --limit 20`

    Args:
        stream: one of samples messages logs events catalog configuration store documents.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        since: the first segment number.
        limit: at most so many segments.
        json: the manifests as a JSON array.
    """
    from weft.lake.summary import manifests_of

    if stream not in STREAMS:
        raise UserError("no-stream", f"there is no stream {stream!r}", ", ".join(STREAMS))
    found = _proved(lambda: list(manifests_of(open_drained(lake), stream, since)))[:limit]
    if json:
        print_compact(found)
        return
    for manifest in found:
        print(_line(manifest))


@app.command
def verify(*, lake: Where = None, deep: Flag = False, json: Flag = False) -> int:
    """Check that every segment matches its manifest. Exit status 0 if all do, 1 if one does not.

    `weft lake verify --lake ./lake --deep`

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        deep: read every byte, not only sizes and the chain.
        json: one JSON object with the faults.
    """
    from weft.lake.audit import audit
    from weft.lake.summary import streams_of

    home = open_drained(lake)
    looked = [found for stream in streams_of(home) for found in audit(home, stream, deep=deep)]
    faults = [found for found in looked if found.fault is not None]
    if json:
        print_compact({"segments": len(looked), "rows": sum(found.rows for found in looked), "faults": faults})
    else:
        for found in faults:
            print(f"{found.stream} {found.drain}:{found.number} {found.fault}: {found.why}")
        print(f"{len(looked):,} segments, {sum(found.rows for found in looked):,} rows, {len(faults)} faults")
    return NOT_SO if faults else DONE


@app.command
def consumers(*, lake: Where = None, remove: str | None = None, json: Flag = False) -> None:
    """List the registered readers of segments: retention keeps what they have not committed.

    `weft lake consumers`, or `weft lake consumers --remove notebook`

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        remove: forget this consumer; segments that only this consumer needed may then be deleted.
        json: a JSON array.
    """
    from weft.lake import consumers as registered

    home = open_drained(lake)
    if remove is not None and not registered.remove(home, remove):
        names = sorted({consumer.name for consumer in registered.consumers(home)})
        raise UserError(
            "no-consumer",
            f"{remove!r} is not registered",
            f"one of {', '.join(names)}" if names else "nothing: no consumer is registered",
        )
    found = registered.consumers(home)
    if json:
        print_compact(found)
        return
    for consumer in found:
        at = ", ".join(f"{drain[:8]} {number}+{row}" for drain, (number, row) in consumer.offset.at.items())
        print(f"{consumer.name:20} {consumer.stream:14} {_instant(consumer.committed)}  next: {at}")


def open_layout(lake: Path | None) -> Layout:
    """The directory of a lake; UserError `no-lake` if it does not exist, `not-local` if it is in an object store."""
    return open_drained(home_of(lake))


def open_drained(lake: Path | None) -> Layout:
    """A lake, wherever it is, to read its segments; UserError `no-lake` if it does not exist."""
    home = place_of(lake)
    layout = Layout(home)
    if not layout.lake_json.exists() and not (layout.root / "drain").is_dir():
        raise UserError("no-lake", f"{home} is not a lake", "--lake DIR, the directory that the root drains into")
    return layout


def open_whole(lake: Path | None) -> Layout:
    """A lake by its absolute path, which Spark and Delta need; UserError as `open_layout`."""
    return Layout(open_layout(lake).root.absolute())


def confirm(what: str, *, yes: bool) -> None:
    """Raise UserError `not-confirmed` unless --yes was given, or a person confirms on a terminal."""
    if yes or (sys.stdin.isatty() and input(f"{what}? [y/N] ").strip().lower() in ("y", "yes")):
        return
    raise UserError("not-confirmed", f"this would {what}", "the same with --yes")


def _schemas() -> "dict[str, Schema]":
    from weft.lake.schemas import SEGMENTS
    from weft.pipeline.tables import ALL, VIEWS

    tables = [*ALL.values(), *(view.table for view in VIEWS.values())]
    return dict(SEGMENTS) | {table.full_name: table.schema for table in tables}


def _table(lake: Layout, path: Path) -> dict[str, Any]:
    """Rows and bytes of a table from its log; no data file is opened."""
    import pyarrow as pa
    from deltalake import DeltaTable

    delta = DeltaTable(path)
    actions = pa.table(delta.get_add_actions(flatten=True)).to_pydict()
    commit = next(iter(delta.history(1)), {})
    return {
        "table": ".".join(path.relative_to(lake.tables()).parts),
        "rows": sum(actions.get("num_records", [])),
        "bytes": sum(actions["size_bytes"]),
        "files": len(actions["path"]),
        "version": delta.version(),
        "committed": commit.get("timestamp", 0) * 1_000_000,
    }


def _proved(read: Any, *arguments: Any) -> Any:
    """The result of `read`; a broken chain is reported in one sentence."""
    try:
        return read(*arguments)
    except SegmentFault as fault:
        raise UserError(fault.code, str(fault), "weft lake verify") from None


def _line(manifest: Manifest) -> str:
    origins = f"{len(manifest.ranges)} origins" if len(manifest.ranges) != 1 else "1 origin"
    state = "deleted" if manifest.gone else f"{manifest.bytes:,} bytes"
    return (
        f"{manifest.drain[:8]} {manifest.number:8}  {manifest.rows:9,} rows  {state:>16}  {origins:>13}"
        f"  lsn {manifest.lsn[0]}-{manifest.lsn[1]}  {_instant(manifest.last_received)}"
    )


def _instant(wall_ns: int | None) -> str:
    if not wall_ns:
        return "-"
    return datetime.fromtimestamp(wall_ns // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
