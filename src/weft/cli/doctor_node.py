"""The checks of one node by `weft doctor`: its file, state, journal and ports. The node need not run (OBS-008).

Each check says in one sentence what it found, and what to do if something is wrong. One check writes a small file into the
state directory and removes it.
"""

import contextlib
import fcntl
import os
import platform
import re
import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft import __version__
from weft.base.endpoints import host_of, is_address, is_loopback, port_of
from weft.base.errors import StorageFailed, UserError
from weft.cli.asking import status_of
from weft.node.settings import MIB, NodeSettings
from weft.pipeline.doctor import BROKEN, FINE, OLDEST_S, WARNING, Finding

STATES_MAX: Final = 16  # nodes of this machine that are checked if none is named
USED: Final = (0, 1, 2, 3, 4, 6, 7)  # the ports of a block that every node binds
FREE_WARN: Final = 1 << 30
FREE_MIN: Final = 64 * MIB  # less counts as full (JRN-031)
INODES_MIN: Final = 1_000  # a journal needs a dozen; a device without any takes no segment
AHEAD_S: Final = 60.0
PYTHON_MIN: Final = (3, 11)
NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
"""The name of a package, at the beginning of a requirement."""
LISTENS: Final = "0A"
"""State of a listening socket in /proc/net/tcp."""


class Patient(NamedTuple):
    """One node to look at: its settings, and where it keeps its state."""

    settings: NodeSettings
    state: Path
    is_described: bool = True
    """Whether its file or flags were given; else only its state is known, not its port."""

    @property
    def name(self) -> str:
        return self.settings.node.name

    @property
    def journal(self) -> Path:
        return self.state / "journal"


Look = Callable[[Patient], Finding | None]
Mend = Callable[[Patient, str, Finding], Finding]
"""Repairs what a check found, given the check's name; returns the new finding, or the same if nothing was repaired."""


def findings(patient: Patient, looks: Mapping[str, Look], treat: Mend | None = None) -> Iterator[Finding]:
    """All findings about one node; an error of the machine is a finding, too."""
    for what, look in looks.items():
        if not patient.is_described and what in OF_SETTINGS:
            continue
        try:
            found = look(patient)
        except (UserError, StorageFailed) as error:
            text, mend = (error.text, error.try_this) if isinstance(error, UserError) else (str(error), SEE_DISK)
            found = Finding(what, BROKEN, text, mend)
        except OSError as error:
            found = Finding(what, BROKEN, f"{error.filename or patient.state}: {error.strerror}", SEE_DISK)
        if found is not None and treat is not None:
            found = treat(patient, what, found)
        if found is not None:
            yield found._replace(what=f"{patient.name}: {what}")


FIX: Final = "weft doctor --fix"
SEE_DISK: Final = "look at the disk: dmesg, mount"


def machine() -> Finding:
    """The interpreter and the libraries that a node loads."""
    import zmq

    versions, absent = [], []
    for name in _needed():
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            absent.append(name)
    text = f"Weft {__version__}, Python {platform.python_version()}, libzmq {zmq.zmq_version()}, {', '.join(versions)}"
    if absent:
        return Finding(
            "software", BROKEN, f"{text}; missing: {', '.join(absent)}", "pip install --force-reinstall weft"
        )
    if tuple(map(int, platform.python_version_tuple()[:2])) < PYTHON_MIN:
        return Finding("software", BROKEN, f"{text}: Python is too old", "Python 3.11 or later")
    return Finding("software", FINE, text)


def _needed() -> list[str]:
    """The packages that Weft itself asks for, without its extras."""
    lines = [line for line in requires("weft") or () if "extra ==" not in line]
    return [found.group() for line in lines if (found := NAME.match(line))]


def time_of_day(now: Callable[[], float] = time.time) -> Finding:
    """Whether the clock can be right at all."""
    clock = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now()))
    if now() < OLDEST_S:
        return Finding(
            "clock",
            BROKEN,
            f"it says {clock}, which is before this version of Weft was made",
            "timedatectl set-ntp true",
        )
    return Finding("clock", FINE, clock)


# Of a node


def address(patient: Patient) -> Finding:
    """Where the node listens: if it has no keys, everybody who reaches it can pose as any node."""
    host, port = patient.settings.node.host, patient.settings.node.port
    if is_loopback(host):
        return Finding("address", FINE, f"{host}, ports {port} to {port + 9}: only programs of this machine reach it")
    text = f"{host}, ports {port} to {port + 9}, and this fabric is open: whoever reaches them can pose as any node"
    return Finding("address", WARNING, text, '[node] host = "127.0.0.1", or a network that you trust')


