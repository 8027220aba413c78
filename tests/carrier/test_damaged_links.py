"""Cables that alter bits: what arrives is what was sent, or it is refused as `bad-sum` and sent again (FLD-030)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.carrier.rig import Machine, World
from tests.weather import flipped
from weft.base.chance import Chance
from weft.base.errors import PeerError
from weft.base.mail import Mail, of_record
from weft.cores.carrier.messages import (
    Beat,
    Bye,
    ChildLost,
    Hack,
    Hello,
    Hop,
    MailFailed,
    MailReached,
    ParentLost,
    Refuse,
    Welcome,
)
from weft.wire import hop, multipart
from weft.wire.hop import HopItem

A = b"\x0a" * 16


def play(seed: int) -> tuple[World, list[Any], list[Mail]]:
    """Two sensors below a collector make samples and send mail over cables that flip bits; then the cables are whole."""
    world, chance = World(), Chance(f"flips/{seed}")
    world.root("r")
    world.collector("c", "r")
    sensors = [world.sensor("a", "c"), world.sensor("b", "c")]
    world.weather = flipped(chance, 6)
    made: list[Any] = []
    posted: list[Mail] = []
    for _ in range(40):
        for sensor in sensors:
            made.append(sensor.make(size=chance.randint(1, 60)))
            posted.append(sensor.post())
            sensor.send()
        world.advance(0.3)
    world.weather = lambda frames: frames
    world.advance(30)
    return world, made, posted


def judge(world: World, made: list[Any], posted: list[Mail]) -> None:
    """Everything is at the root as it was made, once; each piece of mail has one end."""
    root, collector = world.machines["r"], world.machines["c"]

    def identities(records: list[Any]) -> list[Any]:
        return sorted((r.origin, r.era, r.sequence, r.key, r.at, r.payload, r.attributes.get("n", 0)) for r in records)

    assert identities(made) == identities(root.samples())
    arrived = sorted(mail.frames for mail in map(of_record, collector.inbox()) if mail.frames)
    assert sorted(mail.frames for mail in posted) == [
        frames for frames in arrived if frames in {m.frames for m in posted}
    ]
    for sensor in (world.machines["a"], world.machines["b"]):
        ends = [event.ticket for event in sensor.told if isinstance(event, MailReached | MailFailed)]
        assert list(range(1, 41)) == sorted(ends)


def why_lost(machine: Machine) -> set[str]:
    return {event.why for event in machine.told if isinstance(event, ChildLost | ParentLost)}


@pytest.mark.proves("FLD-030", part="links of the tree")
@pytest.mark.parametrize("seed", range(12))
def test_bits_that_flip_on_the_cables_change_nothing_that_arrives(seed: int) -> None:
    world, made, posted = play(seed)
    judge(world, made, posted)
    assert any("damaged" in why_lost(machine) for machine in world.machines.values())


@pytest.mark.prove("a planted bug")
def test_without_the_checksum_altered_payloads_were_delivered_as_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hop, "seal", hop.encode)
    broken = 0
    for seed in range(12):
        try:
            judge(*play(seed))
        except (AssertionError, PeerError):
            broken += 1
    assert 12 == broken


MESSAGES: list[Any] = [
    Hello(v=1, role="node", name="a", id=A, era=7, first=1, next=9, had=(A, 3)),
    Hop(7, 1, [HopItem(mid=(A, 7, 1), type="weft.metric", via=(A,), depth=0, ts=5, n=2)], [b"payload", b"\x80"]),
    Hack(era=7, upto=5, win=9, winb=99, no=[(4, "loop")], safe=3, back=True),
    Refuse("busy", "text"),
    Beat(),
    Bye("done"),
    Welcome(
        v=1, node=A, name="r", addr="", boot=1, level="root", parent=None, children=[], credit=0, credit_bytes=0,
        beat=1000, dead=5000, era=7, first=1, next=1, upto=0, win=9, winb=99, safe=0,
    ),
]  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_of_which_any_single_bit_has_changed_is_refused_as_altered(message: Any) -> None:
    frames = hop.seal(message)
    assert message == hop.decode(frames)
    for at, frame in enumerate(frames):
        for bit in range(8 * len(frame)):
            altered = bytearray(frame)
            altered[bit // 8] ^= 1 << bit % 8
            with pytest.raises(PeerError) as refused:
                hop.decode([*frames[:at], bytes(altered), *frames[at + 1 :]])
            assert "bad-sum" == refused.value.code, (at, bit)  # else the link goes on without it


def test_a_message_of_who_says_no_sums_is_taken_as_it_is() -> None:
    assert MESSAGES == [hop.decode(hop.encode(message)) for message in MESSAGES]


def test_the_key_is_the_last_one_and_counts_frames_with_their_lengths() -> None:
    head, *payload = hop.seal(
        Hop(1, 1, [HopItem(mid=(A, 1, 1), type="t", via=(A,), depth=0, ts=0, n=2)], [b"ab", b"c"])
    )
    assert [b"ab", b"c"] == payload
    assert b"\xa3sum\xce" == head[-9:-4]
    assert "sum" == list(msgspec.msgpack.decode(head))[-1]
    with pytest.raises(PeerError) as refused:
        hop.decode([head, b"a", b"bc"])
    assert "bad-sum" == refused.value.code
    assert [b"\x82\xa2op\xa4beat\xa3sum\xce\x41\x04\x0d\x8d"] == hop.seal(Beat())


@given(st.integers(0, 20))
def test_a_header_of_any_number_of_keys_gets_one_more(count: int) -> None:
    header = {str(number): number for number in range(count)}
    whole = multipart.sealed(msgspec.msgpack.encode(header))
    found = msgspec.msgpack.decode(whole)
    assert header == {key: value for key, value in found.items() if key != "sum"}
    assert not multipart.is_altered(whole)
    assert multipart.is_altered(whole[:-1] + bytes((whole[-1] ^ 1,)))
