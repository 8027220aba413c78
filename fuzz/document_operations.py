"""Operations: any bytes have no header, or are an operation that the fold takes, and that it can take back (GSP-012)."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable

from fuzz.house.running import attempt, run
from fuzz.house.vectors import lines
from weft.cores.document.fold.folding import Fold
from weft.cores.document.fold.schema import Schema
from weft.wire.document import operations
from weft.wire.document.messages import OPERATION_BYTES_MAX
from weft.wire.document.xml import canonical

DERBY = Schema.load("derby")
GENESIS = canonical(Fold(DERBY).root)


def one(data: bytes) -> None:
    """Alone, on a new document."""
    code, found = attempt(operations.parse, data)
    assert code in ("accepted", "no-header"), code
    if found is None:
        return
    assert len(data) <= OPERATION_BYTES_MAX
    assert len(found.source) == 16
    assert 1 <= found.sequence < 1 << 53
    assert operations.header_of(data)[:2] == (found.verb, found.source), found.verb
    fold = Fold(DERBY)
    mark = fold.mark()
    outcomes = fold.apply(found, found.timestamp)
    assert outcomes or found.inert == "" or found.steps is not None, found
    written = canonical(fold.root)
    assert ET.canonicalize(written.decode()).encode() == written, written
    fold.rewind(mark)
    assert canonical(fold.root) == GENESIS, data


def seeds() -> Iterable[bytes]:
    """The operations of the vectors."""
    for line in lines("document-fold", "document-wire"):
        yield from (said for frame in line["frames"] if (said := bytes.fromhex(frame))[:1] == b"<")


if __name__ == "__main__":
    run(one)
