"""The body of a batch of samples: exact bytes, and nothing but a batch or a typed refusal (MEA-022, FUZ-001)."""

import json
import math
from pathlib import Path
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weft.base.errors import OurFault, PeerError
from weft.wire import samples
from weft.wire.samples import Row, SampleBatch, Series

VECTORS = Path(__file__).parents[1] / "vectors"
LINES = {
    vector["id"]: vector
    for name in ("pipeline.jsonl", "hostile.jsonl")
    for vector in map(json.loads, (VECTORS / name).read_text("utf-8").splitlines())
}
BODY = bytes.fromhex(LINES["explode"]["payload"])
BATCH = SampleBatch(
    1_767_225_600_000,
    (
        Series("cpu", "CPU", "percent", {"cpu": "total"}),
        Series("mem", "MEMORY", "basic", {}),
        Series("net", "NETWORK", "rate", {"device": "eth0"}),
    ),
    [Row(0, 0, 48_730, 150_519), Row(1, 0, 412_876_800), Row(2, 5, 987_654_321)],
)
WORDS = st.text(max_size=12)
NUMBERS = st.one_of(st.integers(-(1 << 63), (1 << 64) - 1), st.floats())
SERIES = st.builds(Series, WORDS, WORDS, WORDS, st.dictionaries(WORDS, WORDS, max_size=3))


@st.composite
def batches(draw: st.DrawFn, rows_max: int = 30) -> SampleBatch:
    series = draw(st.lists(SERIES, min_size=1, max_size=5))
    row = st.builds(
        Row, st.integers(0, len(series) - 1), st.integers(0, 1 << 33), NUMBERS, st.one_of(st.none(), NUMBERS)
    )
    return SampleBatch(draw(st.integers(0, 1 << 42)), tuple(series), draw(st.lists(row, max_size=rows_max)))


def same(expected: SampleBatch, actual: SampleBatch) -> bool:
    """Equal to the bit: NaN equals NaN, and 1 is not 1.0."""
    return repr(expected) == repr(actual)


@pytest.mark.proves("MEA-022")
def test_worked_body_passes_both_ways() -> None:
    assert BATCH == samples.decode(BODY)
    assert BODY == samples.encode(BATCH)


@pytest.mark.proves("MEA-022", "FUZ-003")
@given(batches())
def test_decoding_what_was_encoded_gives_the_same(batch: SampleBatch) -> None:
    body = samples.encode(batch)
    assert same(batch, samples.decode(body))
    assert body == samples.encode(samples.decode(body))


@pytest.mark.proves("FUZ-003")
@given(batches())
def test_another_library_reads_the_same(batch: SampleBatch) -> None:
    version, t0_ms, series, rows = msgpack.unpackb(samples.encode(batch), strict_map_key=False)
    assert (1, batch.t0_ms) == (version, t0_ms)
    assert [[one.config_name, one.detail, one.type, one.labels] for one in batch.series] == series
    plain = [msgspec.structs.astuple(row)[: 3 if row.base is None else 4] for row in batch.rows]
    assert repr([list(row) for row in plain]) == repr(rows)


@pytest.mark.proves("MEA-022")
def test_whole_counters_stay_exact_to_64_bits() -> None:
    widest = (1 << 64) - 1
    batch = SampleBatch(0, (BATCH.series[0],), [Row(0, 0, widest, -(1 << 63)), Row(0, 0, 2.0, 2)])
    values = [(row.value, row.base) for row in samples.decode(samples.encode(batch)).rows]
    assert [(widest, -(1 << 63)), (2.0, 2)] == values
    assert [int, float] == [type(value) for value, _ in values]


def test_not_a_number_is_kept() -> None:
    value = bytes.fromhex(LINES["m-nan"]["payload"])
    batch = samples.decode(b"\x94\x01\x00\x91\x94\xa1a\xa1b\xa1c\x80\x91\x93\x00\x00" + value)
    assert math.isnan(batch.rows[0].value)


@pytest.mark.proves("MEA-022")
def test_explode_gives_each_row_with_its_series() -> None:
    exploded = list(samples.explode(samples.decode(BODY)))
    assert ["cpu", "mem", "net"] == [row.series.config_name for row in exploded]
    assert [0, 0, 5] == [row.offset_ms for row in exploded]
    means = LINES["explode"]["means"]["rows"]
    expected = [(row["type"], row["value_long"], row["base_long"]) for row in means]
    assert expected == [(row.series.type, row.value, row.base) for row in exploded]


def test_parameter_is_one_of_the_labels() -> None:
    assert "re:^py" == Series("p", "PROC_CPU", "percent", {"param": "re:^py"}).param
    assert "" == BATCH.series[1].param


def _hostile(vector: dict[str, Any]) -> bytes:
    if "payload" in vector:
        return bytes.fromhex(vector["payload"])
    return b"".join(bytes.fromhex(part[1]) * (part[2] if part[0] == "repeat" else 1) for part in vector["make"])


