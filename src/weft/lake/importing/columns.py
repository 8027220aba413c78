"""Builds the columns of a segment from imported rows, in the order of their files.

`lake.columns` does this for journal records; here each row may have a different series and time. What many rows share
(source, definition, attributes) is stored once, as an `Owner`. Manifest, Parquet file and publication are the same as
in the recorder (LAK-003..010).
"""

from typing import TYPE_CHECKING, Any, Final

from weft.base.ranges import RangeSet
from weft.lake import schemas
from weft.lake.columns import Account
from weft.lake.explode import SERIES_TEXTS, error_columns, repeated_text, typed
from weft.lake.importing.found import About
from weft.lake.segments import Place, Segment

if TYPE_CHECKING:
    import pyarrow as pa

ROW_BYTES: Final = 64  # estimated size of a row in memory


class Owner:
    """What all rows of one series of one source in one file have in common."""

    __slots__ = ("about", "attributes", "era", "origin")

    def __init__(self, about: About, origin: str, era: int, attributes: list[tuple[str, str]]) -> None:
        self.about, self.origin, self.era = about, origin, era
        self.attributes = sorted([*attributes, *about.attributes])


class ImportedColumns:
    """Columns of one segment while it is filled."""

    def __init__(self, received_ns: int, lsn: int) -> None:
        self.received_ns, self.first_lsn = received_ns, lsn + 1
        self.bytes = 0
        self.errors: dict[int, tuple[str, bytes]] = {}
        self._owner: list[int] = []
        self._sequence: list[int] = []
        self._at_ns: list[int | None] = []
        self._value: list[int | float | None] = []
        self._base: list[int | float | None] = []
        self._owners: dict[Owner, int] = {}

    @property
    def rows(self) -> int:
        return len(self._owner)

    @property
    def last_lsn(self) -> int:
        """Number of the last row. Each row has an lsn of its own, one above that of the row before."""
        return self.first_lsn + self.rows - 1

    def add(self, owner: Owner, sequence: int, at_ns: int | None, value: Any, base: Any) -> None:
        """Add a row."""
        index = self._owners.get(owner)
        if index is None:
            index = self._owners[owner] = len(self._owners)
        # five lists instead of one list of tuples: a tuple per row would be one more object for the garbage collector
        self._owner.append(index)
        self._sequence.append(sequence)
        self._at_ns.append(at_ns)
        self._value.append(value)
        self._base.append(base)
        self.bytes += ROW_BYTES

    def refuse(self, owner: Owner, sequence: int, error: tuple[str, bytes]) -> None:
        """Add a line that could not be read, with its original text."""
        self.errors[self.rows] = error
        self.add(owner, sequence, None, None, None)
        self.bytes += len(error[1])

    def seen(self) -> dict[tuple[str, int | None], RangeSet]:
        """The numbers of all rows, by origin and era."""
        places: dict[tuple[str, int | None], int] = {}
        place_of = [places.setdefault((owner.origin, owner.era), len(places)) for owner in self._owners]
        sets = [RangeSet() for _ in places]
        runs = [(0, -1)] * len(sets)
        for owner, sequence in zip(self._owner, self._sequence, strict=True):
            place = place_of[owner]
            first, last = runs[place]
            if sequence == last + 1:
                runs[place] = first, sequence
                continue
            if first:
                sets[place].add(first, last)
            runs[place] = sequence, sequence
        for numbers, run in zip(sets, runs, strict=True):
            numbers.add(*run)
        return dict(zip(places, sets, strict=True))

    def table(self) -> "pa.Table":
        """The columns in the order of the schema."""
        import pyarrow as pa

        int64 = pa.int64()
        arrays: dict[str, Any] = {
            "sequence": pa.array(self._sequence, int64),
            "at_ns": pa.array(self._at_ns, int64),
            "received_ns": pa.repeat(pa.scalar(self.received_ns, int64), self.rows),
            "lsn": pa.array(range(self.first_lsn, self.last_lsn + 1), int64),
            "text": pa.nulls(self.rows, pa.string()),
        }
        arrays |= typed("value", self._value, pa.array) | typed("base", self._base, pa.array)
        arrays |= self._of_owners(pa.array(self._owner, pa.int32())) | error_columns(self.errors, self.rows)
        names = schemas.SAMPLES.names
        return pa.table([arrays[name] for name in names], names=list(names))

    def _of_owners(self, index: "pa.Array") -> "dict[str, pa.Array]":
        import pyarrow as pa

        owners = list(self._owners)
        definitions = [owner.about.definition for owner in owners]
        maps = pa.map_(pa.string(), pa.string())
        arrays: dict[str, Any] = {
            "era": pa.array([owner.era for owner in owners], pa.int64()),
            "series": pa.array([None if one is None else one.key() for one in definitions], pa.int64()),
            "config_number": pa.array([owner.about.config_number for owner in owners], pa.int64()),
            "labels": pa.array([None if one is None else list(one.labels) for one in definitions], maps),
            "attributes": pa.array([owner.attributes for owner in owners], maps),
        }
        arrays = {name: values.take(index) for name, values in arrays.items()}
        texts: dict[str, list[Any]] = {
            name: [None if one is None else one[place] for one in definitions]
            for place, name in enumerate(SERIES_TEXTS)
        }
        for name, values in (texts | {"origin": [owner.origin for owner in owners]}).items():
            arrays[name] = repeated_text(values, index)
        return arrays


class ImportedSegment(Segment):
    """A segment of the recorder that is filled from imported lines instead of records."""

    def __init__(self, place: Place, columns: ImportedColumns) -> None:
        super().__init__(place)
        self.imported = columns
        self.columns = columns  # type: ignore[assignment]  # publication only uses table, rows and bytes

    def close(self) -> None:
        """Write into the manifest what the columns hold."""
        account = self.account = Account()
        account.seen = self.imported.seen()
        account.first_received = account.last_received = self.imported.received_ns
        for number in (self.imported.first_lsn, self.imported.last_lsn):
            account.note(number)
