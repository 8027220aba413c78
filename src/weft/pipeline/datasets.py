"""Which drains are datasets: those whose id is the hash of the name that their rows give (PIP-095, PIP-097).

Rows of a dataset name it, as an attribute; but so might any record of a foreign node. The drain of a dataset is the hash
of its name, so the two prove one another, and nothing needs to be registered: a lake is its own witness.
"""

from collections.abc import Iterable
from typing import Final

from weft.lake.importing.identity import is_dataset
from weft.lake.reader import Slice

ATTRIBUTE: Final = "dataset"


def proven(claims: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Of drains and the names that their rows give, those that are datasets.

    >>> proven([("d1" * 16, "attic"), ("d2" * 16, None)])
    {}
    """
    return {drain: name for drain, name in claims if name is not None and is_dataset(drain, name)}


class Datasets:
    """Remembers of each drain whether it is one of a dataset: its segments are looked at once."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}

    def among(self, slices: Iterable[Slice]) -> dict[str, str]:
        """The drains of datasets among those of some slices of segments of samples, and what they are called."""
        some = {piece.drain: piece.path for piece in slices if piece.rows}
        for drain, path in some.items():
            if drain not in self._known:
                self._known[drain] = proven([(drain, _claimed(path))]).get(drain)
        return {drain: name for drain in some if (name := self._known[drain]) is not None}


def _claimed(path: str) -> str | None:
    """What the first row of a segment says."""
    import pyarrow.parquet as pq

    rows = next(pq.ParquetFile(path).iter_batches(batch_size=1, columns=["attributes"]))
    name: str | None = dict(rows.column(0)[0].as_py() or ()).get(ATTRIBUTE)
    return name
