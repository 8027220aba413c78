"""Whole nodes as they ship, in virtual time: process, runner, journal and cores are the real ones.

Only their doors are twins: files in memory that fail on demand, links that carry bytes from one to the other, a clock
that leaps to the next timer as soon as nobody has anything to do. So hours pass in seconds, and nothing is luck.
"""

import asyncio
import hashlib
import selectors
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from weft.base.chance import Chance
from weft.base.effects import Connect, Source
from weft.base.endpoints import shifted
from weft.base.errors import StorageFailed
from weft.base.now import SECOND, Now
from weft.base.records import LostRecord, Record, Stream, StreamRecord
from weft.base.vectors import VersionVector
from weft.cores.chains.messages import PassBatch
from weft.cores.drain.messages import (
    InspectLake,
    LakeFound,
    LakeRefused,
    SegmentFailed,
    SegmentWritten,
    StreamTip,
    WriteSegment,
)
from weft.cores.measurement.messages import Measure, Measured, Reading
from weft.node.channels import ADDS, BEAT, CALLS, CHANNELS, SHOUTS
from weft.node.settings import settings_of
from weft.shell.clock import Clock
from weft.shell.ends import Heard
from weft.shell.files import Files
from weft.shell.identity import Identity
from weft.shell.links import BUDGET, BUDGET_BYTES, Links, within
from weft.shell.process import Doors, Process
from weft.testing.disk import FaultyFiles, MemoryFiles, RecordingFiles
from weft.wire.samples import Row, SampleBatch, Series

WALL = 1_795_000_000 * SECOND
MIB = 1 << 20
SERIES = (Series("cpu", "CPU", "percent", {"core": "0"}), Series("memory", "MEMORY", "basic", {}))
LATENCY_S = 0.001
OTHER_END = {
    "up": "down",
    "call": "control",
    "ask": "serve",
    "updates": "publish",
    "announce": "announced",
    "clone-ask": "clone-serve",
    "clone-follow": "clone-publish",
}
OTHER_END |= {there: here for here, there in OTHER_END.items()}


class LeapSelector(selectors.DefaultSelector):
    """Waits for nobody: where others would wait, time leaps."""

    def __init__(self, leap: Callable[[float], None]) -> None:
        super().__init__()
        self._leap = leap

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everybody waits for something that never comes"
            self._leap(timeout)
        return ready


class LeapLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        self.virtual_s = 1_000.0
        super().__init__(LeapSelector(self._leap))

    def _leap(self, span_s: float) -> None:
        self.virtual_s += span_s

    def time(self) -> float:
        return self.virtual_s


class HandClock(Clock):
    """A node's clocks: the loop's time, and a wall clock that can be stepped."""

    def __init__(self, loop: LeapLoop, wall_step_ns: int = 0) -> None:
        super().__init__(wall_step_ns)
        self._loop = loop

    def now(self) -> Now:
        mono = self.mono()
        return Now(mono, WALL + mono + self.wall_step_ns)

    def mono(self) -> int:
        return round(self._loop.virtual_s * SECOND)


class Plug(NamedTuple):
    """A connection of one host to a port of another's block."""

    channel: str
    endpoint: str
    peer: bytes
    """Its routing id there; a subscription needs none."""
    tag: bytes = b""
    topics: tuple[bytes, ...] = ()
    since: float = 0.0
    """From when on a subscription is known there."""


