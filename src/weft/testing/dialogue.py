"""Two cores, joined: every message travels as bytes, every wall is kept, and either end may die at any effect.

    talk = Dialogue(End("a", make_a), End("b", make_b), codec.encode, codec.decode)
    talk.a.order(Watch())
    talk.settle()
    assert [PeerArrived(1)] == talk.b.events

Time is virtual and stands still unless advanced. What an end persists is durable at once. A crash loses everything
else: the core's state, what it had not sent yet, and what is under way.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from weft.base.effects import Core, Effect, Perform, Persist, Reply, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.base.records import Entry

TURNS_MAX = 10_000  # a dialogue that does not settle is a finding, not a long test


class End:
    """One end: its core, and everything it did."""

    def __init__(self, name: str, make: Callable[[], Core]) -> None:
        self.name, self.make, self.core = name, make, make()
        self.entries: list[Entry] = []
        """What is durable, with its lsn."""
        self.events: list[Any] = []
        self.replies: list[Any] = []
        self.works: list[Any] = []
        self.sent: list[Any] = []
        """Every message that left, also those that a cut swallowed."""
        self.refused: list[str] = []
        """Codes of received messages that were refused."""
        self.orders: deque[Any] = deque()
        self.dies_after: int | None = None
        """How many more effects are carried out before a crash; None: no crash."""
        self.crashes = 0

    def order(self, order: Any) -> None:
        """Give an order at the next `settle`."""
        self.orders.append(order)

    def keep(self, persist: Persist) -> None:
        """Make records durable."""
        for record in persist.records:
            self.entries.append((len(self.entries) + 1, record))

    def restart(self, now: Now) -> None:
        """Die, and come back with what is durable."""
        self.crashes += 1
        self.dies_after = None
        self.core = self.make()
        self.core.restore(self.entries, now)


class Dialogue:
    """Two ends and the one stream between them, in order and without loss until it is cut."""

    def __init__(
        self, a: End, b: End, encode: Callable[[Any], list[bytes]], decode: Callable[[list[bytes]], Any]
    ) -> None:
        self.a, self.b, self.now = a, b, Now(SECOND, SECOND)
        self.is_cut = False
        self._encode, self._decode = encode, decode
        self._under_way: deque[tuple[End, list[bytes]]] = deque()

    def settle(self) -> None:
        """Carry out orders, deliver messages and wake ends that are due, until nothing is left to do now."""
        for _ in range(TURNS_MAX):
            if not (self._obey() or self._deliver() or self._wake()):
                return
        raise AssertionError(f"does not settle within {TURNS_MAX} turns")

    def advance(self, span_ns: int) -> None:
        """Let time pass, from deadline to deadline, settling at each."""
        until = self.now.mono + span_ns
        self.settle()
        while True:
            due = [at for at in (self.a.core.deadline(), self.b.core.deadline()) if at is not None]
            if not due or min(due) > until:
                break
            self._pass_to(min(due))
            self.settle()
        self._pass_to(until)

    def cut(self) -> None:
        """Lose what is under way, and whatever is sent from now on."""
        self.is_cut = True
        self._under_way.clear()

    def heal(self) -> None:
        """Carry messages again."""
        self.is_cut = False

    def crash(self, end: End) -> None:
        """Kill an end and bring it back; what is under way is lost."""
        self._under_way.clear()
        end.restart(self.now)

    def _pass_to(self, mono: int) -> None:
        self.now = Now(mono, self.now.wall + mono - self.now.mono)

    def _obey(self) -> bool:
        for end in (self.a, self.b):
            if end.orders:
                end.core.command(end.orders.popleft(), self.now)
                self._carry_out(end)
                return True
        return False

    def _deliver(self) -> bool:
        if not self._under_way:
            return False
        end, frames = self._under_way.popleft()
        try:
            end.core.receive(self._decode(frames), Source("", b"", None), self.now)
        except PeerError as error:
            end.refused.append(error.code)
        self._carry_out(end)
        return True

    def _wake(self) -> bool:
        for end in (self.a, self.b):
            due = end.core.deadline()
            if due is not None and due <= self.now.mono:
                end.core.wake(self.now)
                self._carry_out(end)
                return True
        return False

    def _carry_out(self, end: End) -> None:
        for effect in end.core.effects():
            if end.dies_after == 0:
                self.crash(end)
                return
            if end.dies_after is not None:
                end.dies_after -= 1
            self._carry_out_one(end, effect)

    def _carry_out_one(self, end: End, effect: Effect) -> None:
        match effect:
            case Persist():
                end.keep(effect)
            case Send():
                end.sent.append(effect.message)
                if not self.is_cut:
                    other = self.b if end is self.a else self.a
                    self._under_way.append((other, self._encode(effect.message)))
            case Tell():
                end.events.append(effect.event)
            case Reply():
                end.replies.append(effect.answer)
            case Perform():
                end.works.append(effect.work)
            case _:
                pass  # connections: the stream is there
