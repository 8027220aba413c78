"""What a segment holds, down to the file, whatever the records are."""

import math
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lake.records import (
    DRAIN,
    ERA,
    NODE_A,
    NODE_B,
    RECEIVED,
    T0_MS,
    batch,
    chain_of,
    era_link,
    files_in,
    lost,
    mixed,
    other,
    rows_of,
    single,
)
from weft.base.records import Record, Stream, StreamRecord
from weft.lake import schemas
from weft.lake.body import DEPTH_MAX, RAW_BYTES_MAX, Mask
from weft.lake.layout import STREAMS, Layout
from weft.lake.manifest import ERA_END
from weft.lake.segments import ROW_GROUP_ROWS, Place, Segment, append_segment, write_segment
from weft.wire import samples


def written(root: Path, records: list[Record], stream: str = "samples") -> list[dict[str, Any]]:
    append_segment(Layout(root), stream, DRAIN, list(enumerate(records, 1)))
    return rows_of(Layout(root), stream)


@pytest.mark.proves("LAK-012")
def test_a_batch_becomes_one_row_per_sample(tmp_path: Path) -> None:
    rows = written(tmp_path, [batch(NODE_A, 7, 3, step=-40, cfg=8)])
    assert [7, 8, 9] == [row["sequence"] for row in rows]
    assert [(T0_MS + 7 + i) * 1_000_000 for i in range(3)] == [row["at_ns"] for row in rows]
    assert [(7, 49), (8, None), (9, 63)] == [(row["value_long"], row["base_long"]) for row in rows]
    assert [("cpu", "CPU", "percent"), ("mem", "MEMORY", "basic")] == [
        (row["config_name"], row["detail"], row["type"]) for row in rows[:2]
    ]
    expected = {"origin": NODE_A.hex(), "era": ERA, "received_ns": RECEIVED + 7, "lsn": 1, "error": None, "raw": None}
    assert expected == {name: rows[1][name] for name in expected}
    assert [8, 8, 8] == [row["config_number"] for row in rows]
    assert [{"step": "-40"}] * 3 == [dict(row["attributes"]) for row in rows]


@pytest.mark.proves("LAK-012", "LAK-019")
def test_the_parameter_of_a_metric_has_a_column_and_is_no_label(tmp_path: Path) -> None:
    series = samples.Series("p", "PROC_CPU", "percent", {"b": "2", "param": "re:^py", "a": 'é"\\'})
    body = samples.encode(samples.SampleBatch(T0_MS, (series,), [samples.Row(0, 0, 1)]))
    (row,) = written(tmp_path, [StreamRecord(1, NODE_A, ERA, 1, 1, 2, "weft.metric", body, {"n": 1})])
    assert ("re:^py", {"a": 'é"\\', "b": "2"}) == (row["param"], dict(row["labels"]))
    assert -6628994640784299052 == row["series"]  # vector series-p


VALUES = [
    (5, {"value_long": 5}),
    ((1 << 63) - 1, {"value_long": (1 << 63) - 1}),
    (-(1 << 63), {"value_long": -(1 << 63)}),
    (0.5, {"value_double": 0.5}),
    ("warm", {"text": "warm"}),
    (1 << 63, {"error": "out-of-range"}),
    (math.nan, {"error": "bad-number"}),
    (math.inf, {"error": "bad-number"}),
    (None, {"error": "missing-field"}),
    (True, {"error": "bad-type"}),
    ([1], {"error": "bad-type"}),
]


@pytest.mark.proves("LAK-013")
@pytest.mark.parametrize("value, expected", VALUES)
def test_single_value(tmp_path: Path, value: Any, expected: dict[str, Any]) -> None:
    (row,) = written(tmp_path, [single(NODE_A, 3, msgspec.msgpack.encode(value), detail="ROOM", labels={"x": "1"})])
    nothing = dict.fromkeys(("value_long", "value_double", "text", "base_long", "base_double", "error"))
    assert nothing | expected == {name: row[name] for name in nothing}
    assert ("error" in expected) == (row["raw"] is not None)
    assert ("temperature", "ROOM", "basic", [("x", "1")]) == (
        row["config_name"],
        row["detail"],
        row["type"],
        row["labels"],
    )
    assert (3, RECEIVED - 5) == (row["sequence"], row["at_ns"])


