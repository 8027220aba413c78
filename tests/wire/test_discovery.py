"""The bytes of announcements and control: the vectors, what older nodes say, types of known names, refusals."""

import json
from typing import Any

import pytest
from hypothesis import given

from tests.wire import strict
from tests.wire.strategies import ANNOUNCEMENTS, ANY_FRAMES, CONTROLS, ENVELOPES, WTFS
from tests.wire.strict import chosen, decode, frames_of, heard
from weft.base.errors import PeerError
from weft.wire.discovery import (
    IWIN,
    MARCO,
    WUTUP,
    Announcement,
    Control,
    decode_announcement,
    decode_called,
    decode_control,
    encode_announcement,
    encode_call,
    encode_control_answer,
    group_key,
)
from weft.wire.envelope import Answer, Asked
from weft.wire.replication import Wtf

NODE = bytes.fromhex("0b9e4c1d7a224f539c105d6e7f8091a2")
HERE = b"10.0.0.9:27500"
ANNOUNCED = [line for line in chosen("st-") if line["direction"].endswith("(+0)")]
SAID = [line for line in chosen("st-") if line["direction"].endswith("(+1)")]


def refused(decoder: Any, frames: Any) -> str:
    with pytest.raises(PeerError) as error:
        decoder(frames)
    return error.value.code


@pytest.mark.proves("TOP-001", "CFG-020")
@pytest.mark.parametrize("line", ANNOUNCED, ids=lambda line: line["id"])
def test_announcements_are_read_and_written_byte_for_byte(line: dict[str, Any]) -> None:
    means, frames = line["means"], frames_of(line)
    message = decode(line)
    expected = {
        "MARCO": (MARCO, ""),
        "GROUP": (group_key("web"), "web"),
        "wutup": (WUTUP, ""),
        "iwin": (IWIN, ""),
    }
    assert expected[means["command"]] == (message.key, message.group)
    assert (frames[1].decode(), frames[2]) == (message.endpoint, message.uuid)
    assert means.get("content", message.content) == message.content
    assert frames == encode_announcement(message)


@pytest.mark.proves("TOP-002")
@pytest.mark.parametrize("line", SAID, ids=lambda line: line["id"])
def test_control_is_read_and_written_byte_for_byte(line: dict[str, Any]) -> None:
    means, frames = line["means"], frames_of(line)
    message = decode(line)
    if isinstance(message, Asked):
        assert heard(line) == encode_call(message.message)
        message = message.message
    else:
        assert frames == strict.ENCODERS[line["direction"]](message)
    assert means["command"] == message.command
    assert (frames[1].decode(), frames[2]) == (message.endpoint, message.uuid)
    assert means.get("properties", json.loads(frames[3])) == message.properties


@pytest.mark.proves("TOP-002")
def test_there_are_eight_commands() -> None:
    for command in ("polo", "assignment", "stop", "sos", "keepcalm", "yo", "aye", "nay"):
        said = Control(command, "10.0.0.9:27500", NODE, {})
        assert [b"", command.encode(), HERE, NODE, b"{}"] == encode_call(said)
        assert Asked((), said) == decode_control([command.encode(), HERE, NODE, b""])
    assert "command" == refused(decode_control, [b"", b"hello", HERE, NODE, b"{}"])
    assert "envelope" == refused(decode_control, [b"hello", HERE, NODE, b"{}"])


@pytest.mark.parametrize(
    "content, expected",
    [
        (b"", {}),
        (b"37", {"text": "37"}),
        (b"None", {"text": "None"}),
        (b'{"count":3}', {"count": 3}),
        (b' {"fleet" : "lab"}', {"fleet": "lab"}),
    ],
)
def test_a_marco_of_plain_text_is_tolerated(content: bytes, expected: dict[str, Any]) -> None:
    assert Announcement(MARCO, "localhost:38388", NODE, expected) == decode_announcement(
        [b"/MARCO", b"localhost:38388", NODE, content]
    )


@pytest.mark.parametrize(
    "properties, expected",
    [
        (b'{"level":"branch"}', {"level": "branch"}),
        (b'{"level":"collector"}', {"level": "branch"}),
        (b'{"level":"sensor"}', {"level": "leaf"}),
        (
            b'{"parent":["EndpntSpec",{"host":"localhost","port":55500}],"level":["str","leaf"],"tier":["int",2]}',
            {"parent": "localhost:55500", "level": "leaf", "tier": 2},
        ),
        (b'{"alternates":["10.0.0.3:27500","10.0.0.4:27500"]}', {"alternates": ["10.0.0.3:27500", "10.0.0.4:27500"]}),
    ],
)
def test_assignments_of_older_nodes_are_understood(properties: bytes, expected: dict[str, Any]) -> None:
    actual = decode_called([b"", b"assignment", HERE, NODE, properties])
    assert Control("assignment", "10.0.0.9:27500", NODE, expected) == actual


