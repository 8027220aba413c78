"""Cables that alter bits: what is altered is refused as `bad_sum` and comes again; all end with what was entered (FLD-030)."""

from uuid import UUID

import pytest

from tests.document.net import Net
from tests.document.rig import EB, A, B, Lone, Rig
from tests.weather import flipped
from weft.base.chance import Chance
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, SECOND
from weft.cores.document import mesh, own
from weft.wire.document import frames
from weft.wire.document.messages import Beat, Chat, Envelope, Gsip, Message, Progress, Time, Xmsg

Bodies = dict[tuple[bytes, int], bytes]


def play(seed: int) -> tuple[Net, Bodies]:
    """Three machines that met on whole cables enter things while the cables flip bits; then the cables are whole."""
    net, chance = Net(seed), Chance(f"flips/{seed}")
    first = net.machine()
    for _ in range(2):
        net.machine(peers=[first])
    net.until(net.is_mesh, 10 * SECOND)
    net.pass_time(6 * SECOND)
    net.flip = flipped(chance, 4)
    entered: Bodies = {}
    for number in range(30):
        writer, text = net.machines[number % 3], f"{number} " + "x" * chance.randint(0, 30)
        answer = net.edit(writer, "add", {"path": "note"}, text=text)
        place = UUID(answer.body["source"]).bytes, answer.body["sequence"]
        entered[place] = writer.up.log.body(*place)
        net.pass_time(500 * MILLISECOND)
    net.flip = lambda said: said
    net.until(lambda: net.is_mesh() and net.is_equal(), 120 * SECOND)
    return net, entered


def is_as_entered(net: Net, entered: Bodies) -> bool:
    """Whether each machine holds the very bytes of each operation, as they were when somebody entered it."""
    bodies = [
        {
            (source, number): machine.up.log.body(source, number)
            for source, latest in machine.up.log.sources()
            for number in range(1, latest + 1)
        }
        for machine in net.machines
    ]
    return [entered] * 3 == bodies


@pytest.mark.proves("FLD-030", part="links of documents")
@pytest.mark.parametrize("seed", range(3))
def test_bits_that_flip_on_the_cables_change_no_document(seed: int) -> None:
    net, entered = play(seed)
    assert 30 == len(entered)
    assert is_as_entered(net, entered)
    net.judge()
    assert net.refused["bad_sum"] > 0


@pytest.mark.proves("FLD-030", part="operations of documents on links that have no sum")
@pytest.mark.parametrize("seed", range(3))
def test_bits_that_flip_on_cables_to_peers_that_read_no_sums_change_no_document(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mesh, "CAPS", ())
    net, entered = play(seed)
    assert 30 == len(entered)
    assert is_as_entered(net, entered)
    net.judge()
    assert sum(machine.up.context.counters["log.altered"] for machine in net.machines) > 0


def test_without_the_sums_documents_held_what_nobody_had_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh, "CAPS", ())
    monkeypatch.setattr(own, "with_sum", lambda body: body)
    broken = 0
    for seed in range(3):
        try:
            net, entered = play(seed)
            net.judge()
            broken += not is_as_entered(net, entered)
        except AssertionError:
            broken += 1
    assert broken > 0


def friend() -> Rig:
    """A, whose peer B is there and reads sums."""
    rig = Rig(Lone)
    rig.befriend(B, EB)
    rig.hear(B, Beat(0, rig.peers.view, 0, ("c1",)))
    return rig


def test_a_sum_goes_to_who_says_in_a_beat_that_it_reads_it_and_to_nobody_else() -> None:
    rig = friend()
    rig.do(lambda: rig.mesh.chat("x"))
    (word,) = rig.do(lambda: rig.mesh.chat("hello"))
    assert Chat("hello", has_sum=True) == word.message
    assert [b"CHAT", b"hello", bytes.fromhex("3e9a5adc")] == frames.encode(word.message)
    rig.hear(B, Beat(0, rig.peers.view, 0))
    (word,) = rig.do(lambda: rig.mesh.chat("hello"))
    assert [b"CHAT", b"hello"] == frames.encode(word.message)


def test_whoever_says_sums_is_not_believed_without_one_until_it_greets_anew() -> None:
    rig = friend()
    rig.hear(B, Time(5.0, has_sum=True))
    before = rig.counters.get("mesh.rx.bad_sum", 0)
    rig.hear(B, Chat("a frame that took the sum along\x01\x02\x03\x04"))
    assert before + 1 == rig.counters["mesh.rx.bad_sum"]


SAID: list[Message] = [
    Xmsg(b'<set source="a" sequence="1"><x/></set>', has_sum=True),
    Gsip((Progress(A, 7),), has_sum=True),
    Beat(7, 1, 2, ("c1",), has_sum=True),
    Time(has_sum=True),
]


@pytest.mark.parametrize("message", SAID, ids=lambda message: type(message).__name__)
def test_no_single_bit_of_a_message_can_change(message: Message) -> None:
    said = [B, *frames.encode(message)]
    assert Envelope(B, message) == frames.decode(said)
    for at, frame in enumerate(said[1:], 1):
        for bit in range(8 * len(frame)):
            altered = bytearray(frame)
            altered[bit // 8] ^= 1 << bit % 8
            with pytest.raises(PeerError) as refused:
                frames.decode([*said[:at], bytes(altered), *said[at + 1 :]])
            assert "bad_sum" == refused.value.code
