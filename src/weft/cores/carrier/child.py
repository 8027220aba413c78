"""The child's side of the link to its parent: connects, sends what the outbox holds, processes acknowledgements."""

from collections.abc import Callable
from typing import Any, Final

from weft.base.chance import Chance
from weft.base.effects import Source
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, Now
from weft.base.records import LostRecord, StreamRecord
from weft.cores.carrier import limits
from weft.cores.carrier.context import Context
from weft.cores.carrier.intake import Intake
from weft.cores.carrier.messages import (
    DAMAGED,
    AssignParent,
    Beat,
    Bye,
    Hack,
    Hello,
    Hop,
    LoopFound,
    ParentJoined,
    ParentLost,
    ParentRefused,
    Refuse,
    Welcome,
)
from weft.cores.carrier.outbox import Outbox
from weft.cores.carrier.spool import Backlog
from weft.cores.carrier.states import TABLE, On, State
from weft.wire.carried import is_mail
from weft.wire.hop import VERSION
from weft.wire.multipart import BAD_SUM

UP: Final = "up"


class Child:
    """The link to the parent. Times are monotonic nanoseconds."""

    def __init__(self, context: Context, chance: Chance, outbox: Outbox, intake: Intake) -> None:
        self.context, self.outbox, self.intake, self.dispatch = context, outbox, intake, intake.dispatch
        self._backlog = Backlog(context, outbox)
        self.state = State.NONE
        self.endpoint = self.parent_name = ""
        self.parent: bytes | None = None
        """The node id of the parent that welcomed us last."""
        self._chance = chance
        self._had: tuple[bytes, int] | None = None
        self._failed = 0
        self._win = self._winb = 0
        self._beat_ns, self._dead_ns = context.beat_ns, context.dead_ns
        self._greet_at: int | None = None
        self._answer_by: int | None = None
        self._fetch_at = 0
        self._sent_at = self._heard_at = self._moved_at = 0
        self.refused_with: tuple[str, str] | None = None  # code and text of the last refusal, until a welcome
        self._is_loop_reported = False
        self.is_full = False
        """Whether this node has no room for mail from its parent."""
        self._down_era = 0
        self._owed: Hack | None = None
        self._garbled = 0
        self._garbled_at = 0
        self._unbelieved: Welcome | Hack | None = None
        """The last Welcome or Hack whose `safe` was ignored, because it did not name the root of record; kept, since
        that root may become it.
        """

    # Orders

    def root_is(self) -> None:
        """The root of record has changed: it may be the one that the ignored message named."""
        ignored = self._unbelieved
        if ignored is not None and self._is_open():
            self._release(ignored)

    def assign(self, order: AssignParent, now: Now) -> None:
        """Connect to another endpoint; the same endpoint again changes nothing."""
        if order.endpoint == self.endpoint and self.state is not State.NONE:
            return
        self.endpoint, self.parent_name = order.endpoint, order.name
        self._turn(On.ASSIGNED, "moved", now)

    def dismiss(self, why: str, now: Now) -> None:
        """Say goodbye to the parent, if there is one."""
        self._turn(On.DISMISSED, why, now)

    def garbled(self, code: str, now: Now) -> None:
        """The parent sent an unreadable multipart; ten of them in a minute end the link.

        One message that was altered on the way ends it at once: its content is unknown, so both sides start again
        after the last record that the parent has kept.
        """
        if now.mono > self._garbled_at + limits.GARBLED_NS:
            self._garbled, self._garbled_at = 0, now.mono
        self._garbled += 1
        is_over = code == BAD_SUM or self._garbled >= limits.GARBLED_MAX
        if is_over and self.state is not State.NONE:
            self._garbled = 0
            self._turn(On.BROKEN, DAMAGED if code == BAD_SUM else "garbled", now)

    # Messages

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """Process a message of the parent; PeerError if it is not allowed in this state, and then nothing has changed."""
        hear = _HEAR.get(type(message))
        if hear is None or self.state is State.NONE:
            raise PeerError("not-now", f"{type(message).__name__} from a parent")
        if source.proved is not None and self.parent not in (None, source.proved) and type(message) is not Welcome:
            raise PeerError("not-yours", "the key of another node")
        hear(self, message, source, now)
        self._heard_at = now.mono

    def _welcome(self, welcome: Welcome, source: Source, now: Now) -> None:
        if welcome.v != VERSION:
            raise PeerError("version", str(welcome.v))
        if source.proved not in (None, welcome.node):
            raise PeerError("not-yours", welcome.name)
        if welcome.node == self.context.node:
            raise PeerError("loop", "welcomed by ourselves")
        safe = welcome.upto if welcome.safe is None else welcome.safe
        if not safe <= welcome.upto:
            raise PeerError("bad-safe", f"{safe} is above {welcome.upto}")
        if self.intake.links.has_node(welcome.node):
            self._turn(On.REFUSED, Refuse("denied", f"{welcome.name} stands below us"), now)
            return
        self.outbox.begin(welcome.upto)
        self._turn(On.WELCOMED, welcome, now)
        self._answer_senders()
        self._release(welcome)

    def _refuse(self, refuse: Refuse, source: Source, now: Now) -> None:
        self.context.counters.refuse("by-parent")
        self._turn(On.REFUSED, refuse, now)

    def _hop(self, hop: Hop, source: Source, now: Now) -> None:
        """Mail on the parent's downward stream, which is volatile."""
        if not self._is_open() or self.parent is None:
            raise PeerError("not-now", "before the welcome")
        if not hop.mem:
            raise PeerError("unimplemented", "a stream downward with a promise")
        if hop.era != self._down_era:
            raise PeerError("bad-era", str(hop.era))
        if self.is_closed:
            self.context.counters.received += len(hop.m)
            self.context.counters.held_back += len(hop.m)
            self._owe([])
        else:
            self._owe(self.intake.take_volatile(hop, self.parent, None, now))

    def _owe(self, no: list[tuple[int, str]], *, back: bool = False) -> None:
        """Prepare the acknowledgement of mail from above; it is sent at the end of this turn."""
        if self._owed is not None:
            no = [*self._owed.no, *no]
        if self.parent is not None and self._is_open():
            upto = self.intake.heard_upto(self.parent, self._down_era, is_child=False)
            win = 0 if self.is_closed else limits.HOP_WINDOW
            self._owed = Hack(era=self._down_era, upto=upto, win=win, winb=limits.HOP_WINDOW_BYTES, no=no, back=back)

    def hold_back(self, *, is_full: bool) -> None:
        """Stop taking mail from above, or go on where it stopped (CHN-040)."""
        if is_full is not self.is_full:
            self.is_full = is_full
            self.turn()

    def turn(self) -> None:
        """Tell the parent whether it may send mail."""
        self._owe([], back=not self.is_closed)

    @property
    def is_closed(self) -> bool:
        """Whether mail from above is not taken now; the parent keeps it and sends it again."""
        return self.is_full or self.context.awaits_filters

    def _hack(self, hack: Hack, source: Source, now: Now) -> None:
        if hack.era == self.dispatch.up.era and self._is_open():
            self.dispatch.hear_parent(hack)
            return
        if hack.era != self.context.era:
            raise PeerError("bad-era", str(hack.era))
        if self.state is not State.GREETING:
            self.outbox.check(hack.upto, self._safe_of(hack))
        self._turn(On.ROOM if hack.win else On.NO_ROOM, hack, now)

    def _beat(self, beat: Beat, source: Source, now: Now) -> None:
        """Nothing to do: `receive` notes when the parent was heard."""

    def _bye(self, bye: Bye, source: Source, now: Now) -> None:
        self._turn(On.BROKEN, f"bye: {bye.why}", now)

    def _release(self, reply: Welcome | Hack) -> None:
        """Forget records that are safe at the root of record; a `safe` of any other root is ignored (FLD-012)."""
        safe = self._safe_of(reply)
        self._unbelieved = None
        if self.context.believes(reply.root):
            self.outbox.release(safe)
        elif safe > self.outbox.safe:
            self._unbelieved = reply
            self.context.counters.refuse("not-the-root")

    def _safe_of(self, reply: Welcome | Hack) -> int:
        """The safe number of a reply; without one, everything that the parent holds counts as safe."""
        if reply.safe is not None:
            return reply.safe
        return max(reply.upto, self.outbox.held) if isinstance(reply, Hack) else reply.upto

    # Time

    def forgive(self, now: Now) -> None:
        """The machine has slept long: start all silence timers again (REC-001)."""
        self._heard_at = self._moved_at = now.mono
        if self._answer_by is not None:
            self._answer_by = now.mono + self._dead_ns

    def wake(self, now: Now) -> None:
        """Do what is due."""
        if self._greet_at is not None and now.mono >= self._greet_at:
            self._turn(On.DUE, None, now)
        elif self._answer_by is not None and now.mono >= self._answer_by:
            self._turn(On.BROKEN, "silent", now)
        elif self._is_open():
            self._watch(now)

    def _watch(self, now: Now) -> None:
        if now.mono >= self._heard_at + self._dead_ns:
            self._turn(On.BROKEN, "silent", now)
        elif now.mono >= self._stalled_at():
            self._turn(On.BROKEN, "stalled", now)
        elif now.mono >= self._sent_at + self._beat_ns:
            self._say(Beat(), now)

    def deadline(self) -> int | None:
        """When `wake` is wanted."""
        if self._is_open():
            due = min(self._sent_at + self._beat_ns, self._heard_at + self._dead_ns, self._stalled_at())
            return min(due, self._fetch_at) if self._fetch_at and self.state is State.OPEN else due
        return self._greet_at if self._greet_at is not None else self._answer_by

    def _stalled_at(self) -> int:
        """When a window that does not move counts as broken, because frames or acknowledgements were lost."""
        waits = self.state is State.OPEN and self.outbox.in_flight() > 0
        return self._moved_at + self._dead_ns if waits else self._heard_at + self._dead_ns

    def _is_open(self) -> bool:
        return self.state is State.OPEN or self.state is State.STOPPED

    # What follows (methods named in states.TABLE)

    def _turn(self, on: On, what: Any, now: Now) -> None:
        cell = TABLE.get((self.state, on))
        if cell is None:
            raise PeerError("not-now", f"{on.name} while {self.state.name}")
        before, self.state = self.state, cell.then
        getattr(self, cell.do)(what, before, now)

    def stay(self, what: Any, before: State, now: Now) -> None:
        """Nothing to do."""

    def greet(self, what: Any, before: State, now: Now) -> None:
        """Send `hello` through a new socket: the old one may be dead without an error (SIM-021)."""
        outbox = self.outbox
        self._greet_at, self._answer_by = None, now.mono + self._dead_ns
        self.context.connect(UP, self.endpoint)
        hello = Hello(
            v=VERSION,
            role="node",
            name=self.context.settings.name,
            id=self.context.node,
            era=self.context.era,
            first=outbox.safe + 1,
            next=outbox.given + 1,
            had=self._had,
        )
        self._say(hello, now)

    def back_off(self, what: Any, before: State, now: Now) -> None:
        """Send `hello` again after a pause that doubles."""
        if isinstance(what, Refuse) and (what.why, what.text) != self.refused_with:
            self.refused_with = (what.why, what.text)
            self.context.tell(ParentRefused(what.why, what.text))
        self._answer_by = None
        self._greet_at = now.mono + limits.BACK_OFF.pause_ns(self._chance, self._failed)
        self._failed += 1

    def lose(self, what: Any, before: State, now: Now) -> None:
        """The link is broken."""
        why = f"refused: {what.why}" if isinstance(what, Refuse) else str(what)
        self.context.tell(ParentLost(why))
        self.back_off(what, before, now)

    def join(self, welcome: Welcome, before: State, now: Now) -> None:
        """The parent has welcomed us."""
        self._answer_by = self._greet_at = None
        self._failed = 0
        self.refused_with, self._is_loop_reported = None, False
        self.parent = welcome.node
        self.parent_name = welcome.name or self.parent_name  # who assigned it may not have known yet
        beat_ms = max(welcome.beat, limits.BEAT_MS_MIN)
        self._beat_ns = beat_ms * MILLISECOND
        self._dead_ns = max(min(welcome.dead, limits.DEAD_MS_MAX), 3 * beat_ms) * MILLISECOND
        self.context.tell(ParentJoined(welcome.name, welcome.node))
        self._backlog.begin()
        self.take_up(welcome, before, now)

    def take_up(self, welcome: Welcome, before: State, now: Now) -> None:
        """Continue behind the last number that the parent has."""
        self._had = (welcome.node, welcome.upto)
        self._down_era, self._owed = welcome.era, None
        self.dispatch.begin_up(welcome.node)
        self._win, self._winb = welcome.win, welcome.winb
        self._moved_at = now.mono

    def advance(self, hack: Hack, before: State, now: Now) -> None:
        """Move the window. Only records up to `safe` may be forgotten; those up to `upto` may not (MEA-024)."""
        outbox = self.outbox
        self._answer_refusals(hack)
        moved = outbox.acknowledge(hack.upto)
        self._answer_senders()
        if moved or before is State.STOPPED:
            self._moved_at = now.mono
        if moved and self.parent is not None:
            self._had = (self.parent, outbox.held)
        if hack.back:
            outbox.go_back()
            self.dispatch.up.go_back()
        self._win, self._winb = hack.win, hack.winb
        self._release(hack)
        self._backlog.look()

    def _answer_senders(self) -> None:
        """Tell waiting senders what became of their mail (CHN-030)."""
        if self.outbox.answers:
            answers, self.outbox.answers = self.outbox.answers, []
            for answer in answers:
                self.context.tell(answer)

    def _answer_refusals(self, hack: Hack) -> None:
        """Process refused numbers. `loop`: the parent already had the record.

        Anything else that it refuses for good is lost, and announced.

        Refused mail is only counted, by reason: nobody waits for its numbers.
        """
        lost: list[LostRecord] = []
        for number, why in hack.no:
            record = self.outbox.record_of(number)
            self.context.counters.refused_above += 1
            if is_mail(record):
                self.context.counters.lose_mail(why)
                self.outbox.refuse(number, why)
            elif why == "loop":
                self._tell_loop()
            elif why != "overlap" and type(record) is StreamRecord:
                lost.append(announce(record, why))
        if lost:
            self.context.persist(lost)

    def _tell_loop(self) -> None:
        if not self._is_loop_reported:
            self._is_loop_reported = True
            self.context.tell(LoopFound(self.parent_name))

    def move(self, what: Any, before: State, now: Now) -> None:
        """Change to another parent: say goodbye to the old one, hello to the new one (RTE-007)."""
        self._say(Bye("moved"), now)
        self.context.tell(ParentLost("moved"))
        self.parent = None
        self._failed = 0
        self.greet(what, before, now)

    def let_go(self, what: Any, before: State, now: Now) -> None:
        """There is no parent any more."""
        if before is not State.GREETING:
            self._say(Bye(str(what)), now)
            self.context.tell(ParentLost(str(what)))
        self._greet_at = self._answer_by = None
        self._failed = 0
        self.parent = None
        self.endpoint = ""
        self.context.disconnect(UP)

    # What goes up

    def pump(self, now: Now) -> None:
        """Acknowledge mail from above, send what the window has room for, and fetch what is missing in memory."""
        if self._owed is not None and self._is_open():
            self._say(self._owed, now)
            self._owed = None
        if self.state is not State.OPEN:
            return
        context, outbox = self.context, self.outbox
        while (batch := outbox.take(self._win, self._winb, now.wall)) is not None:
            if outbox.in_flight() == len(batch.hop.m):
                self._moved_at = now.mono
            if batch.left_out:
                self._announce_left_out(batch.left_out)
            context.counters.batches += 1
            self._say(batch.hop, now)
        if now.mono >= self._fetch_at:
            self._fetch_at = 0
            if (work := outbox.fetch("carrier")) is not None:
                context.perform(work)

        if self._win and self.parent is not None:
            while (hop := self.dispatch.up.take(self.parent)) is not None:
                self._say(hop, now)

    def pause_fetching(self, span: int, now: Now) -> None:
        """The journal had nothing new: wait before the next fetch."""
        self._fetch_at = now.mono + span if span else 0

    def _announce_left_out(self, left_out: list[tuple[Any, str]]) -> None:
        lost = []
        for record, why in left_out:
            if is_mail(record):
                self.context.counters.lose_mail(why)
            elif type(record) is StreamRecord:
                lost.append(announce(record, why))
        self.context.counters.uncarriable += len(lost)
        if lost:
            self.context.persist(lost)

    def _say(self, message: Any, now: Now) -> None:
        self._sent_at = now.mono
        self.context.send(UP, b"", message)


def announce(record: StreamRecord, why: str) -> LostRecord:
    """The record that announces that these numbers will never come."""
    return LostRecord(record.stream, record.origin, record.era, record.sequence, record.last, why[:64])


_HEAR: Final[dict[type, Callable[[Child, Any, Source, Now], None]]] = {
    Welcome: Child._welcome,
    Hop: Child._hop,
    Refuse: Child._refuse,
    Hack: Child._hack,
    Beat: Child._beat,
    Bye: Child._bye,
}
