"""Reads past entries of the store from the lake (PIP-051), without Spark or Java, however long ago.

There are two kinds of instants. `at`: the state at that time by what is known today, that is the greatest of all changes
made by then. `as_seen`: only changes that a node had received by then count. The time of a change is that of its node's
clock, which may be wrong; the order of two changes never depends on a clock.
"""

import json
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.errors import PeerError, UserError
from weft.pipeline.scan import quoted
from weft.pipeline.sql import Lake
from weft.pipeline.tables import STORE
from weft.pipeline.views.store import GREATER
from weft.wire.store.pack import PathValue
from weft.wire.store.path import parse

MICROSECOND: Final = 1_000
FOR_EVER: Final = (1 << 63) - 1
SEEN: Final = f"""
SELECT path_text, value, deleted, node, tick, tock, "by", chain, epoch_us("at") AS from_us, epoch_us(received) AS received_us,
       epoch_us(min("at") OVER ({GREATER})) AS to_us
FROM silver.store WHERE path_text = {{path}} AND epoch_us(received) <= {{as_seen}}
"""  # noqa: S608  # a window clause of this program's own
"""Every version of an entry that had been received by then."""
AT: Final = "SELECT * FROM ({seen}) WHERE from_us <= {at} AND ({at} < to_us OR to_us IS NULL)"
HISTORY: Final = "SELECT * FROM ({seen}) ORDER BY tock DESC, tick DESC, node LIMIT {limit}"


class Version(NamedTuple):
    """One change of an entry, and when it was in force."""

    path: str
    text: str | None
    """The value as the lake has it, JSON; None: deleted, or too large to be kept."""
    deleted: bool
    node: str
    tick: int
    tock: int
    by: str | None
    chain: list[dict[str, Any]]
    """Changes that its author had seen, newest first: node and tick."""
    from_us: int
    received_us: int
    to_us: int | None
    """When the first greater change was made; None: still in force.

    If it is not later than `from_us`, the change was never in force.
    """

    @property
    def value(self) -> Any:
        """The value as a Python object. All keys of maps are text, because JSON has no others."""
        return None if self.text is None else _plain(json.loads(self.text))


def entry_at(lake: Path | str, path: str, *, at_ns: int | None = None, as_seen_ns: int | None = None) -> Version | None:
    """The version of an entry at an instant, by default the last; None if it had no change by then.

    `path` as text, elements joined by dots. Raises UserError `no-lake`, `no-store` if no table has changes of a store.
    """
    seen = _seen(path, as_seen_ns)
    with _opened(lake) as asked:
        at = FOR_EVER if at_ns is None else at_ns // MICROSECOND
        rows = asked.query(AT.format(seen=seen, at=at)).to_pylist()
    return Version(*rows[0].values()) if rows else None


def history_of(lake: Path | str, path: str, *, limit: int, as_seen_ns: int | None = None) -> list[Version]:
    """The newest versions of an entry, the greatest first, including those that were never in force.

    Raises what `entry_at` raises.
    """
    with _opened(lake) as asked:
        rows = asked.query(HISTORY.format(seen=_seen(path, as_seen_ns), limit=limit)).to_pylist()
    return [Version(*row.values()) for row in rows]


def _seen(path: str, as_seen_ns: int | None) -> str:
    upto = FOR_EVER if as_seen_ns is None else as_seen_ns // MICROSECOND
    return SEEN.format(path=quoted(path), as_seen=upto)


def _opened(lake: Path | str) -> Lake:
    opened = Lake(lake)
    if STORE not in opened.tables():
        raise UserError("no-store", f"no table of the lake {lake} has changes of a store", "weft lake run")
    return opened


def _plain(value: Any) -> Any:
    """Replace maps with one tag (`_TAGS`) by the values that they stand for, which JSON cannot express."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    (tag, text), *more = value.items() if value else [("", None)]
    if not more and tag in _TAGS:
        try:
            return _TAGS[tag](text)
        except (ValueError, TypeError, PeerError):
            pass  # a user's own map that looks like a tag
    return {key: _plain(item) for key, item in value.items()}


_TAGS: Final[dict[str, Callable[[Any], Any]]] = {
    "$b": lambda text: b64decode(text, validate=True),
    "$i": int,
    "$f": float,
    "$p": lambda text: PathValue(parse(text)),
    "$x": lambda pair: msgspec.msgpack.Ext(pair[0], b64decode(pair[1], validate=True)),
}
