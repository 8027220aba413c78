"""Answers to lookups, as bytes that are kept until something changes (CAT-017, CAT-030..033)."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice, takewhile
from operator import attrgetter
from typing import Any, Final

import msgspec

from weft.base.now import MILLISECOND
from weft.cores.catalog import limits, records
from weft.cores.catalog.book import Book, Key
from weft.cores.catalog.context import Context
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.states import State

encode: Final = msgspec.json.Encoder().encode
_RANK: Final = {health: rank for rank, health in enumerate(records.HEALTHS)}
_BESIDE: Final = ("instances", "more")
"""Keys that the broker adds to the best instance's record when a name has several instances (CAT-030)."""
_RECORD: Final = b',"record":'
"""What stands in a row before its record, and in no name or id: a quote in there is escaped."""
_key_of: Final = attrgetter("name", "id")
"""The same as `Instance.key`, and several times faster where it is asked of ten thousand."""


class Answers:
    """Answers lookups. A name's answer is built once after each change of one of its instances, then only copied.

    `_rows` keeps each instance's row of a list, `_names` each name's `"name":{…}` (empty: no usable instance), `_all` the
    whole list. Cost: O(answer) for one name, O(bytes) for all names.
    """

    def __init__(self, context: Context, book: Book) -> None:
        self._context, self._book = context, book
        self._rows: dict[Key, bytes] = {}
        self._names: dict[str, bytes] = {}
        self._all = b""
        book.forgetters.append(self.forget)

    # Lookups

    def of(self, frames: tuple[bytes, ...]) -> bytes:
        """The answer to a REQUEST that is not a query: the names in its frames.

        No frames, or only empty ones, means all names (R16).
        """
        if len(frames) == 1 and frames[0]:
            return self.one(frames[0])
        names = [frame for frame in frames if frame]
        if not names:
            return self.all()
        return self.one(names[0]) if len(names) == 1 else self.several(names)

    def one(self, name: bytes) -> bytes:
        """One name: its best instance and the others; if there is none, the reason."""
        try:
            text = name.decode()
        except UnicodeDecodeError:
            return encode({**_absence(name.decode("utf-8", "replace"), "unknown", None), "code": "bad-name"})
        if self._context.relays is not None:
            self._give_place(text)
        cached = self._names.get(text)
        if cached is None:
            cached = self._named(text)
        return b"{%b}" % cached if cached else encode(_absence(text, *self._became(text)))

    def _give_place(self, name: str) -> None:
        """Note that an entry of another network was looked up, so that it gets an address here for calls (BRI-011)."""
        if "@" in name or self._context.settings.lookup_scope == "all":
            for instance in self._found(name)[:1]:
                if instance.is_imported and self._context.relays is not None:
                    self._context.relays.looked_up(instance)

    def _found(self, name: str) -> list[Instance]:
        """The usable instances of a name here.

        If there are none and the settings allow it, those of other networks (CAT-036).
        """
        found = self.best(name)
        if found or "@" in name or self._context.settings.lookup_scope != "all":
            return found
        names, prefix = self._book.names(), f"{name}@"
        others = takewhile(lambda other: other.startswith(prefix), islice(names, bisect_left(names, prefix), None))
        return sorted((one for other in others for one in self.best(other)), key=_order)

    def all(self) -> bytes:
        """Every name with a usable instance, sorted."""
        if not self._all:
            kept, make = self._names.get, self._named
            found = [kept(name) or make(name) for name in self._book.names()]
            self._all = joined(b"{", [fragment for fragment in found if fragment], b"}")
        return self._all

    def several(self, names: Iterable[bytes]) -> bytes:
        """The names that were found, each once; the others in `_dbp.missing` (CAT-032)."""
        found, missing = [], []
        for name in dict.fromkeys(names):
            text = name.decode("utf-8", "replace")
            is_text = text.encode() == name
            if is_text and (fragment := self._named(text)):
                found.append(fragment)
            else:
                state = self._became(text)[0] if is_text else "unknown"
                missing.append({"service": text[: limits.NAME_BYTES_MAX], "state": state})
        if missing:
            found.append(b'"_dbp":%b' % encode({"missing": missing}))
        return b"{%b}" % b",".join(found)

    # Records

    def shown(self, instance: Instance) -> dict[str, Any]:
        """A record as answers show it: the sender's keys without `name`, a usable address, and `_dbp` (CAT-017)."""
        settings = self._context.settings
        record, declared = records.rewritten(instance.record, instance.observed_ip, settings.rewrite)
        about: dict[str, Any] = {
            "state": state_word(instance),
            "health": instance.health,
            "since": instance.since,
            "interval_ms": instance.interval_ns // MILLISECOND,
            "observed_ip": instance.observed_ip,
            "instance": instance.id,
            "index": instance.index,
            "net": instance.net or settings.net,
        }
        if declared is not None:
            about["declared"] = declared
        return {**record, records.RESERVED_KEY: about}

    def record(self, instance: Instance) -> bytes:
        """`shown` as JSON, out of the row that is kept."""
        return self._row(instance).partition(_RECORD)[2][:-1]

    def listed(self, head: bytes, instances: Iterable[Instance]) -> bytes:
        """The JSON object `head`, without its last brace, and with `"records"`: `{"name", "instance", "record"}` of each.

        Joined from kept rows, as queries and watches answer it: O(bytes).
        """
        wanted = list(instances)
        rows = map(self._rows.get, map(_key_of, wanted))
        pieces = [row or self._row(found) for row, found in zip(rows, wanted, strict=True)]
        return joined(head + b',"records":[', pieces, b"]}")

    def _row(self, instance: Instance) -> bytes:
        """One row of such a list; kept until the instance changes."""
        cached = self._rows.get(instance.key)
        if cached is None:
            shown = encode(self.shown(instance))
            cached = b'{"name":%b,"instance":%b%b%b}' % (encode(instance.name), encode(instance.id), _RECORD, shown)
            if self._book.get(*instance.key) is instance:
                self._rows[instance.key] = cached
        return cached

    def best(self, name: str) -> list[Instance]:
        """The usable instances of a name, best first (CAT-030)."""
        found = [one for one in self._book.of_name(name) if one.is_live and one.health != "critical"]
        return sorted(found, key=_order) if len(found) > 1 else found

    def forget(self, instance: Instance) -> None:
        """The instance changed or was removed: drop the kept answers for it and its name."""
        self._rows.pop(instance.key, None)
        self._names.pop(instance.name, None)
        if instance.is_imported:
            self._names.pop(instance.name.rpartition("@")[0], None)
        self._all = b""

    # Making

    def _named(self, name: str) -> bytes:
        """`"name":{…}` of a name, kept from now on; empty if no instance is usable.

        Nothing is kept for names without any instance.
        """
        cached = self._names.get(name)
        if cached is None:
            found = self._found(name)
            cached = b"%b:%b" % (encode(name), self._together(found)) if found else b""
            if found or self._book.of_name(name):
                self._names[name] = cached
        return cached

    def _together(self, found: list[Instance]) -> bytes:
        best = self.record(found[0])
        if len(found) == 1:
            return best
        if not found[0].record.keys().isdisjoint(_BESIDE):
            shown = self.shown(found[0])
            best = encode({key: value for key, value in shown.items() if key not in _BESIDE})
        listed = b",".join([self.record(instance) for instance in found[: limits.LISTED_MAX]])
        return b'%b,"instances":[%b],"more":%d}' % (best[:-1], listed, max(0, len(found) - limits.LISTED_MAX))

    def _became(self, name: str) -> tuple[str, float | None]:
        """Why a name was not found, and when one of its instances was last heard."""
        known = self._book.of_name(name)
        if not known:
            return "unknown", None
        seen = max(self.last_seen(instance) for instance in known)
        if any(instance.is_live for instance in known):
            return "critical", seen
        if known[-1].reason == "link":  # the bridge to its network is down (BRI-008)
            return "unreachable", seen
        return ("left" if known[-1].reason == "left" else "inactive"), seen

    def last_seen(self, instance: Instance) -> float:
        """Unix seconds by today's wall clock when it was last heard.

        If not since the start, when its state last changed.
        """
        if not instance.heard_at:
            return instance.since
        return round(self._context.wall - (self._context.now.mono - instance.heard_at) / 1e9, 3)