@pytest.mark.proves("FUZ-001")
@pytest.mark.parametrize("name", sorted(name for name in LINES if name.startswith("m-")))
def test_hostile_msgpack_is_refused_wherever_it_stands(name: str) -> None:
    evil = _hostile(LINES[name])
    for body in (
        evil,
        b"\x94\x01\x00" + evil + b"\x90",
        b"\x94\x01\x00\x90" + evil,
        b"\x94\x01\x00\x91\x94\xa0\xa0\xa0" + evil + b"\x90",
        b"\x94\x01\x00\x91\x94\xa0\xa0\xa0\x80\x91\x93\x00\x00" + evil + b"\xff",
    ):
        with pytest.raises(PeerError) as refusal:
            samples.decode(body)
        assert refusal.value.code in ("malformed", "too-large")
        assert len(refusal.value.shown) <= 256


def _packed(version: int, t0_ms: int, series: int, rows: list[list[Any]]) -> bytes:
    return bytes(msgpack.packb([version, t0_ms, [["a", "b", "basic", {}]] * series, rows]))


@pytest.mark.proves("MEA-022", "FUZ-001")
@pytest.mark.parametrize(
    "code, body",
    [
        ("malformed", b""),
        ("malformed", _packed(2, 0, 1, [])),
        ("malformed", _packed(1, -1, 1, [])),
        ("malformed", _packed(1, samples.MS_MAX, 1, [[0, 1, 5]])),
        ("malformed", _packed(1, 0, 1, [[1, 0, 5]])),
        ("malformed", _packed(1, 0, 0, [[0, 0, 5]])),
        ("malformed", _packed(1, 0, 1, [[-1, 0, 5]])),
        ("malformed", _packed(1, 0, 1, [[0, -1, 5]])),
        ("malformed", _packed(1, 0, 1, [[0, 0]])),
        ("malformed", _packed(1, 0, 1, [[0, 0, 1, 1, 1]])),
        ("malformed", _packed(1, 0, 1, [[0, 0, None]])),
        ("malformed", _packed(1, 0, 1, [[0, 0, True]])),
        ("malformed", _packed(1, 0, 1, [[0, 0, "5"]])),
        ("malformed", bytes(msgpack.packb([1, 0, [["a", "b", "c", {str(n): "" for n in range(17)}]], []]))),
        ("malformed", bytes(msgpack.packb([1, 0, [["a", "b", "c", {"x" * 65: ""}]], []]))),
        ("malformed", bytes(msgpack.packb([1, 0, [["a", "b", "c", {"x": "y" * 257}]], []]))),
        ("malformed", bytes(msgpack.packb([1, 0, [["a" * 256, "b", "c", {}]], []]))),
        ("malformed", BODY + b"\x00"),
        ("malformed", BODY[:-1]),
        ("too-large", _packed(1, 0, 1, [[0, 0, 5]] * 1_001)),
        ("too-large", b"\x94\x01\x00\xdd\x00\x00\x4e\x21" + b"\xc0" * 20_001 + b"\x90"),
        ("too-large", bytes(samples.BODY_BYTES_MAX + 1)),
    ],
)
def test_what_is_no_batch_is_refused_by_name(code: str, body: bytes) -> None:
    with pytest.raises(PeerError) as refusal:
        samples.decode(body)
    assert code == refusal.value.code


def test_most_rows_fit() -> None:
    assert 1_000 == len(samples.decode(_packed(1, 0, 1, [[0, 0, 5]] * 1_000)).rows)


@pytest.mark.proves("FUZ-001")
@given(st.one_of(st.binary(max_size=200), st.tuples(st.integers(0, len(BODY) - 1), st.integers(0, 255))))
@example(BODY)
def test_any_bytes_give_a_batch_or_a_refusal(thing: bytes | tuple[int, int]) -> None:
    body = thing if isinstance(thing, bytes) else BODY[: thing[0]] + bytes([thing[1]]) + BODY[thing[0] + 1 :]
    try:
        batch = samples.decode(body)
    except PeerError:
        return
    assert same(batch, samples.decode(samples.encode(batch)))


@given(batches(rows_max=5), st.integers(500, 2_500))
def test_a_batch_beyond_a_limit_is_sent_in_pieces_with_the_same_rows(batch: SampleBatch, rows: int) -> None:
    if not batch.rows:
        return
    large = SampleBatch(batch.t0_ms, batch.series, (batch.rows * rows)[:rows])
    pieces = samples.encode_pieces(large)
    decoded = [samples.decode(body) for _, body in pieces]
    assert repr(list(samples.explode(large))) == repr([row for piece in decoded for row in samples.explode(piece)])
    assert all(len(piece.rows) <= 1_000 for piece in decoded)
    assert len(pieces) == (1 if rows <= 1_000 else 2 if rows <= 2_000 else 4)


def test_a_batch_of_long_labels_is_cut_by_bytes() -> None:
    series = tuple(Series(str(n), "X", "basic", {str(k): "v" * 256 for k in range(16)}) for n in range(500))
    large = SampleBatch(0, series, [Row(n, 0, n) for n in range(500)])
    with pytest.raises(OurFault):
        samples.encode(large)
    pieces = samples.encode_pieces(large)
    assert list(range(500)) == [row.value for piece, _ in pieces for row in piece.rows]
    assert all(len(body) <= 256 << 10 for _, body in pieces)
    assert all(len(piece.series) == len(piece.rows) for piece, _ in pieces)


@given(batches())
def test_the_bound_that_fills_a_batch_is_never_too_small(batch: SampleBatch) -> None:
    most = samples.HEAD_BYTES_MOST + sum(map(samples.series_bytes, batch.series))
    assert len(samples.encode(batch)) <= most + (1 + 3 + 9 + 9 + 9) * len(batch.rows)
