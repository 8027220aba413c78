"""Time, chance and clocks of a simulated world."""

from random import Random

import pytest

from weft.base.chance import Chance
from weft.base.now import SECOND
from weft.sim.clocks import Clocks
from weft.sim.noise import NoiseSource
from weft.sim.world import Spinning, World


@pytest.mark.proves("SIM-003")
def test_what_is_due_at_one_instant_happens_in_the_order_in_which_it_was_asked_for() -> None:
    world, heard = World(), list[str]()
    for at, what in [(5, "c"), (3, "a"), (5, "d"), (3, "b"), (9, "late")]:
        world.call_at(at, heard.append, what)
    world.run(5)
    assert heard == ["a", "b", "c", "d"]
    assert world.at == 5
    assert world.next_at == 9


@pytest.mark.proves("SIM-003")
def test_nothing_happens_in_the_past() -> None:
    world, heard = World(), list[int]()
    world.run(100)
    world.call_at(50, lambda _: heard.append(world.at))
    world.run(200)
    assert heard == [100]


def test_a_world_in_which_time_stands_still_is_stopped() -> None:
    world = World()

    def again(_: None) -> None:
        world.call_at(world.at, again)

    world.call_at(7, again)
    with pytest.raises(Spinning):
        world.run(8)


@pytest.mark.proves("SIM-005")
def test_the_numbers_of_chance_and_noise_are_those_of_the_specification() -> None:
    assert Chance("7/link/a>b/stream").getrandbits(64) == 0x93B343F49AA91AE9
    assert Random("7/link/a>b/stream").getrandbits(64) == 0x93B343F49AA91AE9
    noise = NoiseSource("7", "a>b/stream")
    assert noise.digest().hex() == "aeb56931ff694355db0f388a4487f990"
    assert noise.count == 1


@pytest.mark.proves("SIM-005")
def test_the_noise_of_a_message_does_not_depend_on_other_links() -> None:
    alone, beside = NoiseSource("7", "a>b/stream"), NoiseSource("7", "a>b/stream")
    other = NoiseSource("7", "b>a/stream")
    for _ in range(20):
        other.draw()
        assert alone.draw() == beside.draw()


def test_a_delay_lies_between_its_bounds() -> None:
    noise = NoiseSource("1", "a>b/stream")
    delays = [noise.delay(1_000, 500) for _ in range(2_000)]
    assert min(delays) >= 1_000
    assert max(delays) < 1_500
    assert max(delays) - min(delays) > 450


@pytest.mark.proves("SIM-003")
@pytest.mark.parametrize("ppm", [0, 200, -200, 50_000, -50_000])
def test_a_clock_drifts_and_a_step_moves_only_the_wall(ppm: int) -> None:
    clocks = Clocks(1_000 * SECOND, 3 * SECOND, ppm)
    clocks.boot(10 * SECOND, 77)
    now = clocks.now(20 * SECOND)
    assert now.mono == 77 + 10 * SECOND + 10 * SECOND * ppm // 1_000_000
    assert now.wall == 1_023 * SECOND
    clocks.step(-3_600 * SECOND)
    assert clocks.now(20 * SECOND) == (now.mono, now.wall - 3_600 * SECOND)


@pytest.mark.proves("SIM-003")
@pytest.mark.parametrize("ppm", [0, 200, -200, 50_000, -50_000])
def test_the_true_instant_of_a_deadline_is_the_first_that_shows_it(ppm: int) -> None:
    clocks = Clocks(0, 0, ppm)
    clocks.boot(5, 1_000)
    chance = Chance("deadlines")
    for _ in range(500):
        mono = chance.randint(1_000, 10**15)
        at = clocks.true_at(mono)
        assert clocks.mono(at) >= mono
        assert at == 5 or clocks.mono(at - 2) < mono


def test_a_quartz_that_changes_its_speed_does_not_jump() -> None:
    clocks = Clocks(0, 0, 200)
    before = clocks.mono(10 * SECOND)
    clocks.drift(10 * SECOND, -50_000)
    assert clocks.mono(10 * SECOND) == before
    assert clocks.mono(20 * SECOND) == before + 10 * SECOND - SECOND // 2


def test_a_trace_is_what_happened_and_in_which_order() -> None:
    first, second, third = World(), World(), World()
    for world, pieces in ((first, (b"ab", b"c")), (second, (b"ab", b"c")), (third, (b"c", b"ab"))):
        for piece in pieces:
            world.trace(piece)
    assert first.trace_hash() == second.trace_hash()
    assert first.trace_hash() != third.trace_hash()
