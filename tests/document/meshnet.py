"""Any number of nodes that only meet: no log, no document; what they say is counted (PEE-020 to PEE-034).

    net = MeshNet(seed=7, nodes=16, loss=0.1)
    net.meet(3, 0)                       # a person tells 3 where 0 is
    net.run_until_full(120)              # seconds until each has all others; AssertionError if they have not by then
    net.said["PeerAt"]

Links are as TCP's: what one says to another arrives in order, after a while; loss takes single messages.
"""

from collections import Counter
from heapq import heappop, heappush
from typing import Any, Final
from uuid import UUID

from tests.document.rig import EPOCH, START, Lone, settings
from weft.base.chance import Chance
from weft.base.effects import Effect, Perform, Send, Source
from weft.base.now import MILLISECOND, SECOND, Now, seconds
from weft.cores.document import messages
from weft.cores.document.context import PEERS
from weft.wire.document.messages import Envelope, Message

DELAYS: Final = (MILLISECOND, 20 * MILLISECOND)


class Member:
    """A node, where it listens, and how far it is from the true time."""

    def __init__(self, number: int, uuid: bytes, skew_ns: int) -> None:
        self.endpoint = f"10.0.{number // 250}.{number % 250 + 1}:50000"
        self.host, self.skew_ns = self.endpoint.partition(":")[0], skew_ns
        self.core = Lone(settings(uuid))
        self.due_at: int | None = None


class MeshNet:
    """The world of them."""

    def __init__(self, seed: object, nodes: int, *, loss: float = 0.0, delays: tuple[int, int] = DELAYS) -> None:
        self.chance, self.loss, self.delays = Chance(f"{seed}/mesh"), loss, delays
        self.now_ns = START
        self.said: Counter[str] = Counter()
        self.dialogue: list[tuple[str, str, Message]] = []
        """From, to, what; as it was said."""
        self._queue: list[tuple[int, int, str, Member, Message]] = []
        self._last_at: dict[tuple[str, str], int] = {}
        self._number = 0
        self.members = [Member(number, self._uuid(), self._skew()) for number in range(nodes)]
        self._by_endpoint = {member.endpoint: member for member in self.members}
        for member in self.members:
            self._order(member, messages.Begin())

    def _uuid(self) -> bytes:
        return UUID(int=self.chance.getrandbits(128) | 1 << 127, version=4).bytes

    def _skew(self) -> int:
        return self.chance.randrange(-3600, 3600) * SECOND

    # What happens

    def meet(self, caller: int, called: int, how: str = "manual") -> None:
        """One is told where another one is."""
        member = self.members[caller]
        member.core.context.begin(self._now(member))
        member.core.mesh.meet(self.members[called].endpoint, how)
        self._take(member)

    def stop(self, number: int) -> None:
        """It says goodbye."""
        self._order(self.members[number], messages.Stop())

    def run(self, span: float) -> None:
        """Seconds pass."""
        end = self.now_ns + seconds(span)
        while (at := self._next()) is not None and at <= end:
            self._step(at)
        self.now_ns = end

    def run_until_full(self, within: float) -> float:
        """Seconds until each has all others; they must have within so many."""
        start = self.now_ns
        while not self.is_full():
            at = self._next()
            assert at is not None, f"no full mesh, ever: {self.degrees()}"
            assert at <= start + seconds(within), f"no full mesh: {self.degrees()}"
            self._step(at)
        return (self.now_ns - start) / SECOND

    def is_full(self) -> bool:
        return all(degree == len(self.members) - 1 for degree in self.degrees())

    def degrees(self) -> list[int]:
        """How many peers each has."""
        return [len(member.core.peers.active()) for member in self.members]

    # How

    def _next(self) -> int | None:
        dues = [member.due_at for member in self.members if member.due_at is not None]
        if self._queue:
            dues.append(self._queue[0][0])
        return min(dues, default=None)

    def _step(self, at: int) -> None:
        self.now_ns = max(self.now_ns, at)
        while self._queue and self._queue[0][0] <= self.now_ns:
            _, _, sender, member, message = heappop(self._queue)
            uuid = self._by_endpoint[sender].core.context.uuid
            source = Source(PEERS, uuid, kind=self._by_endpoint[sender].host)
            member.core.receive(Envelope(uuid, message), source, self._now(member))
            self._take(member)
        for member in self.members:
            if member.due_at is not None and member.due_at <= self.now_ns:
                member.core.wake(self._now(member))
                self._take(member)

    def _order(self, member: Member, order: Any) -> None:
        member.core.command(order, self._now(member))
        self._take(member)

    def _now(self, member: Member) -> Now:
        return Now(self.now_ns, EPOCH * SECOND + self.now_ns + member.skew_ns)

    def _take(self, member: Member) -> None:
        for effect in member.core.effects():
            self._obey(member, effect)
        member.due_at = member.core.deadline()

    def _obey(self, member: Member, effect: Effect) -> None:
        if isinstance(effect, Perform):
            member.core.command(messages.Opened("", member.endpoint), self._now(member))
        elif isinstance(effect, Send):
            self._carry(member, effect.peer.decode(), effect.message)

    def _carry(self, member: Member, to: str, message: Message) -> None:
        self.said[type(message).__name__] += 1
        self.dialogue.append((member.endpoint, to, message))
        if to not in self._by_endpoint or self.chance.random() < self.loss:
            return
        link = member.endpoint, to
        at = max(self.now_ns + self.chance.randint(*self.delays), self._last_at.get(link, 0))
        self._last_at[link] = at
        self._number += 1
        heappush(self._queue, (at, self._number, member.endpoint, self._by_endpoint[to], message))
