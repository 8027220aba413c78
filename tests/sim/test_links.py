"""The link models show what libzmq and UDP really do (SIM-020, SIM-021)."""

from collections.abc import Callable

import pytest

from weft.base.now import MILLISECOND, SECOND
from weft.sim.datagrams import Datagrams, Weather
from weft.sim.links import Streams, size_of
from weft.sim.sockets import QUEUE_MESSAGES, Flow, Path, Plug, Router
from weft.sim.world import World

ADDRESS = "10.0.0.1:27507"
CABLE = Path(MILLISECOND, MILLISECOND)
CUT = Path(MILLISECOND, MILLISECOND, is_open=False)


class Ear:
    """A process that hears, and reads at once unless it is told to wait."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_listening = True
        self.queue_messages = 0
        self.key: str | None = None
        self.reads = True
        self.heard: list[tuple[str, bytes, bytes]] = []
        self.unread: list[tuple[Flow, int]] = []

    def hear(self, channel: str, peer: bytes, frames: list[bytes], heard: Flow | None) -> None:
        self.heard.append((channel, peer, frames[0]))
        if heard is not None and self.reads:
            heard.read(size_of(frames))
        elif heard is not None:
            self.unread.append((heard, size_of(frames)))

    def numbers(self) -> list[int]:
        return [int(frame) for _, _, frame in self.heard]


class Scene:
    """A child, a parent and a cable."""

    def __init__(self, seed: str = "1") -> None:
        self.world = World()
        self.changes: list[tuple[str, str]] = []
        self.streams = Streams(self.world, seed, lambda child, parent: self.changes.append((child, parent)))
        self.child, self.parent = Ear("c"), Ear("p")
        self.lay(CABLE)
        self.router: Router = self.streams.bind(self.parent, ADDRESS)

    def lay(self, path: Path) -> None:
        self.streams.set_path("c", "p", path)
        self.streams.set_path("p", "c", path)

    def connect(self, routing_id: bytes = b"1") -> "Scene":
        self.streams.connect(self.child, Plug(ADDRESS, routing_id))
        self.wait(1)
        return self

    def wait(self, seconds: float) -> None:
        self.world.run(self.world.at + round(seconds * SECOND))

    def send(self, *numbers: int) -> list[bool]:
        return [self.streams.send_up("c", [b"%d" % number]) for number in numbers]


@pytest.mark.proves("SIM-020")
def test_in_order_once_whole_while_connected() -> None:
    scene = Scene().connect()
    for number in range(500):
        scene.send(number)
        scene.wait(0.0004)
    scene.wait(1)
    assert scene.parent.numbers() == list(range(500))
    assert scene.streams.lost == scene.streams.dropped == 0


@pytest.mark.proves("SIM-020")
def test_z4_a_dealer_to_nobody_takes_what_its_queue_holds_and_delivers_it_to_whoever_binds_there() -> None:
    scene = Scene()
    scene.streams.unbind(scene.router, is_loud=True)
    scene.connect()
    accepted = scene.send(*range(QUEUE_MESSAGES + 10))
    assert accepted == [True] * QUEUE_MESSAGES + [False] * 10
    scene.streams.bind(scene.parent, ADDRESS)
    scene.wait(1)
    assert scene.parent.numbers() == list(range(QUEUE_MESSAGES))


@pytest.mark.proves("SIM-020")
def test_z3_a_receiver_that_does_not_read_makes_its_sender_drop_behind_the_first_hole() -> None:
    scene = Scene().connect()
    scene.parent.reads = False
    accepted = []
    for number in range(2_000):
        accepted.append(scene.streams.send_up("c", [b"%d" % number + b"x" * 2_000]))
        scene.wait(0.0001)
    kept = sum(accepted)
    assert 2 * QUEUE_MESSAGES < kept < 2_000
    assert accepted == [True] * kept + [False] * (2_000 - kept)
    assert scene.streams.send_down(scene.router, b"nobody", [b"1"]) is False


@pytest.mark.proves("SIM-020")
@pytest.mark.proves("FLD-041", part="links refuse per peer, at the instant of the send")
def test_a_socket_takes_as_much_at_one_instant_as_its_high_water_mark_says_and_more_when_time_has_passed() -> None:
    scene = Scene().connect()
    assert scene.send(*range(70)) == [True] * 64 + [False] * 6
    scene.wait(0.001)
    assert scene.send(70, 71) == [True, True]
    scene.wait(1)
    assert scene.parent.numbers() == [*range(64), 70, 71]
    assert scene.streams.dropped == 6


@pytest.mark.proves("SIM-020")
def test_z5_a_killed_receiver_loses_one_block_none_twice_and_order_is_kept() -> None:
    scene = Scene().connect()
    scene.send(*range(40))
    scene.wait(0.0015)
    scene.streams.unbind(scene.router, is_loud=True)
    before = scene.parent.numbers()
    scene.send(40, 41)
    scene.wait(0.03)
    scene.send(*range(42, 60))
    scene.router = scene.streams.bind(scene.parent, ADDRESS)
    scene.wait(2)
    actual = scene.parent.numbers()
    assert actual == before + list(range(42, 60))
    assert 0 < len(before) + 18 < 60


@pytest.mark.proves("SIM-020")
def test_a_short_cut_delays_and_loses_nothing() -> None:
    scene = Scene().connect()
    scene.lay(CUT)
    scene.send(1, 2, 3)
    scene.wait(2)
    assert scene.parent.numbers() == []
    assert not scene.streams.works("c", "p")
    scene.lay(CABLE)
    scene.wait(3)
    assert scene.parent.numbers() == [1, 2, 3]
    assert scene.streams.works("c", "p")


@pytest.mark.proves("SIM-020")
def test_one_dead_direction_stops_both_since_nothing_is_acknowledged() -> None:
    scene = Scene().connect()
    scene.streams.set_path("p", "c", CUT)
    scene.send(1)
    scene.wait(5)
    assert scene.parent.numbers() == []


@pytest.mark.proves("SIM-020")
def test_z7_a_router_is_deaf_to_an_id_that_comes_back_too_soon_and_sends_succeed() -> None:
    scene = Scene().connect()
    scene.send(1)
    scene.wait(1)
    scene.streams.give_up("c", 10 * SECOND)
    scene.wait(1)
    assert scene.send(2, 3) == [True, True]
    scene.wait(60)
    assert scene.parent.numbers() == [1]
    assert scene.streams.deaf == 1
    assert not scene.streams.works("c", "p")


@pytest.mark.proves("SIM-020")
def test_z7_heals_when_the_router_noticed_first() -> None:
    scene = Scene().connect()
    scene.streams.give_up("c", MILLISECOND)
    scene.wait(1)
    scene.send(2)
    scene.wait(1)
    assert scene.parent.numbers() == [2]


@pytest.mark.proves("SIM-021")
def test_z7_a_fresh_socket_with_a_new_id_is_heard_at_once() -> None:
    scene = Scene().connect(b"1")
    scene.streams.give_up("c", 10 * SECOND)
    scene.wait(1)
    scene.connect(b"2")
    scene.send(2)
    scene.wait(1)
    assert scene.parent.heard == [("down", b"2", b"2")]


def test_what_a_closed_socket_still_held_is_dropped_and_what_the_kernel_had_arrives() -> None:
    scene = Scene().connect()
    scene.send(1)
    scene.streams.disconnect("c")
    scene.wait(1)
    assert scene.parent.numbers() == [1]
    assert scene.streams.send_up("c", [b"2"]) is False


def test_a_machine_that_lost_its_power_is_missed_only_when_it_is_back() -> None:
    scene = Scene().connect()
    scene.streams.unbind(scene.router, is_loud=False)
    scene.wait(10)
    assert scene.send(1) == [True]
    scene.router = scene.streams.bind(scene.parent, ADDRESS)
    scene.wait(1)
    scene.send(2)
    scene.wait(1)
    assert scene.parent.numbers() == [2]


def test_a_parent_answers_through_the_id_that_it_heard() -> None:
    scene = Scene().connect(b"7")
    assert scene.streams.send_down(scene.router, b"7", [b"1"]) is True
    scene.wait(1)
    assert scene.child.heard == [("up", b"", b"1")]
    assert scene.streams.owner_of(b"7") == "c"


def shares(weather: Weather) -> list[bytes]:
    world, ear = World(), Ear("b")
    datagrams = Datagrams(world, "1", weather)
    for number in range(2_000):
        datagrams.send("a", b"10.0.0.1", ear, CABLE, [b"%04d" % number])
        world.run(world.at + MILLISECOND)
    world.run(world.at + 60 * SECOND)
    return [frame for _, _, frame in ear.heard]


SHARE = 1 << 16
CASES: list[tuple[str, Weather, Callable[[list[bytes]], bool]]] = [
    ("clear", Weather(), lambda heard: len(heard) == 2_000),
    ("loss", Weather(loss=SHARE // 4), lambda heard: 1_350 < len(heard) < 1_650),
    ("duplication", Weather(duplication=SHARE // 10, late_ns=SECOND), lambda heard: 2_100 < len(heard) < 2_300),
    (
        "order",
        Weather(reordering=SHARE // 5, late_ns=SECOND),
        lambda heard: sorted(heard) != heard and len(heard) == 2_000,
    ),
    ("damage", Weather(damage=SHARE // 10), lambda heard: 100 < sum(not each.isdigit() for each in heard) < 300),
]


@pytest.mark.proves("SIM-020")
@pytest.mark.parametrize("_name,weather,holds", CASES, ids=[case[0] for case in CASES])
def test_datagrams_are_lost_doubled_late_and_damaged(
    _name: str, weather: Weather, holds: Callable[[list[bytes]], bool]
) -> None:
    assert holds(shares(weather))


def test_datagrams_do_not_pass_a_cut() -> None:
    world, ear = World(), Ear("b")
    Datagrams(world, "1", Weather()).send("a", b"10.0.0.1", ear, CUT, [b"x"])
    world.run(SECOND)
    assert ear.heard == []
