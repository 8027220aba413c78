"""A node as a process: `python -m weft.shell.serve SETTINGS`, SETTINGS being the tables of its file as JSON.

`weft up` reads the file and becomes this process, which imports nothing that a sensor does not need.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from weft import __version__
from weft.base.errors import OurFault, StorageFailed, UserError, WeftError, exit_code
from weft.base.now import SECOND, Now
from weft.base.spool import DropOldest, FetchRecords, RecordsFetched
from weft.cores.carrier import Carrier
from weft.cores.carrier import messages as carrier
from weft.cores.drain import messages as drain
from weft.cores.measurement import messages as measurement
from weft.cores.topology import messages as topology
from weft.node.assembly import build_node
from weft.node.events import NodeStarted
from weft.node.node import Node
from weft.node.settings import NodeSettings, settings_of
from weft.shell.clock import Clock
from weft.shell.files import Files
from weft.shell.http import Http
from weft.shell.identity import begin_start
from weft.shell.journal import Journal
from weft.shell.links import Links
from weft.shell.log import Log, to_stderr
from weft.shell.measuring import Measuring
from weft.shell.runner import Runner
from weft.shell.telemetry import Telemetry

HTTP_PORT: Final = 6
LINK_PORT: Final = 7
HAND_OVER_S: Final = 3.0  # how long a stopping node tries to hand over what it has; the rest waits on disk
DRAIN_S: Final = 10.0  # how long the last segment may take
LAST_WORDS_S: Final = 0.05  # the last frames leave through libzmq's own thread
POLL_S: Final = 0.02
OPEN_WARNING: Final = (
    "this fabric is OPEN: there are no keys, and whoever reaches a port can pose as any node.",
    "It is bound to loopback only. Promises hold against faults, not against enemies.",
    "A closed fabric (CURVE keys) is not available in this version; do not bind other addresses.",
)


def state_directory(settings: NodeSettings) -> Path:
    """Where the node keeps its journal: `[node] state`, else the user's state directory."""
    if settings.node.state:
        return Path(settings.node.state)
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "weft" / settings.fleet.name / settings.node.name


