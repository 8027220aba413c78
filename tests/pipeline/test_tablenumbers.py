"""The numbers that tables hold, against sets of integers."""

from typing import Any

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import example, given

from weft.base.vectors import VersionVector
from weft.lake.manifest import origin_of
from weft.pipeline.tablenumbers import SHIFT, TableNumbers, numbers_in, union
from weft.pipeline.tables import SAMPLES, Table

A, B = "0b" * 16, "6f" * 16
BUCKET = 1 << SHIFT
NUMBERS = (
    st.integers(1, 3 * BUCKET)
    | st.integers(BUCKET - 3, BUCKET + 3)
    | st.sampled_from((None, 0, -1, -(1 << 63), (1 << 63) - 1))
)
ROWS = st.lists(st.tuples(st.sampled_from((A, A, B, None)), st.sampled_from((1, 2, None)), NUMBERS), max_size=40)
DENSE = [(A, 1, number) for number in range(1, 3 * BUCKET)]
COLUMNS = pa.schema([("origin", pa.string()), ("era", pa.int64()), ("sequence", pa.int64()), ("batch", pa.int64())])


class Rows:
    """A lake with one table; asked as lakes are."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self.connection = duckdb.connect()
        columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
        self.connection.register("held", pa.table([list(column) for column in columns], schema=COLUMNS))
        self.connection.execute("CREATE SCHEMA silver; CREATE VIEW silver.samples AS FROM held")

    def tables(self) -> list[Table]:
        return [SAMPLES]

    def query(self, sql: str) -> pa.Table:
        return self.connection.sql(sql).to_arrow_table()


def held(rows: list[tuple[Any, ...]], upto: int = 1) -> TableNumbers:
    return numbers_in(Rows(rows), SAMPLES, upto)  # type: ignore[arg-type]  # what it asks of a lake


@pytest.mark.prove("long histories")
@pytest.mark.proves("PIP-063")
@given(rows=ROWS)
@example(rows=DENSE)
@example(rows=[*DENSE[:BUCKET], *DENSE[BUCKET + 1 :], *DENSE[-2:]])
def test_numbers_rows_and_repetitions_are_those_of_a_plain_count(rows: list[tuple[Any, ...]]) -> None:
    found = held([(*row, 1) for row in rows])
    named = [(origin, era, number) for origin, era, number in rows if origin is not None and (number or 0) >= 1]
    expected = VersionVector()
    for origin, era, number in named:
        expected.add(origin_of(origin, era), number)
    assert found == TableNumbers(len(rows), len(named) - len(set(named)), expected)


def test_what_came_later_is_not_held_yet() -> None:
    assert held([(A, 1, 1, 1), (A, 1, 2, 2)]).numbers == VersionVector([(origin_of(A, 1), [(1, 1)])])


def test_what_several_tables_hold_is_held_by_none_of_them_alone() -> None:
    parts = [held([(A, 1, 1, 1)]), held([(A, 1, 2, 1), (B, None, 7, 1)])]
    assert union(parts) == VersionVector([(origin_of(A, 1), [(1, 2)]), (origin_of(B, None), [(7, 7)])])
    assert parts[0].numbers == VersionVector([(origin_of(A, 1), [(1, 1)])])
