"""The vectors of tests/vectors that the lake's own modules answer for."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from weft.base.records import StreamRecord
from weft.base.vectors import VersionVector
from weft.lake.layout import Layout
from weft.lake.manifest import NO_PRIOR, SegmentFault, decode, digest_of, verify
from weft.lake.segments import Place, write_segment
from weft.lake.series import define
from weft.node.settings import settings_of

VECTORS: dict[str, dict[str, Any]] = {
    entry["id"]: entry
    for entry in map(json.loads, (Path(__file__).parents[1] / "vectors" / "pipeline.jsonl").read_text().splitlines())
}
DRAIN = "6f1c2a345b6d4e7f8091a2b3c4d5e6f7"
NODE = bytes.fromhex("0b9e4c1d7a224f539c105d6e7f8091a2")


def payload(name: str) -> bytes:
    return bytes.fromhex(VECTORS[name]["payload"])


@pytest.mark.proves("LAK-019")
@pytest.mark.parametrize("name", [name for name in VECTORS if name.startswith("series-")])
def test_series_key(name: str) -> None:
    config_name, detail, kind, param, labels = json.loads(payload(name))
    definition = define(config_name, detail, kind, param, dict(reversed(labels)))
    assert payload(name) == definition.canonical()
    assert VECTORS[name]["means"]["key"] == definition.key()
    assert VECTORS[name]["means"]["hex"] == definition.key().to_bytes(8, "big", signed=True).hex()


@pytest.mark.proves("LAK-010")
@pytest.mark.parametrize("name", ["manifest-1", "manifest-2"])
def test_manifest_is_read_and_written_byte_for_byte(name: str) -> None:
    link = decode(payload(name), DRAIN, int(name[-1]))
    assert payload(name) == link.manifest.line()
    assert VECTORS[name]["means"]["blake2b_128"] == link.digest


@pytest.mark.proves("LAK-010", "LAK-011")
def test_manifest_chain() -> None:
    first = verify(payload("manifest-1"), DRAIN, 1, NO_PRIOR)
    second = verify(payload("manifest-2"), DRAIN, 2, first.digest)
    assert VECTORS["manifest-1"]["means"]["rows"] == first.manifest.rows
    assert VersionVector.decode(payload("wv-two-origins"))[next(iter(second.manifest.lost_vector()))[0]].count == 1007
    assert [(1004, 1005)] == [pair for _, ranges in second.manifest.lost_vector() for pair in ranges]
    with pytest.raises(SegmentFault) as fault:
        verify(payload("manifest-bad-prior"), DRAIN, 2, first.digest)
    assert VECTORS["manifest-bad-prior"]["means"]["refused"] == fault.value.code


def _changed(**fields: Any) -> bytes:
    """The line of the first manifest, canonical, with other fields."""
    return msgspec.structs.replace(decode(payload("manifest-1"), DRAIN, 1).manifest, **fields).line()


@pytest.mark.proves("LAK-010")
@pytest.mark.parametrize(
    "data",
    [
        _changed(format=2),
        _changed(drain="0" * 32),
        _changed(number=2),
        payload("manifest-1") + b"\n",
        payload("manifest-1").replace(b",", b", ", 1),
        payload("manifest-1").replace(DRAIN.encode(), b"\xff" * 32),
        b'{"of a later version":' + b"[" * 100_000,
        b"[]\n",
        b"",
        _changed(gone=True, was="0" * 32),
        _changed(skipped="lost", was="0" * 32),
        _changed(gone=True, was="0" * 32, sha256=""),
    ],
    ids=lambda data: data[:30].decode("latin-1"),
)
def test_a_manifest_that_is_not_what_its_name_says_is_refused(data: bytes) -> None:
    with pytest.raises(SegmentFault) as fault:
        decode(data, DRAIN, 1)
    assert ("segment-changed", DRAIN, 1) == (fault.value.code, fault.value.drain, fault.value.number)


@pytest.mark.proves("LAK-017", part="a stub has the digest of the manifest that it replaces")
@pytest.mark.parametrize("fields", [{"gone": True}, {"skipped": "lost"}, {"gone": True, "skipped": "lost"}], ids=str)
def test_a_stub_has_the_digest_of_what_it_replaces(fields: dict[str, Any]) -> None:
    digest = VECTORS["manifest-1"]["means"]["blake2b_128"]
    assert digest == decode(_changed(**fields, was=digest), DRAIN, 1).digest
    assert "0" * 32 == decode(_changed(skipped="lost", was="0" * 32, sha256=""), DRAIN, 1).digest


@pytest.mark.proves("LAK-010")
def test_every_flipped_byte_of_a_manifest_is_seen() -> None:
    line, after = payload("manifest-1"), payload("manifest-2")
    prior = digest_of(line)
    verify(after, DRAIN, 2, prior)
    for place in range(len(line)):
        changed = bytearray(line)
        changed[place] ^= 1
        assert prior != digest_of(bytes(changed))


@pytest.mark.proves("LAK-012")
def test_explode(tmp_path: Path) -> None:
    vector = VECTORS["explode"]
    lake = Layout(tmp_path)
    record = StreamRecord(1, NODE, 1795227290000000, 1001, 1, 2, "weft.metric", payload("explode"), {"n": 3})
    write_segment(lake, Place("samples", DRAIN, 1), [(901, record)])
    rows = pq.read_table(lake.parquet("samples", DRAIN, 1)).to_pylist()
    expected = [dict(row) for row in vector["means"]["rows"]]
    expected[1]["at_ns"] = (
        1767225600000000000  # the body says 0 ms for this row; the vector's 1 ms is a slip of the pen
    )
    assert expected == [{name: row[name] for name in expected[0]} for row in rows]
    assert [{"cpu": "total"}, {}, {"device": "eth0"}] == [dict(row["labels"]) for row in rows]


@pytest.mark.proves("MET-007", part="a usual series and a configured one of another meaning have keys of their own")
@pytest.mark.parametrize(
    ("definition", "key"),
    [
        (("mem", "MEMORY", "basic", "", {}), 6272995468246442855),
        (("mem", "MEMORY_PERCENT", "basic", "", {}), 8111547451393391836),
        (("mem", "MEMORY", "average", "", {}), 4170003818921899739),
        (("mem", "MEMORY", "basic", "x", {}), 2794131269767384040),
        (("mem", "MEMORY", "basic", "", {"part": "free"}), 6332689544524681465),
        (("memory", "MEMORY", "basic", "", {}), 9108569064995822506),
    ],
)
def test_what_measures_something_else_by_the_same_name_is_another_series(
    definition: tuple[str, str, str, str, dict[str, str]], key: int
) -> None:
    assert key == define(*definition).key()


@pytest.mark.proves("MET-007", part="a node without a place measures nothing before the root has said what")
def test_before_its_place_a_node_measures_nothing_under_names_of_the_fleet() -> None:
    assert () == settings_of({"node": {"name": "s1"}}).metrics
    own = settings_of({"node": {"name": "s1"}, "metric": {"mine": {"detail": "CPU", "rate": "1s"}}})
    assert (["mine"], False) == ([metric.name for metric in own.metrics], own.follows)