@pytest.mark.proves("LAK-013")
@pytest.mark.parametrize(
    "value, base, error",
    [
        (1 << 63, 1, "out-of-range"),
        (1, 1 << 63, "out-of-range"),
        (math.nan, 1, "bad-number"),
        (1, -math.inf, "bad-number"),
    ],
)
def test_one_bad_number_costs_one_row_of_its_batch(tmp_path: Path, value: Any, base: Any, error: str) -> None:
    rows = [samples.Row(0, 0, 1, 2), samples.Row(0, 1, value, base), samples.Row(0, 2, 3.5, 4)]
    series = (samples.Series("a", "A", "average", {"param": "x"}),)
    body = samples.encode(samples.SampleBatch(T0_MS, series, rows))
    good, bad, last = written(tmp_path, [StreamRecord(1, NODE_A, ERA, 1, 1, 2, "weft.metric", body, {"n": 3})])
    assert (None, 1, 2) == (good["error"], good["value_long"], good["base_long"])
    assert (None, 3.5, 4) == (last["error"], last["value_double"], last["base_long"])
    assert (error, 2) == (bad["error"], bad["sequence"])
    assert [None] * 5 == [bad[name] for name in ("value_long", "value_double", "text", "base_long", "base_double")]
    again = samples.decode(bad["raw"])  # a batch of this one sample, to be read again by a later program
    assert (series, 1) == (again.series, again.rows[0].offset_ms)
    assert repr((value, base)) == repr((again.rows[0].value, again.rows[0].base))


@pytest.mark.proves("LAK-013")
def test_a_batch_that_cannot_be_read_is_one_row_and_all_its_numbers_count(tmp_path: Path) -> None:
    torn = StreamRecord(1, NODE_A, ERA, 12, 1, 2, "weft.metric", b"\x94\x01nonsense", {"n": 30})
    short = StreamRecord(1, NODE_A, ERA, 42, 1, 2, "weft.metric", batch(NODE_A, 42, 3).payload, {"n": 4})
    rows = written(tmp_path, [torn, short])
    assert [("undecodable", 12, "30"), ("undecodable", 42, "4")] == [
        (row["error"], row["sequence"], dict(row["attributes"])["n"]) for row in rows
    ]
    assert [torn.payload, short.payload] == [row["raw"] for row in rows]
    (manifest,) = chain_of(Layout(tmp_path), "samples")
    assert [(NODE_A.hex(), ERA, [(12, 45)])] == manifest.ranges


@pytest.mark.proves("LAK-013")
def test_of_a_long_batch_that_cannot_be_read_the_beginning_is_kept_with_length_and_digest(tmp_path: Path) -> None:
    payload = b"\x94\x01" + bytes(RAW_BYTES_MAX)
    (row,) = written(tmp_path, [StreamRecord(1, NODE_A, ERA, 12, 1, 2, "weft.metric", payload, {"n": 30})])
    assert payload[:RAW_BYTES_MAX] == row["raw"]
    told = dict(row["attributes"])
    assert ("1048578", sha256(payload).hexdigest()) == (told["raw_bytes"], told["raw_sha256"])


@pytest.mark.parametrize("payload", [b"\x01", b"\xc1"])
def test_one_value_that_says_it_is_several_stands_for_all_of_them(tmp_path: Path, payload: bytes) -> None:
    """What is in the manifest has a row, whatever a record says of itself."""
    (row,) = written(tmp_path, [single(NODE_A, 5, payload, n=3)])
    assert ("undecodable", 5, "3") == (row["error"], row["sequence"], dict(row["attributes"])["n"])
    (manifest,) = chain_of(Layout(tmp_path), "samples")
    assert [(5, 7)] == manifest.ranges[0][2]


@pytest.mark.proves("LAK-013")
def test_of_a_long_payload_its_beginning_its_length_and_its_hash_are_kept(tmp_path: Path) -> None:
    payload = b"\xc1" * (RAW_BYTES_MAX + 1)
    (row,) = written(tmp_path, [other(Stream.LOGS, 1, payload)], "logs")
    assert (1 << 20, "undecodable") == (len(row["raw"]), row["error"])
    assert {"raw_bytes", "raw_sha256"} <= dict(row["attributes"]).keys()
    assert str(len(payload)) == dict(row["attributes"])["raw_bytes"]


