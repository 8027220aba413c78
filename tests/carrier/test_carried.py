"""Records as items of a hop and back: what a hop adds, and what it may not change."""

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.errors import PeerError
from weft.base.identity import is_canonical
from weft.base.records import Carried, EraRecord, LostRecord, Stream, StreamRecord
from weft.wire import carried, hop
from weft.wire.carried import Uncarriable, gone_item, to_item, to_record
from weft.wire.hop import Hop, HopItem

A, B = b"a" * 16, b"b" * 16
BODY = b"\x94\x01 a body that nobody on the way reads"


def sample(**fields: Any) -> StreamRecord:
    standard: dict[str, Any] = {
        "stream": Stream.SAMPLES,
        "origin": A,
        "era": 7,
        "sequence": 5,
        "at": 111,
        "received": 111,
        "key": "",
        "payload": BODY,
        "attributes": {"n": 3},
    }
    return StreamRecord(**standard | fields)


def across(record: Carried, me: bytes, wall: int = 222) -> Carried:
    """One hop, through bytes."""
    item, frames = to_item(record, me)
    message = hop.decode(hop.encode(Hop(1, 1, [item], frames)))
    assert isinstance(message, Hop)
    _, item, frames = next(message.numbered())
    return to_record(item, frames, wall)


@pytest.mark.proves("CHN-007", "MEA-027")
def test_a_batch_keeps_its_identity_its_time_and_its_bytes() -> None:
    expected = sample(received=222, attributes={"n": 3, "via": [A]})
    assert expected == across(sample(), A)


@pytest.mark.proves("CHN-036", "RTE-004")
def test_the_first_receiver_s_time_and_the_way_stay_with_a_record() -> None:
    at_collector = across(sample(), A, wall=222)
    at_root = across(at_collector, B, wall=333)
    assert sample(received=222, attributes={"n": 3, "via": [A, B]}) == at_root


def test_the_type_says_the_stream() -> None:
    kinds = {stream: to_item(sample(stream=stream), A)[0].type for stream in Stream if stream != Stream.MESSAGES}
    assert "weft.metric" == kinds[Stream.SAMPLES]
    assert "weft.log" == kinds[Stream.LOGS]
    assert "weft.event" == kinds[Stream.EVENTS]
    for stream in Stream:
        assert stream == across(sample(stream=stream, key="demo.report"), A).stream


@pytest.mark.parametrize("key", ["demo.report", "Not a type", "weft.metric", "weft.event", ""])
@pytest.mark.parametrize("stream", [Stream.MESSAGES, Stream.EVENTS, Stream.SAMPLES])
def test_every_key_arrives(stream: Stream, key: str) -> None:
    record = across(sample(stream=stream, key=key), A)
    assert isinstance(record, StreamRecord)
    assert (stream, key) == (record.stream, record.key)


def test_a_foreign_message_without_attributes_is_a_message_of_its_type() -> None:
    item = HopItem(mid=(A, 7, 5), type="demo.report", via=(A,), depth=0, ts=111)
    expected = sample(stream=Stream.MESSAGES, key="demo.report", received=222, attributes={"via": [A]})
    assert expected == to_record(item, [BODY], 222)


@pytest.mark.parametrize(
    "note",
    [
        LostRecord(1, A, 7, 3, 9, "spool-full"),
        LostRecord(7, "store-node", None, 3, 9, "damage"),
        EraRecord(1, A, 8, 7, 44),
    ],
)
def test_losses_and_era_links_travel_as_they_are(note: Carried) -> None:
    assert note == across(note, A)


def test_a_number_can_be_kept_without_a_message() -> None:
    item = gone_item(A, 7, 12)
    assert (0, (A, 7, 12)) == (item.n, item.mid)


def test_what_no_hop_can_carry_says_why() -> None:
    cases = {
        "too-big": [sample(payload=bytes((1 << 20) + 1)), sample(attributes={"x": bytes(70_000)})],
        "ttl": [sample(attributes={"via": [B] * 64})],
    }
    for expected, records in cases.items():
        for record in records:
            with pytest.raises(Uncarriable) as caught:
                to_item(record, A)
            assert expected == caught.value.why


def test_sending_changes_nothing_of_the_record() -> None:
    record = sample(attributes={"n": 3, "via": [B]})
    to_item(record, A)
    assert sample(attributes={"n": 3, "via": [B]}) == record


def item_with(frame: bytes, **fields: Any) -> tuple[HopItem, list[bytes]]:
    standard: dict[str, Any] = {"mid": (A, 7, 5), "type": "weft.metric", "via": (A,), "depth": 0, "ts": 0, "n": 2}
    return HopItem(**standard | fields), [BODY, frame]


