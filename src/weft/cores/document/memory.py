"""What a session keeps: journal records, and back (GSP-030)."""

from typing import Final

from weft.base.records import Record

CORE: Final = "document"


def session_of(record: Record) -> str | None:
    """The name of the session that a record belongs to; None: it is none of a document."""
    raise NotImplementedError
