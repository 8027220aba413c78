"""The built-in filters: pure functions of records and time, one class per kind (CHN-060 to CHN-072).

A filter gets the records that its `where` and `when` select. It returns which ones to drop and which ones it could not
judge; the link decides about the latter. Its state is by key and bounded. It survives a change of the configuration
that leaves kind, key and window as they were (CHN-070).
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from copy import deepcopy
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Protocol
from zlib import crc32

from weft.base.now import Now
from weft.cores.chains import limits
from weft.cores.chains.options import (
    DedupeOptions,
    MatchOptions,
    PythonOptions,
    RateOptions,
    SampleOptions,
    ThresholdOptions,
)
from weft.cores.chains.settings import FilterSpec
from weft.cores.chains.viewed import Value, Viewed


class Judgement(NamedTuple):
    """The verdict: indices of records."""

    dropped: list[int]
    erred: list[int]
    is_changed: bool = False
    """Whether any record that stays was changed."""


FINE: Final = Judgement([], [])


class House(NamedTuple):
    """What filters may use of their node."""

    secret: bytes = b""
    """Known to this node only; the key for `hash` is derived from it."""
    node: bytes = b""
    """The node's id: the origin of messages that the filter makes."""
    functions: Mapping[str, Callable[[dict[Any, Any]], Any]] = {}
    """Functions of this machine, by `module:function`."""


NOWHERE: Final = House()


class Filter(Protocol):
    """One filter with its state."""

    def judge(self, view: Viewed, seen: list[int], now: Now) -> Judgement:
        """Which of the records in `seen` to drop."""

    def inherit(self, old: Any) -> None:
        """Take over the state of the preceding filter with the same name, kind, key and window."""


class Match:
    """`match`: drops records that do not fulfil `where` and `when`, or with `invert` those that do (CHN-065)."""

    def __init__(self, spec: FilterSpec, options: MatchOptions, house: House) -> None:
        self._invert = options.invert

    def judge(self, view: Viewed, seen: list[int], now: Now) -> Judgement:
        """Cannot fail: every selected record matches."""
        if self._invert:
            return Judgement(list(seen), []) if seen else FINE
        if len(seen) == len(view.kept):
            return FINE
        fits = dict.fromkeys(seen)
        return Judgement([index for index in view.kept if index not in fits], [])

    def inherit(self, old: Filter) -> None:
        """It has no state."""


class Python:
    """`python`: a function on this machine's disk judges each record (CHN-069).

    It gets a copy of the record and returns it, changed or not, or None to drop it. An exception, or any other result,
    is an error of that record.
    """

    def __init__(self, spec: FilterSpec, options: PythonOptions, house: House) -> None:
        self._function = house.functions[options.call]

    def judge(self, view: Viewed, seen: list[int], now: Now) -> Judgement:
        """Record by record."""
        dropped: list[int] = []
        erred: list[int] = []
        is_changed = False
        for index in seen:
            record = view.record(index)
            try:
                result = self._function(deepcopy(record))
            except Exception:  # noqa: BLE001 - a foreign function may raise anything
                erred.append(index)
                continue
            if result is None:
                dropped.append(index)
            elif type(result) is not dict:
                erred.append(index)
            elif result != record:
                if view.put(index, result):
                    is_changed = True
                else:
                    erred.append(index)
        return Judgement(dropped, erred, is_changed)

    def inherit(self, old: Filter) -> None:
        """The function's state, if any, is its own."""


class HandOver:
    """`forward` and `journal`: the link itself does the work, for the messages that it selects (CHN-068)."""

    def __init__(self, spec: FilterSpec, options: object, house: House) -> None:
        """It has no options."""

    def judge(self, view: Viewed, seen: list[int], now: Now) -> Judgement:
        """Drops nothing."""
        return FINE

    def inherit(self, old: Filter) -> None:
        """It has no state."""


def short(key: bytes) -> bytes:
    """A state's key; a long one is replaced by its digest, so that states stay small."""
    return key if len(key) <= limits.KEY_BYTES_MAX else blake2b(key, digest_size=limits.KEY_BYTES_MAX).digest()


def mixed(value: int) -> int:
    """The last step of MurmurHash3: spreads values that crc32 leaves close together (CHN-062)."""
    value ^= value >> 16
    value = value * 0x85EBCA6B & 0xFFFF_FFFF
    value ^= value >> 13
    value = value * 0xC2B2AE35 & 0xFFFF_FFFF
    return value ^ value >> 16


