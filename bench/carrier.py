"""How much the hop link carries: a child and its parent joined through bytes in one process, without sockets or disk.

    python bench/carrier.py [--seconds 3]

A message is a batch of samples of 100 rows (3 kB) or 1 000 rows (30 kB), opaque to the carrier. Per message it passes:
journaled at the child, packed, decoded and judged at the parent, journaled there, acknowledged, released. Times are
CPU seconds. The peer in the same run is the bare work that no link can avoid: the same batches packed and unpacked
with msgspec, 64 at once, nothing else; the ratio says how many times more the carrier costs.
"""

import argparse
import time
from collections import deque
from collections.abc import Callable
from functools import partial

import msgspec

from weft.base.chance import Chance
from weft.base.effects import Persist, Send, Source
from weft.base.now import SECOND, Now
from weft.base.records import Record, Stream, StreamRecord
from weft.base.spool import Journaled
from weft.cores.carrier.core import Carrier
from weft.cores.carrier.messages import AssignParent, CarrierSettings
from weft.wire import hop

CHILD, PARENT = b"c" * 16, b"p" * 16
WALL = 1_795_000_000 * SECOND
ERA = 1_795_000_000_000_000


class End:
    """A carrier with a journal that is always durable, and its share of the time."""

    def __init__(self, node: bytes, level: str, channel: str) -> None:
        settings = CarrierSettings(name=node[:1].decode(), level=level)
        self.core = Carrier(settings, node, ERA, Chance("bench"))
        self.core.restore((), Now(0, WALL))
        self.next_lsn = 1
        self.out: deque[list[bytes]] = deque()
        self.source = Source(channel, b"1" if level == "root" else b"")
        self.spent = 0.0

    def keep(self, records: tuple[Record, ...], now: Now) -> None:
        first = self.next_lsn
        self.next_lsn += len(records)
        self.core.command(Journaled(first, records), now)

    def turn(self, now: Now) -> None:
        for effect in self.core.effects():
            if isinstance(effect, Persist):
                self.keep(effect.records, now)
            elif isinstance(effect, Send):
                self.out.append(hop.encode(effect.message))

    def hear(self, frames: list[bytes], now: Now) -> None:
        self.core.receive(hop.decode(frames), self.source, now)

    def timed(self, act: Callable[[], None]) -> None:
        begin = time.process_time()
        act()
        self.spent += time.process_time() - begin


class Pair:
    """Child and parent; `take` journals messages at the child and brings them up."""

    def __init__(self, rows: int, size: int) -> None:
        self.rows, self.body = rows, bytes(size)
        self.child, self.parent = End(CHILD, "sensor", "up"), End(PARENT, "root", "down")
        self.mono, self.sequence = SECOND, 1
        self.child.core.command(AssignParent("p:1", "p"), self.now)
        self.pass_on()

    @property
    def now(self) -> Now:
        return Now(self.mono, WALL + self.mono)

    def make(self, count: int) -> tuple[Record, ...]:
        at = WALL + self.mono
        first, self.sequence = self.sequence, self.sequence + count * self.rows
        return tuple(
            StreamRecord(
                int(Stream.SAMPLES), CHILD, ERA, first + index * self.rows, at, at, "weft.metric", self.body,
                {"n": self.rows, "cfg": 7},
            )
            for index in range(count)
        )  # fmt: skip

    def pass_on(self) -> None:
        """Until nothing is under way."""
        child, parent = self.child, self.parent
        while True:
            child.timed(partial(child.turn, self.now))
            parent.timed(partial(parent.turn, self.now))
            if not child.out and not parent.out:
                return
            for end, other in ((child, parent), (parent, child)):
                while other.out:
                    end.timed(partial(end.hear, other.out.popleft(), self.now))

    def take(self, count: int) -> None:
        records = self.make(count)
        self.child.timed(partial(self.child.keep, records, self.now))
        self.pass_on()
        self.mono += SECOND // 50
        for end in (self.child, self.parent):
            end.timed(partial(end.core.wake, self.now))


def bare(rows: int, size: int, seconds: float) -> float:
    """Messages per second of packing and unpacking alone, in batches of 64."""
    body, count = bytes(size), 0
    begin = time.process_time()
    while (spent := time.process_time() - begin) < seconds:
        items = [{"mid": (CHILD, ERA, n * rows), "type": "weft.metric", "via": (CHILD,), "ts": WALL} for n in range(64)]
        frames = [msgspec.msgpack.encode(items), *[body, msgspec.msgpack.encode({"n": rows, "cfg": 7})] * 64]
        msgspec.msgpack.decode(frames[0])
        for more in frames[2::2]:
            msgspec.msgpack.decode(more)
        count += 64
    return count / spent


def measure(rows: int, size: int, batch: int, seconds: float) -> None:
    pair = Pair(rows, size)
    pair.take(batch)
    pair.child.spent = pair.parent.spent = 0.0
    count = 0
    while (spent := pair.child.spent + pair.parent.spent) < seconds:
        pair.take(batch)
        count += batch
    assert pair.parent.core.counters.accepted == count + batch
    assert pair.child.core.counters.safe == count + batch
    plain = bare(rows, size, seconds / 3)
    child, parent = 1e6 * pair.child.spent / count, 1e6 * pair.parent.spent / count
    share = 100 * (child + parent) / 1e6 * 50_000 / rows
    print(
        f"{rows:>6} {size:>7} {batch:>6} {count / spent:>12,.0f} {count * size / spent / 1e6:>8,.0f} "
        f"{child:>9.1f} {parent:>10.1f} {share:>9.2f} % {plain * spent / count:>9.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    seconds = parser.parse_args().seconds
    print("  rows   bytes  at once   messages/s     MB/s  child us  parent us  of 50 000/s  bare ratio")
    for rows, size in ((100, 3_000), (1_000, 30_000)):
        for batch in (1, 8, 64, 512):
            measure(rows, size, batch, seconds)


if __name__ == "__main__":
    main()
