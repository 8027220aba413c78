"""A simulated machine: two clocks, a disk, sockets, and on it one process that runs a node as the shell does.

A turn is the shell's turn: receive what has come in, wake what is due, take the effects, part them at the wall, write
and sync, and only then carry out what stands behind it (JRN-001). During a sync the process does nothing else, so all
that comes in meanwhile is handled in one turn afterwards. A crash may end the process at any point.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from weft.base.chance import Chance
from weft.base.effects import Confirm, Connect, Disconnect, Perform, Reply, Source, Tell
from weft.base.identity import next_era
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import Entry, Record
from weft.base.spool import DropOldest
from weft.cores.configuration.messages import PairsChanged
from weft.cores.drain.messages import SegmentWritten
from weft.node.assembly import build_node
from weft.node.channels import CHANNELS
from weft.node.events import JournalChanged, RoleChanged
from weft.node.node import REFUSAL_KINDS_MAX, Ended, Node, NodeEffect, Transmit, Turn, part_at_wall
from weft.node.receipts import Receipts
from weft.node.roles import role_of
from weft.node.securityevents import KeySwitched
from weft.node.settings import Role
from weft.sim.clocks import Clocks
from weft.sim.digest import memory_digest, state_digest
from weft.sim.disk import Claim, Image, JournalDisk
from weft.sim.disks import FORGETS, refuses, restore, tell_start
from weft.sim.documents import Editor
from weft.sim.doors import Doors
from weft.sim.garbage import probe
from weft.sim.intruders import INTRUDER, Recorded, answers, intrude
from weft.sim.keyfile import KeyFile
from weft.sim.lake import Lake
from weft.sim.links import size_of
from weft.sim.meters import Meters
from weft.sim.plan import EPOCH_NS, NodePlan
from weft.sim.programs import Programs
from weft.sim.sender import Sender
from weft.sim.settings import settings_for
from weft.sim.sockets import Flow, Router
from weft.sim.storeclients import StoreClients
from weft.sim.work import WORK, publish

if TYPE_CHECKING:
    from weft.sim.fabric import Fabric

WAKES_AT_ONCE_MAX: Final = 1_000  # SIM-004
SLOW_SYNC_BITS: Final = 12  # one sync in 4,096 takes seconds while there are faults (SIM-022)
SLOW_SYNC_NS: Final = (SECOND, 10 * SECOND)
TIDY_NS: Final = SECOND  # time between two checks of the journal
INBOX_MAX: Final = 20_000
ROLE_NS: Final = (100 * MILLISECOND, 500 * MILLISECOND)  # time from an end in one role to the start in another
RESTART_NS: Final = 5 * SECOND  # time that a supervisor waits before it restarts a process


class Spun(Exception):
    """A core asks to be woken again and again without time passing (SIM-004)."""


class Machine:
    """One machine and, while it runs, the node on it."""

    def __init__(self, plan: NodePlan, number: int, fabric: "Fabric") -> None:
        self.plan: NodePlan = plan
        self.name, self.number, self.fabric = plan.name, number, fabric
        self.origin = plan.name  # the machine whose numbers it gives: for a copied disk, the original one
        self.world = fabric.world
        self.address = fabric.address_of(plan.name)
        self.chance = Chance(f"{fabric.plan.seed}/machine/{plan.name}")
        self.clocks = Clocks(EPOCH_NS, plan.offset_ns, plan.drift_ppm)
        self.meters = Meters(plan.name, plan.metrics)
        self.disk = JournalDisk(self.claim_of, plan.segment_records, plan.journal_bytes)
        self.lake = Lake(self.world, Chance(f"{fabric.plan.seed}/lake/{plan.name}"), partial(publish, self))
        self.keys: KeyFile = KeyFile(self)
        self.node_id: bytes = self.keys.live_anew()
        self._settings = settings_for(fabric.plan, plan, fabric.address_of, Role(), self.keys.known)
        self.recorded = Recorded()
        self._intruder_heard: list[tuple[str, list[bytes]]] = []
        self.image: Image | None = None
        self.era = self.starts = 0
        self.node: Node | None = None
        self.bound: dict[str, Router] = {}  # its bound sockets, by channel
        self.queue_messages = plan.queue_messages
        self.is_gone = False
        """Dead for good: nobody starts it again."""
        self.is_busy = False
        self.is_paused = False
        self._is_slow = self._is_synced = self._stood_still = False
        self._inbox: list[tuple[str, bytes, list[bytes], Flow | None]] = []
        self._orders: list[tuple[str, Any]] = []
        self._waiting: Turn | None = None
        self._buffered: list[Record] = []
        self._timer_at: int | None = None
        self._armed: int | None = None
        self._doom: tuple[str, bool] | None = None
        self._wakes = (0, 0)
        self._receipts = Receipts()
        self.sender = Sender(self)
        self.doors: Doors = Doors(self)
        self.programs: Programs = Programs(self)
        self.store_clients: StoreClients = StoreClients(self)
        self.editor: Editor = Editor(self)
        self._tidy_at = self._paused_at = 0

    # The process.

    @property
    def is_listening(self) -> bool:
        return self.node is not None

    @property
    def level(self) -> str:
        """The current or last role of its node: an election changes it (REC-010)."""
        return self._settings.level

    @property
    def running(self) -> Node:
        """Its node; only while it runs."""
        assert self.node is not None, "asked of a running node"
        return self.node

    @property
    def endpoint(self) -> str:
        """Of its port block."""
        return f"{self.address}:{self.fabric.base_port}"

    @property
    def parent_endpoint(self) -> str:
        """Its parent's endpoint, as far as it knows; empty: none."""
        topology: Any = self.node.cores.get("topology") if self.node is not None else None
        return "" if topology is None or topology.context.leads else topology.context.place.parent

    def bury(self, *, is_loud: bool) -> None:
        """The machine is dead for good."""
        self.crash("kept", is_loud=is_loud)
        self.is_gone = True
        self.fabric.recorder.gone(self)

    def claim_of(self, record: Record) -> Claim | None:
        """What a record of this journal is to the checkers: see `checks.history`."""
        return self.fabric.recorder.claim_of(record, self.plan.fleet)

    def start(self) -> None:
        """A process begins on what the disk holds, with a new era; not if it is dead for good, or nobody let it in.

        A journal that is not whole is refused.
        """
        if self.is_gone or self.keys.is_out or refuses(self):
            return
        fabric, at = self.fabric, self.world.at
        fabric.evict(self)
        self.clocks.boot(at, self.chance.randint(0, 1 << 50))
        now = self.clocks.now(at)
        self.era = next_era(now.wall, self.era)
        self.starts += 1
        fabric.names[self.node_id] = self.origin
        entries = self.disk.recover()
        node = self.node = self._build(self.era, entries)
        self.era = node.era
        self.fabric.recorder.started(self)
        if self.fabric.fleetbook is not None:
            self.fabric.fleetbook.kept(self, entries)
        restore(node, entries, self.disk.next_lsn, now)
        self.keys.begin(node, now)
        fabric.documentbook.began(self)
        self.doors.open(node)
        tell_start(self, node, now)
        self.programs.note_start()
        self.store_clients.note_start()
        self.editor.note_start()
        self._act(now)

    def crash(self, disk: str, *, is_loud: bool) -> None:
        """The process ends now; `disk`, the kind of crash, decides how much of its last batch is on the disk."""
        if self.node is None:
            return
        if self.disk.unsynced_bytes() and disk == "torn":
            self.fabric.recorder.meet("a crash inside a write")
        if disk == "lost" and self.waits():
            self.fabric.recorder.meet("a disk lost with what was not safe")
        self._end(is_loud=is_loud)
        survived = self.disk.crash(self.chance, disk, partial(self.fabric.durable, self))
        self.fabric.recorder.crashed(self, disk, survived)
        if disk in FORGETS:
            FORGETS[disk](self)

    @property
    def key(self) -> str | None:
        """The key that its process proves; None: there are no keys."""
        return self.keys.in_force

    def doom(self, disk: str, *, is_loud: bool) -> None:
        """The process will end in the middle of its next write."""
        if self.node is not None:
            self._doom = (disk, is_loud)

    def spare(self) -> None:
        """Undo `doom`."""
        self._doom = None

    def _end(self, *, is_loud: bool) -> None:
        assert self.node is not None, "who ends has begun"
        self.fabric.recorder.count(self.node)
        self.doors.close(is_loud=is_loud)
        self.fabric.streams.leave(self.name, is_loud=is_loud)
        self.programs.note_end(is_loud=is_loud)
        self.store_clients.note_end()
        self.editor.note_end()
        self.node = self._waiting = self._timer_at = self._armed = None
        self.is_busy = self.is_paused = self._is_slow = self._is_synced = self._stood_still = False
        self._inbox, self._orders, self._buffered = [], [], []
        self._receipts = Receipts()
        self.sender.called_at.clear()

    def pause(self) -> None:
        """Pause the process, not the world."""
        if self.node is not None:
            self.is_paused = True
            self._paused_at = self.world.at
            self._tell_standing()

    def resume(self) -> None:
        """Resume the process: it reads the clock before its sockets, or the other way round."""
        if self.node is None or not self.is_paused:
            return
        self.is_paused = False
        if self.world.at - self._paused_at > self.fabric.plan.dead_ms * MILLISECOND:
            self.fabric.recorder.meet("a process that stood still longer than death")
        self._tell_standing()
        if self.is_busy:
            if self._is_synced:
                self._go_on()
        elif self.chance.getrandbits(1):
            inbox, self._inbox = self._inbox, []
            self._turn()
            self._inbox = inbox + self._inbox
            self.later(MILLISECOND, self._turn)
        else:
            self._turn()

    def _tell_standing(self) -> None:
        """Record in the history that the process is paused, or continues."""
        stands_still = self.is_paused or self._is_slow
        if stands_still != self._stood_still:
            self._stood_still = stands_still
            self.fabric.recorder.paused(self, is_paused=stands_still)

    def later(self, delay_ns: int, do: Callable[[], None]) -> None:
        """Call `do` after the delay, if this process still runs."""
        self.world.call_at(self.world.at + delay_ns, self._if_alive, (self.starts, do))

    def _if_alive(self, what: tuple[int, Callable[[], None]]) -> None:
        starts, do = what
        if self.node is not None and starts == self.starts:
            do()

    # Input

    def hear(self, channel: str, peer: bytes, frames: list[bytes], flow: Flow | None) -> None:
        """A message has reached a socket of this process."""
        if channel == "call":
            self.sender.note_answer(peer)
        self._inbox.append((channel, peer, frames, flow))
        if not self.is_busy and not self.is_paused:
            self._turn()

    def obey(self, core: str, order: Any) -> None:
        """Give an order from outside to a core, at the next turn."""
        self._orders.append((core, order))
        if not self.is_busy and not self.is_paused:
            self._turn()

    def inject(self, channel: str, peer: bytes, frames: list[bytes]) -> None:
        """Send invalid bytes, and record their effect (CHK-019)."""
        node = self.node
        if node is None or self.is_busy or self.is_paused:
            return
        now, recorder = self.clocks.now(self.world.at), self.fabric.recorder
        digest = state_digest(node)
        recorder.injected(self, channel, digest)
        sent, written = probe(node, Source(channel, peer), frames, now)
        digest, refused = state_digest(node), node.refused.total()
        recorder.heard(self, channel, peer, frames)
        node.receive(Source(channel, peer), frames, now)
        recorder.absorbed(self, [channel, digest, node.refused.total() - refused, sent, written])
        self._act(now)

    def intrude(self, kind: str) -> None:
        """An intruder tries each port; the result is recorded (CHK-021)."""
        if self.node is None or self.is_busy or self.is_paused:
            return
        knocks, self._intruder_heard = list(intrude(self, kind)), []
        self._act(self.clocks.now(self.world.at))
        for each in knocks:
            self.fabric.recorder.knocked(self, [*each, answers(self._intruder_heard, each.channel)])

    def answerer(self, core: str) -> Callable[[Any], None]:
        """Gives orders to a core of this process, and to no later one."""
        return partial(self._answer, self.starts, core)

    def _answer(self, starts: int, core: str, order: Any) -> None:
        if self._is_alive(starts):
            self.obey(core, order)
        elif isinstance(order, SegmentWritten):
            self.fabric.recorder.meet("a segment nobody was told of")

    def is_alive_since(self, starts: int) -> Callable[[], bool]:
        """Whether the start of that number still runs, whenever it is asked."""
        return partial(self._is_alive, starts)

    def _is_alive(self, starts: int) -> bool:
        return self.node is not None and starts == self.starts

    # A turn.

    def _turn(self) -> None:
        node = self.node
        if node is None or self.is_busy or self.is_paused:
            return
        now = self.clocks.now(self.world.at)
        while self._orders:
            core, order = self._orders.pop(0)
            node.command(core, order, now)
        if self._inbox:
            inbox, self._inbox = self._inbox, []
            for channel, peer, frames, flow in inbox:
                if flow is not None:
                    flow.read(size_of(frames))
                self.fabric.recorder.heard(self, channel, peer, frames)
                if self.fabric.keyring.is_closed and flow is not None:
                    self.recorded.note(channel, frames)
            received = (self.doors.heard(channel, peer, frames, flow) for channel, peer, frames, flow in inbox)
            node.hear(filter(None, received), now)
        due = node.deadline()  # work produced in this round is due too, as in the runner
        if due is not None and due <= now.mono:
            self._armed = None
            self._count_wake(now)
            node.wake(now)
        self._act(now)

    def _count_wake(self, now: Now) -> None:
        at, count = self._wakes
        self._wakes = (now.mono, count + 1 if at == now.mono else 1)
        if count >= WAKES_AT_ONCE_MAX:
            raise Spun(f"{self.name} was woken {count} times without time passing")

    def _act(self, now: Now) -> None:
        """Carry out the node's effects, as far as the wall allows."""
        node = self.node
        assert node is not None, "a turn has a node"
        effects = node.effects()
        if not effects:
            self._arm(now)
            return
        turn = part_at_wall(effects)
        self._speak(turn.free)
        if self.node is None:
            return
        if turn.records and turn.within_ns:
            self._buffer(turn)
            self._speak(turn.walled)
        elif turn.records:
            self._waiting = turn
            self._write(self._buffered + turn.records)
            return
        self._after(now)

    def _after(self, now: Now) -> None:
        if self.node is None:
            return
        if self._receipts:
            self._tell_receipts(self.node, now)
        else:
            self._arm(now)

    def _tell_receipts(self, node: Node, now: Now) -> None:
        """Let the cores hear what became of their messages, as the runner does."""
        receipts, self._receipts = self._receipts, Receipts()
        for core, order in receipts.orders():
            node.command(core, order, now)
        self._act(now)

    def _buffer(self, turn: Turn) -> None:
        if not self._buffered:
            self.later(turn.within_ns, self._flush)
        self._buffered += turn.records

    def _flush(self) -> None:
        """The delay of a late Persist is over: write its records, unless a wall has taken them along."""
        if self._buffered and self.is_busy:
            self.later(MILLISECOND, self._flush)
        elif self._buffered:
            self._write(self._buffered)

    def _write(self, records: list[Record]) -> None:
        self._buffered = []
        self.disk.write(records)
        self.fabric.recorder.written(self)
        self.is_busy = True
        plan = self.plan
        delay = plan.sync_least_ns + (plan.sync_spread_ns * self.chance.getrandbits(16) >> 16)
        if self.fabric.is_stormy and not self.chance.getrandbits(SLOW_SYNC_BITS):
            delay = self.chance.randint(*SLOW_SYNC_NS)
            self._is_slow = True
            self.fabric.recorder.meet("a sync of seconds")
            self._tell_standing()
        self.later(delay, self._synced)
        if self._doom is not None:
            (disk, is_loud), self._doom = self._doom, None
            self.later(self.chance.randrange(max(1, delay)), partial(self._meet_doom, disk, is_loud=is_loud))

    def _meet_doom(self, disk: str, *, is_loud: bool) -> None:
        if self.fabric.is_stormy:
            self.crash(disk, is_loud=is_loud)

    def _synced(self) -> None:
        """The batch is durable; a paused process learns of it later."""
        if self.fabric.fleetbook is not None:
            self.fabric.fleetbook.durable(self, self.disk.unsynced_bytes())
        self.fabric.durable(self, self.disk.durable_upto + 1)
        self.fabric.recorder.synced(self, self.disk.sync())
        self._is_slow, self._is_synced = False, True
        self._tell_standing()
        if not self.is_paused:
            self._go_on()
        else:
            self.fabric.recorder.meet("a sync that ended while the process stood still")

    def _go_on(self) -> None:
        """Carry out what stands behind the wall, then receive what has come in meanwhile."""
        self.is_busy = self._is_synced = False
        turn, self._waiting = self._waiting, None
        if turn is not None:
            self._speak(turn.walled)
        self._keep_house()
        self._after(self.clocks.now(self.world.at))
        if self._inbox or self._orders:
            self._turn()

    def _keep_house(self) -> None:
        """Forget what all readers have released; write a snapshot when one is due; check the space once a second."""
        node, disk = self.node, self.disk
        if node is None:
            return
        if disk.may_forget(node.releasable):
            self.fabric.recorder.forgot(self, disk.forget(node.releasable))
        if disk.durable_upto - disk.snapshot_upto >= self.plan.snapshot_records and not self._buffered:
            disk.snapshot(node.condense())
            self.fabric.recorder.meet("a snapshot taken")
        if disk.bytes_used * 10 >= disk.budget * 9 or node.is_full:
            self._see_about_room(node)

    def _see_about_room(self, node: Node) -> None:
        """A tight journal gives up its oldest segment, a full one holds everybody back (JRN-031, MEA-025)."""
        if self.world.at < self._tidy_at:
            return
        self._tidy_at = self.world.at + TIDY_NS
        self.later(TIDY_NS, self._keep_house)
        if "drain" not in node.cores:  # a root drops nothing
            self.later(0, partial(self._drop_oldest, node.releasable))
        is_full = self.disk.bytes_used > self.disk.budget
        if is_full != node.is_full:
            self.later(0, partial(self.tell, JournalChanged("FULL" if is_full else "OPEN", "simulated")))

    def _drop_oldest(self, released: int) -> None:
        upto, spans = self.disk.oldest(released)
        if upto:
            self.obey("carrier", DropOldest(upto, spans))

    def tell(self, event: Any) -> None:
        """Tell the node an event of the shell; a busy process misses it."""
        if self.node is not None and not self.is_busy and not self.is_paused:
            self.node.tell(event, self.clocks.now(self.world.at))
            self._turn()

    def waits(self) -> str:
        """What this machine still waits for; empty if it is at rest."""
        if self.node is None:
            return "its start"
        if self.is_busy or self._buffered:
            return "its disk"
        # A root's carrier releases records in large steps: there only the lake counts.
        done = self.node.released.get("drain" if "drain" in self.node.cores else "carrier", 0)
        behind = sum(claim is not None for claim in self.disk.claims[max(0, done - self.disk.first_lsn + 1) :])
        if behind:
            return f"{behind} records behind lsn {done} that are not delivered"
        waits = (why for book in self.fabric.books if (why := book.waits(self)))
        return next(waits, "") or self.programs.waits()

    def memories(self) -> tuple[str, str]:
        """Digests of what the cores would condense now, and of what those of a start from this disk would (JRN-042)."""
        assert self.node is not None, "asked of a running node"
        entries = self.disk.recover()
        twin = self._build(self.era + 1, entries)
        twin.restore(entries, self.disk.next_lsn, self.clocks.now(self.world.at))
        return tuple(memory_digest(node) for node in (self.node, twin))  # type: ignore[return-value]  # two of them

    def _build(self, era: int, entries: list[Entry]) -> Node:
        """Build a node from this machine's settings, and from what its journal says about its role."""
        fabric = self.fabric
        self._settings = settings_for(fabric.plan, self.plan, fabric.address_of, role_of(entries), self.keys.known)
        seed = f"{fabric.plan.seed}/{self.name}/{self.starts}"
        return build_node(self._settings, self.node_id, era, seed, rare=frozenset(fabric.plan.rare))

    def gauges(self) -> Iterator[tuple[str, int, int]]:
        """Bounded things, their sizes, and their limits (CHK-020)."""
        yield "inbox messages", len(self._inbox), INBOX_MAX
        if self.node is not None:
            yield "refusal kinds", len(self.node.refused), REFUSAL_KINDS_MAX + 2
            carrier: Any = self.node.cores.get("carrier")
            children = carrier.counters.children if carrier is not None else 0
            yield "links to children", children, self.fabric.children_max(self.name)
            for name, core in self.node.cores.items():
                yield from core.budget.gauges(name)

    # Waking.

    def _arm(self, now: Now) -> None:
        """Ask the node for its deadline anew, and set the timer for it, or for a little later."""
        assert self.node is not None, "asked by its turn"
        due = self.node.deadline()
        if due == self._armed and self._timer_at is not None:
            return
        self._armed = due
        if due is not None:
            self._ring(max(due, now.mono))

    def _ring(self, due: int) -> None:
        at = max(self.clocks.true_at(due), self.world.at) + (self.chance.getrandbits(20) * self.plan.late_ns >> 20)
        if self._timer_at is None or at < self._timer_at:
            self._timer_at = at
            self.world.call_at(at, self._rung, (self.starts, at))

    def _rung(self, what: tuple[int, int]) -> None:
        starts, at = what
        if starts != self.starts or at != self._timer_at:
            return
        self._timer_at = None
        self._turn()  # a busy or paused process sets it again afterwards

    def _speak(self, effects: list[NodeEffect]) -> None:
        for effect in effects:
            if self.node is None:
                return
            self.fabric.recorder.spoke(self, effect)
            self._SAY[type(effect)](self, effect)

    def _transmit(self, effect: Transmit) -> None:
        if effect.peer.endswith(INTRUDER):
            self._intruder_heard.append((effect.channel, effect.frames))
            return
        is_open = not self._receipts.has_failed(effect.channel, effect.peer)
        if not (is_open and self.sender.say(CHANNELS[effect.channel], effect)):
            self._receipts.note_unsent(effect.channel, effect.peer)

    def _connect(self, effect: Connect) -> None:
        self.sender.connect(effect)

    def _disconnect(self, effect: Disconnect) -> None:
        self.sender.disconnect(effect)

    def _perform(self, effect: Perform) -> None:
        WORK[type(effect.work)](self, effect.work)

    def _heard_elsewhere(self, effect: Tell | Reply) -> None:
        """Record events in the history; keys that the configuration changes are in force from here on."""
        if type(effect) is Tell and type(effect.event) is PairsChanged:
            self.keys.swap()

    def _ended(self, effect: Ended) -> None:
        """The node ends by itself; the machine's supervisor starts it again."""
        self.fabric.recorder.ended(self, effect.event)
        self.later(0, partial(self.crash, "kept", is_loud=True))
        is_planned = isinstance(effect.event, RoleChanged | KeySwitched)
        pause = self.chance.randint(*ROLE_NS) if is_planned else RESTART_NS
        if isinstance(effect.event, RoleChanged):
            self.fabric.recorder.meet(f"a node that becomes {effect.event.level}")
        self.world.call_at(self.world.at + pause, self._supervise)

    def _supervise(self, _: None) -> None:
        if self.node is None:
            self.start()

    _SAY: Final[dict[type, Callable[..., None]]] = {
        Transmit: _transmit,
        Confirm: lambda self, effect: self._receipts.confirm(effect),
        Connect: _connect,
        Disconnect: _disconnect,
        Perform: _perform,
        Tell: _heard_elsewhere,
        Reply: _heard_elsewhere,
        Ended: _ended,
    }
