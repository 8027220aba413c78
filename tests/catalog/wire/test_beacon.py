"""The beacon: ours and existing ones are read, the rest is none, and its code is over all before it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.wire.strategies import BEACONS, KEYS, spoilt
from tests.catalog.wire.vectors import COMPUTED, HERMES, PEERS, group, payload
from weft.base.errors import PeerError
from weft.wire.catalog import beacon
from weft.wire.catalog.messages import Beacon

OURS = b"SHALOM 5246 dbp=1 id=3f9a1c0b9d2e4f60 hb=5246 pub=5247 caps=f64,lvc,log,mon,bri net=blue"
GOOD = {name: COMPUTED[name] for name in group("beacon") if "-bad-" not in name} | {
    "h-beacon": HERMES["h-beacon"],
    "czmq-beacon": PEERS["czmq-beacon"],
}


def _code(data: bytes) -> str:
    try:
        beacon.decode([data])
    except PeerError as error:
        return error.code
    return "accepted"


@pytest.mark.proves("BEA-001")
@pytest.mark.parametrize("name", GOOD)
def test_beacon_means_what_its_vector_says(name: str) -> None:
    found, means = beacon.decode([payload(GOOD[name])]), GOOD[name]["means"]
    for key in ("port", "dbp", "id", "hb", "pub", "net"):
        assert key not in means or means[key] == getattr(found, key)
    assert tuple(means.get("caps", found.caps)) == found.caps
    if name != "beacon-unknown-keys":
        assert [payload(GOOD[name])] == beacon.encode(found)


@pytest.mark.proves("BEA-003")
@pytest.mark.parametrize("name", group("beacon-bad-"))
def test_what_is_no_beacon_is_refused(name: str) -> None:
    assert "bad-beacon" == _code(payload(COMPUTED[name]))


@pytest.mark.proves("BEA-007")
def test_code_of_a_beacon_is_over_everything_before_its_space() -> None:
    line = COMPUTED["beacon-mac"]
    found, key = beacon.decode([payload(line)]), bytes.fromhex(line["means"]["key"])
    assert payload(line) == found.signed + b" mac=" + found.mac.encode()
    assert beacon.is_signed(found, key)
    assert not beacon.is_signed(found, b"another")
    assert not beacon.is_signed(beacon.decode([OURS]), key)
    assert found == beacon.sign(found, key)


@given(BEACONS, KEYS)
def test_beacon_comes_back_from_its_text(said: Beacon, key: bytes) -> None:
    assert said == beacon.decode(beacon.encode(said))
    signed = beacon.sign(said, key)
    assert signed == beacon.decode(beacon.encode(signed))
    assert beacon.is_signed(beacon.decode(beacon.encode(signed)), key)


@pytest.mark.proves("BEA-003")
@given(st.binary(max_size=80) | spoilt(BEACONS.map(lambda said: beacon.encode(said)[0])))
def test_any_datagram_is_a_beacon_that_comes_back_or_refused(data: bytes) -> None:
    if _code(data) == "accepted":
        found = beacon.decode([data])
        assert 1 <= found.port <= 65_535
        assert found == beacon.decode(beacon.encode(found))
    else:
        assert "bad-beacon" == _code(data)


EDGES: list[tuple[bytes, str]] = [
    (b"SHALOM 65535", "accepted"),
    (b"SHALOM 65536", "bad-beacon"),
    (b"SHALOM  5246", "bad-beacon"),
    (b"SHALOM 5246 ", "accepted"),
    (b"shalom 5246", "bad-beacon"),
    (b"SHALOM 5246\n", "bad-beacon"),
    ("SHALOM \u0665\u0662".encode(), "bad-beacon"),
    (b"SHALOM 5246 \xff", "bad-beacon"),
    (b"SHALOM 5246 dbp=1 dbp=1", "bad-beacon"),
    (b"SHALOM 5246 id=3F9A1C0B9D2E4F60", "bad-beacon"),
    (b"SHALOM 5246 id=", "bad-beacon"),
    (b"SHALOM 5246 hb=65536", "bad-beacon"),
    (b"SHALOM 5246 caps=,", "bad-beacon"),
    (b"SHALOM 5246 net=Blue", "bad-beacon"),
    (b"SHALOM 5246 net=" + b"a" * 32, "accepted"),
    (b"SHALOM 5246 net=" + b"a" * 33, "bad-beacon"),
    (b"SHALOM 5246 mac=" + b"0" * 32, "accepted"),
    (b"SHALOM 5246 mac=" + b"0" * 32 + b" net=blue", "bad-beacon"),
    (b"SHALOM 5246 mac=" + b"0" * 32 + b" x", "bad-beacon"),
    (b"SHALOM 5246 " + b"x" * 500, "accepted"),
    (b"SHALOM 5246 " + b"x" * 501, "bad-beacon"),
    (OURS, "accepted"),
]


@pytest.mark.proves("BEA-001")
@pytest.mark.parametrize("data, expected", EDGES)
def test_bounds_of_a_beacon_are_exact(data: bytes, expected: str) -> None:
    assert expected == _code(data)


def test_beacon_is_one_frame() -> None:
    for said in ([], [OURS, OURS]):
        with pytest.raises(PeerError) as refused:
            beacon.decode(said)
        assert "bad-beacon" == refused.value.code


def test_beacon_of_every_field_fits_its_datagram() -> None:
    most = Beacon(65_535, 1, "f" * 16, 65_535, 65_535, ("f64", "lvc", "log", "mon", "bri"), "n" * 32)
    assert len(beacon.encode(beacon.sign(most, b"key"))[0]) < 256