class Wire(Links):
    """The links of one host: an inbox, what it has connected, and every frame that left it."""

    def __init__(self, host: "Host", on_readable: Callable[[], None]) -> None:
        self.host, self._on_readable = host, on_readable
        self.inbox: deque[Heard] = deque()
        self.dropped: Counter[str] = Counter()
        self.plugs: list[Plug] = []
        self._ends = {}  # no sockets
        self.is_closed = False

    def connect(self, effect: Connect) -> None:
        if CHANNELS[effect.channel].how != ADDS:
            self.disconnect(effect.channel)
        self._plug(effect.channel, effect.endpoint, effect.tag, effect.topics)

    def _plug(self, channel: str, endpoint: str, tag: bytes = b"", topics: tuple[bytes, ...] = ()) -> Plug:
        world = self.host.world
        world.connections += 1
        peer = b"\x01" + world.connections.to_bytes(15, "big")
        self.plugs.append(Plug(channel, endpoint, peer, tag, topics, world.loop.time() + 4 * LATENCY_S))
        return self.plugs[-1]

    def disconnect(self, channel: str, peer: bytes = b"") -> None:
        self.plugs = [
            plug for plug in self.plugs if plug.channel != channel or (peer and plug.endpoint.encode() != peer)
        ]

    def close(self) -> None:
        self.is_closed = True
        self.plugs = []

    def drain(self) -> tuple[list[Heard], bool]:
        taken = (self.inbox.popleft() for _ in range(min(len(self.inbox), BUDGET)))
        return list(within(BUDGET_BYTES, taken)), bool(self.inbox)

    def has_more(self) -> bool:
        return bool(self.inbox)

    def send(self, channel: str, peer: bytes, frames: list[bytes]) -> bool:
        self.host.note(channel, peer, frames)
        row = CHANNELS[channel]
        if row.how == SHOUTS:
            return True
        if row.is_published:
            self._publish(channel, frames)
            return True
        sent = self._answer(channel, peer, frames) if row.is_bound else self._say(channel, peer, frames)
        if not sent:
            self.dropped[f"{channel}:closed"] += 1
        return sent

    def _say(self, channel: str, peer: bytes, frames: list[bytes]) -> bool:
        """Through a DEALER, to whoever is bound there."""
        is_call = CHANNELS[channel].how == CALLS
        open_ = [plug for plug in self.plugs if plug.channel == channel and (not is_call or plug.tag == peer)]
        plug = open_[0] if open_ else None
        if plug is None and is_call:
            plug = self._plug(channel, shifted(peer.decode(), CHANNELS[channel].place), peer)
        target = self.host.world.at(plug.endpoint, CHANNELS[channel].place) if plug else None
        if plug is None or target is None:
            return False
        self.host.world.carry(self.host, target, Heard(Source(OTHER_END[channel], plug.peer, None, "DEALER"), frames))
        return True

    def _answer(self, channel: str, peer: bytes, frames: list[bytes]) -> bool:
        """Through a ROUTER, to whoever has that routing id."""
        for host in self.host.world.hosts.values():
            for plug in host.links.plugs if host.is_up else ():
                if plug.peer == peer and OTHER_END[plug.channel] == channel:
                    self.host.world.carry(self.host, host, Heard(Source(plug.channel, plug.tag), frames), plug)
                    return True
        return False

    def _publish(self, channel: str, frames: list[bytes]) -> None:
        """From a PUB, to those who have subscribed by now."""
        world = self.host.world
        if CHANNELS[channel].is_bound:
            plugs = [(host, plug) for host in world.hosts.values() if host.is_up for plug in host.links.plugs]
            mine = f"127.0.0.1:{self.host.port + CHANNELS[channel].place}"
            for host, plug in plugs:
                wants = frames[0].startswith((*plug.topics, BEAT)) and plug.since <= world.loop.time()
                if plug.channel == OTHER_END[channel] and plug.endpoint == mine and wants:
                    world.carry(self.host, host, Heard(Source(plug.channel, plug.tag), frames), plug)
            return
        for plug in self.plugs:
            target = world.at(plug.endpoint, CHANNELS[channel].place) if plug.channel == channel else None
            if target is not None and plug.since <= world.loop.time():
                world.carry(self.host, target, Heard(Source(OTHER_END[channel], b""), frames))

    def hear(self, heard: Heard) -> None:
        if heard.source.channel in self.host.up.node.channels:
            self.inbox.append(heard)
            self._on_readable()


class Lake:
    """A lake that holds numbers only, and fails as long as it is told to."""

    def __init__(self) -> None:
        self.tips: dict[int, StreamTip] = {}
        self.held: dict[int, VersionVector] = {}
        self.doubled = 0
        self.lost: dict[int, VersionVector] = {}
        self.fails = ""

    def perform(self, host: "Host", work: InspectLake | WriteSegment) -> Any:
        if isinstance(work, InspectLake):
            return LakeRefused("failed", self.fails) if self.fails else LakeFound(tuple(self.tips.values()))
        if self.fails:
            return SegmentFailed(work.stream, work.number, "failed", self.fails)
        rows = 0
        for lsn, record in host.records(work.first_lsn - 1):
            if lsn <= work.last_lsn and getattr(record, "stream", 0) == work.stream:
                rows += self._take(record)
        self.tips[work.stream] = StreamTip(work.stream, work.number, work.last_lsn, f"{work.number:064x}")
        return SegmentWritten(work.stream, work.number, work.last_lsn, rows, rows, f"{work.number:064x}")

    def _take(self, record: Record) -> int:
        if isinstance(record, LostRecord):
            self.lost.setdefault(record.stream, VersionVector()).add(record.source, record.first, record.last)
        if not isinstance(record, StreamRecord):
            return 0
        held = self.held.setdefault(record.stream, VersionVector())
        rows = record.last - record.sequence + 1
        self.doubled += rows - held.add(record.source, record.sequence, record.last)
        return rows


