"""Bytes of any kind: a value within limits or a PeerError, and what is encoded comes back (FUZ-001, FUZ-003)."""

import tracemalloc
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weft.base.errors import OurFault, PeerError
from weft.base.records import (
    CoreRecord,
    DamageRecord,
    EraRecord,
    LostRecord,
    Record,
    SafeRecord,
    StreamRecord,
    UnknownRecord,
)
from weft.wire import segments
from weft.wire.journal import RECORD_BYTES_MAX, decode_record, encode_body, encode_record

U64 = (1 << 64) - 1
NODE = bytes(range(16))
origins = st.binary(min_size=16, max_size=16) | st.text(min_size=1, max_size=30)
numbers = st.integers(1, U64 - 2_000_000)
eras = st.none() | st.integers(0, U64)
streams = st.integers(1, 127)
texts = st.text(max_size=40)
times = st.integers(-(1 << 63), (1 << 63) - 1)
attributes = st.dictionaries(
    st.text(max_size=8).filter(lambda key: key != "n"), st.integers(0, 9) | texts | st.none(), max_size=3
)
rows = st.dictionaries(st.just("n"), st.integers(1, 1_000_000), max_size=1)

records: st.SearchStrategy[Record] = st.one_of(
    st.builds(CoreRecord, st.text(min_size=1, max_size=40), st.integers(0, 99), st.binary(max_size=50)),
    st.builds(
        StreamRecord,
        streams,
        origins,
        eras,
        numbers,
        times,
        times,
        texts,
        st.binary(max_size=300),
        st.builds(lambda a, b: a | b, attributes, rows),
    ),
    st.builds(
        lambda s, o, e, n, more, why: LostRecord(s, o, e, n, n + more, why),
        streams,
        origins,
        eras,
        numbers,
        rows.map(len),
        texts,
    ),
    st.builds(SafeRecord, streams, origins, eras, st.integers(0, U64)),
    st.builds(
        lambda first, more, file, why: DamageRecord(first, first + more, file, why),
        numbers,
        rows.map(len),
        texts,
        texts,
    ),
    st.builds(
        lambda s, o, e, last: EraRecord(s, o, e + 1, e, last),
        streams,
        origins,
        st.integers(0, U64 - 1),
        st.integers(0, U64),
    ),
)


@pytest.mark.proves("FUZ-003")
@given(records)
def test_what_is_encoded_comes_back_and_another_library_reads_the_same(record: Record) -> None:
    data = encode_record(record)
    assert record == decode_record(data)
    assert record == decode_record(memoryview(data))
    assert not isinstance(record, UnknownRecord)
    fields = [record.__struct_config__.tag, *(getattr(record, name) for name in record.__struct_fields__)]
    assert fields == msgpack.unpackb(data, strict_map_key=False)


@pytest.mark.proves("FUZ-001")
@given(st.binary(max_size=80))
@example(b"")
@example(b"\x91" * 100_000)
@example(bytes.fromhex("9a0201") + b"\x91" * 60)
@example(bytes.fromhex("950401dd00ffffff"))
def test_any_bytes_are_a_record_or_a_refusal(data: bytes) -> None:
    try:
        record = decode_record(data)
    except PeerError as error:
        assert error.code in ("malformed", "too-large")
        return
    again = encode_record(record)
    assert record == decode_record(again)
    if isinstance(record, UnknownRecord):
        assert data == again


@pytest.mark.proves("FUZ-001")
@given(records, st.data())
def test_a_mutated_record_is_a_record_or_a_refusal(record: Record, data: st.DataObject) -> None:
    encoded = bytearray(encode_record(record))
    encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    try:
        changed = decode_record(bytes(encoded))
    except PeerError as error:
        assert error.code in ("malformed", "too-large")
        return
    assert changed == decode_record(encode_record(changed))


GOOD: dict[str, Any] = {
    "stream": 1,
    "origin": NODE,
    "era": 1,
    "sequence": 1,
    "at": 0,
    "received": 0,
    "key": "cpu",
    "payload": b"",
    "attributes": {},
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": bytes(15)},
        {"origin": bytes(17)},
        {"origin": ""},
        {"origin": "x" * 129},
        {"origin": 7},
        {"origin": [1]},
        {"origin": None},
        {"stream": 0},
        {"stream": 128},
        {"sequence": 0},
        {"sequence": -1},
        {"era": -1},
        {"key": "k" * 4_097},
        {"attributes": {"n": 0}},
        {"attributes": {"n": "many"}},
        {"attributes": {"n": True}},
        {"attributes": {"n": 1_000_001}},
        {"sequence": U64, "attributes": {"n": 2}},
    ],
    ids=str,
)
def test_a_field_out_of_bounds_is_refused_from_a_peer_and_never_written_by_us(wrong: dict[str, Any]) -> None:
    fields = {**GOOD, **wrong}
    with pytest.raises(PeerError) as refused:
        decode_record(msgpack.packb([2, *fields.values()]))
    assert refused.value.code == "malformed"
    record = StreamRecord(**fields)
    with pytest.raises(OurFault):
        encode_record(record)
    following = StreamRecord(**{**GOOD, "sequence": 2, **wrong})
    for turn in ([record], [StreamRecord(**GOOD), following]):
        with pytest.raises(OurFault):
            encode_body(turn)


