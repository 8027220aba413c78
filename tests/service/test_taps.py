"""Copies at the service: begun by its broker, noted behind the message, ended by whatever ends a tap."""

import json
from typing import Any

import pytest

from tests.service.rig import Rig
from weft.base.effects import SendFailed
from weft.cores.kit.tapping import WINDOW_NS
from weft.cores.service.messages import COPIES, MONITOR, Passed
from weft.wire.catalog import taps
from weft.wire.catalog.messages import TAP, Message

CALL = Passed("in", "router", "10.0.0.2/00", [b"", b"read", b"T", b"kitchen"], "read")
ANSWER = Passed("out", "router", "10.0.0.2/00", [b"", b"o_O", b"T", b"21.5"], "read", 150)


def tapped(**wanted: Any) -> Rig:
    """A service that is up and told to copy."""
    rig = Rig(seeds=("10.0.0.1:5246",))
    rig.start()
    rig.approve()
    rig.say(TAP, type="start", tap="0a", port=5248, **wanted)
    return rig


def flush(rig: Rig) -> None:
    rig.core.taps.flush(rig.now)
    rig._take()


def said(rig: Rig, channel: str) -> list[Any]:
    """Headers that were said, without the frames."""
    found = [json.loads(message.body[0]) for _, on, message in rig.log if on == channel]
    rig.log = [entry for entry in rig.log if entry[1] != channel]
    return found


@pytest.mark.proves("MON-002", "MON-003")
def test_copies_are_said_behind_their_messages_with_all_that_is_known_of_them() -> None:
    rig = tapped(max_frame=5)
    assert [{"type": "report", "tap": "0a", "service": "thermo", "instance": "i1"}] == said(rig, MONITOR)
    assert rig.core.taps.note(CALL, rig.now)
    assert rig.core.taps.note(ANSWER, rig.now)
    assert [] == said(rig, COPIES)
    flush(rig)
    frames = [message.body[1:] for _, on, message in rig.log if on == COPIES]
    assert [(b"", b"read", b"T", b"kitch"), (b"", b"o_O", b"T", b"21.5")] == frames
    usual = {"type": "copy", "tap": "0a", "service": "thermo", "instance": "i1", "socket": "router", "frames": 4}
    more = {"peer": "10.0.0.2/00", "word": "read", "ts": 1_795_228_299.0}
    first = {"seq": 1, "dir": "in", "bytes": 12, "cut": True}
    second = {"seq": 2, "dir": "out", "bytes": 8, "cut": False, "took_us": 150}
    assert [{**usual, **more, **first}, {**usual, **more, **second}] == said(rig, COPIES)


@pytest.mark.proves("MON-004")
def test_what_finds_no_room_is_dropped_and_counted() -> None:
    rig = tapped(rate=1_000_000)
    said(rig, MONITOR)
    for _ in range(1_002):
        rig.at += 1_000
        rig.core.taps.note(CALL, rig.now)
    rig.order(SendFailed(COPIES, b"0a"))
    rig.order(SendFailed(MONITOR, b"0a"))
    rig.say(TAP, type="stop", tap="0a")
    (report,) = said(rig, MONITOR)
    counts = {"seen": 1_002, "copied": 999, "dropped": 3}
    assert {
        "type": "report",
        "tap": "0a",
        "service": "thermo",
        "instance": "i1",
        "ended": "stopped",
        **counts,
    } == report
    assert 1_000 == len(said(rig, COPIES))
    assert not rig.core.taps.is_on


def at_its_time(rig: Rig) -> None:
    for _ in range(20):
        rig.run(0.1)
        rig.hear(taps.message_of(taps.Beat("0a")), MONITOR, b"0a")
        rig.beacon()


def silent(rig: Rig) -> None:
    rig.run_with_beacons(3.1)


def told_to_leave(rig: Rig) -> None:
    rig.say(b"</3")


@pytest.mark.proves("MON-009", part="beyond its rate, and between two samples, messages are counted without a look")
def test_what_is_not_copied_needs_no_look_until_the_window_or_the_sample_ends() -> None:
    rig = tapped(rate=10)
    assert [True, False] == [rig.core.taps.note(CALL, rig.now) for _ in range(2)]
    messages, until = rig.core.taps.idle(rig.now)
    assert (True, rig.now.mono + WINDOW_NS) == (messages > 1 << 50, until)
    seldom = tapped(sample=100)
    assert [True, False] == [seldom.core.taps.note(CALL, seldom.now) for _ in range(2)]
    assert 98 == seldom.core.taps.idle(seldom.now).messages


@pytest.mark.proves("MON-005")
@pytest.mark.parametrize(
    ("end", "why"), [(at_its_time, "time"), (silent, "monitor silent"), (told_to_leave, "registered anew")]
)
def test_a_tap_ends_at_its_time_when_its_monitor_is_silent_and_with_the_connection(end: Any, why: str) -> None:
    rig = tapped(seconds=2 if end is at_its_time else 60)
    end(rig)
    assert not rig.core.taps.is_on
    ends = [report["ended"] for report in said(rig, MONITOR) if "ended" in report]
    assert [why] == ends
    assert not rig.core.taps.note(CALL, rig.now)


@pytest.mark.proves("MON-002", part="what is no order changes nothing")
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b'{"type":"start"}', b'{"type":"start","tap":"zz","port":1}', b'{"type":"start","tap":"1","port":0}'],
)
def test_what_is_no_order_begins_nothing(body: bytes) -> None:
    rig = tapped()
    rig.say(TAP, type="stop", tap="0a")
    rig.hear(Message(TAP, b"", (body,)))
    assert not rig.core.taps.is_on