@pytest.mark.proves("LAK-013")
@pytest.mark.parametrize("field", ["era", "sequence", "received"])
def test_an_identity_beyond_63_bits_is_never_wrapped(tmp_path: Path, field: str) -> None:
    record = msgspec.structs.replace(batch(NODE_A, 1, 1), **{field: (1 << 64) - 1})
    (row,) = written(tmp_path, [record])
    column = {"received": "received_ns"}.get(field, field)
    assert ("out-of-range", None) == (row["error"], row[column])
    assert str((1 << 64) - 1) == dict(row["attributes"])[field]


BODIES = [
    ({"fmt": "msgpack"}, {"b": 1, "a": [None, True, 0.5, "é\n"]}, '{"a":[null,true,0.5,"é\\n"],"b":1}', None),
    ({}, {1: b"\xff", b"k": {}}, '{"1":{"$b":"/w=="},"{\\"$b\\":\\"aw==\\"}":{}}', None),
    ({}, msgspec.msgpack.Ext(5, b"x"), '{"$x":[5,"eA=="]}', None),
    ({}, [math.inf], None, "bad-number"),
    ({"fmt": "sealed"}, 1, None, "unknown-format"),
    ({"fmt": "json"}, b'{"b": 1.0, "a": [ ]}', '{"a":[],"b":1.0}', None),
    ({"fmt": "json"}, b'{"a":', None, "bad-json"),
    ({"fmt": "json"}, b"\xff", None, "bad-json"),
    ({"fmt": "text"}, "grün".encode(), '"grün"', None),
    ({"fmt": "text"}, b"\xff", None, "undecodable"),
    ({"fmt": "xml"}, b"<a/>", '"<a/>"', None),
    ({"fmt": "xml"}, b"<a>\xff</a>", None, "undecodable"),
    ({"fmt": "raw"}, b"\x00\xff", None, None),
    ({}, b"", None, None),
]


@pytest.mark.proves("LAK-012", "LAK-013")
@pytest.mark.parametrize("attributes, value, body, error", BODIES)
def test_payload_as_canonical_json(
    tmp_path: Path, attributes: dict[str, str], value: Any, body: str | None, error: str | None
) -> None:
    payload = value if isinstance(value, bytes) else msgspec.msgpack.encode(value)
    (row,) = written(tmp_path, [other(Stream.LOGS, 4, payload, **attributes)], "logs")
    assert (body, error, payload, "some/key") == (row["body"], row["error"], row["raw"], row["key"])
    assert attributes == dict(row["attributes"])


VIA = [NODE_A, NODE_B]


@pytest.mark.proves("LAK-012", "CHN-036")
def test_a_message_that_does_not_say_what_it_is_is_bytes_and_its_way_is_spoken_in_names(tmp_path: Path) -> None:
    records: list[Record] = [
        other(Stream.MESSAGES, 1, b"\xc1", via=VIA, depth=2, frames=[1, 0]),
        other(Stream.MESSAGES, 7, b'{"b": 1}', fmt="json"),
        other(Stream.MESSAGES, 9, b"", fmt=7, via=5),
    ]
    silent, spoken, odd = written(tmp_path, records, "messages")
    assert (None, None, b"\xc1") == (silent["body"], silent["error"], silent["raw"])
    way = f'["{NODE_A.hex()}","{NODE_B.hex()}"]'
    assert {"via": way, "depth": "2", "frames": "[1,0]"} == dict(silent["attributes"])
    assert ('{"b":1}', None) == (spoken["body"], spoken["error"])
    assert (None, "unknown-format", "5") == (odd["body"], odd["error"], dict(odd["attributes"])["via"])


@pytest.mark.proves("LAK-013")
@pytest.mark.parametrize("depth, error", [(DEPTH_MAX, None), (DEPTH_MAX + 2, "too-long"), (100_000, "too-long")])
def test_a_deep_payload(tmp_path: Path, depth: int, error: str | None) -> None:
    (row,) = written(tmp_path, [other(Stream.EVENTS, 1, b"\x91" * depth + b"\xc0")], "events")
    assert error == row["error"]