@pytest.mark.proves("TOP-001", "CFG-020")
@pytest.mark.parametrize(
    "frames, expected",
    [
        ([], "frame-count"),
        ([b"/MARCO", HERE, NODE], "frame-count"),
        ([b"/MARCO/", HERE, NODE, b"{}"], "key"),
        ([b"/GROUP/g1", HERE, NODE, b"{}"], "key"),
        ([b"/GROUP/global/", HERE, NODE, b"{}"], "key"),
        ([b"/GROUP/root/", HERE, NODE, b"{}"], "key"),
        ([b"/GROUP//", HERE, NODE, b"{}"], "key"),
        ([b"/GROUP/" + b"g" * 64 + b"/", HERE, NODE, b"{}"], "key"),
        ([b"/RECOVERY/", HERE, NODE, b"{}"], "key"),
        ([b"/MARCO", b"10.0.0.9", NODE, b"{}"], "endpoint"),
        ([b"/MARCO", b"h" * 300 + b":1", NODE, b"{}"], "endpoint"),
        ([b"/MARCO", HERE, b"", b"{}"], "uuid"),
        ([b"/MARCO", HERE, NODE, b"{"], "content"),
        ([b"/MARCO", HERE, NODE, b"\xff"], "content"),
        ([b"/MARCO", HERE, NODE, b'{"epoch":0,"epoch":1}'], "content"),
        ([b"/MARCO", HERE, NODE, b"x" * 17_000], "too-large"),
        ([b"/MARCO", HERE, NODE, b'{"x":"' + b"x" * 17_000 + b'"}'], "too-large"),
    ],
)
def test_what_is_no_announcement_is_refused_by_name(frames: list[bytes], expected: str) -> None:
    assert expected == refused(decode_announcement, frames)


WRONG: dict[str, list[Any]] = {
    "acting": [1, "yes"],
    "alternates": ["a:1", [1], ["a:1"] * 4],
    "count": [-1, 1.0, True, None],
    "election": [7, "x" * 256],
    "epoch": [-1, 1 << 23, "0"],
    "fleet": [7],
    "group": [[]],
    "holds": [7, [1], [1, -1], [1, 2, 3]],
    "incarnation": [1 << 63],
    "labels": [[], {"a": 1}, {"a" * 65: ""}, {"a": "x" * 257}, {str(n): "" for n in range(17)}],
    "level": [7],
    "of": ["3"],
    "parent": [None],
    "propose": [1 << 23],
    "protocol": ["1"],
    "root": [7],
    "tier": [-1],
    "votes": [2.5],
    "why": [[]],
}


def test_known_names_have_their_types_wherever_they_stand() -> None:
    for name, values in WRONG.items():
        for value in values:
            text = json.dumps({name: value}).encode()
            assert "content" == refused(decode_announcement, [b"/MARCO", HERE, NODE, text])
            assert "properties" == refused(decode_control, [b"", b"polo", HERE, NODE, text])
    for level in (b'["str",["leaf"]]', b'"tree"', b"7"):
        assert "properties" == refused(decode_called, [b"assignment", HERE, NODE, b'{"level":' + level + b"}"])


@pytest.mark.proves("TOP-002")
@pytest.mark.parametrize(
    "frames, expected",
    [
        ([b""], "frame-count"),
        ([b"", b"polo", HERE, NODE, b"{}", b""], "frame-count"),
        ([b"", b"polo", HERE, NODE[1:], b"{}"], "uuid"),
        ([b"", b"polo", b"a b:1", NODE, b"{}"], "endpoint"),
        ([b"", b"polo", HERE, NODE, b"37"], "properties"),
        ([b"", b"polo", HERE, NODE, b"[]"], "properties"),
        ([b"", b"WTF", b"", b""], "code"),
    ],
)
def test_what_is_no_control_is_refused_by_name(frames: list[bytes], expected: str) -> None:
    assert expected == refused(decode_control, frames)
    assert expected == refused(decode_called, frames)


def test_an_assignment_may_name_all_groups_below_a_collector() -> None:
    below = [f"{number:063}" for number in range(1_000)]
    said = Control("assignment", "10.0.0.9:27500", NODE, {"below": below})
    assert said == decode_called(encode_control_answer(Answer((b"",), said)))
    flood = b'{"below":[' + b"[]," * 50_000 + b"[]]}"
    assert "too-large" == refused(decode_control, [b"", b"polo", HERE, NODE, flood])


@given(ANNOUNCEMENTS)
def test_announcements_that_are_written_are_read(message: Announcement) -> None:
    assert message == decode_announcement(encode_announcement(message))


@pytest.mark.proves("CFG-010")
@given(CONTROLS | WTFS, ENVELOPES)
def test_control_that_is_written_is_read_in_every_envelope(message: Control | Wtf, envelope: Any) -> None:
    assert Asked((b"",), message) == decode_control(encode_call(message))
    answer = encode_control_answer(Answer(envelope, message))
    assert Asked(envelope, message) == decode_control(answer)
    if len(envelope) < 2:
        assert message == decode_called(answer)


@pytest.mark.proves("FUZ-001")
@given(ANY_FRAMES)
def test_any_frames_are_discovery_or_a_refusal(frames: list[bytes]) -> None:
    try:
        message = decode_announcement(frames)
        assert message == decode_announcement(encode_announcement(message))
    except PeerError:
        pass
    try:
        asked = decode_control(frames)
    except PeerError:
        return
    assert asked == decode_control(encode_control_answer(Answer(asked.envelope, asked.message)))