class Process:
    """One start of one node: opened, run until its end, closed in order."""

    def __init__(self, settings: NodeSettings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or Clock()
        self.state = state_directory(settings)
        now = self.clock.now()
        self.identity = begin_start(self.state, settings.node.name, now.wall)
        self.journal, self.recovery = Journal.open(
            self.state / "journal", self.identity.node_id, Files(), now.wall, settings.journal_bytes
        )
        self.node: Node = build_node(settings, self.identity.node_id, self.identity.era, os.urandom(8).hex())
        self.node.restore(self.recovery.entries(), self.journal.next_lsn, now)
        self.links = Links(self._on_readable)
        self.runner = Runner(self.node, self.clock, self.journal, self.links)
        self.log = Log(settings.node.name)
        self.telemetry = Telemetry(settings, self.node, self.journal, self.links, self.clock, self.log, now.mono)
        self.http = Http(self.telemetry.pages())
        self._recorder: Any = None
        self._winding_down: asyncio.Task[None] | None = None

    def _on_readable(self) -> None:
        self.runner.work()

    async def run(self) -> Any:
        """Serve until told to stop; returns why it ended: None, an event, or a StorageFailed."""
        table = self.settings.node
        asyncio.get_running_loop().set_exception_handler(self._broken)
        self.runner.on_tell = self.telemetry.on_tell
        self._employ()
        self.links.serve(table.host, table.port + LINK_PORT)
        await self.http.serve(table.host, table.port + HTTP_PORT)
        if table.beacons:
            self.links.listen(self.settings.fleet.beacon_port)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop)
        self.runner.tell(NodeStarted(table.name, table.level, __version__, self.recovery.verdicts))
        housekeeping = asyncio.create_task(self._keep_house())
        try:
            return await self.runner.ended
        finally:
            housekeeping.cancel()
            await self.http.close()
            self.links.close()
            self.journal.close(self.clock.now().wall)

    def _employ(self) -> None:
        """Who does the work of the outside world, by kind of work."""
        performers = self.runner.performers
        performers[FetchRecords] = self._fetch
        performers[measurement.Measure] = Measuring(self.runner.order).measure
        if "drain" in self.node.cores:
            from weft.shell.recorder import Recorder  # only a root needs what it imports

            self._loop = asyncio.get_running_loop()
            self._recorder = Recorder(
                Path(self.settings.lake.path or self.state / "lake"),
                self.identity.node_id,
                self.journal.read,
                self._deliver,
            )
            performers[drain.InspectLake] = self._recorder.perform
            performers[drain.WriteSegment] = self._recorder.perform

    def _broken(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A promise inside Weft is broken: stop at once, and let the next start restore (errors.OurFault)."""
        loop.default_exception_handler(context)
        self.runner.break_off(context.get("exception") or OurFault(context["message"]))

    def _deliver(self, order: Any) -> None:
        """What the recorder's thread has to say."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for it any more
            self._loop.call_soon_threadsafe(self.runner.order, "drain", order)

    def _fetch(self, work: FetchRecords) -> None:
        entries, upto = self.journal.read(work.after, work.bytes_max)
        answer = RecordsFetched(work.holder, work.after, upto, tuple(entries))
        asyncio.get_running_loop().call_soon(self.runner.order, work.holder, answer)

    async def _keep_house(self) -> None:
        """Once a second: marks, seals, snapshots, and room when the spool is full."""
        while True:
            await asyncio.sleep(1)
            try:
                self._tidy(self.clock.now())
            except StorageFailed as failure:
                self.runner.break_off(failure)

    def _tidy(self, now: Now) -> None:
        journal = self.journal
        journal.rest(now.wall)
        self.runner.note_room()
        if "drain" not in self.node.cores and (journal.is_tight or self.node.is_full):
            self.runner.order("carrier", DropOldest(*journal.oldest_spans()))
        if journal.is_snapshot_due(now.wall) and not self.node.is_full:
            journal.snapshot(self.node.condense(), now.wall)
            journal.forget(self.node.releasable)

    def _stop(self) -> None:
        if self._winding_down is None:
            self._winding_down = asyncio.get_running_loop().create_task(self._wind_down())

    async def _wind_down(self) -> None:
        """Stop in the order of the road: measuring first, then what carries it, then who is out there."""
        order = self.runner.order
        order("measurement", measurement.Stop())
        await self._until(self._is_handed_over, HAND_OVER_S)
        order("drain", drain.Stop())
        await self._until(self._is_drained, DRAIN_S)
        order("carrier", carrier.Stop())
        order("topology", topology.Stop())
        await asyncio.sleep(LAST_WORDS_S)
        self.runner.finish()

    def _is_handed_over(self) -> bool:
        """Whether everything that this node has is safe at the root."""
        carrying = self.node.cores.get("carrier")
        return not isinstance(carrying, Carrier) or carrying.counters.spool_records == 0

    def _is_drained(self) -> bool:
        return "drain" not in self.node.cores or self.telemetry.is_drained

    async def _until(self, holds: Callable[[], bool], patience_s: float) -> None:
        ends_at = self.clock.now().mono + int(patience_s * SECOND)
        while not holds() and self.clock.now().mono < ends_at and not self.runner.ended.done():  # noqa: ASYNC110  # the condition lies in cores, which know no event loop
            await asyncio.sleep(POLL_S)


def main() -> int:
    """Run the node of the settings in the first argument; the exit code says why it ended (OBS-005, JRN-032)."""
    try:
        settings = settings_of(msgspec.json.decode(sys.argv[1]))
        for line in OPEN_WARNING:
            say(line)
        return outcome(asyncio.run(_serve(settings)))
    except WeftError as error:
        return outcome(error)


async def _serve(settings: NodeSettings) -> Any:
    return await Process(settings).run()


def say(text: str) -> None:
    """A word to the person at the terminal; everything else is a log line."""
    with contextlib.suppress(OSError):
        to_stderr(f"weft: {text}\n".encode())


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
        case topology.NameTaken():
            text = f"an older node {reason.node.hex()} of this fabric is called {reason.name!r} and is alive"
            return "name-taken", text, "another --name"
        case _:
            return "our-fault", f"stopped by a fault of its own: {reason!r}", "start it again; it restores itself"


if __name__ == "__main__":
    sys.exit(main())