@pytest.mark.proves("LAK-012")
def test_a_value_of_the_configuration_is_json_or_its_bytes_and_never_an_error(tmp_path: Path) -> None:
    """Clients of the Clone pattern write what they like."""
    deep = b"[" * 100 + b"]" * 100
    values = [b'{"b": 1,"a":[1.0,null]}', b"2", b"null", b"word", b"\xff", b"1e999", deep, b""]
    records: list[Record] = [other(Stream.CONFIGURATION, number, value) for number, value in enumerate(values, 1)]
    rows = written(tmp_path, records, "configuration")
    told = [
        '{"a":[1.0,null],"b":1}',
        "2",
        "null",
        *(f'{{"$b":"{b64encode(value).decode()}"}}' for value in values[3:7]),
    ]
    assert [*told, None] == [row["body"] for row in rows]
    assert values == [row["raw"] for row in rows]
    assert {None} == {row["error"] for row in rows}


def test_a_secret_shows_only_whether_it_is_the_same(tmp_path: Path) -> None:
    secret, mask = b"\xa6hunter", Mask(lambda key: key == "some/key", b"drain secret")
    records = [
        other(Stream.CONFIGURATION, 1, secret),
        other(Stream.CONFIGURATION, 2, secret),
        other(Stream.CONFIGURATION, 3, b"\xa5other"),
    ]
    lake = Layout(tmp_path)
    write_segment(lake, Place("configuration", DRAIN, 1), list(enumerate(records, 1)), mask=mask)
    first, second, third = rows_of(lake, "configuration")
    assert first["body"] == second["body"] != third["body"]
    assert [None, None, None] == [row["raw"] for row in (first, second, third)]
    assert b"hunter" not in lake.parquet("configuration", DRAIN, 1).read_bytes()


@pytest.mark.proves("LAK-012")
def test_documents_carry_their_session_in_the_origin(tmp_path: Path) -> None:
    (row,) = written(tmp_path, [other(Stream.DOCUMENTS, 1, session="S1")], "documents")
    assert f"S1/{NODE_A.hex()}" == row["origin"]


@pytest.mark.proves("LAK-012", "GSP-034")
def test_operations_keep_their_origin_and_their_bytes(tmp_path: Path) -> None:
    """Whatever bytes they are: they are kept, never read."""
    name = f"S1/{NODE_A.hex()}"
    bodies = [b"<set/>", b"\xff<", b"\x81\xa1a", b""]
    attributes = {"session": "S1", "eff": 1795227300.25, "ts": "1795227300.25"}
    records = [StreamRecord(8, name, None, n, 0, RECEIVED, "set", body, attributes) for n, body in enumerate(bodies, 1)]
    rows = written(tmp_path, [*records, *records[:1]], "documents")
    assert [(name, None, number, None, None) for number in (1, 2, 3, 4, 1)] == [
        tuple(row[column] for column in ("origin", "era", "sequence", "body", "error")) for row in rows
    ]
    assert [*bodies, bodies[0]] == [row["raw"] for row in rows]
    assert {"1795227300.25"} == {dict(row["attributes"])["eff"] for row in rows}
    (manifest,) = chain_of(Layout(tmp_path), "documents")
    assert [(name, None, [(1, 4)])] == manifest.ranges


@pytest.mark.proves("LAK-010", "LAK-011")
def test_manifest_of_mixed_records(tmp_path: Path) -> None:
    written(tmp_path, mixed())
    (manifest,) = chain_of(Layout(tmp_path), "samples")
    name = NODE_A.hex()
    assert [(name, ERA, [(1, 4), (7, 41)]), (NODE_B.hex(), ERA, [(1, 300)])] == manifest.ranges
    assert [(name, ERA - 9, 50, 50, ERA_END), (name, ERA, 5, 6, "spool-full")] == manifest.lost
    assert (310, (1, 8)) == (manifest.rows, manifest.lsn)
    assert (2, RECEIVED + 7) == (manifest.first_received, manifest.last_received)
    assert [(manifest.era_ends()[0][0].era, 50)] == [(ERA - 9, last) for _, last in manifest.era_ends()]


@pytest.mark.proves("LAK-011")
def test_a_segment_may_hold_losses_only(tmp_path: Path) -> None:
    assert [] == written(tmp_path, [lost(1, 9), era_link(ERA, ERA - 1, 4)])
    (manifest,) = chain_of(Layout(tmp_path), "samples")
    assert (0, None, None, 2) == (manifest.rows, manifest.first_received, manifest.last_received, len(manifest.lost))


