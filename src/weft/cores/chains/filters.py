"""The built-in filters: pure functions of batches and time, one class per kind (specs/05, 2.8).

A filter is handed the rows that its `where` lets it see and says which it takes out and which it could not judge; the
link decides what happens to the latter. Its state is by key, bounded, and survives a change of the configuration that
leaves kind, key and window as they were (CHN-070).
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from weft.base.now import Now
from weft.cores.chains import limits
from weft.cores.chains.settings import FilterSpec, MatchOptions, RateOptions, ThresholdOptions
from weft.cores.chains.view import Value, View
from weft.cores.chains.where import VALUE, field_of


class Judgement(NamedTuple):
    """Rows by their index in the batch."""

    dropped: list[int]
    erred: list[int]


class Filter(Protocol):
    """One filter with its state."""

    def judge(self, view: View, seen: list[int], now: Now) -> Judgement:
        """Which of the rows in `seen` go."""

    def inherit(self, old: "Filter") -> None:
        """Take over the state of the filter of the same name, kind, key and window before it."""


KeyOf = Callable[[int], tuple[object, ...]]


def _keys(view: View, fields: tuple[str, ...]) -> KeyOf:
    """The key of a series of this batch by the named fields, each series looked at once."""
    getters = [field_of(field) for field in fields]
    known: dict[int, tuple[object, ...]] = {}

    def key(index: int) -> tuple[object, ...]:
        found = known.get(index)
        if found is None:
            series = view.series[index]
            found = known[index] = tuple([read(series) for read in getters])
        return found

    return key


class Match:
    """`match`: takes out what does not fulfil `where`, or with `invert` what does. It sees everything (CHN-065)."""

    def __init__(self, spec: FilterSpec, options: MatchOptions) -> None:
        self._where, self._invert = spec.compiled(), options.invert

    def judge(self, view: View, seen: list[int], now: Now) -> Judgement:
        """Nothing can go wrong here: `where` was checked when it was parsed."""
        matching = view.matching(self._where)
        if self._invert:
            return Judgement(list(matching), [])
        if len(matching) == len(seen):
            return Judgement([], [])
        fits = dict.fromkeys(matching)
        return Judgement([index for index in seen if index not in fits], [])

    def inherit(self, old: Filter) -> None:
        """It has no state."""


class Bucket:
    """An integer bucket (CHN-063): capacity burst*per, refilled by elapsed*count, each row costs per. It starts full.

    >>> bucket = Bucket(count=1, per_ns=60, burst=2)
    >>> [bucket.take(at) for at in (0, 1, 2, 60)]
    [1, 1, 0, 1]
    """

    __slots__ = ("_at", "_capacity", "_cost", "_count", "units")

    def __init__(self, count: int, per_ns: int, burst: int) -> None:
        self._count, self._cost, self._capacity = count, per_ns, burst * per_ns
        self.units = self._capacity
        self._at: int | None = None

    def retune(self, count: int, burst: int) -> None:
        """Another rate from now on; what has been spent stays spent."""
        self._count, self._capacity = count, burst * self._cost
        self.units = min(self.units, self._capacity)

    def take(self, at: int, wanted: int = 1) -> int:
        """How many of `wanted` may pass at `at`, in ns that never run backwards."""
        elapsed = 0 if self._at is None else max(0, at - self._at)
        self._at = at
        self.units = min(self._capacity, self.units + elapsed * self._count)
        given = min(wanted, self.units // self._cost)
        self.units -= given * self._cost
        return given


class RateLimit:
    """`rate-limit`: at most `count` rows per `per`, `burst` at once, for each key."""

    def __init__(self, spec: FilterSpec, options: RateOptions) -> None:
        self._options = options
        self._buckets: dict[tuple[object, ...], Bucket] = {}

    def judge(self, view: View, seen: list[int], now: Now) -> Judgement:
        """Take a token for every row, or the row out; by the monotonic clock, which stands still within a batch."""
        key, rows = _keys(view, self._options.key), view.rows
        by_key: dict[tuple[object, ...], list[int]] = {}
        by_series: dict[int, list[int]] = {}  # the list of its key
        for index in seen:
            series = rows[index].series
            if series not in by_series:
                by_series[series] = by_key.setdefault(key(series), [])
            by_series[series].append(index)
        dropped: list[int] = []
        for name, indexes in by_key.items():
            bucket = self._buckets.get(name) or self._new_bucket(name)
            dropped += indexes[bucket.take(now.mono, len(indexes)) :]
        return Judgement(dropped, [])

    def _new_bucket(self, name: tuple[object, ...]) -> Bucket:
        if len(self._buckets) >= limits.KEYS_MAX:
            del self._buckets[next(iter(self._buckets))]
        options = self._options
        bucket = self._buckets[name] = Bucket(options.count, options.per_ns, options.burst)
        return bucket

    def inherit(self, old: Filter) -> None:
        """Go on with its buckets, at the new rate."""
        assert isinstance(old, RateLimit), old
        self._buckets = old._buckets
        for bucket in self._buckets.values():
            bucket.retune(self._options.count, self._options.burst)


class Edge:
    """The state of one key of an edge threshold."""

    __slots__ = ("is_on", "since_ms")

    def __init__(self) -> None:
        self.is_on = False
        self.since_ms: int | None = None
        """When the value came above, if it has not stayed there long enough yet."""


class Threshold:
    """`threshold`: lets rows pass whose value is `above` (or `below`) a limit (CHN-066).

    Mode `pass`: all of them. Mode `edge`, for each key: only the one that completes `for` above, and then the first
    that is back at or under `clear`. Time is that of the samples, so a batch is judged as its rows would be singly.
    """

    def __init__(self, spec: FilterSpec, options: ThresholdOptions) -> None:
        self._options = options
        self._sign = 1 if options.above is not None else -1
        limit = options.above if options.above is not None else options.below
        assert limit is not None, options
        self._limit = limit * self._sign
        self._clear = self._limit if options.clear is None else options.clear * self._sign
        self._hold_ms = options.for_ns // 1_000_000
        self._edges: dict[tuple[object, ...], Edge] = {}

    def judge(self, view: View, seen: list[int], now: Now) -> Judgement:
        """A row without a value is not above anything; a label that is no number is an error."""
        values, erred = self._values(view, seen)
        if self._options.mode == "edge":
            is_kept = self._kept_edges(view, seen, values)
        else:
            is_kept = [value is not None and value > self._limit for value in values]
        dropped = [index for index, keep in zip(seen, is_kept, strict=True) if not keep]
        if erred:
            spared = dict.fromkeys(erred)
            dropped = [index for index in dropped if index not in spared]
        return Judgement(dropped, erred)

    def _values(self, view: View, seen: list[int]) -> tuple[list[Value], list[int]]:
        """The field of each row, turned so that more is more; and the rows whose label is no number."""
        sign = self._sign
        if self._options.field == VALUE:
            found = view.values()
            return [None if (value := found[index]) is None else value * sign for index in seen], []
        read, values, erred = field_of(self._options.field), [], []
        for index in seen:
            text = read(view.series[view.rows[index].series])
            number = _number(text)
            values.append(None if number is None else number * sign)
            if text is not None and number is None:
                erred.append(index)
        return values, erred

    def _kept_edges(self, view: View, seen: list[int], values: list[Value]) -> list[bool]:
        by_fields = _keys(view, self._options.key) if self._options.key else None
        kept = []
        for index, value in zip(seen, values, strict=True):
            row = view.rows[index]
            key = view.key(row.series) if by_fields is None else by_fields(row.series)
            at_ms = view.batch.t0_ms + row.offset_ms
            kept.append(value is not None and self._is_edge(self._edge(key), at_ms, value))
        return kept

    def _edge(self, key: tuple[object, ...]) -> Edge:
        edge = self._edges.get(key)
        if edge is None:
            if len(self._edges) >= limits.KEYS_MAX:
                del self._edges[next(iter(self._edges))]
            edge = self._edges[key] = Edge()
        return edge

    def _is_edge(self, edge: Edge, at_ms: int, value: float) -> bool:
        if edge.is_on:
            edge.is_on = value > self._clear
            return not edge.is_on
        if not value > self._limit:
            edge.since_ms = None
            return False
        if edge.since_ms is None or at_ms < edge.since_ms:
            edge.since_ms = at_ms
        edge.is_on = at_ms - edge.since_ms >= self._hold_ms
        if edge.is_on:
            edge.since_ms = None
        return edge.is_on

    def inherit(self, old: Filter) -> None:
        """Go on with its edges."""
        assert isinstance(old, Threshold), old
        self._edges = old._edges


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def make(spec: FilterSpec) -> Filter:
    """The filter of a specification, with a fresh state."""
    return MAKERS[spec.kind](spec, spec.options)


MAKERS: Final[dict[str, Callable[..., Filter]]] = {"match": Match, "rate-limit": RateLimit, "threshold": Threshold}
