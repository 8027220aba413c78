"""Operations of documents as the lake has them, for whoever folds them (GSP-034, PIP-053): no Spark, no Java.

What stands in silver is what the first node told; of two bodies under one number the fold of all nodes takes the one
with the smaller SHA-256 (GSP-011), so the same is taken here, if the other has come to the lake.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.base.errors import UserError
from weft.pipeline.scan import quoted
from weft.pipeline.sql import Lake
from weft.pipeline.tables import DOCUMENTS, QUARANTINE_DOCUMENTS
from weft.pipeline.views.documents import PREFIX
from weft.wire.document.sums import rank

ROWS_AT_ONCE: Final = 10_000  # bodies that are Python objects at the same time; one has at most 256 KiB, most 150 bytes
MICROSECOND: Final = 1_000
FOR_EVER: Final = (1 << 63) - 1

OPERATIONS: Final = """
SELECT source, sequence, body, epoch_us(received_at) AS received_us, received_from FROM (
    SELECT * FROM silver.documents WHERE session = {session} AND epoch_us(received_at) <= {upto} QUALIFY {prefix}
) ORDER BY eff, source, sequence
"""
FORKS: Final = """
SELECT right(origin, 32) AS source, sequence, raw FROM quarantine.documents
WHERE reason = 'changed' AND left(origin, length(origin) - 33) = {session}
"""
SESSIONS: Final = "SELECT session, schema, operations, sources, beyond FROM gold.document_sessions ORDER BY session"


class Stored(NamedTuple):
    """An operation, and how the first node that told of it came to it."""

    source: bytes
    sequence: int
    body: bytes
    received_ns: int
    received_from: bytes | None
    """Itself: it was made there. None: it did not say."""


class Session(NamedTuple):
    """What the lake has of a session."""

    name: str
    schema: str | None
    operations: int
    """Those before which nothing is missing."""
    sources: int
    beyond: int
    """Those that lie behind a number that has not come."""


def sessions_in(lake: Path | str) -> list[Session]:
    """The sessions of a lake. UserError `no-lake`, or `no-documents` if there is no table of them."""
    with _opened(lake) as asked:
        return _sessions(asked)


def operations_of(lake: Path | str, session: str, *, as_seen_ns: int | None = None) -> Iterator[Stored]:
    """The operations of a session before which nothing is missing, in the order in which they are folded.

    `as_seen_ns`: as if nothing had been received later (GSP-032), by the word of the node that told of each first.
    Where a fork has changed what counts, the order is that of before; a fold does not rely on it.
    Raises UserError `no-lake`, `no-documents`, or `no-session`, which names those that are there.
    """
    with _opened(lake) as asked:
        there = [each.name for each in _sessions(asked)]
        if session not in there:
            mend = f"--session NAME; it has: {', '.join(there) or 'none'}"
            raise UserError("no-session", f"the lake has no session {session!r}", mend)
        forks = _forks(asked, session)
        upto = FOR_EVER if as_seen_ns is None else as_seen_ns // MICROSECOND
        rows = asked.query(OPERATIONS.format(session=quoted(session), upto=upto, prefix=PREFIX))
        for batch in rows.to_batches(ROWS_AT_ONCE):
            for row in batch.to_pylist():
                yield _stored(row, forks)


def _opened(lake: Path | str) -> Lake:
    opened = Lake(lake)
    if DOCUMENTS not in opened.tables():
        raise UserError("no-documents", f"no table of the lake {lake} has operations of documents", "weft lake run")
    return opened


def _sessions(asked: Lake) -> list[Session]:
    return [Session(*row.values()) for row in asked.query(SESSIONS).to_pylist()]


def _forks(asked: Lake, session: str) -> dict[tuple[str, int], list[bytes]]:
    """Other bodies of numbers that silver has."""
    found: dict[tuple[str, int], list[bytes]] = {}
    if QUARANTINE_DOCUMENTS not in asked.tables():
        return found
    for row in asked.query(FORKS.format(session=quoted(session))).to_pylist():
        found.setdefault((row["source"], row["sequence"]), []).append(row["raw"])
    return found


def _stored(row: dict[str, Any], forks: dict[tuple[str, int], list[bytes]]) -> Stored:
    source, sequence, body, received_us, heard_from = row.values()
    if others := forks.get((source, sequence)):
        body = min([body, *others], key=rank)
    return Stored(bytes.fromhex(source), sequence, body, received_us * MICROSECOND, _uuid(heard_from))


def _uuid(text: str | None) -> bytes | None:
    """What a row says of somebody; whoever wrote it may have written anything."""
    try:
        return bytes.fromhex(text) if text else None
    except ValueError:
        return None
