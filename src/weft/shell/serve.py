"""A node as a process: `python -m weft.shell.serve SETTINGS [WHERE]`.

SETTINGS are the tables of a node's file as JSON, or `fd:N`, the number of an open file with them: no list of processes shows
its content. WHERE is the path that they were read from, for messages. `weft up` reads the file and becomes this process,
which imports nothing that a sensor does not need.
"""

import gc
import signal

if __name__ == "__main__":
    gc.disable()  # imports make no garbage, and looking for some takes a sixth of a start; `started` enables it again
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a start without a traceback; later the loop hears it

import asyncio
import contextlib
import resource
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.base.errors import StorageFailed, UserError, WeftError, exit_code, mend_of, why_unread
from weft.base.printable import clean
from weft.cores.topology import messages as topology
from weft.lake.arrow import load_alone
from weft.node.events import RoleChanged, SettingsReloaded
from weft.node.guard import MemoryExceeded
from weft.node.securityevents import AddressChanged, KeySwitched
from weft.node.settings import MIB, NodeSettings, settings_of
from weft.shell.log import to_stderr
from weft.shell.process import Doors, Process

FILES_MAX: Final = 1 << 16  # open files that a process asks the kernel for
COLLECT_AFTER: Final = (20_000, 20, 20)
"""Thresholds of the garbage collector, for objects and rounds: most objects of a node stay, and few are in cycles."""
OPEN_WARNING: Final = (
    "this node is OPEN: it has no keys, and whoever reaches a port can pose as any node and read and write everything.",
    "It is bound to {host}. Promises hold against faults, not against enemies.",
    "weft invite makes a closed fabric: only nodes with a key can connect.",
)


def main() -> int:
    """Run the node of the settings in the first argument; the exit code says why it ended (OBS-005, JRN-032)."""
    try:
        settings = founded(settings_of(msgspec.json.decode(_settings_json(sys.argv[1])), *sys.argv[2:3]))
        raise_file_limit()
        forgo_cores()
        name_process(f"weft {settings.node.name}")
        return outcome(asyncio.run(_serve(settings)))
    except WeftError as error:
        return outcome(error)
    except Exception as fault:  # noqa: BLE001  # any error is shown completely, and has an exit code
        sys.excepthook(type(fault), fault, fault.__traceback__)
        return outcome(fault)


def _settings_json(word: str) -> bytes:
    """The settings as JSON: the argument itself, or the content of the open file that it names."""
    kind, _, number = word.partition(":")
    if kind != "fd":
        return word.encode()
    with open(int(number), "rb") as file:
        return file.read()


def founded(settings: NodeSettings) -> NodeSettings:
    """The settings; at a root with the first configuration: the fleet's file, or else the usual metrics.

    UserError `not-installed`, `no-file`, or an error in the fleet's file.
    """
    if settings.lake.path and not find_spec("pyarrow"):
        text = "a node with [lake] path writes Parquet, and pyarrow is not installed"
        raise UserError("not-installed", text, "pip install 'weft[lake]', or no lake at this node")
    if settings.lake.path:
        from weft.lake.objects import refuse_unreachable  # only a node that drains needs it

        refuse_unreachable(settings.lake.path)
    if settings.place != "root":
        return settings
    from weft.node.fleet import Fleet, fleet_of  # only a root needs it
    from weft.node.fleetkeys import to_pairs  # only a root needs it

    path = settings.node.config
    try:
        text = Path(path).read_text("utf-8") if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("no-file", f"{path} cannot be read: {why_unread(error)}", "another --config") from None
    fleet: Fleet = fleet_of(text, path, is_of_root=True)
    return msgspec.structs.replace(settings, pairs=to_pairs(fleet), follows=True)


def name_process(name: str) -> None:
    """Set the name that `ps` and `top` show, which the kernel cuts to 15 bytes; nothing happens if the kernel cannot."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="utf-8") as file:
        file.write(name)


def raise_file_limit() -> None:
    """Raise the limit of open files: a flood of connections must not keep the journal from opening its next segment."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def forgo_cores() -> None:
    """Let the kernel write no image of this process if it dies: keys would stand in it (SEC-047). `prlimit --core` undoes it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


AGAIN: Final = RoleChanged | AddressChanged | KeySwitched | SettingsReloaded
"""Why a node starts again in the same process."""


async def _serve(settings: NodeSettings) -> Any:
    """Run the node, and start it again in this process as long as it ends for one of the reasons in `AGAIN`."""
    process = started(settings)
    for line in () if process.settings.is_closed else OPEN_WARNING:
        say(line.format(host=" and ".join(settings.hosts)))
    while isinstance(reason := await process.run(), AGAIN):
        say(f"{settings.node.name} starts again {_as_what(reason)}")
        if isinstance(reason, SettingsReloaded):
            before, settings = settings, process.reloading.following or settings
            process = await _tried(settings, before)
        else:
            process = started(settings)
    return reason


async def _tried(settings: NodeSettings, before: NodeSettings) -> Process:
    """A process with changed tables; with the old ones if that cannot be started (OPS-007)."""
    try:
        process = started(settings)
        await process.begin()
    except UserError as error:
        say(f"{error}\n  {settings.node.name} goes on with the old tables")
        return started(before)
    return process


def _as_what(reason: RoleChanged | AddressChanged | KeySwitched | SettingsReloaded) -> str:
    if isinstance(reason, SettingsReloaded):
        return f"with the changed {', '.join(f'[{table}]' for table in reason.tables)} of its file"
    if isinstance(reason, KeySwitched):
        return "with another key"
    if isinstance(reason, AddressChanged):
        return f"at {reason.host}, with keys"
    return f"as {reason.level} of epoch {reason.epoch}"


def started(settings: NodeSettings) -> Process:
    """The process, restored from its journal, whose objects the garbage collector never looks at again.

    Restoring makes millions of objects that stay: looking for garbage among them took more than half of a start.
    """
    gc.disable()
    try:
        return Process(settings, Doors(load_arrow=load_alone))
    finally:
        gc.freeze()
        gc.set_threshold(*COLLECT_AFTER)
        gc.enable()


def say(text: str) -> None:
    """Write a message to the person at the terminal; everything else is a log line."""
    with contextlib.suppress(OSError):
        to_stderr(f"weft: {clean(text, keeps=chr(10))}\n".encode())


def outcome(reason: Any) -> int:
    """Say why the node ended; returns the exit code for it. None: it was told to stop."""
    code, text, mend = _reason(reason)
    if text:
        say(f"{text}\n  try: {mend}" if mend else text)
    return exit_code(code)


def _reason(reason: Any) -> tuple[str, str, str]:
    match reason:
        case None:
            return "ok", "", ""
        case UserError():
            return reason.code, str(reason), ""
        case StorageFailed():
            return "storage-failed", str(reason), mend_of(reason)
        case MemoryExceeded():
            text = f"{reason.resident_bytes // MIB} MiB of memory are more than the {reason.limit_bytes // MIB} it may have"
            return "memory-exceeded", text, "start it again, or raise [limits] memory_megabytes"
        case topology.NameTaken():
            text = f"an older node {reason.node.hex()} of this fabric is called {reason.name!r} and is alive"
            return "name-taken", text, "another --name; or, if --state is a copy of that node's, a --state of its own"
        case _:
            return "our-fault", f"stopped by a fault of its own: {reason!r}", "start it again; it restores itself"


if __name__ == "__main__":
    sys.exit(main())
