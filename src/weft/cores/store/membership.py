"""Whether this node has what the others have, so that it may serve and write (STO-034)."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from weft.base.changes import Chain, Event
from weft.base.now import SECOND, Now
from weft.cores.kit.refusals import Refusal
from weft.cores.kit.timers import earliest
from weft.cores.store.bus import Bus
from weft.cores.store.context import Context
from weft.cores.store.messages import BecameReadOnly, StoreJoined
from weft.cores.store.recovery import Recovery
from weft.cores.store.replica import Replica
from weft.cores.store.states import TABLE, On, State

PRESENT: Final = b"\x80"
"""The value of `[null,"node",NAME]`, a node's first change: an empty map."""
NOTHING: Final = b"\xc0"
RETRY_NS: Final = (SECOND, 30 * SECOND)
WAITING_CLOCKS: Final = 3
LACKS: Final = {
    State.OFFLINE: "the store of this node has met nobody yet, by no link",
    State.LISTEN: "the store is not founded: this node has none, and knows no other node that has one",
    State.JOIN: "this node is joining the store of others, and does not know yet what they have",
    State.RESTORED: "this node was started again, and waits for others that may know more",
    State.CATCHUP: "this node has not all yet that others have",
    State.READ_ONLY: "this node's name in the store is not its own, and it was never a member",
    State.MEMBER: "",
}
"""What is missing in a state in which clients are not answered."""
WILL_FOUND: Final = "this node founds the store in some seconds, if it hears of no other that has one"
"""The same of a node that is told to found the store by its file."""