@pytest.mark.parametrize(
    "record",
    [
        CoreRecord("", 0, b""),
        CoreRecord("c" * 129, 0, b""),
        CoreRecord("core", -1, b""),
        SafeRecord(1, NODE, 1, -1),
        SafeRecord(1, "", 1, 0),
        LostRecord(1, NODE, 1, 0, 3, "x"),
        LostRecord(1, NODE, 1, 4, 3, "x"),
        LostRecord(1, NODE, 1, 1, 3, "x" * 4_097),
        EraRecord(1, NODE, 1, 1, 0),
        EraRecord(1, NODE, 1, -1, 0),
        EraRecord(1, NODE, 1, 0, -1),
        DamageRecord(0, 3, "file", "x"),
        DamageRecord(4, 3, "file", "x"),
        DamageRecord(1, 3, "f" * 4_097, "x"),
        DamageRecord(1, 3, "file", "x" * 4_097),
    ],
    ids=str,
)
def test_a_record_of_any_kind_out_of_bounds_is_refused_and_never_written(record: Record) -> None:
    with pytest.raises(PeerError) as refused:
        decode_record(msgspec.msgpack.encode(record))
    assert "malformed" == refused.value.code
    for encode in (encode_record, lambda one: encode_body([one])):
        with pytest.raises(OurFault):
            encode(record)


@pytest.mark.parametrize(
    "record",
    [
        StreamRecord(**{**GOOD, "attributes": {"x": object()}}),
        CoreRecord("\ud800", 0, b""),
        CoreRecord("core", 1 << 64, b""),
    ],
)
def test_what_has_no_bytes_is_our_fault(record: Record) -> None:
    for encode in (encode_record, lambda one: encode_body([one])):
        with pytest.raises(OurFault):
            encode(record)


counted = st.builds(
    lambda stream, origin, era, sequence, key, rows: StreamRecord(stream, origin, era, sequence, 0, 0, key, b"", rows),
    st.integers(1, 2),
    st.sampled_from([NODE, NODE[::-1], "foreign"]),
    st.sampled_from([None, 1, 2]),
    st.integers(1, 6),
    st.sampled_from(["cpu", "memory"]),
    st.sampled_from([{}, {}, {"n": 3}, {"x": 1}]),
)
runs = st.builds(lambda first, count: [_following(first, n) for n in range(count)], counted, st.integers(1, 5))


def _following(record: StreamRecord, ahead: int) -> StreamRecord:
    return msgspec.structs.replace(record, sequence=record.sequence + ahead, at=ahead)


@given(st.lists(runs | records.map(lambda record: [record]), max_size=12), st.data())
def test_records_of_one_turn_are_written_and_listed_as_if_each_came_alone(
    parts: list[list[Record]], data: st.DataObject
) -> None:
    turn = [record for part in parts for record in part]
    alone, together = segments.Footer(), segments.Footer()
    bodies = b""
    for record in turn:
        body, numbers = encode_body([record])
        bodies += body[32:]
        alone.note(numbers, 64)
    cut = data.draw(st.integers(0, len(turn)))
    written = b""
    for half in (turn[:cut], turn[cut:]):
        body, numbers = encode_body(half)
        written += body[32:]
        together.note(numbers, 64)
    assert (bodies, alone.entries) == (written, together.entries)
    assert _listed(turn) == [msgspec.structs.astuple(run) for run in together.entries]


def _listed(turn: list[Record]) -> list[tuple[Any, ...]]:
    """What a footer lists of these records, one after the other."""
    entries: list[list[Any]] = []
    for record in turn:
        if not isinstance(record, StreamRecord):
            continue
        source = [record.stream, record.origin, record.era]
        newest = next((entry for entry in reversed(entries) if entry[:3] == source), None)
        if newest is None or not newest[3] <= record.sequence <= newest[4] + 1:
            entries.append([*source, record.sequence, record.last, 1, 64])
        else:
            newest[4:6] = max(newest[4], record.last), newest[5] + 1
    return [tuple(entry) for entry in entries]


def test_attributes_that_no_reader_takes_are_not_written() -> None:
    """64 KiB, with the head of the map, of the key, and of the text."""
    fits = StreamRecord(**{**GOOD, "attributes": {"x": "a" * (65_536 - 6)}})
    assert fits == decode_record(encode_record(fits))
    assert [1] == [run.records for run in encode_body([fits])[1]]
    wide = StreamRecord(**{**GOOD, "attributes": {"x": "a" * (65_536 - 5)}})
    with pytest.raises(PeerError) as refused:
        decode_record(msgspec.msgpack.encode(wide))
    assert "too-large" == refused.value.code
    for encode in (encode_record, lambda one: encode_body([fits, one])):
        with pytest.raises(OurFault):
            encode(wide)
    many = StreamRecord(**{**GOOD, "payload": bytes(200_000)})
    assert many == decode_record(encode_record(many))


