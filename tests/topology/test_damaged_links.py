"""Cables that alter bits: what is altered is refused as `bad-sum` and comes again; all find their place in the tree (FLD-030)."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.topology.net import Net
from tests.weather import Frames, flipped
from weft.base.chance import Chance
from weft.base.errors import PeerError
from weft.wire import discovery
from weft.wire.discovery import MARCO, Announcement, Control
from weft.wire.envelope import Answer, Asked
from weft.wire.replication import Wtf

NAMES = ("root", "c1", "c2", "s1", "s2")
HOME = "10.0.0.1:27500"


def play(seed: int) -> Net:
    """Nodes find their places, die and come back, the root too, over cables that flip bits; then the cables are whole."""
    net, chance = Net(f"flips/{seed}"), Chance(f"flips/{seed}")
    endpoints = [f"10.0.1.{number}:27500" for number in range(1, 5)]
    net.configure(site={"members": ["10.0.0.0/16"], "collectors": endpoints[:2]})
    net.add("root", HOME, level="root", join=tuple(endpoints))
    for name, endpoint in zip(NAMES[1:], endpoints, strict=True):
        net.add(name, endpoint, join=(HOME, endpoints[0]), labels={"place": f"room of {name}"})
    net.weather = flipped(chance, 3)
    for name in NAMES:
        net[name].start()
    for _ in range(12):
        net.run(6)
        machine = net[chance.choice(NAMES)]
        machine.start() if not machine.up else machine.crash()
    net.weather = lambda frames: frames
    for name in NAMES:
        if not net[name].up:
            net[name].start()
    return net


def judge(net: Net) -> None:
    """All are at home, each under its own name, and nobody has taken one word for another."""
    assert net.run_until(net.is_settled, 120) is not None, net.unsettled()
    assert [] == net.wrong
    assert [] == [each for each in net.altered if not is_the_same(*each)]
    root = net.root
    assert root is not None
    assert {*NAMES} >= {*root.tree} >= {*NAMES} - {root.name}
    assert {name: net[name].endpoint for name in root.tree} == {
        name: each["endpoint"] for name, each in root.tree.items()
    }


def is_the_same(said: Any, heard: Any) -> bool:
    """Whether a bit of the sum's own name has flipped, and nothing else; or it is a refusal, which has no sum."""
    said, heard = (each.message if isinstance(each, Asked) else each for each in (said, heard))
    if isinstance(said, Wtf) or type(said) is not type(heard):
        return isinstance(said, Wtf)
    content = said.__struct_fields__[-1]
    known = {name: getattr(heard, content).get(name) for name in getattr(said, content)}
    return bool(said == msgspec.structs.replace(heard, **{content: known}))


@pytest.mark.proves("FLD-030", part="links of the topology")
@pytest.mark.parametrize("seed", range(6))
def test_bits_that_flip_on_the_cables_place_nobody_wrongly(seed: int) -> None:
    net = play(seed)
    judge(net)
    assert "bad-sum" in {code for _, code in net.refused}


def test_without_the_sum_fleets_took_one_word_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("announcement", "call", "control_answer"):
        monkeypatch.setattr(discovery, f"seal_{name}", getattr(discovery, f"encode_{name}"))
    broken = 0
    for seed in range(3):
        try:
            judge(play(seed))
        except AssertionError:
            broken += 1
    assert 3 == broken


NODE = bytes(range(16))
POLO = Control("polo", HOME, NODE, {"fleet": "lab", "name": "a", "protocol": 1})
SAID: list[tuple[Callable[[], Frames], Callable[[Frames], Any]]] = [
    (
        lambda: discovery.seal_announcement(Announcement(MARCO, HOME, NODE, {"epoch": 3, "fleet": "lab"})),
        discovery.decode_announcement,
    ),
    (lambda: discovery.seal_announcement(Announcement(MARCO, HOME, NODE, {})), discovery.decode_announcement),
    (lambda: discovery.seal_call(POLO), discovery.decode_control),
    (lambda: discovery.seal_control_answer(Answer((b"",), POLO)), discovery.decode_called),
]


@pytest.mark.parametrize(("say", "decode"), SAID, ids=["announcement", "empty", "call", "answer"])
def test_no_single_bit_can_change_and_the_message_be_taken_for_another(
    say: Callable[[], Frames], decode: Callable[[Frames], Any]
) -> None:
    frames = say()
    said, codes = decode(frames), set()
    for at, frame in enumerate(frames):
        for bit in range(8 * len(frame)):
            altered = bytearray(frame)
            altered[bit // 8] ^= 1 << bit % 8
            try:
                heard = decode([*frames[:at], bytes(altered), *frames[at + 1 :]])
            except PeerError as error:
                codes.add(error.code)
            else:
                assert is_the_same(said, heard), (at, bit)
    assert "bad-sum" in codes


def test_the_sum_is_the_last_name_and_who_does_not_write_it_is_heard() -> None:
    frames = discovery.seal_announcement(Announcement(MARCO, HOME, NODE, {"epoch": 3}))
    assert b'{"epoch":3,"sum":"8ad785af"}' == frames[3]
    assert Announcement(MARCO, HOME, NODE, {"epoch": 3}) == discovery.decode_announcement(frames)
    theirs = [*frames[:3], b'{"sum":7,"epoch":3}']
    assert {"sum": 7, "epoch": 3} == discovery.decode_announcement(theirs).content
    refusal = Wtf(9, "epoch 3 is led by another")
    assert discovery.encode_call(refusal) == discovery.seal_call(refusal)
