"""`weft doctor`: whether this machine can run a node and the jobs of a lake, and what to do if not (OBS-008, PIP-084)."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.kit.exits import DONE, NOT_SO
from weft.cli.kit.lines import print_compact
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean

if TYPE_CHECKING:
    from weft.cli.doctor_node import Patient
    from weft.pipeline.doctor import Finding

Where = Annotated[Path | None, Parameter(name="--lake")]
PORT: Final = 27_500
"""The port at which to ask a node of this machine for its fleet, if none is given."""
EXTRA: Final = "only where tables are made: "
ABSENT_MAX: Final = 3  # missing accounts that are listed by name


def doctor(
    file: Path | None = None,
    /,
    *,
    name: str | None = None,
    state: str | None = None,
    port: int | None = None,
    fleet: str | None = None,
    lake: Where = None,
    no_spark: Flag = False,
    fix: Flag = False,
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Check this machine, a node's file, state, journal and ports, its fleet, and a lake; say what is wrong and what to do.

    `weft doctor`, `weft doctor sensor.toml`, `weft doctor --name s1 --port 27510`, `weft doctor --lake ./lake --no-spark`

    No node has to run; a running one is asked for its health. Without a file or a name, all nodes with a state directory
    here are checked. If a node answers at the port, its fleet is checked, too: who is silent, behind, or of another
    version. With a lake, Spark is started, must find Weft's data source, and writes and commits 1,000 rows. Each finding is
    `ok`, `warn` or `fail`, and says what to try. Exit status 0 if nothing fails, else 1.

    Args:
        file: a node's TOML file, as weft up takes it.
        name: the node's name, here or in the file.
        state: its state directory; default: where weft up would put it.
        port: first of its ten ports.
        fleet: name of its fleet.
        lake: the lake's directory; default: $WEFT_LAKE, else no lake is checked.
        no_spark: skip the check of Spark, which takes long.
        fix: repair what can be repaired without loss: modes of the state directory and keys, and files of a dead node.
        json: a JSON object per finding: what, state, text, mend.
    """
    from weft.pipeline.doctor import BROKEN

    named = lake or (Path(os.environ["WEFT_LAKE"]) if os.environ.get("WEFT_LAKE") else None)
    flags = {"name": name, "state": state, "port": port}
    is_well = True
    for found in _findings(file, flags, fleet, named, with_spark=not no_spark, with_fixes=fix):
        is_well &= found.state != BROKEN
        _show(found, json=json)
    if not json and is_well:
        print("nothing fails here")
    return DONE if is_well else NOT_SO


def _show(found: "Finding", *, json: bool) -> None:
    if json:
        print_compact(found._asdict())
    else:
        print(clean(f"{found.state:4} {found.what:10} {found.text}", keeps="\n"))
        if found.mend:
            print(clean(f"     {'':10} try: {found.mend}"))
    sys.stdout.flush()


def _findings(
    file: Path | None,
    flags: dict[str, Any],
    fleet: str | None,
    lake: Path | None,
    *,
    with_spark: bool,
    with_fixes: bool,
) -> Iterator["Finding"]:
    from weft.cli import doctor_fix, doctor_fleet, doctor_node
    from weft.pipeline.doctor import BROKEN, Finding

    yield doctor_node.machine()
    yield doctor_node.time_of_day()
    try:
        patients = list(_patients(file, flags, fleet))
    except UserError as error:
        yield Finding("file", BROKEN, error.text, error.try_this)
    else:
        for patient in patients:
            mend = doctor_fix.mended if with_fixes else None
            yield from doctor_node.findings(patient, doctor_fix.ALL_LOOKS, mend)
        port = next((patient.settings.node.port for patient in patients if patient.is_described), PORT)
        yield from doctor_fleet.findings(port)
    yield from _of_lake(lake, with_spark=with_spark)


def _patients(file: Path | None, flags: dict[str, Any], fleet: str | None) -> Iterator["Patient"]:
    """The named node, else all nodes whose state is where `weft up` puts it; UserError as `weft up` would raise it."""
    from weft.cli import up
    from weft.cli.doctor_node import Patient
    from weft.node.settings import read_document, settings_of
    from weft.shell.process import state_directory

    document = read_document(up.text_of(file), str(file)) if file else {}
    given = {key: value for key, value in flags.items() if value is not None}
    if file is None and not given:
        yield from states_here(fleet)
        return
    document["node"] = {**document.get("node", {}), **given}
    if fleet is not None:
        document["fleet"] = {**document.get("fleet", {}), "name": fleet}
    if file is not None:
        up.read_schemas(document, file.parent)
    settings = settings_of(document, str(file) if file else "the command line")
    yield Patient(settings, state_directory(settings))


def states_here(fleet: str | None) -> Iterator["Patient"]:
    """All nodes whose state is where `weft up` puts it; only their state is known, not their settings."""
    from weft.cli.doctor_node import STATES_MAX, Patient
    from weft.node.settings import settings_of

    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "weft"
    for place in sorted(base.glob(f"{fleet or '*'}/*/node.json"))[:STATES_MAX]:
        known = {"node": {"name": place.parent.name}, "fleet": {"name": place.parent.parent.name}}
        yield Patient(settings_of(known), place.parent, is_described=False)


def _of_lake(lake: Path | None, *, with_spark: bool) -> Iterator["Finding"]:
    """What the jobs of a lake need. If no lake is named, a missing package is no fault."""
    from weft.lake.layout import Layout
    from weft.pipeline.doctor import BROKEN, WARNING, Doctor
    from weft.pipeline.session import default_state

    looks = Doctor(default_state(), Layout(lake.absolute()) if lake else None)
    for found in looks.findings(with_spark=with_spark and lake is not None):
        if lake is None and found.state == BROKEN:
            yield found._replace(state=WARNING, text=EXTRA + found.text)
        elif lake is not None or found.what not in ("space", "clock"):
            yield found
    if lake is not None:
        yield _missing(lake)


def _missing(lake: Path) -> "Finding":
    """What of all records that are known to exist is not in the lake."""
    from weft.pipeline.doctor import FINE, WARNING, Finding

    try:
        from weft.pipeline.absent import accounts

        found = accounts(lake)
    except UserError as error:
        return Finding("missing", WARNING, error.text, error.try_this)
    except ImportError as error:
        return Finding("missing", WARNING, f"cannot be asked: {error}", "pip install 'weft[lake]'")
    if found.is_whole:
        return Finding("missing", FINE, "nothing is missing of what is known to exist")
    rows = [row for row in found.rows if row.missing]
    listed = "; ".join(f"{row.missing:,} of {row.who}" for row in rows[:ABSENT_MAX])
    waiting = f"{found.waiting:,} segments are not in the tables yet" if found.waiting else ""
    return Finding("missing", WARNING, "; ".join(filter(None, (listed, waiting))), f"weft lake missing --lake {lake}")
