"""Cables that alter bits: what is altered is refused as `bad-sum` and comes again; no replica shows it (FLD-030)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.configuration.rig import FULL, World
from tests.weather import Frames, flipped
from weft.base.chance import Chance
from weft.base.errors import PeerError
from weft.wire import replication as codec
from weft.wire.envelope import Answer
from weft.wire.replication import Hugz, ICanHaz, KThxBai, KvPub, number_of

ROOT = b"r" * 16


def play(seed: int) -> World:
    """A root, a collector, three replicas; writes while the cables flip bits, then the cables are whole."""
    world, chance = World(packing=("c",)), Chance(f"flips/{seed}")
    world.root()
    world.collector("c")
    for name, parent, topics in (("a", "c", ("/CONFIG/web/",)), ("b", "c", FULL), ("d", "root", FULL)):
        world.sensor(name, parent, topics)
    world.advance(1)
    world.weather = flipped(chance, 6)
    for number in range(60):
        key = f"/CONFIG/{chance.choice(['web', 'db'])}/{chance.randint(1, 5)}"
        world.write((key, f"value {number} " + "x" * chance.randint(0, 40)))
        if number % 20 == 7:
            machine = world.machines[chance.choice(["a", "b", "c"])]
            machine.crash()
            machine.start()
        world.advance(0.7)
    world.weather = lambda frames: frames
    world.advance(120)
    return world


@pytest.mark.proves("FLD-030", part="links of the configuration")
@pytest.mark.parametrize("seed", range(6))
def test_bits_that_flip_on_the_cables_change_no_replica(seed: int) -> None:
    world = play(seed)
    world.check()
    assert "bad-sum" in world.refused


def test_without_the_sum_replicas_showed_what_nobody_had_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "seal_update", codec.encode_update)
    broken = 0
    for seed in range(6):
        try:
            play(seed).check()
        except AssertionError:
            broken += 1
    assert broken > 0


UPDATE = KvPub("/CONFIG/web/cpu", number_of(1, 7), ROOT, b"rate = 5", number_of(1, 6), 9.5, True)
END = Answer((b"",), KThxBai("/CONFIG/", number_of(1, 7), 3, bytes(range(16))))
SAID: list[tuple[Callable[[], Frames], Callable[[Frames], Any]]] = [
    (lambda: codec.seal_update(UPDATE), codec.decode_update),
    (lambda: codec.seal_update(KvPub("/CONFIG/a", 5, ROOT, b"")), codec.decode_update),
    (lambda: codec.seal_answer(END), codec.decode_answer),
    (lambda: codec.seal_ask(ICanHaz("/CONFIG/", wants_digest=True)), codec.decode_ask),
]


def without_raw(message: Any) -> Any:
    return (
        KvPub(*[*[getattr(message, name) for name in message.__struct_fields__[:-1]], b""])
        if type(message) is KvPub
        else message
    )


@pytest.mark.parametrize(("say", "decode"), SAID, ids=["update", "deletion", "end", "ask"])
def test_no_single_bit_can_change_and_the_message_be_taken_for_another(
    say: Callable[[], Frames], decode: Callable[[Frames], Any]
) -> None:
    frames = say()
    said = without_raw(decode(frames))
    codes = set()
    for at, frame in enumerate(frames):
        for bit in range(8 * len(frame)):
            altered = bytearray(frame)
            altered[bit // 8] ^= 1 << bit % 8
            try:
                heard = decode([*frames[:at], bytes(altered), *frames[at + 1 :]])
            except PeerError as error:
                codes.add(error.code)
                continue
            assert said == without_raw(heard), (at, bit)  # the bit was one of the property's name: nothing else changed
    assert "bad-sum" in codes


def test_the_sum_is_the_last_property_and_counts_frames_with_their_lengths() -> None:
    frames = codec.seal_update(KvPub("/CONFIG/a", 5, ROOT, b"ab", 4))
    assert b'{"prev":4,"sum":"4ca722aa"}' == frames[3]
    assert frames == codec.seal_update(codec.decode_update(frames)), "a collector forwards it as it came (CFG-040)"
    with pytest.raises(PeerError) as refused:
        codec.decode_update([frames[0] + b"b", *frames[1:4], b"a"])
    assert "bad-sum" == refused.value.code
    assert codec.encode_update(Hugz()) == codec.seal_update(Hugz())


def test_what_a_foreign_parent_wrote_is_forwarded_without_a_sum() -> None:
    frames = [b"/CONFIG/a", (5).to_bytes(8), ROOT, b'{"prev":4,"theirs":1}', b"ab"]
    assert frames == codec.seal_update(codec.decode_update(frames))


def test_who_asks_for_no_digest_gets_an_end_without_a_sum() -> None:
    end = Answer((b"",), KThxBai("/CONFIG/", 7))
    assert codec.encode_answer(end) == codec.seal_answer(end)
    assert codec.encode_ask(ICanHaz("/CONFIG/")) == codec.seal_ask(ICanHaz("/CONFIG/"))
