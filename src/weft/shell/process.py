"""One start of one node: makes and connects its parts, runs until the end, closes them in order."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft import __version__
from weft.base.endpoints import is_loopback
from weft.base.errors import OurFault, UserError
from weft.base.keys import Trust
from weft.base.now import SECOND, Now
from weft.base.records import Entry
from weft.base.spool import DropOldest, FetchRecords, RecordsFetched
from weft.cores.alerts.messages import SendNotice
from weft.cores.carrier import messages as carrier
from weft.cores.carrier.core import Carrier
from weft.cores.catalog import messages as catalog
from weft.cores.chains import messages as chains
from weft.cores.chains.core import Chains
from weft.cores.chains.messages import ShowLine
from weft.cores.configuration import messages as configuration
from weft.cores.document import messages as document
from weft.cores.drain import messages as drain
from weft.cores.enrolment import messages as enrolment
from weft.cores.measurement import messages as measurement
from weft.cores.store import messages as store
from weft.cores.topology import messages as topology
from weft.node.annexes import admitted, ports_of
from weft.node.assembly import build_node
from weft.node.channels import CHANNELS, CLONE, LOCAL
from weft.node.events import JournalDamaged, NodeStarted
from weft.node.guard import MemoryExceeded, MemoryGuard
from weft.node.node import Node
from weft.node.roles import role_of
from weft.node.securityevents import FabricOpen
from weft.node.settings import MIB, NodeSettings, Role
from weft.shell import opendoors
from weft.shell.beaconseal import Seal
from weft.shell.catalogdoors import CatalogDoors
from weft.shell.clock import Clock
from weft.shell.docdoors import DocDoors
from weft.shell.door import Door
from weft.shell.doorstep import Doorstep
from weft.shell.enrolling import Enrolling
from weft.shell.exports import export_performers, make_room
from weft.shell.files import Files
from weft.shell.health import Machine, open_files, resident_bytes
from weft.shell.identity import begin_start
from weft.shell.inside import Inside
from weft.shell.journal import DamageNote, Journal, Limits, StorageFull, for_budget
from weft.shell.journal.damage import lost_text, spans_of
from weft.shell.keymaking import addressed
from weft.shell.keys import Keys, Known, http_token, load_keys, load_known, save_known
from weft.shell.links import Links
from weft.shell.log import Log
from weft.shell.measuring import Measuring
from weft.shell.meters import Meters
from weft.shell.orders import ORDER, Desk
from weft.shell.reloading import RELOAD, Reloading
from weft.shell.runner import Runner
from weft.shell.showing import Showing
from weft.shell.sockets import Credentials
from weft.shell.storedoors import StoreDoors
from weft.shell.telemetry import Telemetry, close_pages, lake_of, serve_pages
from weft.shell.trying import open_entrances
from weft.shell.watch import Watch

if TYPE_CHECKING:
    from weft.lake.files import Files as LakeFiles
    from weft.shell.recorder import Recorder
    from weft.shell.tape import Tape

LET_GO_S: Final = (
    3.0  # how long a stop waits for programs that hold messages; longer than the chains core waits by itself
)
HAND_OVER_S: Final = 3.0  # how long a stopping node tries to send its records up; the rest stays on disk
DRAIN_S: Final = 10.0  # how long the last segment of the lake may take
LAST_WORDS_S: Final = 0.05  # for the last frames, which libzmq sends in its own thread
POLL_S: Final = 0.02  # between two looks whether a step of the stop is done
HOUSE_S: Final = 1.0  # between two checks of journal, disk space and health
HOUSE_IDLE_S: Final = 5.0  # the same while little is written: otherwise checks would be most of a sensor's cost
HOUSE_IDLE_RECORDS: Final = 10  # little, in `HOUSE_S`: what a sensor writes that measures once a second
PIECE: Final = 20_000  # records of the journal that a start has in memory at once
WATCH_S: Final = 1.0  # between two checks of memory
WATCH_NEAR_S: Final = 0.1  # the same near the limit; a check takes 20 us
OPEN_SAID_NS: Final = 24 * 3_600 * SECOND  # between two warnings that a fabric is open (SEC-003)


def state_directory(settings: NodeSettings) -> Path:
    """The node's state directory: `[node] state`, else one in the user's state directory."""
    if settings.node.state:
        return Path(settings.node.state)
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "weft" / settings.fleet.name / settings.node.name


def trusting(settings: NodeSettings, keys: Keys | None, known: Known) -> NodeSettings:
    """The settings with the keys that the node knows, if it has keys itself.

    UserError `no-keys`: it has none, and needs some (SEC-001); `keys-twice`: so has one of its sessions.
    """
    if keys is not None:
        twice = [name for name, session in settings.sessions.items() if session.key]
        if twice:
            text = f"session {twice[0]!r} has its own key, but this node has keys already, as all nodes of its fabric"
            raise UserError("keys-twice", text, "[doc.session.NAME] without `key`")
        return msgspec.structs.replace(settings, trust=Trust(bindings=known.bindings, places=known.places))
    beyond = settings.open_hosts
    if settings.security.mode == "curve" or (beyond and not settings.security.is_open):
        text = f"{settings.node.name} has no keys" + (f", and would listen at {', '.join(beyond)}" if beyond else "")
        mend = "weft join TOKEN, with a line of weft invite at the root; or --open, on a network that you trust"
        raise UserError("no-keys", text, mend)
    return settings


def limits_of(settings: NodeSettings) -> Limits:
    """The limits of the journal, from the node's file (JRN-031)."""
    free = settings.journal.free_megabytes * MIB
    return msgspec.structs.replace(for_budget(settings.journal_bytes), free_bytes_min=free)


