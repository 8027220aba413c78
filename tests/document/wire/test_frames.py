"""What peers say, byte for byte as the vectors have it, and what comes of everything else (PEE-004 to PEE-006)."""

import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import given

from tests.document.wire.strategies import MESSAGES, UUIDS
from tests.document.wire.vectors import CAPTURED, SENDER, WIRE, frames, refused
from weft.base.errors import PeerError
from weft.wire.document.frames import CHAT_BYTES_MAX, SOURCES_MAX, decode, encode, uuid_of, uuid_text
from weft.wire.document.messages import (
    Beat,
    Bout,
    Chat,
    Envelope,
    Gbye,
    Gsip,
    Helo,
    Message,
    PeerAt,
    Progress,
    Time,
    Xmsg,
    Xpak,
)

A: Final = UUID("a0000000-0000-4000-8000-000000000001").bytes


def _beat(means: dict[str, Any], _: list[bytes]) -> Beat:
    view, check = ([int(means[key], 16) for key in ("view", "check")]) if "view" in means else (None, None)
    return Beat(means["sequence"], view, check, tuple(means.get("caps", ())))


def _gsip(means: dict[str, Any], _: list[bytes]) -> Gsip:
    pairs = means["pairs"] if "pairs" in means else [[means["source"], means["sequence"]]]
    return Gsip(tuple([Progress(UUID(source).bytes, upto) for source, upto in pairs]))


MEANT: Final[dict[str, Callable[[dict[str, Any], list[bytes]], Message]]] = {
    "HELO": lambda means, _: Helo(means["endpoint"]),
    "PEER": lambda means, _: PeerAt(means["endpoint"]),
    "BOUT": lambda means, _: Bout(means["session"]),
    "GBYE": lambda means, _: Gbye(means["text"]),
    "CHAT": lambda means, _: Chat(means["text"]),
    "BEAT": _beat,
    "TIME": lambda means, _: Time(means["seconds"]),
    "GSIP": _gsip,
    "XMSG": lambda _, said: Xmsg(said[-1]),
}


def refusal(said: list[bytes]) -> str:
    with pytest.raises(PeerError) as caught:
        decode(said)
    return caught.value.code


ACCEPTED: Final = [name for name, line in WIRE.items() if line["means"].get("outcome") == "accepted"]
IGNORED: Final = [name for name, line in WIRE.items() if line["means"].get("outcome") == "ignored"]
DROPPED: Final = [name for name, line in WIRE.items() if line["means"].get("outcome") == "dropped"]
SAID: Final = [name for name, line in WIRE.items() if line["direction"] == "out"]
DELIVERED: Final = [name for name, line in CAPTURED.items() if "delivered" in line["means"]]
STRICT: Final = ["W02", "W03", "W04", "W05", "W07", "W08", "W09", "W11", "W12", "W13", "W14", "W15"]


def test_every_vector_of_the_wire_is_of_one_of_four_sorts() -> None:
    assert (21, 11, 4, 2) == (len(ACCEPTED), len(IGNORED), len(DROPPED), len(SAID))


@pytest.mark.proves("PEE-004", "PEE-005")
@pytest.mark.parametrize("name", ACCEPTED)
def test_vector_means_what_it_says(name: str) -> None:
    said, means = frames(WIRE[name]), WIRE[name]["means"]
    expected = Envelope(UUID(means["sender"]).bytes, MEANT[means["type"]](means, said))
    assert expected == decode(said)


@pytest.mark.proves("PEE-004")
@pytest.mark.parametrize("name", SAID)
def test_vector_is_said_byte_for_byte(name: str) -> None:
    means = WIRE[name]["means"]
    assert frames(WIRE[name]) == encode(MEANT[means["type"]](means, []))


@pytest.mark.proves("PEE-004")
@pytest.mark.parametrize("name", STRICT)
def test_strict_form_that_was_heard_is_said_again_byte_for_byte(name: str) -> None:
    sender, *said = frames(WIRE[name])
    assert said == encode(decode([sender, *said]).message)


@pytest.mark.proves("PEE-006")
@pytest.mark.parametrize("name", IGNORED)
def test_vector_that_is_ignored_moves_the_counter_that_it_names(name: str) -> None:
    assert refused(WIRE[name]["means"]) == refusal(frames(WIRE[name]))


@pytest.mark.parametrize("name", DROPPED)
def test_operation_that_the_log_will_drop_is_none_of_the_frames_business(name: str) -> None:
    assert Envelope(SENDER, Xmsg(frames(WIRE[name])[-1])) == decode(frames(WIRE[name]))


@pytest.mark.proves("PEE-006")
def test_zre_peer_is_known_by_its_identity_of_seventeen_bytes() -> None:
    assert refused(CAPTURED["Z20"]["means"]) == refusal(frames(CAPTURED["Z20"]))


