"""The events that are written into the journal, with level, meaning and mend: the source of docs/events.md (OBS-001)."""

from typing import Any, Final, NamedTuple

import msgspec


class InputRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: something was said on a channel that may not be said; nothing has changed."""

    channel: str
    code: str
    why: str
    shown: str
    """At most 256 bytes of what was said, hex."""
    count: int
    """How many of this channel and code so far."""


class NodeStarted(msgspec.Struct, frozen=True, gc=False):
    """Event: a start of this node, and what its journal was found to be."""

    name: str
    level: str
    version: str
    verdicts: str


class JournalChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: the journal went into another state (JRN, section 5.4)."""

    state: str
    why: str


class Event(NamedTuple):
    """How an event is journaled."""

    name: str
    level: str
    meaning: str
    mend: str


EVENTS: Final[dict[type, Event]] = {}
"""Filled by `weft.node.wiring`, which knows the events of all cores."""


def describe(event: Any) -> tuple[str, str, dict[str, Any]]:
    """Name, level and fields of an event that has a row in the table; bytes are shown as hex."""
    row = EVENTS[type(event)]
    fields = {key: _shown(value) for key, value in msgspec.structs.asdict(event).items()}
    return row.name, row.level, fields


def _shown(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
