"""Beacons of nodes: any datagram is one that comes back, or `bad-beacon` (LNK-021, SEC-015)."""

from collections.abc import Iterable

from fuzz.house.running import attempt, run
from fuzz.house.vectors import hostile
from weft.wire import beacon


def one(data: bytes) -> None:
    """Of the network segment, whoever sent it."""
    code, said = attempt(beacon.decode, [data])
    assert code in ("accepted", "bad-beacon"), code
    if said is not None:
        assert said == beacon.decode(beacon.encode(said)), said
        assert 0 <= said.port <= 65_529, said


def seeds() -> Iterable[bytes]:
    """Of each level, with and without the store, and one that is leaving."""
    node = "0f" * 16
    yield f"WEFTN1 weft pump-1 {node} root 27500 1".encode()
    yield f"WEFTN1 lab a {node} collector 27510 1795227290000000 store".encode()
    yield f"WEFTN1 lab a.b {node} sensor 0 18446744073709551615 later=1 store".encode()
    yield from hostile("udp-beat", "file-name")


if __name__ == "__main__":
    run(one)