class Sample:
    """`sample`: keeps a share of the identities (`rate`), or the first of each n (`every`); CHN-062.

    A rate decides only by the identity, or by the fields of `key`: the same record gets the same decision always, also
    after a restart and at every other node.
    """

    def __init__(self, spec: FilterSpec, options: SampleOptions, house: House) -> None:
        self._options, self._node = options, house.node
        self._salted = crc32(options.salt.encode() + b"\0")
        self._below = int(options.rate * (1 << 32)) if options.rate is not None else 0
        self._is_of_identity = options.rate is not None and not options.key
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def judge(self, view: Viewed, seen: list[int], now: Now) -> Judgement:
        """Cannot fail: a missing field counts as nil."""
        key = self._options.key
        if self._is_of_identity and view.is_one and seen:
            which = view.identities(seen[:1], self._node)[0]
            return FINE if mixed(crc32(which, self._salted)) < self._below else Judgement(list(seen), [])
        if self._options.rate is None:
            keys = view.keys(key, seen) if key else [b""] * len(seen)
            dropped = [index for index, which in zip(seen, keys, strict=True) if not self._is_first(short(which))]
        else:
            keys = view.keys(key, seen) if key else view.identities(seen, self._node)
            salted, below = self._salted, self._below
            dropped = [index for index, which in zip(seen, keys, strict=True) if mixed(crc32(which, salted)) >= below]
        return Judgement(dropped, []) if dropped else FINE

    def _is_first(self, key: bytes) -> bool:
        count = self._counts.get(key)
        if count is None:
            count = 0
            _make_room(self._counts)
        self._counts[key] = (count + 1) % self._options.every
        return count == 0

    def inherit(self, old: "Sample") -> None:
        """Take over the counters."""
        self._counts = old._counts


def _make_room(states: OrderedDict[Any, Any]) -> None:
    """Make room for one more state by dropping the oldest.

    A plain dict would search for its first entry among all deleted ones.
    """
    if len(states) >= limits.KEYS_MAX:
        states.popitem(last=False)


