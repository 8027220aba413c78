"""Entries of the store as they stood, out of the lake (PIP-051): no Spark, no Java, however long ago.

Two instants may be asked for. `at`: what was true then, as everything that is known now tells it: of all changes that
had been made, the greatest. `as_seen`: as if nothing had been received later. A change says when its node made it, so a
clock that was wrong shows; which of two is the greater one no clock decides.
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
"""  # noqa: S608  # a window, of this program's own
"""Every version of an entry, as far as it had been received by then."""
AT: Final = "SELECT * FROM ({seen}) WHERE from_us <= {at} AND ({at} < to_us OR to_us IS NULL)"
HISTORY: Final = "SELECT * FROM ({seen}) ORDER BY tock DESC, tick DESC, node LIMIT {limit}"


class Version(NamedTuple):
    """One change of an entry, and from when to when it stood."""

    path: str
    text: str | None
    """The value as the lake has it: JSON; None: deleted, or too large to be kept."""
    deleted: bool
    node: str
    tick: int
    tock: int
    by: str | None
    chain: list[dict[str, Any]]
    """Changes its author had seen, newest first: node and tick."""
    from_us: int
    received_us: int
    to_us: int | None
    """When the first greater change was made; None: it stands. Not later than `from_us`: it never stood."""

    @property
    def value(self) -> Any:
        """The value as Python has it. Keys of maps that are no text are text here: JSON has no other."""
        return None if self.text is None else _plain(json.loads(self.text))


def entry_at(lake: Path | str, path: str, *, at_ns: int | None = None, as_seen_ns: int | None = None) -> Version | None:
    """The version of an entry that stood at an instant; nothing said: the last. None: there had been no change of it.

    `path` as text, elements joined by dots. Raises UserError `no-lake`, `no-store` if no table has changes of a store.
    """
    seen = _seen(path, as_seen_ns)
    with _opened(lake) as asked:
        at = FOR_EVER if at_ns is None else at_ns // MICROSECOND
        rows = asked.query(AT.format(seen=seen, at=at)).to_pylist()
    return Version(*rows[0].values()) if rows else None


def history_of(lake: Path | str, path: str, *, limit: int, as_seen_ns: int | None = None) -> list[Version]:
    """The newest versions of an entry, the greatest first; also those that never stood. Errors as `entry_at`."""
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
    """What JSON has no form for stands there as a map of one tag."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    (tag, said), *more = value.items() if value else [("", None)]
    if not more and tag in _TAGS:
        try:
            return _TAGS[tag](said)
        except (ValueError, TypeError, PeerError):
            pass  # somebody wrote a map that looks like it
    return {key: _plain(item) for key, item in value.items()}


_TAGS: Final[dict[str, Callable[[Any], Any]]] = {
    "$b": lambda said: b64decode(said, validate=True),
    "$i": int,
    "$f": float,
    "$p": lambda said: PathValue(parse(said)),
    "$x": lambda said: msgspec.msgpack.Ext(said[0], b64decode(said[1], validate=True)),
}
