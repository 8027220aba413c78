"""The rows of a batch are the same by either reader, and so are its tables (PIP-012)."""

from typing import Any

import pytest

from pyspark_weft.options import parse_options
from tests.pipeline.ground import MEM, OTHER_DRAIN, Ground, single, taken
from tests.pipeline.worlds import compare, play, world
from weft.base.chance import Chance
from weft.base.errors import UserError
from weft.lake.reader import Slice, Source
from weft.pipeline import batch
from weft.pipeline.source import by_files, by_source, rows_of

pytestmark = pytest.mark.prove("whole batches in Spark, by every reader")

SEED = "either reader"


def seen(frame: Any) -> list[tuple[Any, ...]]:
    rows = frame.select("drain", "segment", "row", "origin", "sequence", "value_long", "error").collect()
    return sorted(tuple(map(str, row)) for row in rows)


def test_slices_have_the_same_rows_in_the_same_places(ground: Ground) -> None:
    ground.write(taken(1, [(MEM, n, None) for n in range(9)]), single(10, b"\xc1"))
    ground.write(taken(11, [(MEM, n, None) for n in range(5)]))
    ground.write(taken(21, [(MEM, n, None) for n in range(5)]), drain=OTHER_DRAIN)
    source = Source(ground.lake, "samples")
    whole = source.slices(source.earliest(), source.latest())
    cut = [whole[0]._replace(first=2, last=10), whole[1], whole[2]._replace(last=3)]
    for slices, count in ((whole, 20), (cut, 16), (whole[:2], 15), (cut[:2], 13), (whole[2:], 5)):
        found = seen(by_source(ground.spark, "samples", slices))
        assert count == len(found)
        assert found == seen(by_files(ground.spark, "samples", slices))


@pytest.mark.proves("PIP-012", part="both readers give the tables of the oracle")
def test_tables_are_those_of_the_oracle_by_the_reader_that_is_not_used(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert by_files is rows_of, "all other tests are of this one"
    monkeypatch.setattr(batch, "rows_of", by_source)
    history = world(Chance(SEED), batches=2)
    for arrival in history.arrivals:
        play(ground, arrival)
    ground.job.fold()
    compare(ground, history.expected())


def test_slices_that_are_none_are_refused() -> None:
    with pytest.raises(UserError) as refused:
        parse_options({"lake": "l", "stream": "samples", "slices": '[["d"]]'})
    assert "bad-option" == refused.value.code
    one = Slice("d", 1, "p", 0, 1, 1, 1, "")
    assert None is parse_options({"lake": "l", "stream": "samples"}).slices
    assert one.is_whole
