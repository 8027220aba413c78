"""Alerts in the events of nodes (MET-004): the payload of `alert.raised`, `alert.cleared`, `alert.firing`.

An alert is one condition of the fleet's file at one series of one node. It is raised once and cleared once; `ident`
names that span, the same at every root, so that a receiver recognises a repetition.
"""

from hashlib import blake2b
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from weft.base.errors import UNREADABLE

FIRING_MAX: Final = 256  # alerts that one node lists as firing; more would not help a reader
IDENT_BYTES: Final = 8  # of the digest: among a million alerts two are equal with a chance of one in 37 million

Word = Annotated[str, Meta(max_length=256)]
Labels = Annotated[dict[Word, Word], Meta(max_length=16)]


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """A condition that holds, or held, for one series."""

    name: Word
    node: Word
    """Its name, for people."""
    metric: Word
    labels: Labels
    value: int | float
    """When it was raised, or when it was cleared; in `unit`."""
    unit: Word
    when: Word
    """The condition as the file has it: `> 90 %`."""
    limit: int | float
    """In `unit`."""
    severity: Word
    text: Word
    since: int
    """Wall-clock ms of the sample that raised it."""


class AlertRaised(Alert, frozen=True, kw_only=True, gc=False):
    """Event: a condition has held for as long as its alert asks for. Told once; the journal keeps that it fires."""


class AlertCleared(Alert, frozen=True, kw_only=True, gc=False):
    """Event: it holds no longer, or can no longer be judged."""

    at: int
    """Wall-clock ms."""
    why: Word
    """`back`: the value is; else what went away."""


class AlertsFiring(msgspec.Struct, frozen=True):
    """Event: all alerts that fire on this node; told to a new root, and after the journal had no room for events."""

    alerts: Annotated[tuple[Alert, ...], Meta(max_length=FIRING_MAX)]


_KINDS: Final[dict[str, msgspec.json.Decoder[AlertRaised | AlertCleared | AlertsFiring]]] = {
    name: msgspec.json.Decoder(kind)
    for name, kind in (
        ("alert.raised", AlertRaised),
        ("alert.cleared", AlertCleared),
        ("alert.firing", AlertsFiring),
    )
}
KEYS: Final = frozenset(_KINDS)
"""Keys of the records that hold such a payload."""


def decode(key: str, payload: bytes) -> AlertRaised | AlertCleared | AlertsFiring | None:
    """The alerts in an event of any node; None: it cannot be read, or has a number that no record of a journal can hold."""
    try:
        found = _KINDS[key].decode(payload)
        msgspec.msgpack.encode(found)  # numbers in JSON may have any length
    except (ValueError, OverflowError, *UNREADABLE):
        return None
    return found


def ident(origin: bytes, alert: Alert) -> str:
    """The name of one span of firing, 16 hex digits: of the node, the condition, the series and the beginning."""
    identity = (origin, alert.name, sorted(alert.labels.items()), alert.since)
    return blake2b(msgspec.msgpack.encode(identity), digest_size=IDENT_BYTES).hexdigest()


def sentence(alert: Alert) -> str:
    """An alert for people, in one line."""
    place = ", ".join(f"{name} {value}" for name, value in sorted(alert.labels.items()))
    text = f": {alert.text}" if alert.text else ""
    value = f"{alert.value:.6g} {alert.unit}".rstrip()
    where = f"{place}, " if place else ""
    return f"{alert.severity}: {alert.node}: {alert.name}{text} ({where}{alert.metric} {value}, {alert.when})"
