"""The wall: nothing leaves a node before what it rests on is on disk, wherever the plug is pulled."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.shell.world import Host, World, samples_in
from weft.base.effects import Perform, Persist, SendFailed, Source
from weft.base.errors import OurFault, StorageFailed
from weft.base.identity import Origin
from weft.base.now import Now
from weft.base.records import Stream, StreamRecord
from weft.base.vectors import VersionVector
from weft.cores.carrier.core import Carrier
from weft.cores.measurement.messages import Measured
from weft.node.node import Transmit, part_at_wall
from weft.node.securityevents import FabricOpen
from weft.shell.ends import Heard
from weft.shell.journal import State
from weft.shell.process import Doors, Process
from weft.shell.runner import Runner
from weft.shell.serve import outcome
from weft.testing.disk import Fault, FaultyFiles, Image, RecordingFiles, crash_images
from weft.wire import hop

BEAT = hop.encode(hop.Beat())


class Knock:
    """Work whose result is there at once."""


def tree(world: World) -> tuple[Host, Host, Host]:
    root = world.host("root", "root")
    collector = world.host("collector", "collector", "root")
    return root, collector, world.host("sensor", "sensor", "collector")


async def busy(world: World, turns: int) -> None:
    """Some traffic: samples up, acknowledgements down."""
    for _ in range(turns):
        world.hosts["sensor"].take(20)
        await world.pass_time(0.4)


# What was said holds on every image that a power cut can leave (FLT-030).


def said_in(image: Image) -> Iterator[hop.Message]:
    for channel, _, frames in image.sent:
        if channel in ("up", "down"):
            yield hop.decode(frames)


def check_said(host: Host, image: Image) -> None:
    """Start on the image; each acknowledgement is remembered, each number that was given away is there."""
    process = Process(host.settings, Doors(clock=host.clock, files=image.files(), links=host._make_links))
    carrier = process.node.cores["carrier"]
    assert isinstance(carrier, Carrier)
    held = VersionVector()
    for _, record in process.journal.read(0, 1 << 30)[0]:
        if isinstance(record, StreamRecord):
            held.add(record.source, record.sequence, record.last)
    for message in said_in(image):
        if isinstance(message, hop.Hack):
            eras = carrier.parent.progress._children.values()
            upto = max((kept[message.era].upto for kept in eras if message.era in kept), default=0)
            assert message.upto <= upto, f"{image.name}: {message.upto} was acknowledged, {upto} are here"
        elif isinstance(message, hop.Hop):
            given = [item.mid for item in message.m if item.type in ("weft.metric", "weft.event")]
            for origin, era, sequence in given:
                assert held.contains(Origin(origin, era), sequence), f"{image.name}: {sequence} of {era} was sent"


def pull_the_plug(place: Path, name: str, images: int) -> None:
    world = World(place)
    tree(world)
    victim = world.hosts[name]
    victim.files = RecordingFiles(victim.faulty)

    async def play() -> None:
        for host in world.hosts.values():
            host.start()
        await busy(world, 6)
        victim.up.journal.snapshot(victim.up.node.condense(), victim.clock.now().wall)
        await busy(world, 6)
        assert isinstance(victim.files, RecordingFiles)
        for image in crash_images(victim.files, f"plug/{name}", images):
            check_said(victim, image)

    world.run(play())


@pytest.mark.proves("FLT-030", "JRN-001", "JRN-006", "CHN-033")
@pytest.mark.parametrize("name", ["root", "collector", "sensor"])
def test_whatever_a_node_has_said_holds_wherever_the_plug_is_pulled(name: str, tmp_path: Path, soak: bool) -> None:
    pull_the_plug(tmp_path, name, 5_000 if soak else 120)


def _speaks_first(self: Runner, now: Now) -> bool:
    effects = self.node.effects()
    if not effects:
        return False
    turn = part_at_wall(effects)
    self._speak(turn.free, now)
    self._speak(turn.walled, now)
    if turn.records:
        self._keep(turn, now)
    return True


def _keeps_later(self: Runner, turn: Any, now: Now) -> None:
    self.journal.buffer([record for record in turn.records if not isinstance(record, StreamRecord)])
    for record in turn.records:
        if isinstance(record, StreamRecord):
            self.journal._buffer.append(record)


@pytest.mark.proves("FLT-030")
@pytest.mark.varies(
    "method, bug",
    [("_keep", _keeps_later)],
    [("_turn", _speaks_first), ("_keep", _keeps_later)],
    prove=[("_turn", _speaks_first)],
)
def test_a_runner_that_speaks_first_is_caught(
    method: str, bug: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runner, method, bug)
    with pytest.raises(AssertionError, match=r"was acknowledged|was sent"):
        pull_the_plug(tmp_path, "collector", 200)


# A disk that fails.


@pytest.mark.proves("JRN-032", "JRN-005")
@pytest.mark.varies("first", [0], range(3), prove=[1, 2])
@pytest.mark.parametrize("call", ["sync", "append"])
def test_after_a_failed_write_or_sync_nothing_leaves_and_the_node_ends_with_74(
    call: str, first: int, tmp_path: Path
) -> None:
    for at in range(first, 12, 3):
        world = World(tmp_path / str(at))
        world.keeps_sent = True
        root, collector, sensor = tree(world)
        collector.faulty = FaultyFiles(collector.memory, None, Fault.BROKEN, (call,))
        collector.files = collector.faulty

        async def play(root: Host = root, collector: Host = collector, sensor: Host = sensor, at: int = at) -> None:
            for host in (root, collector, sensor):
                host.start()
            await busy(root.world, 3)
            collector.faulty.at = len(collector.faulty.log) + at
            await busy(root.world, 20)
            assert collector.faulty.hit == call
            reason = await collector.end()
            assert isinstance(reason, StorageFailed)
            assert 74 == outcome(reason)
            said = len(collector.sent)
            await root.world.pass_time(10)
            assert said == len(collector.sent)
            collector.faulty.mend()
            collector.start()
            await root.world.until(lambda: sensor.counters("carrier").spool_records == 0)
            await root.world.pass_time(5)
            assert (VersionVector(), 0) == (root.world.made() - samples_in(root.lake), root.lake.doubled)

        world.run(play())


# Turns and timers.


@pytest.mark.proves("JRN-001")
def test_what_may_be_durable_later_is_so_in_time_without_another_write(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, _, sensor = tree(world)

    async def play() -> None:
        for host in world.hosts.values():
            host.start()
        sensor.take(10)
        await world.until(lambda: sensor.counters("carrier").spool_records == 0)
        housekeeping = sensor.up._housekeeping
        assert housekeeping is not None
        housekeeping.cancel()  # whatever it writes
        await world.until(lambda: sensor.up.journal.next_lsn - 1 > sensor.up.journal.durable_lsn, 5)
        await world.until(lambda: sensor.up.journal.next_lsn - 1 == sensor.up.journal.durable_lsn, 2.1)
        assert root.is_up

    world.run(play())


@pytest.mark.proves("JRN-030", "GSP-031")
def test_what_may_be_durable_later_ends_no_node_that_has_not_heard_yet_that_there_is_no_room(tmp_path: Path) -> None:
    world = World(tmp_path)
    root = world.host("root", "root")

    async def play() -> None:
        root.start()
        runner, journal = root.up.runner, root.up.journal
        journal.state = State.FULL  # as the flush of what waited before finds it
        late = StreamRecord(Stream.DOCUMENTS, "S/a0", None, 1, 1, 1, "set", b"<set/>", {})
        said: list[list[Any]] = [[Persist((late,), 100)]]
        root.up.node.effects = lambda: said.pop() if said else []  # type: ignore[method-assign]  # told what to say
        runner.work()
        assert not runner.ended.done()
        assert 1 == journal.next_lsn - 1 - journal.durable_lsn
        del root.up.node.effects

    world.run(play())


@pytest.mark.proves("JRN-001", part="a turn that no batch holds")
def test_a_turn_that_no_batch_holds_ends_no_node_and_is_durable_before_it_is_said(tmp_path: Path) -> None:
    """A program that held 20 MiB of messages and died let all of them go in one turn, which ended its node."""
    world = World(tmp_path)
    root = world.host("root", "root")

    async def play() -> None:
        root.start()
        await world.pass_time(0.1)
        runner, journal, node, effects = root.up.runner, root.up.journal, root.up.node, root.up.node.effects
        held = tuple(StreamRecord(Stream.LOGS, node.node, 9, n, 1, 1, "log", bytes(1 << 20), {}) for n in range(1, 21))
        said: list[list[Any]] = [[Persist(held), Transmit("down", b"\x01child", [b"spooled"])]]
        node.next_lsn += len(held)
        node.effects = lambda: said.pop() if said else effects()  # type: ignore[method-assign]  # told what to say
        durable: list[int] = []

        def send(channel: str, peer: bytes, frames: list[bytes]) -> bool:
            durable.append(journal.durable_lsn)
            return True

        root.links.send = send  # type: ignore[method-assign]  # only looks
        before = journal.next_lsn
        runner.work()
        assert not runner.ended.done()
        assert [before + len(held) - 1] == durable
        del node.effects, root.links.send

    world.run(play())


def test_a_flood_leaves_other_callbacks_of_the_loop_their_turn(tmp_path: Path) -> None:
    world = World(tmp_path)
    root = world.host("root", "root")

    async def play() -> None:
        root.start()
        drained = 0

        def flood() -> tuple[list[Heard], bool]:
            nonlocal drained
            drained += 1
            return [Heard(Source("down", b"\x01flood"), BEAT)], True

        seen: list[int] = []
        root.links.drain = flood  # type: ignore[method-assign]  # a peer that never stops
        root.up.runner.work()
        assert 8 == drained
        for _ in range(3):
            world.loop.call_soon(lambda: seen.append(drained))
            await world.pass_time(0)
        assert sorted(set(seen)) == seen
        assert 3 == len(seen)
        del root.links.drain

    world.run(play())


def test_a_turn_is_followed_by_another_only_if_something_has_come_since(tmp_path: Path) -> None:
    world = World(tmp_path)
    root = world.host("root", "root")

    async def play() -> None:
        root.start()
        await world.pass_time(0.1)
        drained, since = 0, [False, True, True]

        def drain() -> tuple[list[Heard], bool]:
            nonlocal drained
            drained += 1
            return [Heard(Source("down", b"\x01somebody"), BEAT)], False

        root.links.drain, root.links.has_more = drain, since.pop  # type: ignore[method-assign]  # told what to say
        root.up.runner.work()
        assert (3, []) == (drained, since)
        del root.links.drain, root.links.has_more

    world.run(play())


@pytest.mark.proves("JRN-001", "MON-003", part="a turn is said whole before the next one begins")
def test_work_that_is_done_at_once_lets_no_later_turn_overtake_this_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    root = world.host("root", "root")

    async def play() -> None:
        root.start()
        runner, journal, effects = root.up.runner, root.up.journal, root.up.node.effects
        runner.performers[Knock] = lambda _: runner.tell(FabricOpen(("127.0.0.1",)))
        said: list[list[Any]] = [[Perform(Knock()), Transmit("down", b"\x01child", [b"earlier"])]]
        root.up.node.effects = lambda: said.pop() if said else effects()  # type: ignore[method-assign]  # told what to say
        durable: list[int] = []

        def send(channel: str, peer: bytes, frames: list[bytes]) -> bool:
            durable.append(journal.next_lsn)
            return True

        root.links.send = send  # type: ignore[method-assign]  # only looks
        before = journal.next_lsn
        runner.work()
        assert [before] == durable
        assert before + 1 == journal.next_lsn
        del root.up.node.effects, root.links.send

    world.run(play())


def test_what_was_not_sent_is_told_before_the_outcome_of_work_that_is_done_at_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    root = world.host("root", "root")

    async def play() -> None:
        root.start()
        await world.pass_time(0.1)
        runner, node, effects, command = root.up.runner, root.up.node, root.up.node.effects, root.up.node.command
        runner.performers[Knock] = lambda _: runner.order("measurement", Measured((), 99))
        turns: list[list[Any]] = [[Transmit("clients", b"\x01reader", [b"lost"]), Perform(Knock())]]
        given: list[type] = []

        def hear(core: str, order: Any, now: Now) -> None:
            given.append(type(order))
            command(core, order, now)

        node.effects = lambda: turns.pop() if turns else effects()  # type: ignore[method-assign]  # told what to say
        node.command = hear  # type: ignore[method-assign]  # only looks
        root.links.send = lambda *_: False  # type: ignore[method-assign]  # its queue is full
        runner.work()
        assert [SendFailed, Measured] == given
        del node.effects, node.command, root.links.send

    world.run(play())


def test_a_turn_that_breaks_off_halfway_is_the_last_one_whoever_gave_the_order(tmp_path: Path) -> None:
    world = World(tmp_path)
    root = world.host("root", "root")

    async def play() -> None:
        root.start()
        await world.pass_time(0.1)
        runner, node, effects = root.up.runner, root.up.node, root.up.node.effects
        fault = OurFault("numbers were given, and nothing was written")

        def break_off() -> list[Any]:
            raise fault

        node.effects = break_off  # type: ignore[method-assign]  # a core breaks its promise
        with pytest.raises(OurFault):
            runner.order("measurement", Measured((), 99))
        node.effects = effects  # type: ignore[method-assign]  # the next turn would go well
        assert runner.ended.done()
        assert fault is runner.ended.result()
        del node.effects

    world.run(play())


def test_a_node_that_has_ended_does_nothing_any_more(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.keeps_sent = True
    root, _, sensor = tree(world)

    async def play() -> None:
        for host in (root, sensor):
            host.start()
        process = sensor.up
        process.runner.break_off(StorageFailed("pulled"))
        records, sent = len(sensor.records()), len(sensor.sent)
        process.runner.order("measurement", object())
        process.runner.tell(object())
        process.runner.work()
        await world.pass_time(30)
        assert (records, sent) == (len(sensor.records()), len(sensor.sent))

    world.run(play())
