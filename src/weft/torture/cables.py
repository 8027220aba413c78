"""The cables between machines: takes Ethernet frames, and decides at which port and time they leave.

It has no socket and no clock (FLD-040). Each machine has one cable; its faults (weather) are set separately for both
directions. If a bit in a TCP payload is flipped, the checksum is corrected, because otherwise the kernel would drop the
frame, and Weft would not see the fault.
"""

import heapq
from typing import Final, NamedTuple

from weft.base.chance import Chance
from weft.torture import limits

FLOOD: Final = 0xFF
"""Last byte of a broadcast address: the frame goes to all machines."""
IPV4: Final = b"\x08\x00"
TCP: Final = 6
HEADER: Final = 14
FLAGS: Final = 13
"""The byte of a TCP header with its flags."""
RST: Final = 2
"""The bit of that byte for a reset. Ordinary segments with a payload never have it."""


class Weather(NamedTuple):
    """The faults of one direction of a cable."""

    is_cut: bool = False
    delay_s: float = 0.0
    bytes_per_s: int = 0
    """0: unlimited."""
    flip_one_in: int = 0
    """One in this many segments with a payload is altered; 0: none."""
    reset_one_in: int = 0
    """One in this many segments with a payload is replaced by a reset of its connection; 0: none."""
    rough_one_in: int = 0
    """One in this many frames is lost, one is doubled, and one is so late that others overtake it; 0: none."""


FAIR: Final = Weather()


class Leaving(NamedTuple):
    """A frame that leaves at a port."""

    at: float
    number: int
    port: int
    frame: bytes


class Line:
    """One direction of one cable."""

    def __init__(self) -> None:
        self.weather = FAIR
        self.free_at = 0.0

    def leaves_at(self, now: float, size: int) -> float | None:
        """When a frame that enters now leaves; None: it is lost."""
        if self.weather.is_cut:
            return None
        if not self.weather.bytes_per_s:
            self.free_at = now
            return now + self.weather.delay_s
        begin = max(now, self.free_at)
        if (begin - now) * self.weather.bytes_per_s > limits.QUEUE_BYTES_MAX:
            return None
        self.free_at = begin + size / self.weather.bytes_per_s
        return self.free_at + self.weather.delay_s


class Switch:
    """All cables at one switch: machine N has the hardware address 02:00:00:00:00:N."""

    def __init__(self, ports: tuple[int, ...], chance: Chance) -> None:
        self.outward = {port: Line() for port in ports}
        """From the machine to the switch."""
        self.inward = {port: Line() for port in ports}
        self.counts = {"frames": 0, "lost": 0, "flipped": 0, "reset": 0, "doubled": 0, "overtaken": 0}
        self._chance = chance
        self._leaving: list[Leaving] = []
        self._number = 0

    def set(self, port: int, outward: Weather, inward: Weather) -> None:
        """Set the weather of one cable from now on."""
        self.outward[port].weather, self.inward[port].weather = outward, inward

    def take(self, port: int, frame: bytes, now: float) -> None:
        """Handle a frame that a machine sends."""
        self.counts["frames"] += 1
        to = frame[5] if not frame[0] & 1 else FLOOD
        for other in [to] if to in self.inward else [each for each in self.inward if each != port]:
            if other != port:
                self._carry(port, other, frame, now)

    def _carry(self, port: int, other: int, frame: bytes, now: float) -> None:
        lines = self.outward[port], self.inward[other]
        at: float | None = now
        for line in lines:
            at = line.leaves_at(at, len(frame)) if at is not None else None
            if at is not None and line.weather.flip_one_in:
                frame = self._perhaps_flipped(frame, line.weather.flip_one_in)
            if at is not None and line.weather.reset_one_in:
                frame = self._perhaps_reset(frame, line.weather.reset_one_in)
        roughest = min((line.weather.rough_one_in for line in lines if line.weather.rough_one_in), default=0)
        instants = [] if at is None else self._roughened(at, roughest) if roughest else [at]
        self.counts["lost"] += not instants
        for instant in instants:
            self._number += 1
            heapq.heappush(self._leaving, Leaving(instant, self._number, other, frame))

    def _roughened(self, at: float, one_in: int) -> list[float]:
        """The times at which a frame that is due at `at` leaves a cable with faults: none, two, a later one, or `at`."""
        fate = self._chance.randrange(one_in)
        if fate == 0:
            return []
        if fate == 1:
            self.counts["doubled"] += 1
            return [at, at + limits.OVERTAKEN_S]
        self.counts["overtaken"] += fate == 2
        return [at + limits.OVERTAKEN_S if fate == 2 else at]

    def _perhaps_flipped(self, frame: bytes, one_in: int) -> bytes:
        where = payload_of(frame)
        if where is None or self._chance.randrange(one_in):
            return frame
        self.counts["flipped"] += 1
        return flipped(frame, self._chance.randrange(where[0], where[1]), self._chance.randrange(8))

    def _perhaps_reset(self, frame: bytes, one_in: int) -> bytes:
        """The frame, or a reset in its place: the receiver closes the connection, and resets it when the sender repeats."""
        if payload_of(frame) is None or self._chance.randrange(one_in):
            return frame
        self.counts["reset"] += 1
        return flipped(frame, segment_of(frame) + FLAGS, RST)

    def leaving(self, now: float) -> list[Leaving]:
        """The frames that leave by now, in order."""
        found = []
        while self._leaving and self._leaving[0].at <= now:
            found.append(heapq.heappop(self._leaving))
        return found

    def due_at(self) -> float | None:
        """When the next frame leaves."""
        return self._leaving[0].at if self._leaving else None


def segment_of(frame: bytes) -> int:
    """Where the payload of an IPv4 packet begins."""
    return HEADER + (frame[HEADER] & 0x0F) * 4


def payload_of(frame: bytes) -> tuple[int, int] | None:
    """Where the payload of a TCP segment begins and ends; None: the frame is no TCP segment, or its payload is empty."""
    if frame[12:14] != IPV4 or len(frame) < HEADER + 40 or frame[HEADER + 9] != TCP:
        return None
    segment = segment_of(frame)
    end = HEADER + int.from_bytes(frame[HEADER + 2 : HEADER + 4])
    begin = segment + (frame[segment + 12] >> 4) * 4
    return (begin, end) if begin < end <= len(frame) else None


def flipped(frame: bytes, at: int, bit: int) -> bytes:
    """The frame with one bit of its TCP segment flipped, and a matching checksum (RFC 1624)."""
    data = bytearray(frame)
    segment = segment_of(frame)
    word = at - (at - segment) % 2
    old = int.from_bytes(data[word : word + 2].ljust(2, b"\0"))
    data[at] ^= 1 << bit
    new = int.from_bytes(data[word : word + 2].ljust(2, b"\0"))
    total = (~int.from_bytes(data[segment + 16 : segment + 18]) & 0xFFFF) + (~old & 0xFFFF) + new
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    data[segment + 16 : segment + 18] = (~total & 0xFFFF).to_bytes(2)
    return bytes(data)
