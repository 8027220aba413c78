"""Weft nodes and models of real servers at one broker, in virtual time, from one seed."""

import heapq
import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import msgpack

from tests.store.foreign import GONE, Foreign, Kept, unpacked
from tests.store.net import Net
from weft.base.changes import Chain, Event
from weft.base.effects import Source
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.base.ranges import RangeSet
from weft.cores.store.core import JOIN
from weft.cores.store.messages import Dial, DialFailed, HangUp
from weft.wire.store.clients import Answer, Greeting, Request, decode_answer, encode
from weft.wire.store.path import pack_path, unpack_path


class Fleet:
    """Weft nodes and real servers at one broker, in virtual time; `cut` and `heal` as in `Net`, by name.

        fleet = Fleet(["w1"], ["n1", "n2"], seed=7)
        fleet["n1"].found("hello"); fleet.start_all(); fleet.run(20)

    Downloads are not played: what one holds is handed to the other at once, by the rules of both. What a node asks a real
    server's client port besides (`get_state`, `check_deleted`) is.
    """

    def __init__(
        self,
        weft: Iterable[str],
        real: Iterable[str],
        *,
        seed: object = 0,
        cycle_s: float = 2.0,
        gap_s: float = 0.4,
        **bad: Any,
    ) -> None:
        times = {"cycle_ns": round(cycle_s * SECOND), "gap_ns": round(gap_s * SECOND)}
        del_times = {f"del_{key}": value for key, value in times.items()}
        self.net = Net(weft, seed=seed, is_started=False, settings={"dialects": ("moat",), **times, **del_times}, **bad)
        self.real = {name: Foreign(name, cycle_s, gap_s, seed) for name in real}
        self.chance = random.Random(f"{seed}/fleet")
        self.heard: list[tuple[float, str, str, Any]] = []
        """All that was said on the broker: time, speaker, topic, content."""
        self.net.ears.append(self._carry)
        self.net.on_dial, self.net.on_join = self._dialled, self._asked
        self._ports: dict[tuple[str, bytes], Foreign] = {}
        self._waiting: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0

    def __getitem__(self, name: str) -> Foreign:
        return self.real[name]

    @property
    def now(self) -> Now:
        return Now(self.net.now, self.net.now)

    def start(self, name: str) -> None:
        """A node or server comes to the broker."""
        if name in self.real:
            real = self.real[name]
            real.on_good = lambda good: self._later(lambda: self._fill(real, good))
            real.link_up(self.now)
            self._collect(real)
            return
        node = self.net.start(name)
        node.store.membership.on_join = lambda names: self._later(lambda: self._download(node, names))

    def start_all(self) -> None:
        for name in [*self.real, *self.net.nodes]:
            self.start(name)

    def _later(self, what: Callable[[], None], late: int = SECOND // 100) -> None:
        self._serial += 1
        heapq.heappush(self._waiting, (self.net.now + late, self._serial, what))

    def _fill(self, real: Foreign, good: str) -> None:
        """CLN-021: a real server downloads."""
        if real.is_ready:
            return
        if good in self.real:
            self.real[good].copy_to(real)
        elif self.net.nodes[good].is_up:
            replica = self.net.nodes[good].store.replica
            for event in replica.tree.walk():
                value = GONE if event.value is None else unpacked(event.value)
                real.take_change(pack_path(event.path), Kept(list(event.chain.links), event.tock, value))
            for node in replica.book.nodes():
                ticks = {tick for first, last in replica.book.seen(node) for tick in range(first, last + 1)}
                real.seen.setdefault(node, set()).update(ticks)
            real.is_ready = True

    def _download(self, node: Any, names: list[str]) -> None:
        """CLN-020: one of ours does."""
        real = next((self.real[name] for name in names if name in self.real), None)
        core = node.store
        core.context.now = node.now
        if real is None:
            core.membership.download_failed(node.now)
        else:
            for key, kept in real.entries.items():
                value = None if kept.value is GONE else msgpack.packb(kept.value)
                core.replica.receive(Event(Chain(tuple(kept.links)), kept.tock, unpack_path(key), value), "join")
            for name, ticks in real.seen.items():
                core.replica.settle({name: RangeSet((tick, tick) for tick in ticks)}, "known")
            core.membership.downloaded(node.now)
        self.net.do_turn(node)

    def _dialled(self, node: Any, work: Any) -> None:
        """A node calls a client port, or hangs up; nobody answers for a server that is not there."""
        if isinstance(work, Dial):
            name = work.endpoint.partition(":")[0]
            real = self.real.get(name)
            if real is None or self.net._side.get(node.name, 0) != self.net._side.get(name, 0):
                self._later(lambda: self._command(node, DialFailed(work.tag, "refused")))
            else:
                self._ports[node.name, work.tag] = real
                self._answer(node, work.tag, Greeting(seq=0, node=name, tick=real.tick, tock=real.tock))
        elif isinstance(work, HangUp):
            self._ports.pop((node.name, work.peer), None)

    def _asked(self, node: Any, tag: bytes, said: Any) -> None:
        real = self._ports.get((node.name, tag))
        if real is None or not isinstance(said, Request):
            return
        if said.action == "get_state":
            self._answer(node, tag, Answer(seq=said.seq, **real.state()))
        elif said.action == "check_deleted":
            real.check_deleted(unpacked(encode(said))["nodes"])
            self._collect(real)
            self._answer(node, tag, Answer(seq=said.seq, tock=real.tock))

    def _answer(self, node: Any, tag: bytes, answer: Any) -> None:
        self._later(lambda: self._hand(node, Source(JOIN, tag), decode_answer(encode(answer))))

    def _hand(self, node: Any, source: Source, answer: Any) -> None:
        if node.is_up:
            with suppress(PeerError):
                node.store.receive(answer, source, node.now)
            self.net.do_turn(node)

    def _command(self, node: Any, order: Any) -> None:
        if node.is_up:
            node.store.command(order, node.now)
            self.net.do_turn(node)

    def _carry(self, speaker: str, topic: str, payload: bytes) -> None:
        """To the real servers that hear the speaker."""
        self.heard.append((self.net.now / SECOND, speaker, topic, unpacked(payload)))
        side = self.net._side
        for real in self.real.values():
            if side.get(speaker, 0) == side.get(real.name, 0):
                late = self.chance.randrange(SECOND // 1000, SECOND // 300)
                self._later(partial(self._hear, real, topic, payload), late)

    def _hear(self, real: Foreign, topic: str, payload: bytes) -> None:
        real.hear(topic, payload, self.now)
        self._collect(real)

    def _collect(self, real: Foreign) -> None:
        for topic, payload in real.take():
            self._carry(real.name, topic, payload)
            self.net.publish(real.name, topic, payload)

    def write(self, name: str, path: str, value: Any = GONE) -> None:
        """By a client of that node."""
        if name in self.real:
            self.real[name].write(path, value)
            self._collect(self.real[name])
        elif value is GONE:
            self.net[name].delete(path)
        else:
            self.net[name].write(path, value)

    def run(self, span_s: float) -> None:
        """Let time pass."""
        end = self.net.now + round(span_s * SECOND)
        while self.net.now < end:
            dues = [at for real in self.real.values() if (at := real.deadline()) is not None]
            dues += [self._waiting[0][0]] if self._waiting else []
            dues += [self.net._heap[0][0]] if self.net._heap else []
            self.net._run_to(max(self.net.now, min([end, *dues])))
            while self._waiting and self._waiting[0][0] <= self.net.now:
                heapq.heappop(self._waiting)[2]()
            for real in self.real.values():
                if (real.deadline() or end + 1) <= self.net.now:
                    real.wake(self.now)
                    self._collect(real)

    def contents(self) -> dict[str, dict[bytes, Any]]:
        """What each holds, without tombstones."""
        found = {
            name: {key: repr(kept.value) for key, kept in real.entries.items() if kept.value is not GONE}
            for name, real in self.real.items()
        }
        for node in self.net.up():
            found[node.name] = {
                pack_path(event.path): repr(unpacked(event.value))
                for event in node.store.replica.tree.walk()
                if event.value is not None
            }
        return found

    def are_equal(self) -> bool:
        first, *others = self.contents().values()
        return all(other == first for other in others)
