"""What is known of the peers on the ROUTER, by routing id (CAT-020, CAT-080).

Only peers with something out of the ordinary are remembered; any other peer is NEW. Each memory is bounded, and drops
its oldest entry first. A peer that was dropped is NEW again, and its next message restores the state.
"""

from array import array
from typing import Any, Final

import msgspec

from weft.cores.catalog import limits
from weft.cores.catalog.context import Asker, Context
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.messages import PeerIgnored, PeerMalformed, RequestDenied
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.states import Link

EVENTS_MAX: Final = (
    100  # of refusals and malformed messages in `TELL_NS`, of all peers together: inventing new peers is free
)
TIME_BYTES_KEPT: Final = 21  # of a time frame: no valid format is longer, but a frame may have a megabyte


class _Bound(msgspec.Struct, gc=False):
    """A DEALER that speaks for an instance."""

    key: tuple[str, str]
    time: bytes


class Connections:
    """By routing id: its state, the instance it speaks for, and how many malformed messages it sent."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._bound: dict[bytes, _Bound] = {}
        self._closed: dict[bytes, int] = {}
        self._ignored: dict[bytes, int] = {}
        """Until which instant each peer is ignored."""
        self._garbled: dict[bytes, array[int]] = {}
        """Instants of its last malformed messages, at most `MALFORMED_MAX`."""
        self._reported: dict[str, tuple[int, int]] = {}
        """Per peer: when its last event was told, and how many refusals came since."""
        self._window = (0, 0)

    # States

    def state_of(self, peer: bytes) -> Link:
        """The state of a peer's connection."""
        if peer in self._bound:
            return Link.BOUND
        if peer in self._ignored:
            return Link.IGNORED
        closed_at = self._closed.get(peer)
        if closed_at is None:
            return Link.NEW
        if self.context.now.mono - closed_at < limits.CLOSED_NS:
            return Link.CLOSED
        del self._closed[peer]
        return Link.NEW

    def is_over(self, peer: bytes) -> bool:
        """Whether the time for which a peer is ignored is over."""
        return self.context.now.mono >= self._ignored[peer]

    def bind(self, asker: Asker, instance: Instance) -> None:
        """From now on the connection speaks for this instance."""
        self._bound.pop(asker.peer, None)  # moves it to the end: the peer heard last is dropped last
        _room(self._bound, limits.PEERS_MAX)
        self._bound[asker.peer] = _Bound(instance.key, asker.time[:TIME_BYTES_KEPT])

    def close(self, peer: bytes) -> None:
        """Nothing is sent to it any more."""
        self.clear(peer)
        _room(self._closed, limits.CLOSED_MAX)
        self._closed[peer] = self.context.now.mono

    def ignore(self, peer: bytes) -> None:
        """Ignore it for a minute."""
        self.clear(peer)
        _room(self._ignored, limits.PEERS_MAX)
        self._ignored[peer] = self.context.now.mono + limits.MALFORMED_NS
        self.context.tell(PeerIgnored(peer.hex(), limits.MALFORMED_NS // 1_000_000_000))

    def clear(self, peer: bytes) -> None:
        """Forget everything about the peer."""
        for memory in (self._bound, self._closed, self._ignored, self._garbled):
            memory.pop(peer, None)

    # Bound ones

    def key_of(self, peer: bytes) -> tuple[str, str] | None:
        """Name and id of the instance that a connection speaks for."""
        bound = self._bound.get(peer)
        return bound.key if bound else None

    def note_time(self, asker: Asker) -> None:
        """Note the time format of a connection: messages pushed to it use the same one (CAT-011)."""
        bound = self._bound.get(asker.peer)
        if bound is not None:
            bound.time = asker.time[:TIME_BYTES_KEPT]

    def time_of(self, peer: bytes) -> bytes:
        """The last time frame of a connection."""
        bound = self._bound.get(peer)
        return bound.time if bound else b""

    # Refusals

    def count_garbled(self, peer: bytes, code: str) -> bool:
        """Count a malformed message; returns whether it was the twentieth within a minute (R14)."""
        self.context.count("malformed")
        self._tell(peer.hex(), lambda name, count: PeerMalformed(name, code, count))
        if self.state_of(peer) in (Link.CLOSED, Link.IGNORED):
            return False
        now = self.context.now.mono
        times = self._garbled.pop(peer, None) or array("q")
        _room(self._garbled, limits.PEERS_MAX)
        self._garbled[peer] = times
        times.append(now)
        del times[: -limits.MALFORMED_MAX]
        return len(times) == limits.MALFORMED_MAX and now - times[0] < limits.MALFORMED_NS

    def count_denied(self, asker: Asker, refusal: Refusal) -> None:
        """Count a refusal."""
        self.context.count("denied", refusal.code)
        key = (refusal.code, refusal.service)
        self._tell(asker.owner, lambda name, count: RequestDenied(name, *key, count))

    def _tell(self, name: str, event_of: Any) -> None:
        """Tell one event per peer in ten seconds, with the count since the last one.

        Bounded for all peers together (CAT-080).
        """
        now = self.context.now.mono
        told_at, count = self._reported.pop(name, (-limits.TELL_NS, 0))
        count += 1
        if now - told_at >= limits.TELL_NS and self._may_tell(now):
            self.context.tell(event_of(name, count))
            told_at, count = now, 0
        _room(self._reported, limits.CLOSED_MAX)
        self._reported[name] = (told_at, count)

    def _may_tell(self, now: int) -> bool:
        began_at, count = self._window
        if now - began_at >= limits.TELL_NS:
            began_at, count = now, 0
        self._window = (began_at, count + 1)
        return count < EVENTS_MAX


def _room(memory: dict[Any, Any], most: int) -> None:
    """Make room for one more entry by dropping the oldest."""
    while len(memory) >= most:
        del memory[next(iter(memory))]
