"""What nodes say to each other: any frames are a message that comes back, or refused by a name (CHN-030..043, FLD-030).

What is kept of it can be written, read and carried on.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from fuzz.house.choices import frames_of, joined
from fuzz.house.running import attempt, run
from fuzz.house.vectors import multiparts
from weft.base.records import EraRecord, LostRecord
from weft.wire import carried, hop, journal

HEADERS = frozenset(["accepted", "bad-sum", "bad-header", "unknown-op", "bad-frames", "bad-type"])
RECORDS = frozenset(["accepted", "bad-record", "unimplemented", "bad-type", "loop", "ttl"])
ME = b"me" * 8
ENCODE = msgspec.msgpack.Encoder().encode
WALL = 1_795_227_290_000_000_000


def one(data: bytes) -> None:
    """As a parent or a child hears it."""
    code, message = attempt(hop.decode, frames_of(data))
    assert code in HEADERS, code
    if message is None:
        return
    sealed = hop.seal(message)
    assert sealed == hop.seal(hop.decode(sealed)), message
    if type(message) is hop.Hop:
        for _, item, frames in message.numbered():
            if item.n:
                _kept(item, frames)


def _kept(item: hop.HopItem, frames: list[bytes]) -> None:
    code, record = attempt(carried.to_record, item, frames, WALL)
    assert code in RECORDS, code
    if record is None:
        return
    written = journal.encode_record(record)
    assert written == journal.encode_record(journal.decode_record(written)), record
    try:
        again, payload = carried.to_item(record, ME, WALL)
    except carried.Uncarriable as error:
        assert error.why in ("too-big", "ttl"), record
    else:
        assert attempt(hop.decode, hop.seal(hop.Hop(1, 1, [again], payload)))[0] == "accepted", record


def seeds() -> Iterable[bytes]:
    """The frames of node links, and an item of each kind."""
    yield from multiparts("chains-frames")
    here: dict[str, Any] = {"via": (ME,), "depth": 0, "ts": WALL}
    notes = (LostRecord(1, ME, 5, 3, 9, "spool-full"), EraRecord(4, ME, 5, 4, 17))
    kinds = (carried.LOST, carried.ERA)
    items: list[tuple[hop.HopItem, list[bytes]]] = [
        (hop.HopItem(mid=(ME, 5, 1), type="weft.metric", n=2, **here), [b"body", b"\x82\xa1n\x03\xa2rx\x01"]),
        (hop.HopItem(mid=("n1", None, 7), type="weft.store", n=2, **here), [b"", b"\x81\xa3key\xa1k"]),
        (hop.HopItem(mid=(ME, 5, 2), type="demo.x", to=["PARENTSOF", None, 3], fmt="json", exp=WALL, **here), [b"{}"]),
        (hop.HopItem(mid=(ME, 5, 3), type="demo.x", to=["DIRECT", ME], n=3, **here), [b"a", b"", b"c"]),
        (hop.HopItem(mid=(ME, 5, 4), type="weft.receipt", to=["DIRECT", "name"], **here), [b"\x80"]),
        *(
            (hop.HopItem(mid=(ME, 5, 1), type=kind, **here), [ENCODE(note)])
            for kind, note in zip(kinds, notes, strict=True)
        ),
        (carried.gone_item(ME, 5, 8), []),
    ]
    for item, frames in items:
        yield joined(hop.encode(hop.Hop(5, 1, [item], frames)))
    yield joined(hop.encode(hop.Hop(5, 1, [item for item, _ in items], [f for _, frames in items for f in frames])))


if __name__ == "__main__":
    run(one)