class Membership:
    """The state of one node in its store."""

    def __init__(self, context: Context, bus: Bus, replica: Replica, recovery: Recovery) -> None:
        self._context, self._bus, self._replica, self._recovery = context, bus, replica, recovery
        settings = context.settings
        self._clock = settings.clock_ns if "seed" in settings.dialects else settings.cycle_ns
        self.state = State.OFFLINE
        self.on_join: Callable[[list[str]], None] | None = None
        """Starts a download from these nodes; set where foreign servers are used."""
        self.listeners: list[Callable[[State, On], None]] = []
        """Called at each step with the state before, and the input."""
        self._nodes: list[str] = []
        self._are_weft = False
        self._due_at: int | None = None
        self._found_at: int | None = None
        self._join_at = 0
        self._failures = 0
        self._is_late = False
        """What was waited for in this state should have come by now."""
        self._is_downloading = False
        self._has_downloaded = False
        self._was_member = False
        self.is_asking: Callable[[], bool] = lambda: False
        """Whether a question is open whose answer is needed before serving (DEL-007)."""
        recovery.on_news.append(self._look)
        replica.book.on_own_ahead = self._overtaken

    @property
    def serves(self) -> bool:
        """Whether clients are answered (PNG-001); a node that refuses orders still shows what it had as a member."""
        if self.state is State.READ_ONLY:
            return self._was_member
        return self.state is State.MEMBER or (self.state is State.RESTORED and self._context.settings.serve_stale)

    @property
    def lacks(self) -> str:
        """What is missing before clients are answered, as a sentence; empty: nothing is."""
        if self.state is State.LISTEN and self._found_at is not None:
            return WILL_FOUND
        return "" if self.serves else LACKS[self.state]

    # What happens

    def links_changed(self, now: Now) -> None:
        """The mesh is open, or a link went up or down."""
        if self.state is State.OFFLINE and self._bus.is_connected:
            self._turn(On.LINKED if self._context.tick else On.LINKED_EMPTY)

    def found(self, value: bytes, now: Now) -> Event:
        """Create a new store with this node as its first member: the root's value is tick 1.

        Refusal `exists` if there is data.
        """
        self.links_changed(now)
        if (self.state, On.FOUNDED) not in TABLE:
            raise Refusal("exists", "there is a store already, here or in reach")
        event = self._replica.write((), value).event
        self._turn(On.FOUNDED)
        return event

    def heard_authority(self, nodes: list[str], now: Now, *, is_weft: bool = False) -> None:
        """A ping came whose chain includes nodes with data; `nodes` in its order.

        `is_weft`: real servers do not ping like this.
        """
        if self.state is State.LISTEN and now.mono < self._join_at:
            return
        self._nodes = list(dict.fromkeys(node for node in nodes if node != self._context.name))
        self._are_weft = is_weft
        self._turn(On.AUTHORITY)

    def downloaded(self, now: Now) -> None:
        """A download has finished; all of it is merged."""
        self._is_downloading, self._has_downloaded, self._failures = False, True, 0
        self._turn(On.INFORMED)

    @property
    def may_copy(self) -> bool:
        """Whether a file's store may be taken over: this node has made no change and is not joining."""
        return self.state is State.LISTEN and not self._context.tick

    def copied(self, now: Now) -> None:
        """A file's store is merged completely: that counts as a download, and what is missing is asked for."""
        self._recovery.asking.begin()
        self._has_downloaded = True
        self._turn(On.COPIED)

    def download_failed(self, now: Now) -> None:
        """No node gave a download: try again after a growing pause."""
        self._is_downloading = False
        least, most = RETRY_NS
        self._join_at = now.mono + min(least << self._failures, most)
        self._failures = min(self._failures + 1, 5)
        self._turn(On.FAILED)

    def bar(self, why: str, now: Now) -> None:
        """Accept no more orders: `dropped`, `name-collision`."""
        if not self._context.read_only:
            self._context.read_only = why
            self._context.tell(BecameReadOnly(why))
        self._turn(On.BARRED)

    def accept_tick(self, now: Now) -> None:
        """A person confirms that this node's name is its own, whatever other nodes know of it (STO-034)."""
        if self.state is State.READ_ONLY and self._context.read_only == "unconfirmed":
            self._context.read_only = ""
            self._replica.go_on()
            self._turn(On.ACCEPTED)

    def rejoin(self, now: Now) -> None:
        """This node was dropped, is empty and has another name: start as a node without data (DEL-006)."""
        self._context.read_only = ""
        self._turn(On.EMPTIED)

    def stop(self, now: Now) -> None:
        """Send nothing more."""
        self._turn(On.STOPPED)

    def _overtaken(self, tick: int) -> None:
        self._turn(On.OVERTAKEN)

    def _turn(self, on: On) -> None:
        """Apply one row of the table, if there is one."""
        before, cell = self.state, TABLE.get((self.state, on))
        if cell is None:
            return
        self.state = cell.then
        self._context.takes_any_tock = cell.then in (State.OFFLINE, State.LISTEN, State.JOIN)
        getattr(self, cell.do)()
        for listener in self.listeners:
            listener(before, on)
        self._look()

    # Actions of the table

    def listen(self) -> None:
        """This node has no data: listen to the others, and call out soon."""
        self._recovery.activate(is_active=False)
        self._wait(self._clock // 2 + int(self._context.chance.random() * self._clock / 2))
        if self._context.settings.found is not None:
            self._found_at = self._context.now.mono + WAITING_CLOCKS * self._clock

    def listen_anew(self) -> None:
        """Listen again; the earlier results do not count any more."""
        self._was_member = self._is_downloading = self._has_downloaded = False
        self._recovery.claims.clear()
        self.listen()
        self._found_at = None

    def listen_again(self) -> None:
        """The node that was asked did not answer: listen again."""
        self._recovery.claims.clear()
        self._recovery.activate(is_active=False)
        self._wait(WAITING_CLOCKS * self._clock)

    def call_out(self) -> None:
        """No node with data was heard: call, so that nodes that ping do so again."""
        self._wait(WAITING_CLOCKS * self._clock)

    def await_others(self) -> None:
        """This node has data; others may have newer data."""
        self._recovery.activate()
        self._wait(WAITING_CLOCKS * self._clock)

    def begin(self) -> None:
        """The first node: its store is complete."""
        self._became()

    def join(self) -> None:
        """Find out what there is: from real servers by download, else from the reports of the others."""
        self._recovery.activate()
        if self.on_join is not None and not self._are_weft:
            self._is_downloading, self._due_at = True, None
            self.on_join(self._nodes)
        else:
            self._wait(WAITING_CLOCKS * self._clock)

    def compare(self) -> None:
        """Others are present: both sides report what they have, unless they did when a link came up."""
        if not self._recovery.claims:
            own = Chain(((self._context.name, self._context.tick),))
            self._recovery.split(own, True, self._context.now)  # the returning side counts as the loser
        self.catch_up()

    def catch_up(self) -> None:
        """Get what is missing; check after a while whether it comes."""
        self._recovery.activate()
        self._wait(WAITING_CLOCKS * self._clock)

    def go_on_alone(self) -> None:
        """No other node is present: what is here is all there is."""
        self._became()
        self._recovery.say_full()

    def become_member(self) -> None:
        """Everything is here; a new node now makes its first change, its own entry (R7)."""
        self._became()
        if not self._context.tick:
            with suppress(Refusal):  # no room: then its first order makes the entry
                self._replica.write((None, "node", self._context.name), PRESENT)
        self._context.tell(StoreJoined(self._context.name, self._context.tick, self._replica.tree.entries))

    def rest(self) -> None:
        """Another node has the name, or there are no links from now on: nothing is waited for."""
        self._due_at = self._found_at = None

    def _became(self) -> None:
        self._recovery.activate()
        self._due_at = self._found_at = None
        self._was_member = True

    # Completeness

    def answered(self) -> None:
        """The question was answered, or no node answers."""
        self._look()

    def _look(self) -> None:
        """Take the next step, if possible."""
        if self.state is State.JOIN and self._recovery.claims and not self._is_downloading:
            self._turn(On.INFORMED)
        elif self._is_caught_up and self._settle_name():
            self._turn(On.COMPLETE)

    @property
    def _is_caught_up(self) -> bool:
        """Whether a node reported all that there is, or none does, and all of it is here."""
        is_informed = bool(self._recovery.claims) or self._has_downloaded or self._is_late
        return self.state is State.CATCHUP and is_informed and self._recovery.is_complete and not self.is_asking()

    def _settle_name(self) -> bool:
        """Whether it is clear which changes under this node's name are its own (STO-034)."""
        book, replica = self._replica.book, self._replica
        if not book.own_ahead and not replica.admitting.is_damaged:
            return True
        top = book.top(self._context.name)
        others = [node for node in book.nodes() if node != self._context.name]
        if all(self._recovery.claims.get(node) == top for node in others):
            replica.go_on()
        elif not self._is_late:
            return False
        elif "moat" in self._context.settings.dialects:
            self._context.read_only = "unconfirmed"
            self._context.tell(BecameReadOnly("unconfirmed"))
            self._turn(On.UNCONFIRMED)
            return False
        else:
            replica.rename(replica.next_name())
        replica.mended()
        return True

    # Time

    def _wait(self, wait_ns: int) -> None:
        self._due_at, self._is_late = self._context.now.mono + wait_ns, False

    def wake(self, now: Now) -> None:
        """Do what is due."""
        if on := self._name_news():
            self._turn(on)
        if self._found_at is not None and self._found_at <= now.mono and self.state is State.LISTEN:
            self._found_unasked(now)
        if self._due_at is not None and self._due_at <= now.mono:
            self._expire()

    def _name_news(self) -> On | None:
        """The input that says what has become of this node's name, if its state does not say so yet."""
        if bool(self._context.read_only) == (self.state is State.READ_ONLY):
            return None
        on = On.BARRED if self._context.read_only else On.ACCEPTED if self._context.tick else On.FREED
        return on if (self.state, on) in TABLE else None

    def _found_unasked(self, now: Now) -> None:
        """Create the store as the file says; later, if some node has data after all, or nothing can be written now."""
        self._found_at = now.mono + WAITING_CLOCKS * self._clock
        if self._replica.book.nodes():
            return
        try:
            self.found(self._context.settings.found or NOTHING, now)
        except Refusal as error:
            self._context.count("foundings_refused", error.code)

    def _expire(self) -> None:
        if self.state is State.CATCHUP:
            self._due_at, self._is_late = None, True
            self._look()
        elif self.state is State.RESTORED and self._replica.admitting.is_damaged:
            self._turn(On.OVERTAKEN)  # they may be its own, but no node is here to confirm it
        elif self.state is State.RESTORED and not self._recovery.is_complete:
            self._wait(self._clock)
        else:
            self._turn(On.TIMER)

    def deadline(self) -> int | None:
        """When something is due, in monotonic nanoseconds."""
        if self._name_news():
            return self._context.now.mono
        found_at = self._found_at if self.state is State.LISTEN else None
        return earliest(self._due_at, found_at)
