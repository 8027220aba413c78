"""Reads the operations of documents from the lake (GSP-034, PIP-053), without Spark or Java.

Silver has the body that the first node delivered. If two bodies have the same number (a fork), all nodes use the one with
the smaller SHA-256 (GSP-011); so does this module, if both have reached the lake.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.base.errors import UserError
from weft.pipeline.scan import quoted
from weft.pipeline.sql import Lake
from weft.pipeline.tables import DOCUMENTS, STAGES
from weft.pipeline.views.documents import PREFIX
from weft.wire.document.sums import rank

ROWS_AT_ONCE: Final = 10_000  # in memory as Python objects; a body has at most 256 KiB, most have 150 bytes
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
    """An operation, and how the first node that delivered it received it."""

    source: bytes
    sequence: int
    body: bytes
    received_ns: int
    received_from: bytes | None
    """The peer that sent it; the node itself if it was made there; None if the record does not say."""


class Session(NamedTuple):
    """What the lake has of a session."""

    name: str
    schema: str | None
    operations: int
    """How many operations have no missing number before them."""
    sources: int
    beyond: int
    """How many come after a missing number."""


def sessions_in(lake: Path | str) -> list[Session]:
    """The sessions of a lake. UserError `no-lake`, or `no-documents` if there is no table of them."""
    with _opened(lake) as asked:
        return _sessions(asked)


def operations_of(lake: Path | str, session: str, *, as_seen_ns: int | None = None) -> Iterator[Stored]:
    """The operations of a session that have no missing number before them, in the order in which they are folded.

    `as_seen_ns`: only operations received until then (GSP-032), by the clock of the node that first delivered each. For
    a fork the order is that of the body in silver, even if another body counts; the result of a fold does not depend on
    it. Raises UserError `no-lake`, `no-documents`, or `no-session`, which names the sessions of the lake.
    """
    with _opened(lake) as asked:
        known = [each.name for each in _sessions(asked)]
        if session not in known:
            mend = f"--session NAME; it has: {', '.join(known) or 'none'}"
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
    """Bodies in quarantine whose numbers silver has with another body, by source and number."""
    found: dict[tuple[str, int], list[bytes]] = {}
    if STAGES["documents"].quarantine not in asked.tables():
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
    """The UUID in a row; a row may contain anything."""
    try:
        return bytes.fromhex(text) if text else None
    except ValueError:
        return None
