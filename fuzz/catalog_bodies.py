"""What services say of themselves: any body is a record, a filter, a log, an approval, or refused by one code (CAT-009, CAT-013, CAT-035)."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from fuzz.house.choices import frames_of, joined
from fuzz.house.running import outcomes, run
from fuzz.house.vectors import hostile, lines
from weft.cores.catalog import filters, logforms, records
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.refusals import Refusal
from weft.cores.service import approvals
from weft.wire.catalog.messages import APPROVED, Message

CODES = frozenset(
    [
        "accepted",
        "bad-json",
        "missing-field",
        "bad-name",
        "bad-field",
        "too-large",
        "reserved-key",
        "immutable-field",
        "bad-argument",
    ]
)
ORIGIN = logforms.Origin("thermo", "i1", "net")


def attempt(does: Callable[..., Any], *given: Any) -> Any:
    """What comes of it; None for a refusal."""
    try:
        made = does(*given)
    except Refusal as refusal:
        outcomes.add((refusal.code, refusal.why[:30]))
        assert refusal.code in CODES, refusal
        return None
    outcomes.add(("accepted", type(made).__name__))
    return made


def one(data: bytes) -> None:
    """Two bodies: what is registered and what is changed, what is filtered, what is logged."""
    body, second, *_ = [*frames_of(data), b"", b""]
    registered = attempt(records.registration, body)
    changed = attempt(records.update, second)
    if registered is not None:
        json = records.canonical({"name": registered.name, **registered.record})
        assert json == records.canonical({"name": registered.name, **records.registration(json).record}), json
        registered.instance_id("10.0.0.9")
        if changed is not None:
            attempt(records.merge, registered.name, registered.record, changed.changes)
    found = attempt(filters.parse, second)
    if found is not None and registered is not None:
        instance = Instance(registered.name, "i", "10.0.0.9", "10.0.0.9")
        instance.record = registered.record
        assert found.matches(instance) in (True, False), found
    _logs(body, second)
    approval = approvals.approval(Message(APPROVED, b"", (body,)), 1_000)
    assert approval.interval_ms >= 1_000, approval
    assert 0 <= approval.hb < 1 << 16, approval
    approvals.refusal(Message(APPROVED, b"", (body, second)))


def _logs(body: bytes, second: bytes) -> None:
    topic = logforms.read_topic(second) or logforms.Topic("a", "INFO", "")
    for log in (logforms.read(topic, (body,), ORIGIN, 1.0), *logforms.read_refill((body,), ORIGIN, 1.0).values()):
        again = logforms.decode(logforms.encode(log))
        assert logforms.encode(log) == logforms.encode(again), log
        assert log.ts is None or math.isfinite(log.ts), log


def seeds() -> Iterable[bytes]:
    """Bodies of the vectors, and what is wrong in one way."""
    said = [
        bytes.fromhex(frame) for line in lines("catalog-computed", "catalog-peers") for frame in line.get("frames", ())
    ]
    bodies = sorted({body for body in said if body[:1] in b"{[" and len(body) < 1_000})
    whole = msgspec.json.encode(
        {
            "name": "thermo", "id": "i1", "ip": "10.0.0.4", "port": 5555, "heartbeat": 1_000, "tags": ["a", "b"],
            "metadata": {"rack": "7"}, "interfaces": {"router": {"ip": "*", "port": 1}}, "weight": 2, "health": "passing",
            "topics": None, "checks": [{}], "caps": ["f64"], "beacon": True, "function": "x", "version": "1",
        }
    )  # fmt: skip
    wanted = b'{"name":"th*","tags":["a"],"metadata":{"rack":"7"},"state":"active","health":"passing"}'
    logs = b'{"logs":[{"v":1,"message":"hot","seq":7,"level":"warn","ts":1.5,"fields":{"a":[1]}},7]}'
    for body in [whole, wanted, logs, *bodies, *hostile("json", "config-json")]:
        yield joined([whole, body])
        yield joined([body, b"log.thermo.WARN.motor"])
    yield joined([b'{"v":1,"message":"hot","seq":7,"level":"warn","ts":1e400}', b"log.a.b"])


if __name__ == "__main__":
    run(one)
