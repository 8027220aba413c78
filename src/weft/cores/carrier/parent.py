"""The parent's side of the links to its children: welcomes them, keeps and acknowledges their records.

Everything that one turn receives is collected until `flush`. Then the records of all children go into one `Persist`,
each child's records followed by the number up to which they are held, and behind this wall each child gets its `hack`
(CHN-033b).
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from weft.base.effects import Source
from weft.base.errors import PeerError
from weft.base.now import Now
from weft.base.records import Carried, CoreRecord, LostRecord, Record, StreamRecord
from weft.base.settings import is_plain_name
from weft.cores.carrier import limits
from weft.cores.carrier.childprogress import ChildProgress
from weft.cores.carrier.context import Context
from weft.cores.carrier.intake import Intake
from weft.cores.carrier.links import Link, Strangers
from weft.cores.carrier.memory import Doubted, Received, to_record
from weft.cores.carrier.messages import (
    DAMAGED,
    Beat,
    Bye,
    ChildJoined,
    ChildLost,
    ChildRefused,
    Hack,
    Hello,
    Hop,
    MessageRefused,
    Refuse,
    RolledBack,
    Welcome,
)
from weft.cores.carrier.seen import Notes, Seen, Verdict
from weft.wire import carried
from weft.wire.carried import is_mail, is_over, is_past
from weft.wire.hop import VERSION, HopItem
from weft.wire.multipart import BAD_SUM

DOWN: Final = "down"


class Parent:
    """All links to children. `last_lsn` returns where the last carried record stands in our journal."""

    def __init__(self, context: Context, last_lsn: Callable[[], int], intake: Intake) -> None:
        self.context, self.last_lsn, self.intake = context, last_lsn, intake
        self.is_root, self.is_safe_at_once = context.settings.is_root, context.settings.is_safe_at_once
        self.progress, self.seen = ChildProgress(is_safe_at_once=self.is_safe_at_once), Seen()
        self.links, self.dispatch = intake.links, intake.dispatch
        self.parent: bytes | None = None
        """The node id of our own parent, which cannot be our child."""
        self.parent_name = ""
        self.is_full = self.is_stopped = False
        self.window = limits.HOP_WINDOW
        self.is_waiting = context.settings.is_root and context.settings.epoch > 0
        """A new root takes nothing from children until it has learned which records it already has."""
        self.given: dict[int, int] = {}
        """The last number of each stream of this node in this start."""
        self._strangers = Strangers()
        self._notes = Notes()
        self._dirty: dict[bytes, Link] = {}
        self._volatile: dict[bytes, Link] = {}
        self._underway: dict[tuple[bytes, int], int] = {}
        self._sweep_at: int | None = None

    # Messages

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """Process a message of a child; PeerError if it is not allowed, and then nothing has changed."""
        if self.is_stopped:
            raise PeerError("not-now", "stopped")
        link = self.links.of_peer(source.peer)
        if type(message) is Hello:
            if not self._strangers.is_muted(source.peer, now.mono):
                self._hello(message, source, now)
            return
        if link is None:
            self._stranger(message, source, now)
            return
        if source.proved != link.proved:
            raise PeerError("not-yours", link.name)
        hear = _HEAR.get(type(message))
        if hear is None:
            raise PeerError("not-now", f"{type(message).__name__} from a child")
        hear(self, link, message, now)
        link.heard_at = now.mono

    def _stranger(self, message: Any, source: Source, now: Now) -> None:
        """Refuse every first message but hello (CLI-005); a goodbye needs no answer."""
        if type(message) is Bye:
            return
        self.context.counters.refuse("bad-hello")
        if self._strangers.may_answer(source.peer, now.mono):
            self.context.send(DOWN, source.peer, Refuse("bad-hello", "say hello first"))

    def _beat(self, link: Link, beat: Beat, now: Now) -> None:
        """Nothing to do: the time of any message is noted already."""

    def _bye(self, link: Link, bye: Bye, now: Now) -> None:
        self.flush(now)
        self._lose(link, bye.why or "bye")

    # Hello

    def _hello(self, hello: Hello, source: Source, now: Now) -> None:
        fault = self._fault_of(hello, source) or self._conflict_of(hello, now)
        if fault is not None:
            why, text, event = fault
            self.context.counters.refuse(event)
            self.context.send(DOWN, source.peer, Refuse(why, text))
            self.context.tell_seldom((hello.name, event), ChildRefused(hello.name, event), now.mono)
            return
        self.flush(now)
        for old in (self.links.of_node(hello.id), self.links.of_peer(source.peer), self.links.of_name(hello.name)):
            if old is not None and self.links.of_peer(old.peer) is old:
                self._lose(old, "replaced")
        self._join(hello, source, now)

    def _fault_of(self, hello: Hello, source: Source) -> tuple[str, str, str] | None:
        """What is wrong with the hello itself: the answer (why, text) and the event."""
        if hello.v != VERSION:
            return "version", f"this node speaks {VERSION}", "version"
        if hello.role != "node" or not is_plain_name(hello.name) or hello.first > hello.next:
            return "bad-hello", "this is a node link", "bad-hello"
        if source.proved not in (None, hello.id):
            return "denied", "the key is that of another node", "not-yours"
        if hello.id == self.context.node:
            return "denied", "this is your own node id", "myself"
        if hello.id == self.parent:
            return "denied", "you are my parent", "loop"
        return None

    def _conflict_of(self, hello: Hello, now: Now) -> tuple[str, str, str] | None:
        """Which other link is in conflict; only live links count (CHN-037)."""
        twin = self.links.of_node(hello.id)
        latest_era = self.progress.latest_era(hello.id)
        if hello.era > latest_era + limits.ERA_STEP_MAX:
            return "bad-hello", f"era {hello.era} is too far above {latest_era}", "era-jump"
        held_upto = _held_upto(self, hello)
        if hello.first - 1 > held_upto + limits.FIRST_STEP_MAX:
            return "bad-hello", f"number {hello.first} is too far above {held_upto}", "first-jump"
        if twin is not None and hello.era < twin.era and self._is_live(twin, now):
            return "busy", "a later start of this node is here", "two-nodes-one-id"
        namesake = self.links.of_name(hello.name)
        is_taken = namesake is not None and namesake.node != hello.id and self._is_live(namesake, now)
        if is_taken or hello.name == self.context.settings.name:
            return "busy", f"the name {hello.name} is taken by another node", "name-taken"
        if twin is None and len(self.links) >= limits.CHILDREN_MAX:
            return "busy", f"{limits.CHILDREN_MAX} children are enough", "full"
        return None

    def _is_live(self, link: Link, now: Now) -> bool:
        return now.mono < link.heard_at + self.context.dead_ns

    def _join(self, hello: Hello, source: Source, now: Now) -> None:
        link = Link(source.peer, hello.id, hello.name, hello.era)
        held_upto = _held_upto(self, hello)
        link.proved, link.floor = source.proved, hello.first - 1
        link.upto = link.written = max(held_upto, link.floor)
        link.heard_at = now.mono
        self._compare(hello, held_upto, now)
        self.links.add(link)
        first, upcoming = self.dispatch.begin_down(link.node)
        if self._sweep_at is None:
            self._sweep_at = now.mono + limits.SWEEP_NS
        self._say(link, msgspec.structs.replace(self._welcome_of(link), first=first, next=upcoming), now)
        self.context.tell(ChildJoined(hello.id, hello.name))

    def _compare(self, hello: Hello, held_upto: int, now: Now) -> None:
        """If the child has acknowledgements beyond what we have, our own disk lost records (CHN-038)."""
        if hello.had is not None:
            acknowledged = hello.had[1] if hello.had[0] == self.context.node else 0
        else:
            acknowledged = hello.first - 1 if held_upto else 0  # a child that does not name the root
        if acknowledged > held_upto:
            lost = max(0, min(hello.first - 1, acknowledged) - held_upto)
            event = RolledBack(hello.id, hello.name, hello.era, acknowledged - held_upto, lost if self.is_root else 0)
            self.context.tell_seldom((hello.name, "rolled-back"), event, now.mono)

    def _welcome_of(self, link: Link) -> Welcome:
        mine = self.context.settings
        return Welcome(
            v=VERSION,
            node=self.context.node,
            name=mine.name,
            addr=mine.addr,
            boot=mine.boot,
            level=mine.level,
            parent=self.parent_name or None,
            children=[],
            credit=0,
            credit_bytes=0,
            beat=mine.beat_ms,
            dead=mine.dead_ms,
            era=self.context.era,
            first=1,
            next=1,
            upto=link.upto,
            win=self._win,
            winb=limits.HOP_WINDOW_BYTES,
            safe=self._safe(link),
            root=self.context.root,
        )

    # Hop

    def _hop(self, link: Link, hop: Hop, now: Now) -> None:
        count, counters = len(hop.m), self.context.counters
        if hop.mem:
            self._hop_volatile(link, hop, now)
            return
        if hop.era != link.era:
            raise PeerError("bad-era", str(hop.era))
        counters.received += count
        if self.is_closed:
            counters.held_back += count
        elif hop.s > link.upto + 1:
            counters.ahead += count
            if not link.is_gap_reported:
                link.is_gap_reported = link.back = True
                self._owe(link)
        else:
            repeated = min(link.upto + 1 - hop.s, count)
            counters.repeated += repeated
            link.is_gap_reported = False
            self._take(link, hop, repeated, now)
            self._owe(link)

    def _hop_volatile(self, link: Link, hop: Hop, now: Now) -> None:
        """Volatile mail: acknowledged without a disk write, unless some of it is kept."""
        if self.is_closed:
            self.context.counters.received += len(hop.m)
            self.context.counters.held_back += len(hop.m)
            return
        link.volatile_no += self.intake.take_volatile(hop, link.node, link, now)
        link.volatile_era = hop.era
        self._volatile[link.peer] = link

    def _hack(self, link: Link, hack: Hack, now: Now) -> None:
        """The child has acknowledged mail that we sent down."""
        self.dispatch.hear_child(link.node, hack)
        link.is_down_open = hack.win > 0

    def _take(self, link: Link, hop: Hop, skip: int, now: Now) -> None:
        counters, me, frames = self.context.counters, self.context.node, hop.frames
        at = number = 0
        for number, item in enumerate(hop.m):
            begin, at = at, at + item.n
            if number < skip:
                continue
            if len(item.via) > 1 or item.mid[0] != link.node:
                self.links.learn(link, (*item.via, item.mid[0]))
            if is_over(item) or (item.to is not None and is_past(item.exp, now.wall)):
                counters.expired += 1
            elif not item.n:
                self._turn_away(link, hop.s + number, "empty", now)
            elif me in item.via and (item.to is not None or not self.is_root):
                self._turn_away(link, hop.s + number, "loop", now)
            else:
                try:
                    self._keep(link, hop.s + number, item, frames[begin:at], now)
                except PeerError as error:
                    self._turn_away(link, hop.s + number, error.code, now)
        link.upto = max(link.upto, hop.s + number)

    def _keep(self, link: Link, number: int, item: HopItem, frames: list[bytes], now: Now) -> None:
        record = carried.to_record(item, frames, now.wall)
        if is_mail(record):
            records = self.intake.pass_mail(record, link, now)
            link.pending += self.seen.without_repeats(records, record) if self.is_root else records
            return
        if record.origin == self.context.node and not self._may_return(record):
            raise PeerError("loop", "what this node has made itself")
        if type(record) is not StreamRecord:
            is_new = self._notes.is_new(frames[0])
        elif self.is_root:
            record.attributes.pop("via", None)  # the route ends here; below a later root a new one begins
            verdict = self.seen.take(record)
            if verdict is Verdict.OVERLAPS:
                self._split(link, record)
                raise PeerError("overlap", str(record.source))
            self.context.counters.unsure += verdict is Verdict.UNSURE
            is_new = verdict is not Verdict.KNOWN
        else:
            is_new = True
        if is_new:
            link.pending += self.intake.pass_record(record, now) if type(record) is StreamRecord else (record,)
            self.context.counters.accepted += 1
        else:
            self.context.counters.known += 1

    def _may_return(self, record: Carried) -> bool:
        """Whether a child may send up records that this node made.

        A former root, now below us, returns the records that it took from us while it was the root. Their numbers are
        of an earlier start, or were given in this one.
        """
        own = self.context.era
        if type(record) is LostRecord or (record.era is not None and record.era < own):
            return True
        is_given = type(record) is not StreamRecord or record.last <= self.given.get(record.stream, 0)
        return record.era == own and is_given and not self.is_root

    def _split(self, link: Link, record: StreamRecord) -> None:
        """Announce the missing numbers of an overlapping batch as lost: batches are immutable, so it is invalid."""
        for first, last in self.seen.missing(record):
            link.pending.append(LostRecord(record.stream, record.origin, record.era, first, last, "overlap"))

    def _turn_away(self, link: Link, number: int, why: str, now: Now) -> None:
        counters = self.context.counters
        counters.turned_away += 1
        counters.refuse(why)
        link.no.append((number, why))
        self.context.tell_seldom((link.name, f"no {why}"), MessageRefused(link.name, number, why), now.mono)

    # What follows

    def _owe(self, link: Link) -> None:
        self._dirty[link.peer] = link

    def flush(self, now: Now) -> None:
        """Make durable what this turn received, and acknowledge it behind that wall."""
        if not (self._dirty or self._volatile or self.intake.volatile):
            return
        records: list[Record] = []
        memories: list[Received] = []
        for link in self._dirty.values():
            if link.upto > link.written:
                memories.append(Received(link.node, link.era, link.upto))
                records += link.pending
                records.append(to_record(memories[-1]))
                link.pending, link.written = [], link.upto
                self._underway[link.node, link.era] = link.upto
        records += map(to_record, self.intake.met.news())
        records += self.intake.volatile
        self.intake.volatile = []
        if records:
            self.context.persist(records)
        if all(
            type(record) is CoreRecord for record in records
        ):  # without a carried record, the journal reports no lsn
            for memory in memories:
                self.note(memory, self.last_lsn() + 1, self.last_lsn())
        for link in self._dirty.values():
            self._say(link, self._hack_of(link), now)
        for link in self._volatile.values():
            self._say(link, self._volatile_hack_of(link), now)
        self._dirty.clear()
        self._volatile.clear()

    def pump(self, now: Now) -> None:
        """Send down what children have room for."""
        for child in self.dispatch.ready:
            link, stream = self.links.of_node(child), self.dispatch.down[child]
            while link is not None and link.is_down_open and (hop := stream.take(child)) is not None:
                self._say(link, hop, now)
        self.dispatch.ready.clear()

    def _volatile_hack_of(self, link: Link) -> Hack:
        upto = self.intake.heard_upto(link.node, link.volatile_era, is_child=True)
        no, link.volatile_no = link.volatile_no, []
        return Hack(era=link.volatile_era, upto=upto, win=self._win, winb=limits.HOP_WINDOW_BYTES, no=no)

    def _hack_of(self, link: Link) -> Hack:
        hack = Hack(
            era=link.era,
            upto=link.upto,
            win=self._win,
            winb=limits.HOP_WINDOW_BYTES,
            no=link.no,
            safe=self._safe(link),
            root=self.context.root,
            back=link.back,
        )
        link.no, link.back = [], False
        return hack

    @property
    def _win(self) -> int:
        return 0 if self.is_closed else self.window

    @property
    def is_closed(self) -> bool:
        """Whether nothing is taken from children; they keep their records and send them again."""
        return self.is_full or self.is_waiting or self.context.awaits_filters

    def _safe(self, link: Link) -> int:
        """The safe number for a child.

        At the root: what is durable, or drained; elsewhere what our own parent calls safe.
        """
        if self.is_safe_at_once:
            return link.upto
        progress = self.progress.find(link.node, link.era)
        return max(link.floor, progress.safe if progress is not None else 0)

    def note(self, memory: Received, lsn: int, last: int) -> None:
        """Our journal has this record at `lsn`; the last carried record before it stands at `last`."""
        self.progress.note(memory, lsn, last)
        if self._underway.get((memory.node, memory.era), 0) <= memory.upto:
            self._underway.pop((memory.node, memory.era), None)

    def pass_on(self, frontier: int) -> None:
        """Everything up to `frontier` in our journal is safe: tell the children whose numbers became safe."""
        for node, era in self.progress.pass_on(frontier):
            link = self.links.of_node(node)
            if link is not None and link.era == era:
                self._owe(link)

    def root_is(self) -> None:
        """The root of record has changed: tell the children which root `safe` is from."""
        for link in self.links:
            self._owe(link)

    def hold_back(self, *, is_full: bool) -> None:
        """Stop all children, or let them continue (CHN-040)."""
        if is_full is self.is_full:
            return
        self.is_full = is_full
        self.turn_all()

    def begin(self) -> None:
        """This root has learned what it has: children may continue."""
        self.is_waiting = False
        self.turn_all()

    def turn_all(self) -> None:
        """Tell all children whether they may send."""
        for link in self.links:
            link.back = not self.is_closed
            link.is_gap_reported = False
            self._owe(link)

    def garbled(self, peer: bytes, code: str, now: Now) -> None:
        """A child sent an unreadable multipart; ten of them in a minute cut it off (CLI-006).

        One message that was altered on the way cuts it off at once: its content is unknown, so both sides start again
        after the last record that was kept.
        """
        link = self.links.of_peer(peer)
        if link is None:
            self._garbled_stranger(peer, code, now)
            return
        if now.mono > link.garbled_at + limits.GARBLED_NS:
            link.garbled, link.garbled_at = 0, now.mono
        link.garbled += 1
        if code == BAD_SUM or link.garbled >= limits.GARBLED_MAX:
            why = DAMAGED if code == BAD_SUM else "garbled"
            self.flush(now)
            self._say(link, Bye(why), now)
            self._strangers.mute(peer, now.mono + limits.GARBLED_NS)
            self._lose(link, why)

    def _garbled_stranger(self, peer: bytes, code: str, now: Now) -> None:
        """An altered message of a peer without a link was probably its hello.

        Without an answer it would wait until we count as silent.
        """
        if code == BAD_SUM and self._strangers.may_answer(peer, now.mono):
            self.context.send(DOWN, peer, Bye(DAMAGED))

    def stop(self, now: Now) -> None:
        """Say goodbye to all children."""
        self.flush(now)
        self.is_stopped = True
        for link in self.links:
            self._say(link, Bye("stopping"), now)
            self._lose(link, "stopping")

    def forgive(self, now: Now) -> None:
        """The machine has slept long: start all silence timers again (REC-001)."""
        for link in self.links:
            link.heard_at = now.mono

    def wake(self, now: Now) -> None:
        """Look at all children: find the silent ones, and send beats."""
        if self._sweep_at is None or now.mono < self._sweep_at:
            return
        self.flush(now)
        dead_before, beat_before = now.mono - self.context.dead_ns, now.mono - self.context.beat_ns
        for link in self.links:
            if link.heard_at <= dead_before:
                self._lose(link, "silent")
            elif link.sent_at <= beat_before:
                self._say(link, Beat(), now)
        self._sweep_at = now.mono + limits.SWEEP_NS if len(self.links) else None

    def deadline(self) -> int | None:
        """When `wake` is wanted."""
        return self._sweep_at

    def _lose(self, link: Link, why: str) -> None:
        assert not link.pending, "flushed before"
        self._dirty.pop(link.peer, None)
        self._volatile.pop(link.peer, None)
        self.links.remove(link)
        self.context.tell(ChildLost(link.node, link.name, why))

    def _say(self, link: Link, message: Any, now: Now) -> None:
        link.sent_at = now.mono
        self.context.send(DOWN, link.peer, message)


def doubt(parent: Parent, doubted: Doubted, now: Now) -> None:
    """The journal has lost records: whatever they may have held of children, these send again after their next hello."""
    parent.flush(now)
    has_lost = parent.progress.roll_back(doubted, parent.last_lsn() + 1)
    parent.context.persist([to_record(doubted)])
    for link in parent.links if has_lost else ():
        parent._say(link, Bye(DAMAGED), now)
        parent._lose(link, DAMAGED)


def _held_upto(parent: Parent, hello: Hello) -> int:
    """The highest number of this start of the child that its parent keeps, or will once this turn is written."""
    progress = parent.progress.find(hello.id, hello.era)
    return max(progress.upto if progress is not None else 0, parent._underway.get((hello.id, hello.era), 0))


_HEAR: Final[dict[type, Callable[[Parent, Link, Any, Now], None]]] = {
    Hop: Parent._hop,
    Hack: Parent._hack,
    Beat: Parent._beat,
    Bye: Parent._bye,
}