def joined(opening: bytes, pieces: list[bytes], closing: bytes) -> bytes:
    """Join pieces with commas, inside brackets.

    Long pieces are copied only once; copying is most of the cost of a list.

    >>> joined(b"[", [b"1", b"2"], b"]"), joined(b"{", [], b"}")
    (b'[1,2]', b'{}')
    """
    if not pieces:
        return opening + closing
    pieces[0] = opening + pieces[0]
    pieces[-1] += closing
    return b",".join(pieces)


def state_word(instance: Instance) -> str:
    """The word that answers use for an instance's state: `active`, `suspect`, `inactive`."""
    return instance.state.name.lower()


def _absence(name: str, state: str, last_seen: float | None) -> dict[str, Any]:
    """The answer for a name that was not found, with the reason (CAT-033)."""
    service = name[: limits.NAME_BYTES_MAX]
    text = (
        f"there is no service {service}" if state == "unknown" else f"no service {service} can be used: it is {state}"
    )
    return {"Error": text, "warning": "inactive", "service": service, "state": state, "last_seen": last_seen}


def _order(instance: Instance) -> tuple[int, int, int, int]:
    weight = int(instance.record.get("weight", records.WEIGHT_DEFAULT))
    return _RANK[instance.health], 0 if instance.state is State.ACTIVE else 1, -weight, instance.index
