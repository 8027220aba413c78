"""`weft service`: installs, restarts and removes nodes and the driver of a lake as units of systemd (OPS-002)."""

import json as json_module
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from cyclopts import App, Parameter

from weft.base.errors import UserError
from weft.cli.kit.options import Flag
from weft.cli.service_units import STATE, Service, unit_of
from weft.cli.up import text_of
from weft.node.settings import MIB, read_document, settings_of

app = App(name="service", help="Nodes and the lake as services of systemd: install, ls, restart, remove.")

MODE: Final = 0o600
MEMORY_TIMES: Final = 2
"""The kernel's limit as a multiple of the node's: the node ends itself at 1.25, so the kernel rarely has to (SEC-014)."""
BOOTED: Final = Path("/run/systemd/system")
"""This directory exists if systemd runs."""
Mine = Annotated[bool, Parameter(name="--user", negative="", show_default=False)]
Stage = Annotated[Path | None, Parameter(name="--root")]


class Places(NamedTuple):
    """The directories of services' files."""

    units: Path
    settings: Path
    state: Path
    is_mine: bool
    is_staged: bool
    """Whether files go below another root directory; then systemd is not called."""

    def systemctl(self, *words: str) -> str:
        """The output of systemctl; empty if files are staged or systemd does not run; UserError `unavailable`."""
        if self.is_staged or not BOOTED.is_dir():
            return ""
        program = shutil.which("systemctl") or "systemctl"
        result = subprocess.run(
            [program, *(["--user"] if self.is_mine else []), *words], capture_output=True, text=True, check=False
        )
        if result.returncode and words[0] not in {"show", "disable"}:
            raise UserError("unavailable", f"systemctl {' '.join(words)}: {result.stderr.strip()}", "journalctl -xe")
        return result.stdout


