"""`weft up`: run one node here."""

from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import msgspec
from cyclopts import Parameter

from weft.base.errors import UserError, why_unread
from weft.cli.kit.options import Flag
from weft.cli.start import named, run
from weft.node.settings import read_document, settings_of
from weft.node.tables import describes_fleet

FLAGS: Final = "the command line"
EXAMPLE = """\
# A node of a fabric; start it with: weft up node.toml
[fleet]
name = "lab"                # nodes of other fleets are not heard

[node]
name = "sensor-1"           # unique in the fabric
level = "sensor"            # root, collector or sensor
parent = "root"             # a name, found by its beacon, or host:port; the root has none
port = 27510                # first of ten: +6 status pages, +7 children
state = "./state/sensor-1"  # journal and identity

[metric.cpu]
detail = "CPU"
rate = "1s"

[metric.process_cpu]
detail = "PROC_CPU"
rate = "2s"
per = "name"                # one series per process name

[[chains.filter]]           # before samples are numbered
name = "large-processes"
kind = "threshold"
types = ["weft.metric"]
dir = "out"
where = { name = "process_memory" }
field = "value"
above = 20e6

[lake]                      # a root drains into it
path = "./lake"

[journal]
megabytes = 64              # how much may wait on disk while the parent is away

[configuration]
keys = 200_000              # how large a configuration this node takes; as large at a root as below it

[store]                     # the node holds the shared store: weft set, get, watch
peers = ["127.0.0.1:27520"]  # only for whom no beacon reaches

[catalog]                   # the node knows every service: weft catalog ls, watch, logs
port = 5246

[doc.session.minutes]       # a document edited together: weft doc add, set, show, log
schema = "plain"
peers = ["127.0.0.1:50001"]  # only for whom mDNS does not reach
"""


def up(  # tidy: each is an option of the command line
    file: Path | None = None,
    /,
    *,
    name: str | None = None,
    level: str | None = None,
    parent: str | None = None,
    port: int | None = None,
    state: str | None = None,
    lake: str | None = None,
    fleet: str | None = None,
    config: Path | None = None,
    join: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    record: Path | None = None,
    listen: str | None = None,
    is_open: Annotated[bool, Parameter(name="--open", negative="", show_default=False)] = False,
    check: Flag = False,
    example: Flag = False,
) -> None:
    """Run one node until it is told to stop (Ctrl-C or SIGTERM).

    The root: `weft up --name root --level root --config fleet.toml --lake ./lake`. Every other node, on the same
    machine: `weft up --name s1 --port 27510`; the root gives it a place, and `weft status` shows where. Options override
    the file. docs/configuration.md describes a fleet's file.

    Args:
        file: the node's TOML file, with the tables [node] [fleet] [metric.NAME] [[chains.filter]] [lake] [journal] [configuration] [store] [catalog] [doc];
            a root's file may be the fleet's file, too.
        name: unique in the fleet; needed, here or in the file.
        level: root; or collector or sensor, under a fixed parent. Left out: the root decides.
        parent: a fixed parent's name, found by its beacon, or its host:port.
        port: first of the node's ten ports (27500).
        state: directory of journal and identity (~/.local/state/weft/FLEET/NAME); one node each, kept between starts.
        lake: directory the root drains into.
        fleet: name of the fleet; nodes of other fleets are ignored (weft).
        config: at a root: the fleet's file, read when a new fleet begins; later only weft config load reads it.
        join: host:port of nodes to contact first, where no beacon reaches.
        record: write everything that the node receives and does to this file; weft sim replay FILE repeats it. The file
            contains values and the node's secret.
        listen: the address at which others reach the node (127.0.0.1); any other needs keys, or --open.
        is_open: use no keys: everybody who reaches a port may read and write everything; for a network that you trust.
        check: only say whether the settings can be used; start nothing.
        example: print a file to begin with.
    """
    if example:
        print(EXAMPLE, end="")
        return
    document = read_document(text_of(file), str(file)) if file else {}
    flags = {"name": name, "level": level, "parent": parent, "port": port, "state": state}
    _overlay(document, "node", flags)
    _overlay(document, "node", {"config": _fleet_file(document, file, config), "join": list(join) or None})
    _overlay(document, "node", {"record": None if record is None else str(record.resolve())})
    _overlay(document, "node", {"host": listen})
    _overlay(document, "security", {"mode": "none", "allow_insecure": True} if is_open else {})
    _overlay(document, "lake", {"path": lake})
    _overlay(document, "fleet", {"name": fleet})
    read_schemas(document, file.parent if file else Path())
    where = str(file) if file else FLAGS
    settings = settings_of(document, where)
    if check:
        counted = [_counted(len(settings.metrics), "metric"), _counted(len(settings.filters), "filter")]
        print(f"{settings.node.name}: {', '.join(counted)}, usable")
    else:
        become(document, where)


def read_schemas(document: dict[str, Any], beside: Path) -> None:
    """Replace the file name of a schema by the file's text: `[doc.session.NAME] schema = "minutes.toml"`."""
    doc = document.get("doc")
    sessions = doc.get("session") if isinstance(doc, dict) else None
    for session in sessions.values() if isinstance(sessions, dict) else ():
        schema = session.get("schema") if isinstance(session, dict) else None
        if isinstance(schema, str) and schema.endswith(".toml"):
            session["schema"] = text_of(beside / schema)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _fleet_file(document: dict[str, Any], file: Path | None, config: Path | None) -> str | None:
    """The file that describes the fleet of a root: as given, else the root's own file if it describes one."""
    if config is not None:
        return str(config.resolve())
    return str(file.resolve()) if file is not None and describes_fleet(document) else None


def become(document: dict[str, Any], where: str = FLAGS) -> NoReturn:
    """Become the node of these tables; `where` they were read is named in errors."""
    from weft.client.doc.finding import note

    note(document)
    run(msgspec.json.encode(document), where, *named(document))


def text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            "no-file",
            f"{file} cannot be read: {why_unread(error)}",
            "the path of a file; weft up --example prints one of a node",
        ) from None


def _overlay(document: dict[str, Any], table: str, flags: dict[str, Any]) -> None:
    given = {key: value for key, value in flags.items() if value is not None}
    if given:
        document[table] = {**document.get(table, {}), **given}