@pytest.mark.proves("PEE-004")
@pytest.mark.parametrize("name", DELIVERED)
def test_what_libzmq_delivered_is_what_was_captured_and_said_again_in_the_same_bytes(name: str) -> None:
    means = CAPTURED[name]["means"]
    said = decode([bytes.fromhex(frame) for frame in means["delivered"]])
    assert A == said.sender
    word, body = encode(said.message)
    assert (means["type"], means["body"]) == (word.decode(), body.decode())
    assert bytes.fromhex(CAPTURED[name]["payload"]) == zmtp(word, body)


def zmtp(word: bytes, body: bytes) -> bytes:
    """Both frames as ZMTP 3 has them on TCP: flags, length, bytes; eight bytes of length above 255."""
    size = len(body).to_bytes(8, "big") if len(body) > 255 else bytes([len(body)])
    return b"\1" + bytes([len(word)]) + word + (b"\2" if len(body) > 255 else b"\0") + size + body


# What the vectors do not say


@pytest.mark.proves("PEE-005")
@pytest.mark.parametrize("envelope", [[], [b""], [SENDER]], ids=["nothing", "an empty frame", "the identity again"])
@pytest.mark.parametrize("body", [[b""], []], ids=["an empty body", "no body"])
def test_envelope_and_missing_body_are_forgiven(envelope: list[bytes], body: list[bytes]) -> None:
    assert Envelope(SENDER, Bout("")) == decode([SENDER, *envelope, b"BOUT", *body])


@pytest.mark.proves("PEE-006")
@pytest.mark.parametrize(
    "said",
    [
        [SENDER],
        [SENDER, b""],
        [SENDER, b"", SENDER],
        [SENDER, A, b"BOUT", b""],
        [SENDER, b"BOUT", b"", b""],
        [SENDER, b"", SENDER, b"BOUT", b""],
        [SENDER, b"BOUT", b"", b"", b"", b""],
    ],
    ids=["alone", "empty", "identity twice", "another identity", "a frame more", "five", "six"],
)
def test_other_counts_of_frames_are_bad(said: list[bytes]) -> None:
    assert "bad_frames" == refusal(said)


@pytest.mark.proves("PEE-006")
def test_nothing_at_all_has_a_bad_identity() -> None:
    assert "bad_identity" == refusal([])


@pytest.mark.proves("PEE-006")
@pytest.mark.parametrize("word", [b"BOUT ", b" BOUT", b"BOUT\0", b"BOU", b"YPAK", b"\xff\xfe\xfd\xfc"])
def test_type_is_four_characters_exactly(word: bytes) -> None:
    assert "unknown_type" == refusal([SENDER, word, b""])


@pytest.mark.proves("PEE-005")
def test_padding_is_taken_from_the_end_but_not_from_operations_and_chat() -> None:
    padding = b" \0\r\n\t"
    heard = {word: decode([SENDER, word, b"x" + padding]).message for word in (b"BOUT", b"GBYE", b"CHAT", b"XMSG")}
    expected = {b"BOUT": Bout("x"), b"GBYE": Gbye("x"), b"CHAT": Chat("x \0\r\n\t"), b"XMSG": Xmsg(b"x" + padding)}
    assert expected == heard


@pytest.mark.proves("PEE-006")
@pytest.mark.parametrize(
    "body",
    [b"alive!", b"\xff\xfe", b"-1", b"7.5", b"9" * 17, b"9007199254740992", b"\xd9\xa7", b"1_000", b"x" * 100_000],
)
def test_any_body_of_a_beat_is_a_heartbeat(body: bytes) -> None:
    assert Envelope(SENDER, Beat()) == decode([SENDER, b"BEAT", body])


@pytest.mark.parametrize(
    "body, expected",
    [
        (b"7", Beat(7)),
        (b"7 x y", Beat(7)),
        (b"7 10000000", Beat(7)),
        (b"7 10000000 0000000", Beat(7)),
        (b"7 10000000 00000000", Beat(7, 0x10000000, 0)),
        (b"7 1000000A 00000000 z1,,q", Beat(7, 0x1000000A, 0, ("z1", "q"))),
        (b"7 10000000 00000000 z1 more to come", Beat(7, 0x10000000, 0, ("z1",))),
        (b"  7  10000000  00000000\n\0", Beat(7, 0x10000000, 0)),
    ],
)
def test_beat_is_read_as_far_as_it_can_be(body: bytes, expected: Beat) -> None:
    assert expected == decode([SENDER, b"BEAT", body]).message


@pytest.mark.proves("PEE-006")
@pytest.mark.parametrize(
    "body", [b"nan", b"inf", b"-1", b"1_000", b"0x10", b"1e400", b"1e300", b"1 2", b"\xd9\xa7", b"1" * 100]
)
def test_time_is_a_decimal_number_of_an_instant_that_can_be(body: bytes) -> None:
    assert "bad_body" == refusal([SENDER, b"TIME", body])