class Host:
    """A machine: its disk, and as long as it is up, a process of Weft."""

    def __init__(self, world: "World", name: str, port: int, document: dict[str, Any]) -> None:
        self.world, self.name, self.port = world, name, port
        self.settings = settings_of(document)
        self.memory = MemoryFiles()
        self.faulty = FaultyFiles(self.memory)
        self.files: Files = self.faulty
        self.clock = HandClock(world.loop)
        self.lake: Lake = Lake()
        self.process: Process | None = None
        self.links: Wire
        self.taken = self.sent_count = self.starts = 0
        self.sent: list[tuple[str, bytes, list[bytes]]] = []
        self.made = VersionVector()
        """Its own samples that are durable, of all its starts."""
        self.told: list[Any] = []
        self._draw = Chance(name)
        state = Path(self.settings.node.state)
        state.mkdir(parents=True)
        identity = Identity(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest(), name, 0)
        (state / "node.json").write_bytes(msgspec.json.encode(identity))

    # Life

    def start(self) -> Process:
        self.starts += 1
        doors = Doors(self.clock, self.files, None, self._make_links, self._performers(), f"{self.name}/{self.starts}")
        try:
            self.process = process = Process(self.settings, doors)
        except StorageFailed:
            self.memory.kill()
            raise
        listen = process.runner.on_tell

        def hear(event: Any) -> None:
            self.told.append(event)
            listen(event)

        process.runner.on_tell = hear
        self._note_what_is_durable(process)
        process.employ()
        process.open()
        return process

    def _make_links(self, on_readable: Callable[[], None]) -> Wire:
        self.links = Wire(self, on_readable)
        return self.links

    def _performers(self) -> dict[type, Callable[[Any], None]]:
        return {InspectLake: self._use_lake, WriteSegment: self._use_lake, Measure: self._measure}

    def _measure(self, work: Measure) -> None:
        at_ms = self.clock.now().wall // 1_000_000
        readings = [Reading(spec.name, at_ms, (((), self._draw.getrandbits(40), None),)) for spec in work.specs]
        process = self.up

        def outcome() -> None:
            if self.process is process and self.is_up:
                process.runner.order("measurement", Measured(tuple(readings), work.number))

        self.world.loop.call_soon(outcome)

    def _use_lake(self, work: Any) -> None:
        process = self.up

        def outcome() -> None:
            if self.process is process and self.is_up:
                process.runner.order("drain", self.lake.perform(self, work))

        self.world.loop.call_later(LATENCY_S, outcome)

    @property
    def up(self) -> Process:
        assert self.process is not None, f"{self.name} is down"
        return self.process

    @property
    def is_up(self) -> bool:
        return self.process is not None and not self.process.runner.ended.done()

    def kill(self) -> None:
        """As SIGKILL: what is written stays, everything else is gone."""
        process, self.process = self.up, None
        process.runner.finish()
        self.bury(process)

    async def stop(self) -> Any:
        """In order; returns why it ended."""
        self.up.stop()
        return await self.end()

    async def end(self) -> Any:
        """Wait for its end, and let go as `run` does; returns why."""
        process = self.up
        reason = await process.runner.ended
        self.process = None
        if reason is None:
            process.close()
        else:
            self.bury(process)
        return reason

    def bury(self, process: Process) -> None:
        """What a process leaves that has ended by itself."""
        process.rest()
        self.links.close()
        self.memory.kill()

    # Doing

    def take(self, rows: int = 1_000) -> None:
        """Samples come out of the meters: they go through the chain, are numbered, kept and sent up."""
        drawn = [Row(0, n, self._draw.getrandbits(63), self._draw.getrandbits(63)) for n in range(rows)]
        self.taken += rows
        batch = SampleBatch(self.clock.now().wall // 1_000_000, SERIES, drawn)
        self.up.runner.order("chains", PassBatch("out", "weft.metric", batch))

    def note(self, channel: str, peer: bytes, frames: list[bytes]) -> None:
        """A message leaves."""
        self.sent_count += 1
        if isinstance(self.files, RecordingFiles):
            self.files.note_sent((channel, peer, frames))
        if self.world.keeps_sent:
            self.sent.append((channel, peer, frames))

    def _note_what_is_durable(self, process: Process) -> None:
        """From when on a sample may not be lost: its write has returned."""
        write, mine = process.journal.write, process.identity.node_id

        def note(records: Sequence[Record], wall_ns: int, *, promised: bool = False) -> int:
            first = write(records, wall_ns, promised=promised)
            for record in records:
                if isinstance(record, StreamRecord) and record.stream == Stream.SAMPLES and record.origin == mine:
                    self.made.add(record.source, record.sequence, record.last)
            return first

        process.journal.write = note  # type: ignore[method-assign]  # a witness beside it

    def records(self, after: int = 0) -> list[tuple[int, Record]]:
        """What its journal holds behind `after`."""
        found: list[tuple[int, Record]] = []
        upto = after
        while True:
            entries, reached = self.up.journal.read(upto, 4 * MIB)
            found += entries
            if reached <= upto:
                return found
            upto = reached

    def fill(self, left: int = 0) -> None:
        """Somebody else's files leave so many bytes on this disk."""
        self.memory.capacity = sum(len(content) for content in self.memory.content().values()) + left

    @property
    def state(self) -> str:
        return self.up.journal.state.name

    def counters(self, core: str) -> Any:
        return self.up.node.cores[core].counters  # type: ignore[attr-defined]  # those asked for have them


class World:
    """Hosts by name. `cut` ones hear nothing, and nothing of theirs is heard."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.loop = LeapLoop()
        self.hosts: dict[str, Host] = {}
        self.cut: set[str] = set()
        self.connections = 0
        self.keeps_sent = False

    def host(self, name: str, level: str, parent: str = "", **tables: dict[str, Any]) -> Host:
        """A machine with a node of that level; it is not started."""
        port = 30_000 + 10 * len(self.hosts)
        node = {
            "name": name,
            "level": level,
            "port": port,
            "state": str(self.place / name),
            "beacons": False,
            "parent": f"127.0.0.1:{self.hosts[parent].port}" if parent else "",
            **tables.pop("node", {}),
        }
        limits = {"memory_megabytes": 1 << 16}  # the tests' own memory counts, too
        document = {"node": node, "metric": tables.pop("metric", {}), "limits": limits, **tables}
        self.hosts[name] = Host(self, name, port, document)
        return self.hosts[name]

    def at(self, endpoint: str, place: int) -> "Host | None":
        port = int(endpoint.rpartition(":")[2]) - place
        return next((host for host in self.hosts.values() if host.port == port), None)

    def carry(self, source: Host, target: Host, heard: Heard, plug: Plug | None = None) -> None:
        """Bring a message across, a little later, if both ends are there then and no link is cut."""
        links = target.links if target.is_up else None

        def arrive() -> None:
            is_cut = source.name in self.cut or target.name in self.cut
            is_same = target.is_up and target.links is links and (plug is None or plug in target.links.plugs)
            if is_same and not is_cut:
                target.links.hear(heard)

        self.loop.call_later(LATENCY_S, arrive)

    def run(self, play: Coroutine[Any, Any, None]) -> None:
        """Play a scene to its end; no host outlives it. A fault inside a callback fails the test."""
        faults: list[Any] = []
        self.loop.set_exception_handler(lambda _, context: faults.append(context))
        try:
            self.loop.run_until_complete(play)
        finally:
            for host in self.hosts.values():
                if host.process is not None:
                    host.kill()  # an outcome of its workers that comes now finds it ended
            self.loop.run_until_complete(asyncio.sleep(0))  # cancelled tasks end
            self.loop.close()
        assert not faults, faults

    async def pass_time(self, seconds: float) -> None:
        """Virtual seconds go by."""
        await asyncio.sleep(seconds)  # tidy: virtual time

    async def until(self, holds: Callable[[], bool], within_s: float = 120.0) -> None:
        """Virtual time goes by until something holds."""
        ends_at = self.loop.time() + within_s
        while not holds():
            assert self.loop.time() < ends_at, f"not within {within_s} virtual seconds"
            await self.pass_time(0.01)

    def made(self) -> VersionVector:
        """All samples that were durable where they were made."""
        vector = VersionVector()
        for host in self.hosts.values():
            vector |= host.made
        return vector


def samples_in(lake: Lake) -> VersionVector:
    return lake.held.get(Stream.SAMPLES, VersionVector())


def lost_in(lake: Lake) -> VersionVector:
    """Samples that were announced as lost."""
    return lake.lost.get(Stream.SAMPLES, VersionVector())


def count(vector: VersionVector) -> int:
    return sum(ranges.count for _, ranges in vector)