@pytest.mark.proves("LAK-004")
def test_the_file_is_as_promised(tmp_path: Path) -> None:
    lake = Layout(tmp_path)
    records = [batch(NODE_A, 1 + 1000 * i, 1000) for i in range(60)]
    link = append_segment(lake, "samples", DRAIN, list(enumerate(records, 1)))
    with pq.ParquetFile(lake.parquet("samples", DRAIN, 1)) as file:
        metadata = file.metadata
        assert [ROW_GROUP_ROWS, 10_000] == [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        group = metadata.row_group(0)
        chunks = {group.column(i).path_in_schema: group.column(i) for i in range(metadata.num_columns)}
        assert {"ZSTD"} == {chunk.compression for chunk in chunks.values()}
        with_statistics = {name for name, chunk in chunks.items() if chunk.is_stats_set}
        assert {"origin", "era", "sequence", "at_ns", "received_ns", "series"} == with_statistics
        assert {"RLE_DICTIONARY"} <= set(chunks["config_name"].encodings)
        assert "2.6" == metadata.format_version
        spoken = msgspec.json.decode(metadata.metadata[b"weft.manifest"])
    whole = msgspec.json.decode(link.manifest.line())
    assert {name: value for name, value in whole.items() if name not in ("bytes", "sha256")} == spoken


FORBIDDEN = (pa.types.is_dictionary, pa.types.is_large_string, pa.types.is_large_binary, pa.types.is_large_list)


@pytest.mark.proves("LAK-020")
@pytest.mark.parametrize("stream", STREAMS)
def test_columns_are_those_of_the_schema(tmp_path: Path, stream: str) -> None:
    record = batch(NODE_A, 1, 2) if stream == "samples" else other(Stream[stream.upper()], 1)
    written(tmp_path, [record], stream)
    with pq.ParquetFile(Layout(tmp_path).parquet(stream, DRAIN, 1)) as file:
        found = file.schema_arrow
    target = schemas.SEGMENTS[stream].plus("with places", *schemas.PLACES).arrow()
    assert target.names == found.names
    for field, kind in zip(found, target.types, strict=True):
        assert not any(forbidden(field.type) for forbidden in FORBIDDEN), field
        plain = (field.type.key_type, field.type.item_type) if pa.types.is_map(kind) else field.type
        assert plain == ((kind.key_type, kind.item_type) if pa.types.is_map(kind) else kind)
        assert not pa.types.is_unsigned_integer(field.type)


@pytest.mark.proves("LAK-008")
def test_files_have_their_places(tmp_path: Path) -> None:
    lake = Layout(tmp_path)
    write_segment(lake, Place("samples", DRAIN, 4097), [(1, batch(NODE_A, 1, 1))])
    home = f"drain/samples/{DRAIN}/00000001/0000000000001001"
    assert [f"{home}.json", f"{home}.parquet"] == files_in(tmp_path)


@st.composite
def cuts(draw: st.DrawFn) -> list[list[int]]:
    """Any way to part the mixed records into consecutive segments."""
    total = len(mixed())
    places = sorted(draw(st.sets(st.integers(1, total - 1))))
    return [list(range(a, b)) for a, b in zip([0, *places], [*places, total], strict=True)]


def gathered(entries: list[tuple[int, Record]]) -> Segment:
    segment = Segment(Place("samples", DRAIN, 1))
    segment.take(entries)
    return segment


@pytest.mark.prove("many lakes")
@given(parts=cuts())
def test_any_partition_into_segments_gives_the_same_rows(parts: list[list[int]]) -> None:
    entries = list(enumerate(mixed(), 1))
    whole, many = gathered(entries), [gathered([entries[index] for index in part]) for part in parts]
    rows = [row for segment in many for row in segment.columns.table().to_pylist()]
    # reprs, since a row holds bytes and floats, and equal text is what is meant
    assert repr(whole.columns.table().to_pylist()) == repr(rows)
    assert whole.account.lost == [entry for segment in many for entry in segment.account.lost]
    left = {identity: seen.copy() for identity, seen in whole.account.seen.items()}
    for segment in many:
        for identity, seen in segment.account.seen.items():
            assert not seen - left[identity], "no number in two segments"
            left[identity] -= seen
    assert not any(left.values())