EMPTY = b"\x80"
BAD: list[tuple[str, tuple[HopItem, list[bytes]]]] = [
    ("no map", item_with(b"\x90")),
    ("deep", item_with(b"\x81\xa1x" + b"\x91" * 60_000)),
    ("wide", item_with(b"\x81\xa1x\xdd\x00\xff\xff\xff")),
    ("large", item_with(msgpack.packb({"x": bytes(65_536)}))),
    ("no rows", item_with(msgpack.packb({"n": 0}))),
    ("rows as text", item_with(msgpack.packb({"n": "3"}))),
    ("rows as truth", item_with(msgpack.packb({"n": True}))),
    ("too many rows", item_with(msgpack.packb({"n": 1 << 25}))),
    ("rx", item_with(msgpack.packb({"rx": -1}))),
    ("key", item_with(msgpack.packb({"key": 7}))),
    ("sequence 0", item_with(EMPTY, mid=(A, 7, 0))),
    ("sequence over 64 bits", item_with(msgpack.packb({"n": 9}), mid=(A, 7, (1 << 64) - 5))),
    ("short origin", item_with(EMPTY, mid=(b"short", 7, 1))),
    ("a node without era", item_with(EMPTY, mid=(A, None, 1))),
    ("a text that looks like a node", item_with(EMPTY, mid=("0123456789abcdef", 7, 1))),
    ("negative era", item_with(EMPTY, mid=(A, -7, 1))),
    ("time over 63 bits", item_with(EMPTY, ts=1 << 63)),
    ("a loss that is none", item_with(EMPTY, type="weft.lost")),
    ("an era link that is none", item_with(EMPTY, type="weft.era", n=1)),
]


@pytest.mark.proves("FUZ-001")
@pytest.mark.parametrize("bad", [bad for _, bad in BAD], ids=[name for name, _ in BAD])
def test_what_is_no_record_is_refused(bad: tuple[HopItem, list[bytes]]) -> None:
    with pytest.raises(PeerError) as caught:
        to_record(*bad, wall=0)
    assert "bad-record" == caught.value.code


@pytest.mark.parametrize(
    "note",
    [
        LostRecord(1, A, 7, 9, 3, "x"),
        LostRecord(1, A, 7, 0, 3, "x"),
        LostRecord(0, A, 7, 1, 3, "x"),
        LostRecord(1, b"short", 7, 1, 3, "x"),
        LostRecord(1, A, None, 1, 3, "x"),
        LostRecord(1, A, -7, 1, 3, "x"),
        EraRecord(1, A, -8, 7, 44),
        EraRecord(1, 9, 8, 7, 44),
    ],
)
def test_impossible_notes_are_refused(note: Carried) -> None:
    with pytest.raises(PeerError) as caught:
        to_record(*to_item(note, A), wall=0)
    assert "bad-record" == caught.value.code


def test_more_frames_than_a_record_has_are_not_for_a_journal() -> None:
    item, frames = item_with(EMPTY, type="demo.report", n=3)
    with pytest.raises(PeerError) as caught:
        to_record(item, [*frames, b""], wall=0)
    assert "unimplemented" == caught.value.code


attributes = st.dictionaries(st.sampled_from(["a", "b", "flags"]), st.integers(0, 1 << 60) | st.text(max_size=5))
records = st.builds(
    StreamRecord,
    stream=st.sampled_from([int(stream) for stream in Stream]),
    origin=st.binary(min_size=16, max_size=16) | st.text("abc", min_size=1, max_size=9),
    era=st.none() | st.integers(0, (1 << 64) - 1),
    sequence=st.integers(1, 1 << 62),
    at=st.integers(-(1 << 63), (1 << 63) - 1).filter(lambda at: abs(at) < 1 << 63),
    received=st.integers(0, (1 << 63) - 1),
    key=st.text(max_size=12),
    payload=st.binary(max_size=40),
    attributes=attributes,
).filter(lambda record: is_canonical(*record.source))


@given(records, st.integers(1, 4))
def test_any_record_survives_any_number_of_hops(record: StreamRecord, hops: int) -> None:
    there: Carried = record
    names = [bytes([number]) * 16 for number in range(1, hops + 1)]
    for me in names:
        there = across(there, me, wall=999)
    assert isinstance(there, StreamRecord)
    way = there.attributes.pop("via")
    assert names == way
    assert (record.payload, record.attributes, record.key) == (there.payload, there.attributes, there.key)
    assert (record.source, record.sequence, record.at, 999) == (there.source, there.sequence, there.at, there.received)


def test_reserved_names_are_those_documented() -> None:
    assert {"weft.lost", "weft.era", "weft.gone", "weft.message"} == {
        carried.LOST,
        carried.ERA,
        carried.GONE,
        carried.MESSAGE,
    }
