"""Version vectors against a model of plain sets, and WV1 against every way of writing it wrong."""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.base.strategies import ORIGINS, SPANS, VECTORS
from weft.base.errors import PeerError
from weft.base.identity import Origin
from weft.base.ranges import Range, RangeSet
from weft.base.vectors import NUMBER_MAX, VersionVector

VECTOR_FILE = Path(__file__).parents[1] / "vectors" / "pipeline.jsonl"
LINES: list[dict[str, Any]] = [json.loads(line) for line in VECTOR_FILE.read_text("utf-8").splitlines()]
WRITTEN = [line for line in LINES if line["id"].startswith("wv-") and "refused" not in line["means"]]
REFUSED = [line for line in LINES if line["id"].startswith("wv-") and "refused" in line["means"]]

FEW_ORIGINS = st.sampled_from([Origin(bytes(16), 1), Origin(bytes(16), 2), Origin("n1", None)])
FEW = st.lists(st.tuples(FEW_ORIGINS, st.lists(SPANS, max_size=5)), max_size=4).map(VersionVector)
Model = dict[Origin, set[int]]


def model_of(vector: VersionVector) -> Model:
    return {origin: {n for first, last in ranges for n in range(first, last + 1)} for origin, ranges in vector}


def origin_of(name: str, era: int | None) -> Origin:
    return Origin(name if era is None else bytes.fromhex(name), era)


def decoded(data: bytes) -> VersionVector | str:
    """The vector, or the code of its refusal."""
    try:
        return VersionVector.decode(data)
    except PeerError as error:
        return error.code


def test_the_file_has_vectors() -> None:
    assert (7, 8) == (len(WRITTEN), len(REFUSED))


@pytest.mark.parametrize("line", WRITTEN, ids=lambda line: line["id"])
def test_written_vector(line: dict[str, Any]) -> None:
    data = bytes.fromhex(line["payload"])
    vector = VersionVector((origin_of(name, era), ranges) for name, era, ranges in line["means"]["entries"])
    assert vector == VersionVector.decode(data)
    assert data == vector.encode()
    assert line["means"]["blake2b_128"] == vector.digest()


@pytest.mark.parametrize("line", REFUSED, ids=lambda line: line["id"])
def test_refused_vector(line: dict[str, Any]) -> None:
    assert line["means"]["refused"] == decoded(bytes.fromhex(line["payload"]))


@given(VECTORS)
def test_decode_of_encode_is_identity(vector: VersionVector) -> None:
    data = vector.encode()
    assert vector == VersionVector.decode(data)
    assert data == VersionVector.decode(data).encode()
    assert blake2b(data, digest_size=16).hexdigest() == vector.digest()


@given(VECTORS, st.data())
def test_a_changed_byte_is_refused_or_another_canonical_vector(vector: VersionVector, data: st.DataObject) -> None:
    written = bytearray(vector.encode())
    at = data.draw(st.integers(0, len(written) - 1))
    written[at] ^= data.draw(st.integers(1, 255))
    outcome = decoded(bytes(written))
    assert isinstance(outcome, str) or (outcome != vector and outcome.encode() == bytes(written))


