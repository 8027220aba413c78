"""The client protocol's bytes, both directions: recorded talk is read, and what is said again means the same."""

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from tests.store.vectors import Row, rows
from weft.base.changes import Chain
from weft.base.errors import PeerError
from weft.wire.store import clients
from weft.wire.store.clients import (
    Answer,
    BadRequest,
    ClientHello,
    Greeting,
    Links,
    PathExpander,
    PathShortener,
    Request,
    chain_of,
    decode_answer,
    decode_request,
    encode,
    links_of,
)
from weft.wire.store.pack import pack, unpack

ALL = rows("")
UNKEPT = frozenset(("iter", "long_path", "wseq", "data", "topic", "raw", "password", "pubkey", "length", "mode"))
"""Keys of requests and answers that this node has no use for, or that are not those of their type."""
ELEMENTS = st.one_of(st.text(max_size=2), st.integers(-2, 300), st.booleans(), st.binary(max_size=2))
PATHS = st.lists(st.lists(ELEMENTS, max_size=4).map(tuple), max_size=20)


def kept(message: dict[str, Any]) -> dict[str, Any]:
    """What of a message is understood; paths are paths, however they were written."""
    found = {key: value for key, value in message.items() if key not in UNKEPT}
    if isinstance(found.get("path"), list | tuple):
        found["path"] = list(found["path"])
    return found


def known(row: Row, kind: type[Any]) -> dict[str, Any]:
    return {key: value for key, value in kept(row.means).items() if key in kind.__struct_fields__}


@pytest.mark.proves("CLN-001", "CLN-002")
def test_everything_that_real_servers_say_is_read_and_said_again_the_same() -> None:
    answers = [row for row in ALL if row.is_of_server]
    assert len(answers) > 100
    for row in answers:
        said = decode_answer(row.raw)
        if row.means.get("seq") != 0:
            assert (row.id, known(row, Answer)) == (row.id, kept(unpack(encode(said))))
        else:
            assert isinstance(said, Greeting)
            assert (row.id, known(row, Greeting)) == (row.id, kept(unpack(encode(said))))


@pytest.mark.proves("CLN-002")
def test_everything_that_real_clients_ask_is_read_and_asked_again_the_same() -> None:
    asked = [row for row in ALL if not row.is_of_server]
    assert len(asked) > 80
    for row in asked:
        if row.id == "new-session2-082":
            continue  # a path whose element is a list
        again = kept(unpack(encode(decode_request(row.raw))))
        # What is as it is by default is not said.
        assert (row.id, {k: v for k, v in known(row, Request).items() if v is not False}) == (
            row.id,
            {k: v for k, v in again.items() if v is not False},
        )


@pytest.mark.proves("CLN-002")
def test_a_request_that_cannot_be_read_still_has_its_number() -> None:
    bad = next(row for row in ALL if row.id == "new-session2-082")
    for raw, seq, code in (
        (bad.raw, 1, "bad-path"),
        (pack({"seq": 7, "action": 5}), 7, "bad-request"),
        (pack({"seq": 8, "action": "get_value", "path": {"a": 1}}), 8, "bad-path"),
        (pack({"seq": 9, "action": "get_value", "path": msgpack.ExtType(3, b"\xc1")}), 9, "bad-path"),
        (pack({"seq": 10, "chain": {"node": 5}}), 10, "bad-request"),
    ):
        with pytest.raises(BadRequest) as refused:
            decode_request(raw)
        assert (seq, code) == (refused.value.seq, refused.value.code)


@pytest.mark.proves("CLN-002")
def test_what_is_no_message_at_all_is_told_apart() -> None:
    for raw in (b"", b"\xc1", b"\x81", pack(5), pack([1]), pack({"seq": "x"}), pack({}) + b"\xc1", pack({"seq": 1.5})):
        with pytest.raises(PeerError) as refused:
            decode_request(raw)
        assert ("malformed", False) == (refused.value.code, isinstance(refused.value, BadRequest))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_a_typed_refusal(raw: bytes) -> None:
    for decode in (decode_request, decode_answer):
        try:
            decode(raw)
        except PeerError as error:
            assert error.code in ("malformed", "bad-request", "bad-path")


@pytest.mark.proves("CLN-005")
@given(PATHS)
def test_shortened_paths_come_back_whole(paths: list[tuple[Any, ...]]) -> None:
    shortener, expander = PathShortener(), PathExpander()
    for path in paths:
        depth, rest = shortener.cut(path)
        full = expander.full(depth, rest)
        assert [(type(element), element) for element in path] == [(type(element), element) for element in full]


@pytest.mark.proves("CLN-005")
def test_paths_are_shortened_as_real_servers_do() -> None:
    for group, seq in (("new-session-", 7), ("new-session-", 12), ("new-download-", 1), ("mid-download-", 1)):
        items = [row.means for row in rows(group) if row.is_of_server and row.means.get("seq") == seq]
        expander, shortener = PathExpander(), PathShortener()
        for item in (item for item in items if "path" in item):
            full = expander.full(item["depth"], tuple(item["path"]))
            assert (item["depth"], tuple(item["path"])) == shortener.cut(full)


def test_a_path_that_leans_on_nothing_is_refused() -> None:
    with pytest.raises(PeerError) as refused:
        PathExpander().full(1, ("a",))
    assert "bad-path" == refused.value.code


@pytest.mark.proves("CLN-004")
def test_chains_are_told_as_long_as_they_are_wanted() -> None:
    chain = Chain((("a", 3), ("b", 2), ("c", 1)))
    assert Links("a", 3, UNSET) == links_of(chain, 1)
    assert Links("a", 3, Links("b", 2, Links("c", 1, None))) == links_of(chain, -1) == links_of(chain, 3)
    assert Links("a", 3, Links("b", 2, UNSET)) == links_of(chain, 2)
    cut = Chain((("a", 3), ("b", 2)), is_cut=True)
    assert Links("a", 3, Links("b", 2, UNSET)) == links_of(cut)
    assert (chain, cut) == (chain_of(links_of(chain)), chain_of(links_of(cut)))


def test_several_messages_in_a_row_are_one_frame() -> None:
    said = (Answer(seq=1, tock=3, value=Raw(pack(None))), Answer(seq=2, path=("a", 1), depth=0))
    unpacker = msgpack.Unpacker(strict_map_key=False)
    unpacker.feed(encode(said))
    assert [{"seq": 1, "tock": 3, "value": None}, {"seq": 2, "depth": 0, "path": msgpack.ExtType(3, b"\xa1a\x01")}] == [
        *unpacker
    ]


def test_a_hello_says_its_window() -> None:
    assert {"seq": 0, "qlen": 10} == unpack(encode(ClientHello(10, seq=0)))
    assert 10 == decode_request(encode(ClientHello(10, seq=0))).qlen
    assert clients.QLEN == 10