def _awake_in_s(runner: Runner) -> float:
    """How long until the next check of memory: it costs less than waking up for it, if the node wakes up before."""
    wakes_in_s = ((runner.wakes_at or 0) - runner.clock.mono()) / SECOND
    return wakes_in_s if WATCH_NEAR_S <= wakes_in_s < WATCH_S else WATCH_S


@dataclass
class Doors:
    """The connections of a process to the outside world; tests replace them."""

    clock: Clock = field(default_factory=Clock)
    files: Files = field(default_factory=Files)
    lake: "LakeFiles | None" = None
    links: Callable[[Callable[[], None]], Links] = Links
    performers: dict[type, Callable[[Any], None]] = field(default_factory=dict)
    """Functions that perform a kind of work, in place of the usual ones."""
    seed: str = field(default_factory=lambda: os.urandom(8).hex())
    """The node's random numbers are made from this."""
    load_arrow: Callable[[], None] | None = None
    """Loads PyArrow before a segment is written; None: it is imported when it is needed."""


class Process:
    """One start of one node: opened, run until its end, closed in order."""

    def __init__(self, settings: NodeSettings, doors: Doors | None = None) -> None:
        self.doors = doors or Doors()
        self.clock = self.doors.clock
        self.state, given = state_directory(settings), settings
        settings = msgspec.structs.replace(addressed(settings, self.state), uid=os.geteuid())
        now = self.clock.now()
        self.identity = begin_start(self.state, settings.node.name, now.wall)
        self.journal, self.recovery = Journal.open(
            self.state / "journal", self.identity.node_id, self.doors.files, now.wall, limits_of(settings)
        )
        self.keys = None if settings.security.mode == "none" else load_keys(self.state)
        self.known = load_known(self.state) if self.keys is not None else Known()
        settings = trusting(settings, self.keys, self.known)
        self.tape = _tape_of(settings.node.record)
        self.node: Node = self._restored(settings, now)
        self.settings = settings = self.node.settings
        self.links = self.doors.links(self._on_readable)
        if self.keys is not None and (authority := self.node.authority) is not None:
            authority.has_changed = self._swap_keys
            self.links.secure(Credentials(self.keys, authority.table.at(now.wall // SECOND), authority.nodes_at))
            self.links.seal = Seal(bytes.fromhex(self.known.beacon_key)) if self.known.beacon_key else None
        self.runner = Runner(self.node, self.clock, self.journal, self.links)
        self.log = Log(settings.node.name)
        self.guard = MemoryGuard(settings.memory_bytes, {name: core.budget for name, core in self.node.cores.items()})
        self.telemetry = self._telemetry_of(settings)
        self.watch = Watch(self.runner.order)
        self.recorder: Recorder | None = None
        self.runner.on_tell = self._note_event
        self.runner.on_durable = self.telemetry.note
        self.inside = Inside(self.runner)
        self._furnish(given)
        self._has_begun = False
        self._open_said_at: int | None = None
        self._winding_down: asyncio.Task[None] | None = None
        self._housekeeping: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    def _furnish(self, given: NodeSettings) -> None:
        """Make the parts through which others reach the node; `given`: the settings before anything was added to them."""
        of_annexes = (annex.orders for annex in admitted(self.settings).values())
        self.desk = Desk(
            self.runner.order, self.node.cores, {name: row for rows in of_annexes for name, row in rows.items()}
        )
        self.runner.on_reply = self.desk.reply
        self.telemetry.http.routes[ORDER] = self.desk.route(self.telemetry.gate.login_of)
        self.reloading = Reloading(given, self.identity.era, self.runner.tell)
        self.telemetry.http.routes[RELOAD] = self.reloading.route()
        self.enrolling = Enrolling(self.settings, self.runner, self.links, self.state, self.identity)
        self.desk.finishers[enrolment.Invited] = self.enrolling.token_of
        world = self.settings, self.runner, self.links, self.state
        self.store_doors = StoreDoors(*world, self.doors.seed, bytes.fromhex(self.known.beacon_key))
        self.catalog_doors, self.doc_doors = CatalogDoors(*world), DocDoors(*world)
        self.door, self.doorstep = Door(self.state), Doorstep(self.links, self.runner.tell, self.doc_doors.diallers)
        self.telemetry.gatekeepers, self.telemetry.open_doors = lambda: (self.doc_doors.gatekeeper,), self._open_doors

    def _telemetry_of(self, settings: NodeSettings) -> Telemetry:
        """The telemetry of this start."""
        return Telemetry(
            settings,
            self.node,
            self.journal,
            self.links,
            self.clock,
            self.log,
            Machine(resident_bytes, self._free_bytes, open_files),
            self.runner.timings,
            self.runner.flight,
            self.guard,
            self.doors.files,
            http_token(self.state) if self.keys is not None else "",
            self.state,
        )

    def _restored(self, settings: NodeSettings, now: Now) -> Node:
        """The node, restored from its journal, which is read in pieces to save memory.

        A role that an election has given it counts more than what its file says (REC-010).
        """
        node = self._built(settings, Role())
        for piece in self._pieces():
            if role_of(piece) != Role():
                node = self._built(settings, role_of(self.recovery.entries()))
                for again in self._pieces():
                    node.restore(again, self.journal.next_lsn, now)
                break
            node.restore(piece, self.journal.next_lsn, now)
        return node

    def _built(self, settings: NodeSettings, role: Role) -> Node:
        who, secret = self.identity, bytes.fromhex(self.identity.secret)
        settings = msgspec.structs.replace(settings, role=role)
        made_of = settings, who.node_id, who.era, self.doors.seed, secret
        node = build_node(*made_of)
        return node if self.tape is None else _recorded(node, made_of, self.tape)

    def _pieces(self) -> Iterator[list[Entry]]:
        """The entries of the journal in order; at least one piece, which may be empty."""
        entries = self.recovery.entries()
        yield list(islice(entries, PIECE))
        while piece := list(islice(entries, PIECE)):
            yield piece

    def _open_doors(self) -> Iterator[opendoors.OpenDoor]:
        """The ports of this node that need no key (SEC-055)."""
        yield from opendoors.of_ends(self.links.ends.values(), is_closed=self.links.credentials.is_closed)
        for doors in (self.store_doors, self.catalog_doors, self.doc_doors):
            yield from doors.open_doors()
        yield from opendoors.of_pages(self.settings)

    async def _try_doors(self) -> None:
        """Try to connect with an unknown key to every port with keys; UserError `door-open` if one accepts it (SEC-051)."""
        if self.keys is None:
            return
        doors = [door for end in self.links.ends.values() for door in end.entrances()]
        found = await open_entrances((*doors, *self.doc_doors.entrances()), self.keys.public)
        if found:
            text = f"{', '.join(f'{door.name} at {door.endpoint}' for door in found)} accept an unknown key"
            raise UserError(
                "door-open", text, "another build of libzmq (pip install pyzmq); report it, with weft doctor"
            )
        for keeper in filter(None, (self.links.gatekeeper, self.doc_doors.gatekeeper)):
            keeper.forget()

    def _swap_keys(self) -> None:
        """Admit the keys that the node knows now, and close connections to nodes whose key it has lost (SEC-025)."""
        authority = self.node.authority
        if authority is None:
            return
        before, table = self.links.credentials.table, authority.table.at(self.clock.now().wall // SECOND)
        if table == before:
            return
        gone = frozenset(each.uuid for each in before if any(table.find(key) is None for key in each.keys))
        self.links.admit(table, gone)
        self.doc_doors.admit(table, gone)

    def _keep_places(self) -> None:
        """Store the addresses of nodes, so that the next start finds its parent (SEC-013)."""
        authority = self.node.authority
        if authority is None:
            return
        places = {endpoint: uuid.hex() for endpoint, uuid in authority.places.items()}
        if places != self.known.places:
            self.known = msgspec.structs.replace(self.known, places=places)
            save_known(self.state, self.known)

    def _note_event(self, event: Any) -> None:
        if type(event) is configuration.PairsChanged:
            self._swap_keys()
        self.telemetry.on_tell(event)
        self.watch.hear(event)

    def _on_readable(self) -> None:
        self.runner.work()

    def open(self) -> None:
        """Start working: messages can be received now."""
        table = self.settings.node
        self.runner.note_room()
        self.runner.tell(NodeStarted(table.name, self.settings.level, __version__, self.recovery.verdicts))
        self._say_open(self.clock.now())
        self._tell_damage(self.journal.damage.notes(), is_recorded=True)
        self._housekeeping = self._begin(self._keep_house())
        self._watching = self._begin(self._watch_memory())

    def _say_open(self, now: Now) -> None:
        """Warn at each start and once a day, if any program that reaches this node may do everything (SEC-003)."""
        said_at = self._open_said_at
        if self.settings.open_hosts and (said_at is None or now.mono - said_at >= OPEN_SAID_NS):
            self._open_said_at = now.mono
            self.runner.tell(FabricOpen(self.settings.open_hosts))

    def _tell_damage(self, notes: Iterable[DamageNote], *, is_recorded: bool) -> None:
        """Report which part of the journal cannot be read: in the log, in the events, in the status (JRN-022)."""
        for note in notes:
            lost = tuple(map(lost_text, note.missing))
            places = note.file, note.offset, note.to, note.first_lsn, note.end_lsn
            self.runner.tell(JournalDamaged(*places, note.why, lost, is_recorded))
            self.runner.order("carrier", carrier.AnnounceDamage(note.first_lsn, note.end_lsn, spans_of(note)))

    def close(self) -> None:
        """Close everything; StorageFailed if the journal cannot be closed properly."""
        self.rest()
        for each in (self.recorder, self.watch, self.links, self.log, self.tape):
            if each is not None:
                each.close()
        self.journal.close(self.clock.now().wall)

    async def run(self) -> Any:
        """Serve until told to stop; returns why it ended: None, an event, or an error."""
        if not self._has_begun:
            await self.begin()
        try:
            return self._ended(await self.runner.ended)
        finally:
            await self._leave()

    async def begin(self) -> None:
        """Open all sockets and pages, and begin to work. If one cannot be opened, all are closed again, and it raises."""
        table, loop = self.settings.node, asyncio.get_running_loop()
        loop.set_exception_handler(self._broken)
        self.employ()  # before the first socket: from then on messages may come
        self._has_begun = True
        try:
            self.enrolling.recall(self.node)
            self.door.open(self.links, [name for name in self.node.channels if CHANNELS[name].block == LOCAL])
            self.links.serve(table.host, table.port, self.node.channels, self._blocks())
            self.enrolling.open()  # before the first order can come: an invitation needs the keys
            if table.beacons:
                self.links.listen(self.settings.fleet.beacon_port, is_local=is_loopback(table.host))
            await self.store_doors.open()
            self.catalog_doors.open()
            await self.doc_doors.open()
            await self._try_doors()
            await serve_pages(self.telemetry)  # last, so that its pages show a node that has started
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.stop)
            loop.add_signal_handler(signal.SIGUSR2, self.dump, "asked")
            self.open()
        except BaseException as failure:
            self.runner.break_off(failure)  # so that reports of threads that still run change nothing
            await self._leave()
            raise

    async def _leave(self) -> None:
        """Close all connections to the outside."""
        self.door.close()
        await self.store_doors.close()
        await self.catalog_doors.withdraw()
        self.catalog_doors.close()
        await self.doc_doors.close()
        await self.doorstep.close()
        await close_pages(self.telemetry)
        self.close()

    def _ended(self, reason: Any) -> Any:
        """Why it ended; after a fault, or too much memory, the flight recorder's notes are written."""
        if isinstance(reason, BaseException | MemoryExceeded):
            self.dump(type(reason).__name__)
        return reason

    def dump(self, why: str) -> None:
        """Write the flight recorder's notes (OBS-006); errors of the disk are ignored."""
        with contextlib.suppress(OSError):
            self.runner.flight.dump(self.state, why, self.clock.now().wall)

    def _blocks(self) -> dict[str, int]:
        """The first ports of blocks that are not the node's own."""
        chp = {CLONE: self.settings.chp.port} if self.settings.chp.port else {}
        local = {LOCAL: self.settings.node.port} if self.settings.chains.tcp else {}
        return chp | local | ports_of(self.settings)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task; an exception in it ends the node, because nothing else would notice."""
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._look_after)
        return task

    def _look_after(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (fault := task.exception()) is not None:
            self.runner.break_off(fault)

    def _free_bytes(self) -> int:
        try:
            return self.doors.files.free_bytes(self.state / "journal")
        except OSError:
            return 0

    def employ(self) -> None:
        """Name the functions that perform each kind of work."""
        performers = self.runner.performers
        performers[FetchRecords] = self._fetch
        meters = Meters(wall_ns=lambda: self.clock.now().wall)
        performers[measurement.Measure] = Measuring(self.runner.order, meters).measure
        if "drain" in self.node.cores:
            self.recorder = _recorder_of(self)
            of_lake = (drain.InspectLake, drain.WriteSegment, carrier.ReadVectors)
            performers |= dict.fromkeys(of_lake, self.recorder.perform)
        if "alerts" in self.node.cores:
            performers[SendNotice] = _notifier_of(self)
        performers |= self.store_doors.performers | self.doc_doors.performers | self.enrolling.performers
        performers |= self.doors.performers | export_performers(self.runner, self.settings)
        performers[ShowLine] = Showing().show

    def _broken(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A promise inside Weft is broken: stop at once; the next start restores the state (errors.OurFault)."""
        if "socket" in context and isinstance(context.get("exception"), OSError):
            self.links.dropped["http:accept"] += 1  # too many open files: a flood of connections, no fault of Weft
            return
        loop.default_exception_handler(context)
        self.runner.break_off(context.get("exception") or OurFault(context["message"]))

    def _fetch(self, work: FetchRecords) -> None:
        entries, upto = self.journal.read(work.after, work.bytes_max)
        answer = RecordsFetched(work.holder, work.after, upto, tuple(entries))
        asyncio.get_running_loop().call_soon(self.runner.order, work.holder, answer)

    def rest(self) -> None:
        """Stop the housekeeping."""
        for task in (self._housekeeping, self._watching):
            if task is not None:
                task.cancel()

    async def _watch_memory(self) -> None:
        """Check the memory each second; near the limit ten times as often, as it may grow by a tenth in a second."""
        while True:
            self.look_at_memory(self.clock.now())
            await asyncio.sleep(WATCH_NEAR_S if self.guard.is_near else _awake_in_s(self.runner))

    def look_at_memory(self, now: Now) -> None:
        """Pass the size of the process to the guard, and report the resulting events."""
        for event in self.guard.look(resident_bytes(), now):
            self.runner.tell(event)

    async def _keep_house(self) -> None:
        """Periodic work: marks, seals, snapshots, space in a full spool, health."""
        while True:
            before = self.journal.next_lsn
            await asyncio.sleep(HOUSE_S)
            if self.journal.next_lsn - before <= HOUSE_IDLE_RECORDS and not self.node.is_full:
                await asyncio.sleep(HOUSE_IDLE_S - HOUSE_S)
            self.tidy(self.clock.now())

    def tidy(self, now: Now) -> None:
        """Do what is due; an error of the disk ends the node (StorageFailed)."""
        journal = self.journal
        was_damaged = journal.stats.damaged
        journal.rest(now.wall, flushes=not self.runner.late.is_waiting)
        if was_damaged and not journal.stats.damaged:
            self.runner.order("topology", topology.AcceptLoss())
        journal.scrub(now.wall)
        self._tell_damage(journal.take_damage(), is_recorded=False)
        self.runner.note_room()
        make_room(self.runner)
        if "drain" not in self.node.cores and (journal.is_tight or self.node.is_full) and not journal.may_shrink:
            self.runner.order("carrier", DropOldest(*journal.oldest_spans()))
        if journal.is_snapshot_due(now.wall) and journal.next_lsn == self.node.next_lsn:
            with contextlib.suppress(StorageFull):  # then the snapshot before it stays valid
                self._condense(now.wall)
        journal.forget(self.node.releasable)
        self.runner.note_room()
        self._swap_keys()
        self._keep_places()
        self.doorstep.look()
        self._say_open(now)
        self.telemetry.look()

    def _condense(self, wall_ns: int) -> None:
        """Write a snapshot. If the one before covers all records, records that change nothing are written first.

        A full journal can delete segments only after two snapshots that differ, and may have nothing else to write.
        """
        node, journal = self.node, self.journal
        if journal.is_covered:
            known = tuple(node.ledger.condense())
            journal.write(known, wall_ns)
            node.wrote(len(known))
        journal.snapshot(node.condense(), wall_ns)

    def stop(self) -> None:
        """Shut down in order, and end; a second call changes nothing."""
        if self._winding_down is None:
            self._winding_down = self._begin(self._wind_down())

    async def _wind_down(self) -> None:
        """Shut down in the direction of the data: first programs and measuring, then drain and carrier, then connections."""
        order = self.runner.order
        order("chains", chains.Stop())
        await self._until(self._is_let_go, LET_GO_S)
        order("measurement", measurement.Stop())
        await self._until(self._is_handed_over, HAND_OVER_S)
        order("drain", drain.Stop())
        await self._until(self._is_drained, DRAIN_S)
        order("carrier", carrier.Stop())
        order("store", store.Stop())
        order("catalog", catalog.Stop())
        order("document", document.Stop())
        order("topology", topology.Stop())
        await asyncio.sleep(LAST_WORDS_S)
        self.runner.finish()

    def _is_let_go(self) -> bool:
        """Whether no program holds a message any more, or the chains core has stopped waiting (CHN-043)."""
        core = self.node.cores.get("chains")
        return not isinstance(core, Chains) or not core.is_ending

    def _is_handed_over(self) -> bool:
        """Whether all records of this node are safe."""
        carrying = self.node.cores.get("carrier")
        return not isinstance(carrying, Carrier) or carrying.counters.spool_records == 0

    def _is_drained(self) -> bool:
        return "drain" not in self.node.cores or self.telemetry.is_drained

    async def _until(self, holds: Callable[[], bool], patience_s: float) -> None:
        ends_at = self.clock.now().mono + int(patience_s * SECOND)
        while not holds() and self.clock.now().mono < ends_at and not self.runner.ended.done():  # noqa: ASYNC110  # the condition lies in cores, which know no event loop
            await asyncio.sleep(POLL_S)


def _tape_of(file: str) -> "Tape | None":
    """The file that records all input of the node, if its settings name one."""
    if not file:
        return None
    from weft.shell.tape import Tape

    return Tape(Path(file))


def _recorded(node: Node, of: tuple[NodeSettings, bytes, int, str, bytes], tape: "Tape") -> Node:
    """The node, which writes its input and effects to a tape; `of`: the arguments that it was built from."""
    from weft.node.recording import Begin, RecordedNode

    return RecordedNode(node, Begin(__version__, *of), tape.write)


def _notifier_of(process: Process) -> Callable[[SendNotice], None]:
    """The function that sends notices of alerts."""
    from weft.shell.notifying import Notifying  # imports clients of HTTP and SMTP, which only a root needs

    return Notifying(process.runner.order, process.settings.notify, process.inside).send


def _recorder_of(process: Process) -> "Recorder":
    """The recorder that writes the lake of a root."""
    from weft.shell.masking import mask_of
    from weft.shell.recorder import Recorder  # only a root needs what it imports

    settings, order = process.settings, process.runner.order
    loop, place = asyncio.get_running_loop(), lake_of(settings, process.state)

    def deliver(outcome: Any) -> None:
        """Give an outcome of the recorder's thread to its core."""
        core = "carrier" if isinstance(outcome, carrier.InLake | carrier.LakeUnread) else "drain"
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for it
            loop.call_soon_threadsafe(order, core, outcome)

    recorder = Recorder(place, process.identity.node_id, process.journal.read, deliver, process.doors.lake)
    recorder.load = process.doors.load_arrow
    recorder.mask = mask_of(process.state, settings.lake.secrets)
    return recorder
