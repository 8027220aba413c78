"""A node as a process: `python -m weft.shell.serve SETTINGS [WHERE]`, SETTINGS being the tables of its file as JSON.

Or `fd:N`, the number of an open file with them, which no list of processes shows; WHERE they were read. `weft up` reads the file and becomes this process, which imports nothing that a sensor does not need.
"""

import gc

if __name__ == "__main__":
    gc.disable()  # imports are no garbage, and to search them is a sixth of a start; `started` enables it again

import asyncio
import contextlib
import resource
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.base.errors import StorageFailed, UserError, WeftError, exit_code
from weft.base.printable import clean
from weft.cores.topology import messages as topology
from weft.lake.arrow import load_alone
from weft.node.events import RoleChanged, SettingsReloaded
from weft.node.guard import MemoryExceeded
from weft.node.securityevents import AddressChanged, KeySwitched
from weft.node.settings import MIB, NodeSettings, settings_of
from weft.shell.log import to_stderr
from weft.shell.process import Doors, Process

FILES_MAX: Final = 1 << 16
COLLECT_AFTER: Final = (20_000, 20, 20)
"""Objects, and rounds, before Python looks for cycles: a node keeps most of what it makes, and makes few cycles."""
OPEN_WARNING: Final = (
    "this node is OPEN: it has no keys, and whoever reaches a port can pose as any node and read and write everything.",
    "It is bound to {host}. Promises hold against faults, not against enemies.",
    "weft invite makes a closed fabric: only who has a key comes in.",
)


def main() -> int:
    """Run the node of the settings in the first argument; the exit code says why it ended (OBS-005, JRN-032)."""
    try:
        settings = founded(settings_of(msgspec.json.decode(_said(sys.argv[1])), *sys.argv[2:3]))
        raise_file_limit()
        name_process(f"weft {settings.node.name}")
        return outcome(asyncio.run(_serve(settings)))
    except WeftError as error:
        return outcome(error)
    except Exception as fault:  # noqa: BLE001  # any error is shown completely, and has an exit code
        sys.excepthook(type(fault), fault, fault.__traceback__)
        return outcome(fault)


def _said(word: str) -> bytes:
    """The settings, as text or from the file that the word names."""
    kind, _, number = word.partition(":")
    if kind != "fd":
        return word.encode()
    with open(int(number), "rb") as file:
        return file.read()


def founded(settings: NodeSettings) -> NodeSettings:
    """At a root: the settings with the first configuration, from the fleet's file, or else the usual metrics."""
    if settings.lake.path and not find_spec("pyarrow"):
        text = "a node with [lake] path writes Parquet, and pyarrow is not installed"
        raise UserError("not-installed", text, "pip install 'weft[lake]', or no lake at this node")
    if settings.lake.path:
        from weft.lake.objects import refuse_unreachable  # only who drains needs it

        refuse_unreachable(settings.lake.path)
    if settings.place != "root":
        return settings
    from weft.node.fleet import Fleet, fleet_of  # only a root needs it
    from weft.node.fleetkeys import to_pairs  # as above

    path = settings.node.config
    try:
        text = Path(path).read_text("utf-8") if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("no-file", f"{path} cannot be read: {error}", "another --config") from None
    fleet: Fleet = fleet_of(text, path, is_of_root=True)
    return msgspec.structs.replace(settings, pairs=to_pairs(fleet), follows=True)


def name_process(name: str) -> None:
    """What `ps` and `top` call this process, as far as 15 bytes reach; where the kernel has no such file, nothing changes."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="utf-8") as file:
        file.write(name)


def raise_file_limit() -> None:
    """Raise the limit of open files: a flood of connections must not keep the journal from opening its next segment."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


AGAIN: Final = RoleChanged | AddressChanged | KeySwitched | SettingsReloaded
"""Why a node starts again in the same process."""


async def _serve(settings: NodeSettings) -> Any:
    """One start after the other, as long as each ends because the node has another role now, or another address."""
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
    """A process with changed tables; with the former ones if what the new ones need cannot be opened (OPS-007)."""
    try:
        process = started(settings)
        await process.begin()
    except UserError as error:
        say(f"{error}\n  {settings.node.name} goes on with the tables before")
        return started(before)
    return process


def _as_what(reason: RoleChanged | AddressChanged | KeySwitched | SettingsReloaded) -> str:
    if isinstance(reason, SettingsReloaded):
        return f"with {', '.join(f'[{table}]' for table in reason.tables)} as its file has it now"
    if isinstance(reason, KeySwitched):
        return "with another key"
    if isinstance(reason, AddressChanged):
        return f"at {reason.host}, with keys"
    return f"as {reason.level} of epoch {reason.epoch}"


def started(settings: NodeSettings) -> Process:
    """The process with all that its journal has, which the collector of cycles need not look through again and again.

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
    """A message to the person at the terminal; everything else is a log line."""
    with contextlib.suppress(OSError):
        to_stderr(f"weft: {clean(text, keeps=chr(10))}\n".encode())


def outcome(reason: Any) -> int:
    """Say why the node ended, and the exit code for it; None: it was told to."""
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
            return "storage-failed", str(reason), "weft journal verify, and look at the disk"
        case MemoryExceeded():
            text = f"{reason.resident_bytes // MIB} MiB of memory are more than the {reason.limit_bytes // MIB} it may have"
            return "memory-exceeded", text, "start it again; [limits] memory_megabytes says how much it may have"
        case topology.NameTaken():
            text = f"an older node {reason.node.hex()} of this fabric is called {reason.name!r} and is alive"
            return "name-taken", text, "another --name"
        case _:
            return "our-fault", f"stopped by a fault of its own: {reason!r}", "start it again; it restores itself"


if __name__ == "__main__":
    sys.exit(main())
