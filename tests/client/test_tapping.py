"""What a tapped service looks at: nothing that no tap wants, and all of it is counted (MON-004, MON-009)."""

from typing import Any

import pytest

from tests.client.node import in_loop
from tests.service.rig import Rig
from tests.service.test_taps import tapped
from weft.base.now import Now
from weft.client.catalog import tapping
from weft.client.catalog.tapping import Tapping
from weft.client.catalog.traffic import Traffic
from weft.cores.kit.tapping import WINDOW_NS
from weft.cores.service.messages import Passed
from weft.wire.catalog.messages import AWK, Message

FRAMES = [b"\x00\x01", b"", b"read", b"T", b"kitchen"]


class Driver:
    """Gives what passes to the core, and its socket is never read."""

    heard_from = "10.0.0.2"

    def __init__(self, rig: Rig) -> None:
        self.core, self.flushes = rig.core, 0

    def passed(self, passed: Passed, at: Now) -> bool:
        return self.core.taps.note(passed, at)

    def flush_soon(self) -> None:
        self.flushes += 1


def call() -> Message:
    return Message(b"read", b"T", (b"kitchen",))


def tapping_of(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> tuple[Tapping, Traffic, Driver]:
    driver: Any = Driver(rig)
    monkeypatch.setattr(tapping, "now", lambda: rig.now)
    traffic = Traffic()
    return Tapping(driver, driver, traffic), traffic, driver


def watched(traffic: Traffic) -> list[bool]:
    return [each is not None for each in (traffic.on_call, traffic.on_answer, traffic.on_publication)]


def counts(rig: Rig) -> tuple[int, int, int]:
    sampler = rig.core.taps._taps[b"0a"].sampler
    return sampler.seen, sampler.copied, sampler.sampled


@pytest.mark.proves("MON-009", part="beyond its rate, messages are not looked at until its window ends")
@in_loop
async def test_what_is_beyond_the_rate_is_counted_and_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = tapped(rate=10)
    of, traffic, driver = tapping_of(rig, monkeypatch)
    first, second = call(), call()
    of.heard(FRAMES, first)
    assert ([True] * 3, 0) == (watched(traffic), driver.flushes)
    of.heard(FRAMES, second)
    assert ([False, True, False], 1) == (watched(traffic), driver.flushes)
    traffic.calls += 5
    traffic.publications += 4
    of.answered(FRAMES, second)
    assert [False, True, False] == watched(traffic)
    of.answered(FRAMES, first)
    assert [False, False, False] == watched(traffic)
    traffic.answers += 3
    rig.core.taps.settle()
    assert ([True] * 3, (16, 1, 15)) == (watched(traffic), counts(rig))
    rig.at += WINDOW_NS
    of.heard(FRAMES, call())
    assert (17, 2, 15) == counts(rig)


@pytest.mark.proves("MON-004", part="what passes between two samples, and after another tap began, is counted once")
@in_loop
async def test_between_two_samples_messages_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = tapped(sample=4)
    of, traffic, _ = tapping_of(rig, monkeypatch)
    for _ in range(3):
        of.heard(FRAMES, None)
    of.published([b"temp"])
    rig.core.taps.settle()
    assert ([True] * 3, (4, 1, 3)) == (watched(traffic), counts(rig))
    of.published([b"temp"])
    assert (5, 2, 3) == counts(rig)


@pytest.mark.proves("MON-009", part="what is never answered keeps nobody looking at answers")
@in_loop
async def test_an_answer_that_arrives_as_a_call_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = tapped(rate=10)
    of, traffic, _ = tapping_of(rig, monkeypatch)
    of.heard(FRAMES, Message(AWK, b"thermo", ()))
    of.heard(FRAMES, None)
    assert [False] * 3 == watched(traffic)


@pytest.mark.proves("MON-005", part="after the last tap nothing is looked at")
@in_loop
async def test_after_the_last_tap_nobody_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = tapped(rate=10)
    of, traffic, _ = tapping_of(rig, monkeypatch)
    of.heard(FRAMES, None)
    of.heard(FRAMES, None)
    of.end()
    rig.core.taps.settle()
    assert [False] * 3 == watched(traffic)
