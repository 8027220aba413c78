"""One driver takes the batches (HSE-006, PIP-100): no query of Spark's does, and no module but it and the commands of one batch."""

import ast
from collections.abc import Iterator

import pytest

from tests.house.places import places_of
from tests.tidy.tree import parsed

QUERIES = {"writeStream", "foreachBatch", "awaitTermination"}
JOBS = {"Job", "SamplesJob"}
EXPECTED = {
    "weft/pipeline/runner.py": JOBS,
    "weft/cli/lake_anomalies.py": {"SamplesJob"},  # each holds the driver's lease
    "weft/cli/lake_mend.py": JOBS,
    "weft/cli/lake_quarantine.py": JOBS,
    "weft/pipeline/mending/rebuild.py": {"Job"},  # the type of what they are given
    "weft/pipeline/releasing.py": {"Job"},
}
"""Who imports what makes batches."""


def driving(text: str) -> Iterator[str]:
    """What of a module begins a query of Spark's, or takes batches itself."""
    module = parsed(text)
    yield from (node.attr for node in module.of(ast.Attribute) if node.attr in QUERIES)
    for node in module.of(ast.ImportFrom):
        if node.module == "weft.pipeline.job":
            yield from (name.name for name in node.names if name.name in JOBS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("frame.writeStream.foreachBatch(f).start()", {"writeStream", "foreachBatch"}),
        ("from weft.pipeline.job import Done, Job", {"Job"}),
        ("from weft.pipeline.job import Done", set()),
    ],
)
def test_what_takes_batches_is_found(text: str, expected: set[str]) -> None:
    assert expected == set(driving(text))


@pytest.mark.proves("HSE-006")
@pytest.mark.proves("PIP-100", part="no query of Spark's takes batches, and one runner does")
def test_one_driver_takes_the_batches() -> None:
    assert EXPECTED == places_of(driving)