@pytest.mark.parametrize(
    "hostile",
    [
        b"\x95\x04\x01" + b"\xdd\x00\x7f\xff\xff" + b"\x90" * 8_000_000,  # an origin of eight million empty lists
        msgpack.packb([2, *list(GOOD.values())[:-1]])[:-1].replace(b"\x99", b"\x9a", 1)
        + b"\xc4\x00\x81\xa1a\xdd\x00\x7a\x12\x00"
        + b"\x90" * 8_000_000,  # attributes of as many
        b"\x93\x01\xdd\x00\x7a\x12\x00" + b"\x90" * 8_000_000,
    ],
    ids=["origin", "attributes", "core"],
)
def test_hostile_bytes_cost_no_more_memory_than_they_are_long(hostile: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(PeerError):
            decode_record(hostile)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(hostile)


def test_too_large_is_refused_before_it_is_looked_at() -> None:
    with pytest.raises(PeerError) as refused:
        decode_record(bytes(RECORD_BYTES_MAX + 1))
    assert refused.value.code == "too-large"


@pytest.mark.proves("FUZ-001", "JRN-020")
@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_behind_a_header_get_a_verdict(tail: bytes, is_last: bool) -> None:
    header = segments.encode_header(segments.SEGMENT, NODE, 1, 0, 0)
    judgement = segments.judge(header + tail, NODE, is_last=is_last)
    assert judgement.next_lsn >= 1
    assert judgement.verdict in (segments.Verdict.CLEAN, segments.Verdict.TORN, segments.Verdict.DAMAGED)
    assert segments.judge(tail, NODE, is_last=is_last).verdict is segments.Verdict.BAD_HEADER


def test_crafted_heads_do_not_make_a_judgement_quadratic() -> None:
    header = segments.encode_header(segments.SEGMENT, NODE, 1, 0, 0)
    salt = segments.decode_header(header).salt
    body, _ = encode_body([CoreRecord("core", 1, bytes(1_000_000))])
    segments.close_batch(body, segments.Place(1, 1, 0), salt)
    heads = bytes(body[:32]) * 30_000  # each claims a body of a million bytes that is not its own
    judgement = segments.judge(header + bytes(8) + heads, NODE, is_last=True)
    assert judgement.verdict is segments.Verdict.TORN


DEEP = b"\x91" * 200_000 + b"\xc0"


@pytest.mark.proves("FUZ-001", part="footers and contents")
@pytest.mark.parametrize(
    "body",
    [b"\xc1", b"\x91", b"\x93\x01", b"\x91\x97\x01\xa1\xff\xc0\x01\x01\x01\x01", b"\x91\x97\x01" + DEEP],
    ids=["no msgpack", "too short", "another form", "no text", "deeper than the stack"],
)
def test_a_footer_that_cannot_be_read_is_one_typed_error(body: bytes) -> None:
    with pytest.raises(PeerError) as refused:
        segments.decode_footer(body)
    assert "malformed" == refused.value.code


@pytest.mark.parametrize("body", [b"\xc1", b"\x93\x01", b"\x91\x92\xa1\xff\x01", DEEP])
def test_contents_of_a_snapshot_that_cannot_be_read_are_one_typed_error(body: bytes) -> None:
    with pytest.raises(PeerError) as refused:
        segments.decode_contents(body)
    assert "malformed" == refused.value.code


def _batch(salt: int, lsn: int, prev: int, records: int = 1) -> bytes:
    body, _ = encode_body([CoreRecord("core", 1, bytes([lsn]))] * records)
    segments.close_batch(body, segments.Place(lsn, records, prev), salt)
    return bytes(body)


@pytest.mark.proves("JRN-020")
@pytest.mark.parametrize("is_last", [True, False])
def test_a_batch_of_lower_numbers_behind_a_gap_is_not_taken(is_last: bool) -> None:
    header = segments.encode_header(segments.SEGMENT, NODE, 5, 0, 0)
    salt = segments.decode_header(header).salt
    first = _batch(salt, 5, 0, records=2)
    stale, later = _batch(salt, 6, 0), _batch(salt, 9, 0)
    data = header + first + b"\xff" * 40 + stale + later
    judgement = segments.judge(data, NODE, is_last=is_last)
    assert [5, 9] == [batch.lsn for batch in judgement.batches]
    assert [(64 + len(first), len(data) - len(later), 7, 9)] == [gap[:4] for gap in judgement.gaps]
    assert (segments.Verdict.DAMAGED, 10) == (judgement.verdict, judgement.next_lsn)


def test_a_batch_of_lower_numbers_right_behind_another_is_not_taken() -> None:
    header = segments.encode_header(segments.SEGMENT, NODE, 5, 0, 0)
    salt = segments.decode_header(header).salt
    judgement = segments.judge(header + _batch(salt, 5, 0) + _batch(salt, 5, 0), NODE, is_last=True)
    assert ([5], 6) == ([batch.lsn for batch in judgement.batches], judgement.next_lsn)


@pytest.mark.parametrize("tag", [0, 128])
def test_a_record_of_a_tag_that_is_none_is_not_written(tag: int) -> None:
    with pytest.raises(OurFault):
        encode_body([UnknownRecord(tag, b"\x92\xcc\x80\x01")])
