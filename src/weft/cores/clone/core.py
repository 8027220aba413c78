"""The Clone pattern at a root: the root serves Clone clients, and may follow one Clone server.

The configuration itself belongs to another core: this one keeps a copy for snapshots and asks for writes. Nothing here
is durable: after a start the configuration core reports everything again, and the server is asked again.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from weft.base.effects import Confirmed, Effect, SendFailed, Source
from weft.base.errors import OurFault
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry
from weft.cores.clone.context import ASK, FOLLOW, SERVE, Context, Counters
from weft.cores.clone.following import Follower
from weft.cores.clone.messages import CloneSettings, LearnPairs, StepDown, TakeRoot, WritesDone
from weft.cores.clone.serving import Server
from weft.cores.clone.states import State
from weft.cores.kit.timers import Parts


class Clone:
    """Both sides of the dialect on one node."""

    name = "clone"

    def __init__(self, settings: CloneSettings, node: bytes) -> None:
        self.context = Context(settings, node)
        self.budget = self.context.budget
        self.server = Server(self.context)
        self.follower = Follower(self.context)
        self._parts = Parts(self.server, self.follower)

    @property
    def state(self) -> State:
        """The state of following."""
        return self.follower.state

    @property
    def counters(self) -> Counters:
        """Counters of both sides."""
        return self.context.counters

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Nothing to restore: the configuration core reports everything at the start."""

    def condense(self) -> Iterable[CoreRecord]:
        return ()

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """Process a message of a client or of the server; PeerError if it is not allowed, or not in this state."""
        if source.channel == SERVE:
            self.server.hear_ask(message, source, now)
        elif source.channel == ASK:
            self.follower.hear_answer(message, source, now)
        elif source.channel == FOLLOW:
            self.follower.hear_update(message, source, now)
        else:
            self.server.hear_set(message, now)

    def command(self, order: Any, now: Now) -> None:
        """Obey an order of `messages`; OurFault for any other."""
        obey = _OBEY.get(type(order))
        if obey is None:
            raise OurFault(f"clone knows no order {type(order).__name__}")
        obey(self, order, now)

    def _take_root(self, order: TakeRoot, now: Now) -> None:
        self.server.begin(now)
        if not order.is_acting:
            self.follower.begin(now)

    def _step_down(self, order: StepDown, now: Now) -> None:
        self.server.end()
        self.follower.end(now)

    def _learn(self, order: LearnPairs, now: Now) -> None:
        self.server.learn(order, now)

    def _done(self, order: WritesDone, now: Now) -> None:
        self.server.done(order.ticket, order.code)
        self.follower.done(order.ticket, order.code, now)

    def _confirmed(self, order: Confirmed, now: Now) -> None:
        self.server.confirm(order, now)

    def _failed(self, order: SendFailed, now: Now) -> None:
        """Sending failed.

        Nothing to do: snapshot portions are confirmed by `Confirm`, and nothing else is sent on that channel.
        """

    def wake(self, now: Now) -> None:
        self._parts.wake(now)

    def deadline(self) -> int | None:
        return self._parts.deadline()

    def effects(self) -> list[Effect]:
        return self.context.take()


_OBEY: Final[dict[type, Callable[[Clone, Any, Now], None]]] = {
    TakeRoot: Clone._take_root,
    StepDown: Clone._step_down,
    LearnPairs: Clone._learn,
    WritesDone: Clone._done,
    Confirmed: Clone._confirmed,
    SendFailed: Clone._failed,
}
