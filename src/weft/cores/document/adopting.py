"""Another node takes over the last operations of a source that is gone and can no longer send them (GSP-040, GSP-041).

Example: C has died; a member has C:6, and none has C:5, so C:6 can never be folded or forwarded. After a minute
(`adopt_after`) without C, the member with the lowest UUID issues C:6 again as an operation of its own, which names the
original; the next members wait, and see that it was done. The missing number is never filled: a node that has it may
come back, and then the original counts, once.
"""

from weft.base.now import Now
from weft.cores.document.context import Context
from weft.cores.document.fold.engine import Engine
from weft.cores.document.gossip import Gossip, known_most
from weft.cores.document.limits import ADOPT_LOOK_NS, ADOPT_MAX, ADOPT_RANK_NS
from weft.cores.document.log import Log
from weft.cores.document.messages import LogStranded
from weft.cores.document.own import Own
from weft.cores.document.peers import Peers
from weft.wire.document.messages import OPERATION_BYTES_MAX
from weft.wire.document.operations import adopted, parse
from weft.wire.document.sums import with_sum

MALFORMED, TOO_LARGE = "malformed", "too-large"


class Adopting:
    """Looks at operations held beyond gaps, as long as there are any."""

    def __init__(  # tidy: what a session consists of
        self, context: Context, log: Log, engine: Engine, gossip: Gossip, own: Own, peers: Peers
    ) -> None:
        self._context, self._log, self._engine = context, log, engine
        self._gossip, self._own, self._peers = gossip, own, peers
        self._absent: dict[bytes, int] = {}
        """Since when each source with a gap has been absent."""
        self._reported: dict[tuple[bytes, int], None] = {}
        self._look_at: int | None = None

    def wake(self, now: Now) -> None:
        """Adopt operations that have been stranded long enough."""
        if not self._log.has_held:
            self._look_at = None
            self._absent.clear()
            return
        self._look_at = now.mono + ADOPT_LOOK_NS
        stranded = self._log.held()
        absent = {source: self._absent.get(source, now.mono) for source, _ in stranded if not self._is_there(source)}
        self._absent = absent
        left = ADOPT_MAX
        wait = self._context.settings.timing.adopt_after_ns + self._rank * ADOPT_RANK_NS
        known: dict[bytes, int] = {}
        for source, sequence in stranded:
            if source not in absent or now.mono - absent[source] < wait:
                continue
            if source not in known:
                known[source] = known_most(self._gossip, source)
            if left and known[source] < sequence and self._adopt(source, sequence):
                left -= 1

    def _is_there(self, source: bytes) -> bool:
        peer = self._peers.get(source)
        return source == self._context.uuid or (peer is not None and peer.is_active)

    @property
    def _rank(self) -> int:
        """How many members are ahead of us."""
        return sum(peer.id < self._context.uuid for peer in self._peers.active())

    def _adopt(self, source: bytes, sequence: int) -> bool:
        body = self._log.known(source, sequence)
        operation = parse(body)
        if self._engine.has_copy(operation.pair) or operation.pair in self._reported:
            return False
        copy = b""
        why = MALFORMED if operation.inert else ""
        if not why:
            own = self._context.uuid
            copy = with_sum(adopted(body, own, self._log.latest(own) + 1))
            why = TOO_LARGE if len(copy) > OPERATION_BYTES_MAX else ""
        if why:
            self._reported[operation.pair] = None
            self._context.tell(LogStranded(self._context.session, source, sequence, why))
            return False
        if self._own.adopt(copy):
            self._context.count("log.adopted")
            return True
        return False

    def deadline(self) -> int | None:
        """When to look again; at once if operations are held and no look is scheduled."""
        if not self._log.has_held:
            return None if not self._absent else self._context.now.mono
        return self._context.now.mono if self._look_at is None else self._look_at
