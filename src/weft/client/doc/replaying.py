"""A former state of a document, from the log alone: what was true at an instant, or what the node showed then (GSP-032)."""

import re
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from weft.base.errors import UserError
from weft.base.now import SECOND
from weft.client.doc.errors import NotFound
from weft.client.doc.logfile import Entry
from weft.cores.document.fold.engine import Engine, fold, fold_until
from weft.cores.document.fold.schema import Schema
from weft.wire.document.operations import uuid_text

AGO: Final = re.compile(r"-?(\d+(?:\.\d+)?)(s|m|h)( ago)?")
CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?")
UNITS: Final = {"s": 1, "m": 60, "h": 3_600}
PLACE: Final = re.compile(r"([0-9A-Fa-f{][0-9A-Fa-f-]*}?)[:/#]([0-9]+)")


class Moment(NamedTuple):
    """Which state is wanted; without any of these the present one."""

    at: float | None = None
    """What was true at this effective time, in Unix seconds: operations that arrived later count, too."""
    as_seen: float | None = None
    """What this node had at this time, in Unix seconds."""
    until: tuple[bytes, int] | None = None
    """This operation, and all before it in the document's order."""


def moment_of(at: str | None, as_seen: str | None, until: str | None, entries: Sequence[Entry]) -> Moment:
    """The state that people ask for on the command line; UserError if they ask for two, or it cannot be understood."""
    if sum(word is not None for word in (at, as_seen, until)) > 1:
        raise UserError("usage", "--at, --as-seen and --until exclude one another", "use one of them")
    now = time.time()
    return Moment(
        at=None if at is None else instant_of(at, now),
        as_seen=None if as_seen is None else instant_of(as_seen, now),
        until=None if until is None else place_of(until, entries),
    )


def replay(schema: Schema, entries: Sequence[Entry], moment: Moment) -> Engine:
    """The document at a moment, folded from the entries that belong to it."""
    if moment.as_seen is not None:
        seen_ns = round(moment.as_seen * SECOND)
        entries = [entry for entry in entries if entry.received_ns <= seen_ns]
    operations = [entry.operation for entry in entries]
    if moment.at is None and moment.until is None:
        return fold(schema, operations)
    return fold_until(schema, operations, at=moment.at, until=moment.until)


def instant_of(text: str, now: float) -> float:
    """Unix seconds of an instant as people type it: `20:15` for today, `-5m`, ISO 8601, or Unix seconds.

    >>> instant_of("1763800000.5", 0.0), instant_of("2025-11-22T08:26:40+00:00", 0.0), instant_of("-5m", 1000.0)
    (1763800000.5, 1763800000.0, 700.0)
    """
    text = text.strip()
    if (ago := AGO.fullmatch(text)) is not None:
        return now - float(ago[1]) * UNITS[ago[2]]
    try:
        if (clock := CLOCK.fullmatch(text)) is not None:
            midnight = datetime.fromtimestamp(now).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
            day = midnight.replace(hour=int(clock[1]), minute=int(clock[2]))
            return day.timestamp() + float(clock[3] or 0)
        return float(text) if re.fullmatch(r"\d+(\.\d*)?", text) else datetime.fromisoformat(text).timestamp()
    except ValueError:
        pass
    mend = "20:15, 20:15:30, -5m, 2026-11-22T20:15:00+01:00, or Unix seconds"
    raise UserError("usage", f"{text!r} is not an instant", mend)


def place_of(text: str, entries: Sequence[Entry]) -> tuple[bytes, int]:
    """The operation that people mean by SOURCE:NUMBER; of the source the beginning is enough. UserError, NotFound."""
    found = PLACE.fullmatch(text.strip())
    if found is None:
        raise UserError("usage", f"{text!r} names no operation", "SOURCE:NUMBER as weft doc log shows, e.g. a0000000:7")
    digits, number = found[1].strip("{}").replace("-", "").lower(), int(found[2])
    pairs = {entry.pair for entry in entries if entry.pair[1] == number and entry.pair[0].hex().startswith(digits)}
    if len(pairs) == 1:
        return pairs.pop()
    if pairs:
        sources = ", ".join(sorted(uuid_text(source) for source, _ in pairs))
        raise NotFound(f"several sources begin with {digits}: {sources}", mend="type more digits of the source")
    raise NotFound(f"there is no operation {text}", mend="weft doc log lists all operations")