class Bucket:
    """An integer bucket (CHN-063): capacity burst*per, refilled by elapsed*count, each record costs per. It starts full.

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
        """Change the rate; tokens already spent stay spent."""
        self._count, self._capacity = count, burst * self._cost
        self.units = min(self.units, self._capacity)

    def take(self, at: int, wanted: int = 1) -> int:
        """How many of `wanted` records may pass at `at`; instants in ns must never run backwards."""
        elapsed = 0 if self._at is None else max(0, at - self._at)
        self._at = at
        self.units = min(self._capacity, self.units + elapsed * self._count)
        given = min(wanted, self.units // self._cost)
        self.units -= given * self._cost
        return given


class RateLimit:
    """`rate-limit`: at most `count` records per `per`, `burst` at once, for each key."""

    def __init__(self, spec: FilterSpec, options: RateOptions, house: House) -> None:
        self._options = options
        self._buckets: OrderedDict[bytes, Bucket] = OrderedDict()

    def judge(self, view: Viewed, seen: list[int], now: Now) -> Judgement:
        """Take a token for every record, or drop it; the monotonic clock stands still within a batch."""
        key = self._options.key
        if not key:
            return self._taken({b"": seen}, now)
        by_key: dict[bytes, list[int]] = {}
        for index, which in zip(seen, view.keys(key, seen), strict=True):
            by_key.setdefault(short(which), []).append(index)
        return self._taken(by_key, now)

    def _taken(self, by_key: dict[bytes, list[int]], now: Now) -> Judgement:
        dropped: list[int] = []
        for name, indexes in by_key.items():
            bucket = self._buckets.get(name) or self._new_bucket(name)
            dropped += indexes[bucket.take(now.mono, len(indexes)) :]
        return Judgement(dropped, []) if dropped else FINE

    def _new_bucket(self, name: bytes) -> Bucket:
        _make_room(self._buckets)
        options = self._options
        bucket = self._buckets[name] = Bucket(options.count, options.per_ns, options.burst)
        return bucket

    def inherit(self, old: "RateLimit") -> None:
        """Take over the buckets, at the new rate."""
        self._buckets = old._buckets
        for bucket in self._buckets.values():
            bucket.retune(self._options.count, self._options.burst)


class Dedupe:
    """`dedupe`: lets a key pass that last passed `within` ago, or is not remembered any more (CHN-064).

    The key that passed longest ago is forgotten first. Dropping a record does not extend the time: its key passes again
    `within` after it last passed, however often it comes.
    """

    def __init__(self, spec: FilterSpec, options: DedupeOptions, house: House) -> None:
        self._options = options
        self._passed: OrderedDict[bytes, int] = OrderedDict()
        """When each key last passed, monotonic nanoseconds; in that order."""

    def judge(self, view: Viewed, seen: list[int], now: Now) -> Judgement:
        """Drop repeated records; the monotonic clock stands still within a batch."""
        options, passed, mono = self._options, self._passed, now.mono
        since = mono - options.within_ns
        dropped = []
        for index, which in zip(seen, view.keys(options.fields, seen), strict=True):
            key = short(which)
            last = passed.get(key)
            if last is not None and last > since:
                dropped.append(index)
                continue
            passed[key] = mono
            if last is not None:
                passed.move_to_end(key)
                continue
            if len(passed) > options.max_keys:
                passed.popitem(last=False)
        return Judgement(dropped, []) if dropped else FINE

    def inherit(self, old: "Dedupe") -> None:
        """Take over the remembered keys, or the newest of them."""
        self._passed = old._passed
        while len(self._passed) > self._options.max_keys:
            self._passed.popitem(last=False)


class Edge:
    """The state of one key of an edge threshold."""

    __slots__ = ("is_on", "since")

    def __init__(self) -> None:
        self.is_on = False
        self.since: int | None = None
        """When the value rose above the limit, while it has not stayed there long enough."""


class Threshold:
    """`threshold`: lets records pass whose value is `above` (or `below`) a limit (CHN-066).

    Mode `pass`: all such records. Mode `edge`, per key: only the record that completes the time `for` above the limit,
    and then the first one back at or under `clear`. Time is that of the records, so a batch gives the same result as
    its rows one by one.
    """

    def __init__(self, spec: FilterSpec, options: ThresholdOptions, house: House) -> None:
        self._options = options
        self._sign = 1 if options.above is not None else -1
        limit = options.above if options.above is not None else options.below
        assert limit is not None, options
        self._limit = limit * self._sign
        self._clear = self._limit if options.clear is None else options.clear * self._sign
        self._edges: OrderedDict[Any, Edge] = OrderedDict()

    def judge(self, view: Viewed, seen: list[int], now: Now) -> Judgement:
        """A record without a value is dropped; a value that is not a number is an error."""
        values, erred = view.numbers(self._options.field, seen)
        if self._options.mode == "edge":
            is_kept = self._kept_edges(view, seen, values)
        else:
            limit, sign = self._limit, self._sign
            is_kept = [value is not None and value * sign > limit for value in values]
        if False not in is_kept:
            return FINE
        dropped = [index for index, keep in zip(seen, is_kept, strict=True) if not keep]
        if erred:
            spared = dict.fromkeys(erred)
            dropped = [index for index in dropped if index not in spared]
        return Judgement(dropped, erred)

    def _kept_edges(self, view: Viewed, seen: list[int], values: list[Value]) -> list[bool]:
        key, sign = self._options.key, self._sign
        keys = [short(which) for which in view.keys(key, seen)] if key else view.groups(seen)
        return [
            value is not None and self._is_edge(self._edge(which), at, value * sign)
            for which, at, value in zip(keys, view.times(seen), values, strict=True)
        ]

    def _edge(self, key: Any) -> Edge:
        edge = self._edges.get(key)
        if edge is None:
            _make_room(self._edges)
            edge = self._edges[key] = Edge()
        return edge

    def _is_edge(self, edge: Edge, at: int, value: float) -> bool:
        if edge.is_on:
            edge.is_on = value > self._clear
            return not edge.is_on
        if not value > self._limit:
            edge.since = None
            return False
        if edge.since is None or at < edge.since:
            edge.since = at
        edge.is_on = at - edge.since >= self._options.for_ns
        if edge.is_on:
            edge.since = None
        return edge.is_on

    def inherit(self, old: "Threshold") -> None:
        """Take over the edge states."""
        self._edges = old._edges
