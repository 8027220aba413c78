"""Messages of the catalog: any frames are one, or refused by a name; what comes in goes out as it was."""

from typing import Any

import pytest
from hypothesis import given

from tests.catalog.wire.strategies import ANY_FRAMES, MESSAGES
from tests.catalog.wire.vectors import COMPUTED, HERMES, PEERS, frames, group
from weft.base.errors import PeerError
from weft.cores.catalog import limits
from weft.wire.catalog import commands, messages
from weft.wire.catalog.messages import Message

T = bytes.fromhex("fd01d64e")
NAMES = {
    "REQUEST": messages.REQUEST,
    "REPLY": messages.REPLY,
    "REGISTRATION": messages.REGISTRATION,
    "UPDATE": messages.UPDATE,
    "APPROVED": messages.APPROVED,
    "DENIED": messages.DENIED,
    "HEARTBEAT": messages.HEARTBEAT,
    "DISCONNECT": messages.DISCONNECT,
    "AWK": messages.AWK,
    "EXIT": messages.EXIT,
    "ping": messages.PING,
    "pong": messages.PONG,
}
UNPROTOCOLLED = "not in the protocol"


def _outcome(said: list[bytes], **more: Any) -> Message | str:
    try:
        return commands.decode(said, **more)
    except PeerError as error:
        return error.code


@pytest.mark.proves("CAT-005")
@pytest.mark.parametrize("name", group("msg-", "deny-", "lcv-", "bridge-", "tap-"))
def test_message_is_read_and_written_byte_for_byte(name: str) -> None:
    said = frames(COMPUTED[name])
    message = commands.decode(said)
    assert said == commands.encode(message)
    assert said == [*message.envelope, b"", message.command, message.time, *message.body]


@pytest.mark.parametrize("name", group("msg-"))
def test_message_means_what_its_vector_says(name: str) -> None:
    line = COMPUTED[name]
    message, means = commands.decode(frames(line)), line["means"]
    expected = NAMES[means["command"]] if "command" in means else messages.EXIT
    assert (expected, T) == (message.command, message.time)
    assert [bytes.fromhex(frame) for frame in means.get("envelope", [])] == list(message.envelope)
    if "names" in means:
        assert means["names"] == [frame.decode() for frame in message.body if frame]
    if "name" in means:
        assert means["name"] == message.body[0].decode()


@pytest.mark.proves("CAT-005")
@pytest.mark.parametrize("name", group("bad-"))
def test_message_that_is_none_is_refused_by_a_name(name: str) -> None:
    expected = "unknown-command" if name == "bad-command" else "malformed"
    assert expected == _outcome(frames(COMPUTED[name]))


WITH_FRAMES = [name for name, line in HERMES.items() if line.get("frames")]
SHORT = {"h-two": "malformed", "n-svc-ping3": "malformed"}


@pytest.mark.parametrize("name", WITH_FRAMES)
def test_what_existing_nodes_say_is_read_as_what_it_is(name: str) -> None:
    line = HERMES[name]
    said, command = frames(line), line["means"]["command"]
    found = _outcome(said)
    if command == UNPROTOCOLLED or name in SHORT:
        assert SHORT.get(name, "unknown-command") == found
        return
    assert isinstance(found, Message)
    assert NAMES[command] == found.command
    assert said == commands.encode(found)


def test_captured_messages_of_existing_nodes_are_nearly_all_of_the_protocol() -> None:
    assert 90 == len(WITH_FRAMES)
    assert 16 == sum(isinstance(_outcome(frames(HERMES[name])), str) for name in WITH_FRAMES)


@pytest.mark.proves("CAT-005")
def test_number_of_a_req_that_correlates_is_an_envelope() -> None:
    line = PEERS["req-correlate"]
    message = commands.decode(frames(line))
    assert line["means"]["envelope_frames"] == len(message.envelope)
    assert line["means"]["command"] == message.command.decode()
    answer = Message(messages.REPLY, T, (b"{}",), message.envelope)
    assert [frames(line)[0], b"", b"o_O", T, b"{}"] == commands.encode(answer)


@pytest.mark.proves("CAT-005")
@given(ANY_FRAMES)
def test_any_frames_are_a_message_that_comes_back_or_refused_by_a_name(said: list[bytes]) -> None:
    found = _outcome(said)
    if isinstance(found, str):
        assert found in {"malformed", "unknown-command"}
    else:
        assert said == commands.encode(found)


@given(MESSAGES)
def test_message_comes_back_from_its_frames(message: Message) -> None:
    assert message == commands.decode(commands.encode(message))
    assert message == commands.decode_call(commands.encode(message))


EDGES = [
    ([*[b"e"] * 8, b"", b"u_U", T], "accepted"),
    ([*[b"e"] * 9, b"", b"u_U", T], "malformed"),
    ([b"e" * 255, b"", b"u_U", T], "accepted"),
    ([b"e" * 256, b"", b"u_U", T], "malformed"),
    ([b"", b"u_U", T, *[b"n"] * 61], "accepted"),
    ([b"", b"u_U", T, *[b"n"] * 62], "malformed"),
    ([b"e", b"", b"u_U", T, *[b"n"] * 61], "malformed"),
    ([b"", b"", b"u_U", T], "unknown-command"),
    ([b"", b"u_u", T], "unknown-command"),
    ([b"", b"UwU", T], "accepted"),
    ([b"", b"o_O", T], "malformed"),
    ([b"", b"ping", T], "malformed"),
    ([b"e", b"", b"pong", T], "malformed"),
]


@pytest.mark.proves("CAT-005")
@pytest.mark.parametrize("said, expected", EDGES)
def test_bounds_of_a_message_are_exact(said: list[bytes], expected: str) -> None:
    found = _outcome(said)
    assert expected == (found if isinstance(found, str) else "accepted")


def test_answer_with_cached_values_may_be_longer_where_that_is_said() -> None:
    said = [b"", b"o_O", T, *[b"value"] * 2_000]
    assert "malformed" == _outcome(said)
    assert Message(b"o_O", T, tuple(said[3:])) == _outcome(said, frames_max=4_000)


def test_call_names_any_endpoint() -> None:
    assert Message(b"read", T, (b"1", b"2")) == commands.decode_call([b"", b"read", T, b"1", b"2"])
    for said in ([b"", b"", T, b""], [b"", b"e" * 256, T], [b"", b"read"], [b"read", T]):
        with pytest.raises(PeerError) as refused:
            commands.decode_call(said)
        assert "malformed" == refused.value.code


def test_bounds_of_the_wire_are_those_of_the_core() -> None:
    assert (64, 8, 255) == (limits.FRAMES_MAX, limits.ENVELOPE_FRAMES_MAX, limits.ENVELOPE_BYTES_MAX)
    assert (64, 8, 255) == (commands.FRAMES_MAX, commands.ENVELOPE_FRAMES_MAX, commands.ENVELOPE_BYTES_MAX)
