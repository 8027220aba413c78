"""Filters that sum up samples by window and group: `aggregate` (CHN-067).

No node without such a filter loads this module.
"""

from collections.abc import Iterator

from weft.base.now import Now
from weft.cores.chains import limits
from weft.cores.chains.absorbing import Absorbing, AbsorbingLink, Part
from weft.cores.chains.columns import Columns, Group, columns_of
from weft.cores.chains.filters import Judgement
from weft.cores.chains.links import FilterLink
from weft.cores.chains.messageview import ENCODERS, MessageView, packed
from weft.cores.chains.options import AggregateOptions
from weft.cores.chains.parcel import Parcel
from weft.cores.chains.plain import plain_reader
from weft.cores.chains.settings import FilterSpec
from weft.cores.chains.states import Verdict
from weft.cores.chains.windows import SKETCH, Cell, CellKey, Windows, are_plain, is_aggregate, number, why_no_aggregate


class AggregateLink(AbsorbingLink):
    """`aggregate`: windows of time, by group."""

    def __init__(self, spec: FilterSpec, hub: Absorbing) -> None:
        super().__init__(spec, hub)
        assert isinstance(spec.options, AggregateOptions), spec
        self._options = spec.options
        self._plain = plain_reader(spec.options) if self._sees_all else None
        self.windows = Windows(spec.options)
        self._wall = 0

    def follow(self, old: FilterLink) -> None:
        """Take over the counters of the old filter, and its open windows if they still mean the same."""
        self.counters = old.counters
        if isinstance(old, AggregateLink) and self.spec.state == old.spec.state:
            self.windows = old.windows
            self.windows.options = self._options

    def absorb_whole(self, parcel: Parcel, now: Now) -> Verdict | None:
        if self._plain is None or parcel.depth >= limits.DEPTH_MAX:
            return None
        columns = self._plain.read(parcel)
        if columns is None:
            return None
        self._wall = now.wall
        cells: dict[CellKey, Cell] = {}
        self._count(parcel, columns, cells)
        if cells:
            self._keep(parcel, lambda: parcel.frames, cells.values())
        count, counters = len(columns.times), self.counters
        counters.offered += count
        counters.dropped += count
        counters.changed += 1
        return Verdict.DROPPED

    def _take(self, view: MessageView, parcel: Parcel, seen: list[int], now: Now) -> Judgement:
        self._wall = now.wall
        records = view.records
        parts = [index for index in seen if SKETCH in records[index] and is_aggregate(records[index])]
        plain = without(seen, parts)
        values, erred = self._values(view, plain)
        erred += [index for index in parts if why_no_aggregate(records[index])]
        if erred and self.spec.on_error == "fail":
            return Judgement([], erred)
        cells: dict[CellKey, Cell] = {}
        if values:
            self._count(parcel, columns_of(view, self._options.group, without(plain, erred), values), cells)
        for index in without(parts, erred):
            self._merge(view, parcel, index, cells)
        if cells:
            self._keep(parcel, view.close, cells.values())
        return Judgement(without(seen, erred), erred)

    def _values(self, view: MessageView, plain: list[int]) -> tuple[list[float], list[int]]:
        """The number of each record that has one, and the records without one."""
        found = view.fields(self._options.field, plain)
        if are_plain(found):
            return found, []
        numbers = [number(value) for value in found]
        return (
            [value for value in numbers if value is not None],
            [index for index, value in zip(plain, numbers, strict=True) if value is None],
        )

    def _count(self, parcel: Parcel, columns: Columns, cells: dict[CellKey, Cell]) -> None:
        for start, group, values, last_at in columns.parts(self._options.window_ns):
            cell = self._cell(parcel, start, group)
            if cell is not None:
                cell.add(values, last_at, values[-1])
                cells[cell.key] = cell

    def _merge(self, view: MessageView, parcel: Parcel, index: int, cells: dict[CellKey, Cell]) -> None:
        record = view.records[index]
        start = record["start"] - record["start"] % self._options.window_ns
        group = [view.fields(field, [index])[0] for field in self._options.group]
        cell = self._cell(parcel, start, group)
        if cell is not None:
            cell.merge(record)
            cells[cell.key] = cell

    def _cell(self, parcel: Parcel, start: int, group: Group) -> Cell | None:
        """The window and group; None if it was emitted already with what this message has for it."""
        key = packed(group)
        if parcel.counted_in and (self.name, start, key) in parcel.counted_in:
            return None
        return self.windows.cell(start, (self._options.name or parcel.type, parcel.fmt, key), group, self._wall)

    def _part(self, cell: Cell) -> Part:
        _, start, kind, fmt, key = cell.key
        frame = ENCODERS[fmt](cell.result(self._options))
        return self._mail(kind, (frame,), fmt, cell.depth, self._wall), cell.holds, (start, key)

    def due(self, now: Now) -> int | None:
        due = self.windows.due
        return None if due is None else now.mono + due - now.wall

    def close(self, now: Now) -> Iterator[Part]:
        self._wall = now.wall
        return map(self._part, self.windows.close(now.wall))

    def close_all(self) -> Iterator[Part]:
        return map(self._part, self.windows.close_all())


def without(some: list[int], gone: list[int]) -> list[int]:
    """What is left."""
    if not gone:
        return some
    found = dict.fromkeys(gone)
    return [index for index in some if index not in found]