@given(VECTORS, st.data())
def test_every_piece_of_a_vector_is_refused(vector: VersionVector, data: st.DataObject) -> None:
    written = vector.encode()
    length = data.draw(st.integers(0, len(written) - 1))
    assert decoded(written[:length]) in ("truncated", "unknown-format")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_vector_or_refused(data: bytes) -> None:
    for written in (data, b"WV1" + data):
        outcome = decoded(written)
        assert isinstance(outcome, str) or outcome.encode() == written


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param("01 026e31 02 01 0100", id="unknown era mark"),
        pytest.param("01 00 00 01 0100", id="origin of no bytes"),
        pytest.param("01 8101" + "61" * 129 + "00 01 0100", id="origin too long"),
        pytest.param("01 01ff 00 01 0100", id="origin is not text"),
        pytest.param("01 20" + "30" * 32 + "01 0000000000000001 01 0100", id="a node written as text"),
        pytest.param("02 026e31 00 01 0100 026e31 00 01 0100", id="one origin twice"),
        pytest.param("01 026e31 00 01 ffffffffffffffffff01 01", id="last over 64 bits"),
        pytest.param("01 026e31 00 01 ffffffffffffffffff02 00", id="number over 64 bits"),
        pytest.param("01 026e31 00 01 ffffffffffffffffffff01 00", id="number of eleven bytes"),
        pytest.param("ffffffffffffffffff02", id="number of entries over 64 bits"),
    ],
)
def test_what_is_not_canonical_is_refused(payload: str) -> None:
    assert decoded(b"WV1" + bytes.fromhex(payload)) == "not-canonical"


def test_the_highest_number_is_written() -> None:
    vector = VersionVector([(Origin("n1", None), [(NUMBER_MAX, NUMBER_MAX)])])
    assert vector == VersionVector.decode(vector.encode())


@pytest.mark.parametrize("origin", [Origin(b"x" * 16, None), Origin("0123456789abcdef", 1), Origin("ab" * 16, 1)])
def test_an_origin_that_would_come_back_as_another_cannot_be_written(origin: Origin) -> None:
    with pytest.raises(AssertionError):
        VersionVector([(origin, [(1, 1)])]).encode()


@given(VECTORS)
def test_entries_come_in_canonical_order_whatever_the_order_of_arrival(vector: VersionVector) -> None:
    backwards = VersionVector(reversed(list(vector)))
    assert list(vector) == list(backwards)
    assert vector.encode() == backwards.encode()


@given(FEW, FEW)
def test_union_and_difference_are_those_of_sets(left: VersionVector, right: VersionVector) -> None:
    a, b = model_of(left), model_of(right)
    union = {origin: a.get(origin, set()) | b.get(origin, set()) for origin in a | b}
    rest = {origin: numbers - b.get(origin, set()) for origin, numbers in a.items()}
    assert union == model_of(left | right)
    assert {origin: numbers for origin, numbers in rest.items() if numbers} == model_of(left - right)
    assert (a, b) == (model_of(left), model_of(right)), "operands stay as they were"
    assert left | right == right | (left - right), "anti-entropy sends the difference, and no more"
    for result in (left | right, left - right):
        for origin, _ in result:
            result.add(origin, 1_000)
    assert (a, b) == (model_of(left), model_of(right)), "results share nothing with operands"


@given(FEW, FEW_ORIGINS, SPANS)
def test_adding_and_asking(vector: VersionVector, origin: Origin, span: Range) -> None:
    first, last = span
    before = model_of(vector).get(origin, set())
    twin = vector.copy()
    assert len(set(range(first, last + 1)) - before) == vector.add(origin, first, last)
    after = before | set(range(first, last + 1))
    assert after == model_of(vector)[origin]
    assert [number in after for number in range(60)] == [vector.contains(origin, number) for number in range(60)]
    assert next(n for n in range(100) if n + 1 not in after) == vector.prefix(origin)
    assert before == model_of(twin).get(origin, set()), "copies share nothing"


def test_asking_for_an_unknown_origin_adds_nothing() -> None:
    vector = VersionVector()
    assert RangeSet() == vector[Origin("n1", None)]
    assert not vector.contains(Origin("n1", None), 1)
    assert (0, False, False) == (len(vector), bool(vector), Origin("n1", None) in vector)


@given(ORIGINS)
def test_an_origin_without_numbers_is_no_entry(origin: Origin) -> None:
    assert VersionVector() == VersionVector([(origin, [])])


def test_a_mutable_vector_is_no_key_and_no_other_thing() -> None:
    with pytest.raises(TypeError):
        hash(VersionVector())
    assert VersionVector() != {}