def directory(patient: Patient) -> Finding:
    """Whether the state directory is there, private, and can be written, synced and renamed in (JRN-033)."""
    state = patient.state
    if not state.exists():
        above = next(parent for parent in state.parents if parent.exists())
        if not os.access(above, os.W_OK):
            return Finding(
                "state", BROKEN, f"{state} is not there, and {above} cannot be written", f"chmod u+w {above}"
            )
        return Finding("state", FINE, f"{state} is not there yet: the first weft up makes it")
    _try_writing(state)
    mode = stat.S_IMODE(state.stat().st_mode)
    if mode & 0o077:
        return Finding("state", WARNING, f"{state} can be read by others (mode {mode:o})", FIX)
    return Finding("state", FINE, f"{state} can be written, synced and renamed in")


def _try_writing(state: Path) -> None:
    """StorageFailed names the mount if the file system refuses any step that a journal needs."""
    trial = state / f".doctor-{os.getpid()}"
    try:
        file = os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, b"weft doctor")
            os.fsync(file)
        finally:
            os.close(file)
        trial.rename(trial.with_suffix(".renamed"))
        folder = os.open(state, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise UserError(
            "storage-failed",
            f"the state directory {state} cannot be written: {error.strerror} (mount {_mount_of(state)})",
            f"mount -o remount,rw {_mount_of(state)}, or another [node] state",
        ) from error
    finally:
        for left in (trial, trial.with_suffix(".renamed")):
            with contextlib.suppress(OSError):
                left.unlink()


def _mount_of(path: Path) -> Path:
    from weft.shell.files import Files

    return Files().mount_point(path)


def identity(patient: Patient) -> Finding | None:
    """Whether the state directory belongs to this node."""
    from weft.shell.identity import identity_in

    known = identity_in(patient.state)
    if known is None:
        return None
    if known.name != patient.name:
        text = f"{patient.state} is the state of node {known.name!r}"
        return Finding("identity", BROKEN, text, f"--name {known.name}, or another --state")
    return Finding("identity", FINE, f"node {known.node}")


def runs_as(patient: Patient) -> str | None:
    """The process that works on this journal; empty: none; None: there is no journal yet."""
    path = patient.journal / "lock"
    if not path.is_file():
        return None
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return file.read(20).decode("ascii", "replace").strip() or "unknown"
    return ""


def lock(patient: Patient) -> Finding | None:
    """Whether a process works on this journal. The kernel releases the lock when that process ends."""
    process = runs_as(patient)
    if process is None:
        return None
    return Finding("lock", FINE, f"process {process} runs this node" if process else "free: no process runs this node")


def journal(patient: Patient) -> Finding | None:
    """Whether the journal is whole: every byte is read."""
    from weft.shell.files import Files
    from weft.shell.identity import identity_in
    from weft.shell.journal.verify import faults, verify

    where = patient.journal
    if not where.is_dir():
        return None
    known = identity_in(patient.state)
    node = known.node_id if known else None
    reports, reasons = list(verify(Files(), where, node)), faults(Files(), where, node)
    bad = [report.file for report in reports if not report.is_good]
    size = f"{len(reports)} file{'s' * (len(reports) != 1)}, {sum(report.bytes for report in reports):,} bytes"
    if reasons:
        return Finding("journal", BROKEN, f"no node starts on it: {reasons[0]}", f"weft journal repair {where} --write")
    if bad:
        mend = f"weft journal verify {where}, then weft journal accept-loss {where}"
        return Finding("journal", BROKEN, f"{size}; damaged: {', '.join(bad)}", mend)
    return Finding("journal", FINE, f"{size}: nothing is missing")


def room(patient: Patient) -> Finding:
    """Free bytes and files of the device, against what the journal may use (JRN-031)."""
    place = next(path for path in (patient.journal, *patient.journal.parents) if path.exists())
    facts = os.statvfs(place)
    free, files = facts.f_bavail * facts.f_frsize, facts.f_favail
    budget = patient.settings.journal_bytes
    text = f"{free // MIB:,} MiB are free on {_mount_of(place)}; the journal may use {budget // MIB:,} MiB"
    mend = f"make room on {_mount_of(place)}, or another [node] state"
    if free < FREE_MIN:
        return Finding("room", BROKEN, text, mend)
    if facts.f_files and files < INODES_MIN:
        return Finding("room", BROKEN, f"only {files} more files fit on {_mount_of(place)}", mend)
    return Finding("room", FINE, text) if free >= min(FREE_WARN, budget) else Finding("room", WARNING, text, mend)


def clock(patient: Patient, now: Callable[[], float] = time.time) -> Finding | None:
    """Whether the clock is earlier than the newest record of this node."""
    written = max((file.stat().st_mtime for file in patient.journal.glob("*.seg")), default=0.0)
    if not written:
        return None
    if written > now() + AHEAD_S:
        text = f"it is {written - now():.0f} s behind the last write of this journal"
        return Finding("clock", WARNING, text, "timedatectl set-ntp true")
    return Finding("clock", FINE, "not behind what this node has written")


def ports(patient: Patient) -> Finding:
    """Whether its ports are free, or its own."""
    table = patient.settings.node
    taken = {port: holder for port in (table.port + offset for offset in USED) if (holder := holder_of(port))}
    if not taken:
        return Finding("ports", FINE, f"{table.port} to {table.port + 9} are free")
    status = running(patient)
    if status is not None and status["name"] == table.name:
        return Finding("ports", FINE, f"{table.port} to {table.port + 9} are its own")
    listed = "; ".join(f"{port} by {holder}" for port, holder in taken.items())
    return Finding("ports", BROKEN, f"in use: {listed}", f"stop that, or another [node] port than {table.port}")


def holder_of(port: int) -> str:
    """The process that listens at a TCP port of this machine, if the kernel shows it; empty: none."""
    for parts in map(str.split, _sockets()):
        if parts[3] == LISTENS and int(parts[1].rpartition(":")[2], 16) == port:
            return _process_of(parts[9])
    return ""


def _sockets() -> Iterator[str]:
    """The lines of the kernel's tables of TCP sockets."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            yield from Path(table).read_text("ascii").splitlines()[1:]


def _process_of(inode: str) -> str:
    wanted = f"socket:[{inode}]"
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(str(link.readlink()) == wanted for link in (place / "fd").iterdir()):
                return f"process {place.name} ({(place / 'comm').read_text('utf-8').strip()})"
    return "a process of another user"


def running(patient: Patient) -> dict[str, Any] | None:
    """The status of the running node; None if no node answers at its port."""
    host = patient.settings.node.host
    try:
        return status_of(patient.settings.node.port, host if is_loopback(host) else "127.0.0.1")
    except UserError:
        return None


def parent(patient: Patient) -> Finding | None:
    """Whether the parent, and the nodes of `join`, can be found by name and answer."""
    table = patient.settings.node
    named = [*([table.parent] if table.parent else []), *table.join]
    places = [text for text in named if is_address(text)]
    for text in places:
        try:
            socket.getaddrinfo(host_of(text), port_of(text), type=socket.SOCK_STREAM)
        except OSError as error:
            mend = f"mend the name, or write an address in place of {host_of(text)}"
            return Finding("parent", BROKEN, f"{host_of(text)} cannot be resolved: {error.strerror or error}", mend)
    silent = [text for text in places if not _answers(text)]
    if silent:
        mend = f"see whether weft runs there; nc -vz {host_of(silent[0])} {port_of(silent[0]) + 6}"
        return Finding("parent", WARNING, f"nobody answers at {', '.join(silent)}; records wait on disk", mend)
    if places:
        return Finding("parent", FINE, f"{', '.join(places)} answers")
    return Finding("parent", FINE, f"{table.parent} is found by its beacon") if table.parent else None


def _answers(text: str) -> bool:
    try:
        status_of(port_of(text), host_of(text))
    except UserError:
        return False
    return True


def health(patient: Patient) -> Finding | None:
    """The health that the running node reports; None if it does not run."""
    status = running(patient)
    if status is None:
        return None
    if status["name"] != patient.name:
        return None  # the check `ports` reports it
    bad = [check for check in status["health"]["checks"] if check["state"] != "ok"]
    if not bad:
        return Finding("health", FINE, f"it runs since {status['uptime_s']:,} s, and all its checks are ok")
    state = BROKEN if status["health"]["state"] == "failed" else WARNING
    text = "; ".join(f"{check['name']}: {check['text']}" for check in bad)
    return Finding(
        "health", state, text, "; ".join(check["do"] for check in bad if check["do"]) or "weft status --long"
    )


LOOKS: Final[dict[str, Look]] = {
    "address": address,
    "state": directory,
    "identity": identity,
    "lock": lock,
    "journal": journal,
    "room": room,
    "clock": clock,
    "ports": ports,
    "parent": parent,
    "health": health,
}
OF_SETTINGS: Final = frozenset({"address", "ports", "parent", "health"})
"""Checks that need the node's file or flags."""
