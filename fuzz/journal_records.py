"""Records of a journal: any bytes are one that comes back, or refused by a name (JRN-012, JRN-014)."""

from collections.abc import Iterable

from fuzz.house.running import attempt, run
from fuzz.house.vectors import hostile, payloads
from weft.wire import journal, segments


def one(data: bytes) -> None:
    """As a record, and as what seals list."""
    code, record = attempt(journal.decode_record, data)
    assert code in ("accepted", "malformed", "too-large"), code
    if record is not None:
        assert journal.is_sound(record), record
        written = journal.encode_record(record)
        assert written == journal.encode_record(journal.decode_record(written)), record
        assert record == journal.decode_record(memoryview(data)) or "nan" in repr(record), record
    for read in (segments.decode_footer, segments.decode_contents):
        assert attempt(read, data)[0] in ("accepted", "malformed"), read


def seeds() -> Iterable[bytes]:
    """One of each kind."""
    yield from payloads("journal", of="j-rec")
    yield from payloads("journal", of="j-foot")
    yield from hostile("msgpack")
    yield b"\x91\x92\xaaconfigured\x07"
    yield b"\x91\x97\x01\xa1n\xc0\x01\x09\x03\x40"


if __name__ == "__main__":
    run(one)
