"""Finds the drains of datasets: a drain whose id is the hash of the name in its rows (PIP-095, PIP-097).

Rows of a dataset name it in an attribute, but a foreign node could write that attribute too. Since the drain's id is
the hash of the name, the two confirm each other, and nothing needs to be registered.
"""

from collections.abc import Iterable
from typing import Final

from weft.lake.importing.identity import is_dataset
from weft.lake.reader import Slice

ATTRIBUTE: Final = "dataset"


def proven(claims: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """The drains that are datasets, with their names; from pairs of a drain and the name in its rows.

    >>> proven([("d1" * 16, "attic"), ("d2" * 16, None)])
    {}
    """
    return {drain: name for drain, name in claims if name is not None and is_dataset(drain, name)}


class Datasets:
    """Remembers for each drain whether it is a dataset; examines its segments once."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}

    def among(self, slices: Iterable[Slice]) -> dict[str, str]:
        """The drains of some slices of sample segments that are datasets, with their names."""
        paths = {piece.drain: piece.path for piece in slices if piece.rows}
        for drain, path in paths.items():
            if drain not in self._known:
                self._known[drain] = proven([(drain, _claimed(path))]).get(drain)
        return {drain: name for drain in paths if (name := self._known[drain]) is not None}


def _claimed(path: str) -> str | None:
    """The dataset name in the first row of a segment."""
    import pyarrow.parquet as pq

    rows = next(pq.ParquetFile(path).iter_batches(batch_size=1, columns=["attributes"]))
    name: str | None = dict(rows.column(0)[0].as_py() or ()).get(ATTRIBUTE)
    return name
