"""What nodes say of alerts in their events: any payload is an alert that comes back, or none (MET-004)."""

from collections.abc import Iterable

import msgspec

from fuzz.house.running import run
from weft.wire.alerts import KEYS, Alert, AlertCleared, AlertRaised, AlertsFiring, decode, ident

ORIGIN = b"o" * 16
ALERT = Alert(
    name="full",
    node="pi",
    metric="disk",
    labels={"mount": "/"},
    value=91.5,
    unit="%",
    when="> 90 %",
    limit=90,
    severity="critical",
    text="mend it",
    since=1_795_000_000_000,
)


def one(data: bytes) -> None:
    """As the root reads it, under each of the keys."""
    for key in sorted(KEYS):
        told = decode(key, data)
        if told is None:
            continue
        assert told == decode(key, msgspec.json.encode(told)), told
        for alert in told.alerts if isinstance(told, AlertsFiring) else (told,):
            assert len(ident(ORIGIN, alert)) == 16, alert


def seeds() -> Iterable[bytes]:
    """One of each kind, and some that are none."""
    said = msgspec.structs.asdict(ALERT)
    yield msgspec.json.encode(AlertRaised(**said))
    yield msgspec.json.encode(AlertCleared(**said, at=1_795_000_060_000, why="back"))
    yield msgspec.json.encode(AlertsFiring((ALERT, ALERT)))
    yield msgspec.json.encode(AlertRaised(**(said | {"since": -1})))
    yield b'{"alerts":[]}'
    yield b'{"name":"\xff"}'
    yield b"[" * 2_000


if __name__ == "__main__":
    run(one)
