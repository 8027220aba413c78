"""Beats by UDP: lines that are read stand beside lines that are counted, and nothing raises."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.wire.strategies import BEATS, KEYS, spoilt
from tests.catalog.wire.vectors import COMPUTED, group, payload
from weft.cores.catalog import limits
from weft.wire.catalog import beats
from weft.wire.catalog.messages import Beat, Beats

WORDS = {"HEARTBEAT": b"<3", "DISCONNECT": b"</3"}
GOOD = [name for name in group("udp-") if "outcome" not in COMPUTED[name]["means"]]
LINE = b"<3 1795227299.250 thermo"


def _unsigned(beat: Beat) -> Beat:
    return msgspec.structs.replace(beat, signed=b"")


@pytest.mark.proves("BEA-010")
@pytest.mark.parametrize("name", GOOD)
def test_datagram_means_what_its_vector_says(name: str) -> None:
    means, found = COMPUTED[name]["means"], beats.decode([payload(COMPUTED[name])])
    assert 0 == found.malformed
    if "beats" in means:
        assert means["beats"] == [[beat.name, beat.id] for beat in found.lines]
        return
    (beat,) = found.lines
    assert (WORDS[means["command"]], means["name"]) == (beat.word, beat.name)
    for key, said in (("epoch", beat.at), ("instance", beat.id), ("seq", beat.seq)):
        assert key not in means or means[key] == said


@pytest.mark.proves("BEA-010")
@pytest.mark.parametrize("name", [name for name in GOOD if name != "udp-beat-space"])
def test_datagram_is_written_byte_for_byte(name: str) -> None:
    assert [payload(COMPUTED[name])] == beats.join(beats.decode([payload(COMPUTED[name])]).lines)


@pytest.mark.proves("BEA-011")
@pytest.mark.parametrize("name", ["udp-beat-mac", "udp-beat-badmac"])
def test_code_of_a_beat_is_over_the_line_up_to_its_tab(name: str) -> None:
    means = COMPUTED[name]["means"]
    (beat,) = beats.decode([payload(COMPUTED[name])]).lines
    key = bytes.fromhex(means["key"])
    assert means["valid"] is beats.is_signed(beat, key)
    assert means["valid"] is (beat == beats.sign(beat, key))


@pytest.mark.proves("BEA-010")
@pytest.mark.parametrize("name", group("udp-bad-"))
def test_datagram_that_is_none_is_counted(name: str) -> None:
    found = beats.decode([payload(COMPUTED[name])])
    assert () == found.lines
    assert 1 <= found.malformed


@given(BEATS)
def test_beat_comes_back_from_its_line(beat: Beat) -> None:
    assert Beats((beat,)) == beats.decode(beats.encode(beat))


@given(BEATS, KEYS, KEYS)
def test_code_comes_back_and_is_of_its_key_alone(beat: Beat, key: bytes, other: bytes) -> None:
    (found,) = beats.decode(beats.encode(beats.sign(beat, key))).lines
    assert beats.sign(beat, key) == found
    assert beats.is_signed(found, key)
    assert (key.rstrip(b"\0") == other.rstrip(b"\0")) is beats.is_signed(found, other)


@given(st.lists(BEATS, max_size=80))
def test_beats_share_datagrams_within_their_bounds_and_in_order(sent: list[Beat]) -> None:
    datagrams = beats.join(sent)
    assert all(len(data) <= 1_400 for data in datagrams)
    found = [beats.decode([data]) for data in datagrams]
    assert [0] * len(found) == [one.malformed for one in found]
    assert sent == [beat for one in found for beat in one.lines]


@pytest.mark.parametrize("letters, expected", [(84, [1_400]), (85, [1_047, 353])])
def test_datagram_is_filled_to_its_last_byte_and_no_further(letters: int, expected: list[int]) -> None:
    sent = [Beat(b"<3", "a" * 255, 1.0, "b" * 255)] * 2 + [Beat(b"<3", "c" * letters, 1.0, "d" * 255)]
    assert expected == [len(data) for data in beats.join(sent)]


@pytest.mark.proves("BEA-010")
@given(st.binary(max_size=60) | spoilt(st.lists(BEATS, max_size=3).map(lambda sent: b"".join(beats.join(sent)))))
def test_any_datagram_is_lines_and_a_count(data: bytes) -> None:
    found = beats.decode([data])
    assert 1 <= len(found.lines) + found.malformed <= 32
    for beat in found.lines:
        (again,) = beats.decode(beats.encode(beat)).lines
        rounded = None if beat.at is None else pytest.approx(beat.at, abs=0.0006)
        assert _unsigned(beat) == _unsigned(msgspec.structs.replace(again, at=beat.at))
        assert rounded == again.at


def test_readable_lines_count_beside_others() -> None:
    found = beats.decode([b"\n".join([LINE, b"nonsense", b"Rohan <3", b"<3 1 \xff"])])
    assert Beats((Beat(b"<3", "thermo", 1795227299.25), Beat(b"<3", "Rohan")), 2) == found


EDGES: list[tuple[bytes, int, int]] = [
    (b"\n".join([LINE] * 32), 32, 0),
    (b"\n".join([LINE] * 33), 0, 1),
    (LINE + b"\n", 1, 0),
    (LINE + b"\n\n", 1, 1),
    (LINE + b"\tcolour=red\tloud", 1, 0),
    (LINE + b"\tid=", 0, 1),
    (LINE + b"\tid=a\tid=b", 0, 1),
    (LINE + b"\tid=" + b"a" * 256, 0, 1),
    (LINE + b"\tseq=-1", 0, 1),
    (LINE + b"\tseq=9223372036854775807", 1, 0),
    (LINE + b"\tseq=9223372036854775808", 0, 1),
    (LINE + b"\tmac=" + b"0" * 31, 0, 1),
    (LINE + b"\tmac=" + b"0" * 32, 1, 0),
    (LINE + b"\tmac=" + b"0" * 32 + b"\tseq=1", 0, 1),
    (LINE + b"\tmac=" + b"0" * 32 + b"\tmore", 0, 1),
    (b"<3 1 " + b"a" * 255, 1, 0),
    (b"<3 1 " + b"a" * 256, 0, 1),
    (b"<3 1e9 a", 0, 1),
    ("<3 \u0661 a".encode(), 0, 1),
    (b"<3 1 a\0b", 0, 1),
    (b"<3 yesterday <3", 0, 1),
    (b" <3", 0, 1),
    (b"Rohan <3\tid=a", 0, 1),
    (b"u.u 1795227299 thermo", 1, 0),
    (b"o.o 1795227299 thermo", 0, 1),
]


@pytest.mark.proves("BEA-010")
@pytest.mark.parametrize("data, good, bad", EDGES)
def test_bounds_of_a_line_are_exact(data: bytes, good: int, bad: int) -> None:
    found = beats.decode([data])
    assert (good, bad) == (len(found.lines), found.malformed)


def test_datagram_is_one_frame_of_at_most_1400_bytes() -> None:
    line = b"<3 1 a\tcolour=" + b"x" * 1_386
    assert (1_400, 1) == (len(line), len(beats.decode([line]).lines))
    for said in ([line + b"x"], [LINE, LINE], []):
        assert Beats((), 1) == beats.decode(said)


def test_bounds_of_the_wire_are_those_of_the_core() -> None:
    assert (1_400, 32, 255) == (beats.BYTES_MAX, beats.LINES_MAX, beats.NAME_BYTES_MAX)
    assert (1_400, 32, 255) == (limits.DATAGRAM_BYTES_MAX, limits.LINES_MAX, limits.NAME_BYTES_MAX)
