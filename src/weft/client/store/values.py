"""Entries, changes and paths as programs use them."""

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final

import msgspec

from weft.base.changes import Chain, Path
from weft.base.errors import PeerError
from weft.client.store.errors import BadPath
from weft.wire.store import path as paths

PATHS_KEPT: Final = 4_096  # recently parsed paths; a program uses the same ones again and again
Where = str | Sequence[Any]
"""A path: text as it is typed (COD-005), `"home.kitchen"`, or its elements, `("home", "kitchen")`."""


class Missing(Enum):
    """The type of `MISSING`."""

    MISSING = "MISSING"

    def __bool__(self) -> bool:
        """False: it is no value."""
        return False

    def __repr__(self) -> str:
        """The name by which it is imported."""
        return "MISSING"

    __str__ = __repr__


MISSING: Final = Missing.MISSING
"""No value: there is none, or it was deleted. `None` is a value like any other (R1)."""


class Entry(msgspec.Struct, frozen=True):
    """The entry at a path."""

    path: Path
    value: Any = MISSING
    """`MISSING`: the entry was deleted, or never existed."""
    chain: Chain | None = None
    """Its last change, for `set(…, chain=)`; None: it never existed, or the chain was not requested."""
    tock: int = 0
    """The tock of its last change, by which the later of two changes is decided; 0: unknown."""
    until: float | None = None
    """When it expires, in seconds since 1970; None: never."""

    @property
    def text(self) -> str:
        """Its path as it is typed."""
        return paths.text_of(self.path)

    @property
    def is_there(self) -> bool:
        """Whether it has a value."""
        return self.value is not MISSING

    @property
    def is_deleted(self) -> bool:
        """Whether it had a value that was deleted, as far as the node remembers."""
        return self.value is MISSING and self.chain is not None


class Change(Entry, frozen=True):
    """A change seen by a watch, with the entry after it."""

    position: Any = None
    """Position of the watch after it: `watch(…, since=change.position)` continues there (CLN-011)."""
    is_old: bool = False
    """Whether it existed before the watch began: it comes from `fetch`."""


class Mark(msgspec.Struct, frozen=True):
    """What a watch with `marks` reports besides changes.

    `uptodate`: all existing entries have been reported; `gap`: changes were missed, and all existing entries follow, up to
    `uptodate`; `lost`: the node is away; `back`: the node is back, and if `why` is not empty, a gap follows.
    """

    what: str
    why: str = ""


class Written(msgspec.Struct, frozen=True):
    """The result of a write."""

    is_changed: bool
    """Whether anything was written; deleting where there is no value writes nothing (DEL-001)."""
    chain: Chain | None = None
    tock: int = 0
    before: Any = MISSING
    """The previous value; only for writes without a condition."""


def path_of(where: Where) -> Path:
    """A path in its parsed form; BadPath if it is invalid.

    >>> path_of("home.kitchen:12") == path_of(("home", "kitchen", 12))
    True
    """
    try:
        if isinstance(where, str):
            return _parsed(where)
        path = tuple(where)
        paths.pack_path(path)
    except PeerError as error:
        raise BadPath(f"{where!r} is no path: {error.why or error.code}") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise BadPath(f"{where!r} is no path: {error}") from None
    return path


_parsed = lru_cache(PATHS_KEPT)(paths.parse)
