"""Orders, work and events of the export core."""

from typing import Final

import msgspec

NAME: Final = "export"
"""Of the core, and of its records."""


class ExportSettings(msgspec.Struct, frozen=True):
    """The receivers by name. The shell knows how to reach them."""

    sinks: tuple[str, ...] = ()


# Orders


class RangeSent(msgspec.Struct, frozen=True, gc=False):
    """Order: the receiver has, or has refused for good, all samples of the range up to `upto`."""

    sink: str
    attempt: int
    upto: int
    samples: int = 0
    """How many it took."""
    refused: int = 0
    """How many it will never take."""
    skipped: int = 0
    """How many were not offered: no newer than the one before of their series, or no number."""
    why: str = ""
    """What it said when it refused some last."""


class RangeFailed(msgspec.Struct, frozen=True, gc=False):
    """Order: the receiver did not take the range; it is tried again."""

    sink: str
    attempt: int
    why: str


class GiveWay(msgspec.Struct, frozen=True, gc=False):
    """Order: the journal needs room; nothing up to `upto` is sent any more."""

    upto: int


# Work


class SendRange(msgspec.Struct, frozen=True, gc=False):
    """Work: send the samples of the records with `after < lsn <= upto`; answered by RangeSent or RangeFailed."""

    sink: str
    attempt: int
    """Number of the attempt since the start; the answer repeats it."""
    warm: int
    """A start reads the records behind this one, too, to calculate with, and does not send them."""
    after: int
    upto: int


# Events


class ExportFailing(msgspec.Struct, frozen=True, gc=False):
    """Event: a receiver takes nothing, or refuses some samples for good. At most once an hour for each receiver."""

    sink: str
    why: str
    waiting: int
    """Records of the journal that it has not got yet."""


class ExportBack(msgspec.Struct, frozen=True, gc=False):
    """Event: a receiver takes samples again."""

    sink: str


class ExportGaveUp(msgspec.Struct, frozen=True, gc=False):
    """Event: a receiver was away for so long that the journal needed the room; it will not get these records."""

    sink: str
    records: int
