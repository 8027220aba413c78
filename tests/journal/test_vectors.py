"""All lines of tests/vectors/journal.jsonl, in both directions where both are given."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from weft.base.records import CoreRecord, DamageRecord, EraRecord, LostRecord, Record, SafeRecord, StreamRecord
from weft.wire import segments
from weft.wire.journal import decode_record, encode_body, encode_record
from weft.wire.segments import SEGMENT, SNAPSHOT, Batch, Footer, Header, Judgement, Verdict

VECTORS = [
    json.loads(line) for line in (Path(__file__).parents[1] / "vectors" / "journal.jsonl").read_text().splitlines()
]
BY_ID = {vector["id"]: vector for vector in VECTORS}
SALT = 0xF04AAD93  # checksum of the header `j-top`, which salts all heads of its file


def _payload(name: str) -> bytes:
    return bytes.fromhex(BY_ID[name]["payload"])


def _origin(text: str) -> bytes | str:
    return bytes.fromhex(text) if len(text) == 32 else text


def _record(means: Sequence[Any]) -> Record:
    kind, *fields = means
    if kind == "core":
        return CoreRecord(fields[0], fields[1], bytes.fromhex(fields[2]))
    if kind == "damage":
        return DamageRecord(*fields)
    fields[1] = _origin(fields[1])
    if kind == "stream":
        fields[7] = bytes.fromhex(fields[7])
    made: dict[str, Callable[..., Record]] = {
        "stream": StreamRecord,
        "lost": LostRecord,
        "safe": SafeRecord,
        "era": EraRecord,
    }
    return made[kind](*fields)


RECORDS = [vector for vector in VECTORS if "record" in vector["means"]]
FILES = [vector for vector in VECTORS if "verdict" in vector["means"]]


def test_every_line_is_tested() -> None:
    others = {"j-top", "j-batch-1", "j-batch-2", "j-mark", "j-seal"}
    assert {vector["id"] for vector in VECTORS} == {v["id"] for v in RECORDS + FILES} | others
    assert len(VECTORS) == 35


@pytest.mark.parametrize("vector", RECORDS, ids=lambda vector: vector["id"])
def test_record(vector: dict[str, Any]) -> None:
    data, record = bytes.fromhex(vector["payload"]), _record(vector["means"]["record"])
    assert record == decode_record(data)
    assert data == encode_record(record)


def test_header() -> None:
    means = BY_ID["j-top"]["means"]
    node = bytes.fromhex(means["node"])
    header = segments.decode_header(_payload("j-top"), node)
    assert header == Header(SEGMENT, node, means["first_lsn"], means["created_ns"], means["prev"], SALT)
    assert _payload("j-top") == segments.encode_header(*header[:-1])


def _batch(name: str) -> Batch:
    batch = segments.read_head(_payload(name), 0, SALT)
    assert batch is not None
    assert segments.is_whole(_payload(name), batch)
    return batch


@pytest.mark.parametrize("name", ["j-batch-1", "j-batch-2"])
def test_batch(name: str) -> None:
    data, means, batch = _payload(name), BY_ID[name]["means"], _batch(name)
    assert (means["lsn"], means["count"], means["prev"], means["crc"]) == (
        batch.lsn,
        batch.records,
        batch.prev,
        batch.crc,
    )
    places = segments.split(data, batch.body.start, batch.end, batch.records)
    assert places is not None
    body, _ = encode_body([decode_record(data[place]) for place in places])
    crc = segments.close_batch(body, segments.Place(batch.lsn, len(places), batch.prev), SALT)
    assert (data, batch.crc) == (bytes(body), crc)


def test_mark() -> None:
    batch, means = _batch("j-mark"), BY_ID["j-mark"]["means"]
    assert (means["lsn"], means["count"], means["prev"], means["flags"]) == (batch.lsn, 0, batch.prev, 1)
    assert _payload("j-mark") == bytes(segments.encode_mark(batch.lsn, batch.prev, SALT))


def test_seal() -> None:
    batch, data = _batch("j-seal"), _payload("j-seal")
    entries = segments.decode_footer(data[batch.body])
    assert [(1, bytes.fromhex(BY_ID["j-top"]["means"]["node"]), 1795227290000000, 1, 2, 2, 128)] == entries
    seal, crc = segments.encode_seal(entries, batch.lsn, batch.prev, SALT)
    assert (data, batch.crc) == (bytes(seal), crc)


def test_footer_collected_from_the_records_is_the_one_of_the_vector() -> None:
    data = _payload("j-sealed")
    footer = Footer()
    judgement = segments.judge(data, None, is_last=False)
    for batch in judgement.batches:
        _, runs = encode_body([decode_record(record) for _, record in _records(data, [batch])])
        footer.note(runs, batch.offset)
    assert judgement.seal is not None
    seal, _ = footer.encode(judgement.next_lsn, judgement.seal.prev, SALT)
    assert data[judgement.seal.offset :] == bytes(seal)


def _records(data: bytes, batches: Sequence[Batch]) -> list[tuple[int, bytes]]:
    found = []
    for batch in batches:
        places = segments.split(data, batch.body.start, batch.end, batch.records) or []
        found += [(batch.lsn + index, data[place]) for index, place in enumerate(places)]
    return found


def _as_vector(data: bytes, judgement: Judgement) -> dict[str, Any]:
    gaps = [dict(zip(("offset", "to", "first_lsn", "end_lsn"), gap, strict=False)) for gap in judgement.gaps]
    return {
        "verdict": judgement.verdict.value,
        "records": [[lsn, record.hex()] for lsn, record in _records(data, judgement.batches)],
        "gaps": gaps,
        "cut_at": judgement.cut_at,
        "next_lsn": judgement.next_lsn,
        "sealed": judgement.seal is not None,
    }


@pytest.mark.proves("JRN-020")
@pytest.mark.parametrize("vector", FILES, ids=lambda vector: vector["id"])
def test_verdict(vector: dict[str, Any]) -> None:
    data, means = bytes.fromhex(vector["payload"]), vector["means"]
    judgement = segments.judge(data, bytes.fromhex(means["node"]), is_last=means["last_segment"])
    actual = _as_vector(data, judgement)
    expected = {key: value for key, value in means.items() if key not in ("last_segment", "node")}
    assert expected == {key: actual[key] for key in expected}


def test_a_snapshot_says_what_it_holds() -> None:
    data = _payload("j-snap")
    judgement = segments.judge(data, None, is_last=True)
    assert judgement.header is not None
    assert judgement.seal is not None
    assert judgement.header.magic == SNAPSHOT
    assert [("configuration", 1)] == segments.decode_contents(data[judgement.seal.body])


def test_a_file_that_is_not_the_last_has_no_torn_tail() -> None:
    data = _payload("j-torn-body")
    judgement = segments.judge(data, None, is_last=False)
    assert judgement.verdict is Verdict.DAMAGED
    assert [(304, len(data), 4, None, "checksum")] == list(judgement.gaps)
