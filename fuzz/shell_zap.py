"""The handler of handshakes: any frames get one answer of six, and only a key that may enter gets a yes (SEC-011)."""

from collections.abc import Iterable

from zmq.utils import z85

from fuzz.house.choices import frames_of, joined
from fuzz.house.running import outcomes, run
from fuzz.house.vectors import multiparts
from weft.base.keys import Binding, KeyTable
from weft.node.handshake import decide

SENSOR, SERVICE, STRANGER = (bytes([number]) * 32 for number in (1, 2, 3))
TABLE = KeyTable.of(
    (key[:16], Binding(curve=(z85.encode(key).decode(),), name=name, roles=(name,)))
    for key, name in ((SENSOR, "sensor"), (SERVICE, "service"))
)
ENTER = {b"weft": (SENSOR, SERVICE), b"weft-publish": (SENSOR,)}
"""Whose keys open which doors; that for joining opens to any key."""
WHY = frozenset(["ok", "unknown-key", "role", "no-key", "domain", "malformed"])


def one(data: bytes) -> None:
    """As libzmq hands a request over, behind its delimiter."""
    request = frames_of(data)
    verdict = decide(request, TABLE)
    outcomes.add(("decided", verdict.why))
    assert verdict.why in WHY, verdict
    assert len(verdict.frames) == 6, verdict
    assert len(verdict.address) <= 64, verdict
    assert verdict.allowed == _may_enter(request), (request, verdict)
    assert (verdict.frames[2] == b"200") == verdict.allowed, verdict
    assert verdict.frames[4] == (z85.encode(request[6]) if verdict.allowed else b""), verdict


def _may_enter(request: list[bytes]) -> bool:
    if len(request) != 7 or request[0] != b"1.0" or request[5] != b"CURVE" or len(request[6]) != 32:
        return False
    return request[2] == b"weft-join" or request[6] in ENTER.get(request[2], ())


def seeds() -> Iterable[bytes]:
    """Those of the vectors, and each door with each key, whole and broken off."""
    yield from multiparts("security")
    for domain in (b"weft", b"weft-publish", b"weft-join", b"other"):
        for key in (SENSOR, SERVICE, STRANGER, b"short"):
            yield joined([b"1.0", b"1", domain, b"10.0.0.7", b"", b"CURVE", key])
    whole = [b"1.0", b"1", b"weft", b"\xff" * 80, b"", b"NULL"]
    yield from (joined(whole[:count]) for count in range(7))
    yield joined([b"2.0", *whole[1:]])


if __name__ == "__main__":
    run(one)
