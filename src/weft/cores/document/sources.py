"""The log of one source: its bytes in order, how they came, and the chain of their hashes (PEE-022)."""

from array import array
from collections import deque
from hashlib import sha256
from itertools import islice
from typing import Final

from weft.cores.document.holding import Kept

NOTHING: Final = bytes(32)
"""The chain before the first operation."""


class Source:
    """The gapless prefix of one source; number n is at index n - 1. `times` and `effs` are seconds, as on the wire."""

    __slots__ = (
        "_chain",
        "_chained",
        "_heard",
        "_term",
        "bodies",
        "effs",
        "index",
        "positions",
        "received",
        "senders",
        "times",
        "uuid",
    )

    def __init__(self, uuid: bytes, index: int) -> None:
        self.uuid, self.index = uuid, index
        self.bodies: list[bytes] = []
        self.senders: list[bytes] = []
        self.received = array("q")
        self.positions = array("Q")
        self.times = array("d")
        self.effs = array("d")
        self._heard: deque[tuple[int, int]] = deque()
        """(when, number) of what was received recently."""
        self._chain, self._chained, self._term = NOTHING, 0, 0

    @property
    def latest(self) -> int:
        """Length of the prefix."""
        return len(self.bodies)

    def kept(self, sequence: int) -> Kept:
        """The operation with this number."""
        at = sequence - 1
        return Kept(self.bodies[at], self.received[at], self.senders[at])

    def append(self, kept: Kept, timestamp: float, position: int) -> None:
        """Append the next operation."""
        self.bodies.append(kept.body)
        self.senders.append(kept.received_from)
        self.received.append(kept.received_ns)
        self.positions.append(position)
        self.times.append(timestamp)
        self.effs.append(max(timestamp, self.effs[-1]) if self.effs else timestamp)
        if kept.heard_at is not None:
            self._heard.append((kept.heard_at, len(self.bodies)))

    def replace(self, sequence: int, kept: Kept, timestamp: float) -> None:
        """Another body won this number: the chain of all later numbers changes, and perhaps their effective times.

        O(latest).
        """
        at = sequence - 1
        self.bodies[at], self.senders[at], self.received[at] = kept.body, kept.received_from, kept.received_ns
        self.times[at] = timestamp
        eff = self.effs[at - 1] if at else 0.0  # tidy: seconds, as above
        for place in range(at, len(self.times)):
            eff = max(self.times[place], eff)
            if place > at and self.effs[place] == eff:
                break  # and so are all later ones
            self.effs[place] = eff
        if sequence <= self._chained:
            self._chain, self._chained = NOTHING, 0

    def settled(self, before: int) -> int:
        """Up to which number everything was received before an instant (monotonic)."""
        self.settle(before)
        return min((number for at, number in self._heard if at > before), default=self.latest + 1) - 1

    def settle(self, before: int) -> None:
        """Forget when operations before this instant were received."""
        heard = self._heard
        while heard and heard[0][0] <= before:
            heard.popleft()

    def chain(self) -> bytes:
        """The chain up to the latest number; operations hashed before are not hashed again."""
        chain = self._chain
        for body in islice(self.bodies, self._chained, None):
            chain = sha256(chain + sha256(body).digest()).digest()
        self._chain, self._chained = chain, len(self.bodies)
        return chain

    def turn(self) -> int:
        """The exclusive or of this source's old and new contribution to the log's check."""
        before = self._term
        contribution = self.uuid + len(self.bodies).to_bytes(8, "big") + self.chain()
        self._term = int.from_bytes(sha256(contribution).digest()[:4], "big") if self.bodies else 0
        return before ^ self._term