@pytest.mark.parametrize("body, expected", [(b"0", 0.0), (b"1.76e9\0", 1.76e9), (b".5", 0.5), (b"+5.", 5.0)])
def test_time_is_read_in_every_decimal_form(body: bytes, expected: float) -> None:
    assert Time(expected) == decode([SENDER, b"TIME", body]).message


def packed(*bodies: bytes) -> list[bytes]:
    """A pack as the specification writes it, made by hand."""
    return [SENDER, b"XPAK", zlib.compress(b"".join([len(one).to_bytes(4, "big") + one for one in bodies]), 6)]


@pytest.mark.proves("GSP-027")
def test_a_pack_is_bodies_behind_their_lengths_compressed_together() -> None:
    bodies = (b"<a/>", b"\xff\0" * 300, b"x")
    assert Xpak(bodies) == decode(packed(*bodies)).message
    assert packed(*bodies)[1:] == encode(Xpak(bodies))
    assert 500 == len(decode(packed(*[b"x"] * 500)).message.bodies)  # type: ignore[union-attr]  # it is a pack


WHOLE: Final = packed(b"<a/>", b"<b/>")[2]


@pytest.mark.proves("GSP-027")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no zlib",
        WHOLE[:-3],
        WHOLE + b"more",
        zlib.compress(b""),
        zlib.compress(b"\0\0\0"),
        zlib.compress(b"\0\0\0\0"),
        zlib.compress(b"\0\0\0\x05<a/>"),
        packed(bytes(262_145))[2],
        packed(*[b"x"] * 501)[2],
        packed(*[bytes(262_000)] * 5)[2],
        zlib.compress(bytes(64 << 20), 9),
    ],
)
def test_what_is_no_pack_is_refused_and_never_inflated_beyond_its_bound(body: bytes) -> None:
    tracemalloc.start()
    assert "bad_body" == refusal([SENDER, b"XPAK", body])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 << 20


@pytest.mark.proves("PEE-004")
def test_time_is_said_in_the_shortest_form_that_comes_back() -> None:
    assert [b"TIME", b"1763800000.1"] == encode(Time(1763800000.1))
    assert [b"TIME", b""] == encode(Time())


C: Final = b"c0000000-0000-4000-8000-000000000003"


@pytest.mark.proves("PEE-005")
@pytest.mark.parametrize(
    "written",
    [C, C.upper(), b"{" + C + b"}", C.replace(b"-", b""), b"{" + C[:8] + C[9:13] + C[14:18] + C[19:23] + C[24:] + b"}"],
)
def test_uuid_is_read_in_upper_case_in_braces_or_as_32_digits(written: bytes) -> None:
    assert Gsip((Progress(UUID(C.decode()).bytes, 7),)) == decode([SENDER, b"GSIP", written + b" 7"]).message


@pytest.mark.proves("PEE-006")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n \n",
        C,
        C + b" x",
        C + b" +7",
        C + b" 9007199254740992",
        C + b" 00000000000000007",
        C[:-1] + b" 7",
        b"{" + C + b" 7",
        b"urn:uuid:" + C + b" 7",
        C.replace(b"-", b"_") + b" 7",
        C + b" 7\nnonsense",
        C + b" \xd9\xa7",
    ],
)
def test_gossip_with_one_bad_line_is_refused_whole(body: bytes) -> None:
    assert "bad_body" == refusal([SENDER, b"GSIP", body])


@pytest.mark.proves("PEE-006")
def test_every_body_has_a_bound() -> None:
    cases = {
        b"BOUT": b"x" * 257,
        b"CHAT": b"x" * (CHAT_BYTES_MAX + 1),
        b"GSIP": (C + b" 1\n") * (SOURCES_MAX + 1),
        b"HELO": b"0" * 200 + b"1.1.1.1:1",
    }
    assert dict.fromkeys(cases, "bad_body") == {word: refusal([SENDER, word, body]) for word, body in cases.items()}
    assert 4_096 == len(decode([SENDER, b"GSIP", (C + b" 1\n") * 4_096]).message.entries)  # type: ignore[union-attr]  # it is a Gsip
    assert Gbye("x" * 256) == decode([SENDER, b"GBYE", b"x" * 100_000]).message


@pytest.mark.proves("PEE-006")
@pytest.mark.parametrize("word", [b"HELO", b"PEER", b"BOUT", b"GBYE", b"CHAT", b"TIME", b"GSIP"])
def test_text_that_is_no_utf8_is_a_bad_body(word: bytes) -> None:
    assert "bad_body" == refusal([SENDER, word, b"\xed\xa0\x80"])


@pytest.mark.proves("PEE-004")
@given(sender=UUIDS, message=MESSAGES)
def test_what_is_said_is_what_is_heard(sender: bytes, message: Message) -> None:
    assert Envelope(sender, message) == decode([sender, *encode(message)])


@given(uuid=UUIDS)
def test_uuid_comes_back_from_its_text(uuid: bytes) -> None:
    assert str(UUID(bytes=uuid)) == uuid_text(uuid)
    assert uuid == uuid_of(uuid_text(uuid))
