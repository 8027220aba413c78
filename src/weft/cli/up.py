"""`weft up`: run one node here."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
from cyclopts import Parameter

from weft.base.errors import UserError
from weft.node.settings import read_document, settings_of

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
"""


def up(
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
    check: Annotated[bool, Parameter(negative="")] = False,
    example: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Run one node until it is told to stop (Ctrl-C or SIGTERM).

    `weft up node.toml`, or without a file: `weft up --name root --level root --lake ./lake`, then on the same machine
    `weft up --name s1 --parent root --port 27510`. Flags stand above the file.

    Args:
        file: the node's TOML file, with the tables [node] [fleet] [metric.NAME] [[chains.filter]] [lake] [journal].
        name: unique in the fabric.
        level: root, collector or sensor.
        parent: the parent's name, found by its beacon, or its host:port.
        port: first of the node's ten ports (27500).
        state: directory of journal and identity.
        lake: directory the root drains into.
        fleet: name of the fabric.
        check: say whether the settings can be used, and start nothing.
        example: print a file to begin with.
    """
    if example:
        print(EXAMPLE, end="")
        return
    document = read_document(_text(file), str(file)) if file else {}
    flags = {"name": name, "level": level, "parent": parent, "port": port, "state": state}
    _overlay(document, "node", flags)
    _overlay(document, "lake", {"path": lake})
    _overlay(document, "fleet", {"name": fleet})
    settings = settings_of(document, str(file) if file else "the command line")
    if check:
        print(f"{settings.node.name}: {len(settings.metrics)} metrics, {len(settings.filters)} filters, usable")
    else:
        _become(document)


def _become(document: dict[str, Any]) -> NoReturn:
    # A fresh, lean process: the command line's libraries would double a sensor's memory.
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "weft.shell.serve", msgspec.json.encode(document).decode()])  # noqa: S606  # our own interpreter


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("no-file", f"{file} cannot be read: {error}", "weft up --help shows an example") from None


def _overlay(document: dict[str, Any], table: str, flags: dict[str, Any]) -> None:
    given = {key: value for key, value in flags.items() if value is not None}
    if given:
        document[table] = {**document.get(table, {}), **given}