def places_of(stage: Path | None, *, is_mine: bool) -> Places:
    """Where files go; below `stage` if it is given, as for an image."""
    if is_mine:
        home = Path.home()
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        state = Path(os.environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "weft"
        return Places(config / "systemd" / "user", config / "weft", state, is_mine=True, is_staged=False)
    top = stage or Path("/")
    units, settings, state = (top / part for part in ("etc/systemd/system", "etc/weft", STATE.lstrip("/")))
    return Places(units, settings, state, is_mine=False, is_staged=stage is not None)


def own_places() -> Places:
    """The directories for this user's services: for root those of the system. UserError if systemd cannot run any here."""
    places = places_of(None, is_mine=bool(os.geteuid()))
    _ready(places)
    return places


@app.command
def install(  # tidy: each is an option of the command line
    file: Path | None = None,
    /,
    *,
    lake: str | None = None,
    memory: str = "",
    mine: Mine = False,
    root: Stage = None,
    show: Annotated[bool, Parameter(name="--print", negative="", show_default=False)] = False,
    json: Flag = False,
) -> int:
    """Let systemd run a node from now on, also after a boot: weft service install node.toml.

    The file is copied to /etc/weft/NAME.toml, with the file of [node] config beside it; the state is in
    /var/lib/weft/NAME. Run it again with a changed file to replace the file and restart the node.

    Args:
        file: the node's TOML file, as for weft up.
        lake: install the driver of a lake instead of a node: --lake lake, a path below /var/lib/weft.
        memory: systemd restarts the service if it uses more, e.g. 512M; default: twice the node's own limit.
        mine: a unit of the user, without root; files in ~/.config, state in ~/.local/state/weft.
        root: put files below this directory, as for an image, and start nothing.
        show: only print the unit.
        json: {"name", "unit", "runs"}: the path of the unit, and whether it was started.
    """
    places = places_of(root, is_mine=mine)
    copies: dict[Path, str] = {}
    if lake is not None:
        service = Service("lake", f"Weft: tables of {lake}", ("lake", "run", "--lake", lake), memory=memory)
    elif file is not None:
        service, copies = _node(file, places, memory)
    else:
        raise UserError(
            "usage",
            "neither a node's file nor --lake is given",
            "weft service install node.toml; weft up --example prints such a file",
        )
    state = str(places.state) if places.is_mine else STATE
    unit = unit_of(service, sys.executable, state=state, is_mine=mine)
    if show:
        print(unit, end="")
        return 0
    _ready(places)
    for path, text in copies.items():
        _write(path, text, MODE)
    if mine:
        places.state.mkdir(parents=True, exist_ok=True)
    _write(places.units / service.unit, unit, 0o644)
    places.systemctl("daemon-reload")
    places.systemctl("enable", service.unit)
    places.systemctl("restart", service.unit)
    if json:
        facts = {"name": service.name, "unit": str(places.units / service.unit), "runs": not places.is_staged}
        print(json_module.dumps(facts))
        return 0
    print(f"{service.unit} {'is written' if places.is_staged else 'runs'}: {places.units / service.unit}")
    print(
        f"its log: journalctl {'--user ' if mine else ''}-u {service.unit}; to remove it: weft service remove {service.name}"
    )
    return 0


@app.command
def ls(*, mine: Mine = False, root: Stage = None, json: Flag = False) -> int:
    """Show the services of this machine, and whether they run.

    Args:
        mine: services of the user instead of the system's.
        root: services below this directory.
        json: as JSON.
    """
    places = places_of(root, is_mine=mine)
    rows = [
        {"name": unit.stem.removeprefix("weft-"), "unit": str(unit), **_shown(places, unit.name)}
        for unit in _units(places)
    ]
    if json:
        print(json_module.dumps(rows))
        return 0
    for row in rows:
        print(f"{row['name']:16} {row.get('ActiveState', 'not asked'):10} {row['unit']}")
    if not rows:
        print("no service of Weft is installed here: weft service install node.toml")
    return 0


@app.command
def restart(name: str | None = None, /, *, mine: Mine = False, json: Flag = False) -> int:
    """Start services again, one after the other: after an upgrade, or one by its name.

    Args:
        name: of the service; left out: all.
        mine: services of the user instead of the system's.
        json: {"unit"} of each, a line as soon as it runs again.
    """
    places = places_of(None, is_mine=mine)
    for unit in [_known(places, name)] if name else _units(places):
        places.systemctl("restart", unit.name)
        print(json_module.dumps({"unit": unit.name}) if json else f"{unit.name} runs again", flush=True)
    return 0


@app.command(name=("remove", "uninstall"))
def remove(  # tidy: each is an option of the command line
    name: str, /, *, purge: Flag = False, mine: Mine = False, root: Stage = None, json: Flag = False
) -> int:
    """Stop a service, and remove its unit and its settings; its state stays, unless it is purged.

    Args:
        name: of the node, or lake.
        purge: also remove its state: journal, identity, keys. Records that are not safe at the root are lost. A lake stays.
        mine: a service of the user instead of the system's.
        root: a service below this directory.
        json: {"unit", "state"}: the directory of its state, or null.
    """
    places = places_of(root, is_mine=mine)
    unit = _known(places, name)
    places.systemctl("disable", "--now", unit.name)
    for path in (unit, places.settings / f"{name}.toml", places.settings / f"{name}.fleet.toml"):
        path.unlink(missing_ok=True)
    if places.settings.is_dir() and not any(places.settings.iterdir()):
        places.settings.rmdir()
    places.systemctl("daemon-reload")
    state = places.state / name
    if purge and name != "lake" and state.is_dir():
        shutil.rmtree(state)
    state_note = f"; its state stays in {state}" if state.is_dir() else ""
    facts = {"unit": unit.name, "state": str(state) if state.is_dir() else None}
    print(json_module.dumps(facts) if json else f"{unit.name} is removed{state_note}")
    return 0


def _node(file: Path, places: Places, memory: str) -> tuple[Service, dict[Path, str]]:
    """The service of a node's file, and the files that it needs."""
    text = text_of(file)
    document: dict[str, Any] = read_document(text, str(file))
    settings = settings_of(document, str(file))
    name, state = settings.node.name, settings.node.state
    if state and not places.is_mine and not Path(state).is_relative_to(STATE):
        mend = f"leave [node] state out of {file}, or put it below {STATE}"
        raise UserError("bad-settings", f"a service of the system keeps its state below {STATE}, not in {state}", mend)
    own = places.settings / f"{name}.toml"
    copies, files = {own: text}, [("", _seen(places, own))]
    if settings.node.config:
        fleet = places.settings / f"{name}.fleet.toml"
        copies[fleet] = text_of(file.parent / settings.node.config)
        files.append(("--config", _seen(places, fleet)))
    elif settings.place == "root":
        files.append(("--config", _seen(places, own)))
    words = ("up", *(() if state else ("--state", f"{places.state if places.is_mine else STATE}/{name}")))
    memory = memory or f"{settings.memory_bytes * MEMORY_TIMES // MIB}M"
    return Service(name, f"Weft: node {name}", words, tuple(files), memory), copies


def _seen(places: Places, path: Path) -> str:
    """A path as the running unit sees it, without the stage."""
    return str(path) if places.is_mine else f"/etc/weft/{path.name}"


def _ready(places: Places) -> None:
    """Check, before anything is written, that systemd runs here and can run this Weft; UserError if not."""
    if places.is_staged:
        return
    if not BOOTED.is_dir() or not shutil.which("systemctl"):
        mend = "weft service install --print shows the unit; --root DIR writes it for another machine"
        raise UserError("no-systemd", "systemd does not run on this machine", mend)
    if places.is_mine:
        return
    if os.geteuid():
        raise UserError("refused", "services of the system are root's", "sudo, or weft service install --user")
    if any(Path(sys.prefix).is_relative_to(home) for home in ("/root", "/home")):
        mend = "python3 -m venv /opt/weft, install Weft there, and use /opt/weft/bin/weft; or --user"
        raise UserError("refused", f"a service could not read {sys.prefix}: it runs as a user of its own", mend)


def _units(places: Places) -> list[Path]:
    return sorted(places.units.glob("weft-*.service"))


def _known(places: Places, name: str) -> Path:
    unit = places.units / f"weft-{name}.service"
    if unit not in _units(places):
        there = ", ".join(each.stem.removeprefix("weft-") for each in _units(places)) or "none"
        raise UserError("usage", f"there is no service {name!r} here; there is {there}", "weft service ls")
    return unit


def _shown(places: Places, unit: str) -> dict[str, str]:
    result = places.systemctl("show", "-p", "ActiveState,MainPID,NRestarts", unit)
    return dict(line.split("=", 1) for line in result.splitlines() if "=" in line)


def _write(path: Path, text: str, mode: int) -> None:
    """Write the file whole, or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(text, "utf-8")
        fresh.chmod(mode)
        fresh.replace(path)
    except OSError as error:
        raise UserError("refused", f"{path} cannot be written: {error.strerror}", "sudo, or --user") from None
