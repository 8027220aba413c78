"""Datagrams of the catalog: any bytes are beats and a count, and a beacon or none (BEA-003, BEA-010)."""

from collections.abc import Iterable

from msgspec.structs import replace

from fuzz.house.running import attempt, run
from fuzz.house.vectors import hostile, payloads
from weft.wire.catalog import beacon, beats


def one(data: bytes) -> None:
    """As a beat that the broker hears, and as a beacon that a node hears."""
    found = beats.decode([data])
    assert 1 <= len(found.lines) + found.malformed <= beats.LINES_MAX, found
    for beat in found.lines:
        assert beat.name == beats.decode(beats.encode(beat)).lines[0].name, beat
    code, said = attempt(beacon.decode, [data])
    assert code in ("accepted", "bad-beacon"), code
    if said is not None:
        assert all(0 <= port <= 65_535 for port in (said.port, said.hb, said.pub)), said
        assert replace(said, signed=b"") == replace(beacon.decode(beacon.encode(said)), signed=b""), said


def seeds() -> Iterable[bytes]:
    """Of the vectors."""
    return [
        *payloads("catalog-computed", of="udp"),
        *payloads("catalog-computed", of="beacon"),
        *payloads("catalog-hermes"),
        *hostile("udp-beat"),
    ]


if __name__ == "__main__":
    run(one)
