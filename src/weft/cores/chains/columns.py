"""Records as an aggregate counts them: a column of times, one of numbers, one of groups (CHN-067).

Work on a column costs a fraction of work on each record. In order of time a window is one piece of each column, and the
last number of a group is the one of its greatest time.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from weft.cores.chains.messageview import MessageView

Group = list[Any]
"""The values of the group fields."""


class Part(NamedTuple):
    """The numbers of one group in one window, in order of time."""

    start: int
    group: Group
    values: list[float]
    last_at: int
    """Time of the last number."""


class Columns(NamedTuple):
    """Some records."""

    times: list[int]
    values: list[float]
    """Finite numbers."""
    groups: list[Any]
    """A key for the group of each record; empty: all are in one group, without fields."""
    group_of: Callable[[Any], Group]
    """The group of a key."""

    def parts(self, window_ns: int) -> Iterator[Part]:
        """The numbers of each window and group. Of equal times, the later arrival is the last."""
        times, values, groups, group_of = self._by_time()
        first, count = 0, len(times)
        while first < count:
            start = times[first] - times[first] % window_ns
            end = bisect_left(times, start + window_ns, first)
            window = times[first:end], values[first:end], groups[first:end]
            first = end
            for key, some, last_at in _grouped(*window):
                yield Part(start, group_of(key), some, last_at)

    def _by_time(self) -> "Columns":
        times = sorted(self.times)
        if times == self.times:  # the usual case
            return self
        order = sorted(range(len(times)), key=self.times.__getitem__)
        values, groups = [[column[index] for index in order if column] for column in (self.values, self.groups)]
        return self._replace(times=times, values=values, groups=groups)


def _grouped(times: list[int], values: list[float], groups: list[Any]) -> Iterator[tuple[Any, list[float], int]]:
    if not groups:
        yield None, values, times[-1]
        return
    found = defaultdict[Any, list[float]](list)
    for group, value in zip(groups, values, strict=True):
        found[group].append(value)
    last_at = _last_at(times, groups, len(found))
    for group, some in found.items():
        yield group, some, last_at[group]


def _last_at(times: list[int], groups: list[Any], count: int) -> dict[Any, int]:
    """The last time of each of `count` groups; usually all are among the last few records."""
    found: dict[Any, int] = {}
    for group, at in zip(reversed(groups), reversed(times), strict=True):
        if group not in found:
            found[group] = at
            if len(found) == count:
                break
    return found


def columns_of(view: MessageView, fields: tuple[str, ...], good: list[int], values: list[float]) -> Columns:
    """The columns of these records; `values` are their numbers."""
    return Columns(view.times(good), values, *_groups(view, fields, good))


def _groups(view: MessageView, fields: tuple[str, ...], good: list[int]) -> tuple[list[Any], Callable[[Any], Group]]:
    """A key for the group of each record: its texts, else the MessagePack bytes of its fields."""
    columns = [view.fields(field, good) for field in fields]
    if all(set(map(type, column)) == {str} for column in columns):
        return keys_of(columns)
    keys = view.keys(fields, good)
    group_at = {key: index for index, key in reversed(list(enumerate(keys)))}
    return keys, lambda key: [column[group_at[key]] for column in columns]


def keys_of(texts: list[list[str]]) -> tuple[list[Any], Callable[[Any], Group]]:
    """Keys for the groups of records whose group fields are texts, a column each."""
    if not texts:
        return [], _no_group
    return (texts[0], _of_one) if len(texts) == 1 else (list(zip(*texts, strict=True)), list)


def _no_group(_: None) -> Group:
    return []


def _of_one(text: str) -> Group:
    return [text]
