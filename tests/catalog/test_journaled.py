"""What happens in a catalog stands in its node's journal: changes as a stream of their own, the rest as events (CAT-083)."""

import json
from typing import Any

import pytest

from tests.catalog.test_hostile import Fabric
from weft.base.effects import Persist, Source
from weft.base.now import SECOND, Now
from weft.base.records import Stream, StreamRecord
from weft.cores.catalog.messages import JOURNALED
from weft.node.events import EVENTS

RECORD = {"name": "thermo", "id": "t1", "ip": "127.0.0.1", "port": 9}


class Kept(Fabric):
    """Notes what is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[StreamRecord] = []

    def hear(self, word: bytes, *frames: bytes, address: str = "127.0.0.1") -> None:
        source = Source("catalog", address.encode(), None, f"REQ {address}")
        self.node.receive(source, [b"", word, b"\0\0\0\0", *frames], self.now)
        self.note()

    def garble(self) -> None:
        self.node.receive(Source("catalog", b"noise", None, "REQ 127.0.0.1"), [b"noise"], self.now)
        self.note()

    def pass_time(self, seconds: float) -> None:
        until = self.now.mono + round(seconds * SECOND)
        while (due := self.node.deadline()) is not None and due <= until:
            self.now = Now(max(due, self.now.mono), self.now.wall)
            self.node.wake(self.now)
            self.note()
        self.now = Now(until, self.now.wall)

    def note(self) -> None:
        for effect in self.node.effects():
            if isinstance(effect, Persist):
                self.records += [record for record in effect.records if isinstance(record, StreamRecord)]

    def of(self, stream: Stream) -> list[StreamRecord]:
        return [record for record in self.records if record.stream == stream]


def body(record: StreamRecord) -> Any:
    return json.loads(record.payload)


@pytest.mark.proves("CAT-040", "CAT-083")
def test_a_life_of_an_instance_is_a_stream_without_a_hole_that_says_who_what_and_why() -> None:
    kept = Kept()
    kept.hear(b"UwU", json.dumps(RECORD).encode())
    kept.pass_time(700)
    changes = kept.of(Stream.CATALOG)
    assert [(1, "register"), (2, "suspect"), (3, "inactive"), (4, "remove")] == [
        (change.sequence, change.attributes["op"]) for change in changes
    ]
    said = [change.attributes for change in changes]
    assert {("thermo", kept.node.node, kept.node.era)} == {(one.key, one.origin, one.era) for one in changes}
    assert {("t1", "127.0.0.1", kept.catalog.context.epoch)} == {
        (one["instance"], one["owner"], one["epoch"]) for one in said
    }
    assert ["", "", "silent", "reaped"] == [one["reason"] for one in said]
    assert {"ip": "127.0.0.1", "port": 9, "id": "t1"} == {key: body(changes[0])[key] for key in ("ip", "port", "id")}


@pytest.mark.proves("CAT-080", "CAT-083")
def test_what_is_refused_or_no_message_is_an_event_once_in_ten_seconds_per_peer() -> None:
    kept = Kept()
    kept.hear(b"UwU", json.dumps(RECORD).encode())
    for _ in range(5):
        kept.hear(b"UoU", b'{"name":"thermo"}', address="10.0.0.9")
        kept.garble()
    names = [event.key for event in kept.of(Stream.EVENTS) if event.key.startswith("catalog.")]
    assert ["catalog.denied", "catalog.malformed"] == sorted(set(names) - {"catalog.opened"})
    assert 2 == len([name for name in names if name != "catalog.opened"])
    (denied,) = (body(event) for event in kept.of(Stream.EVENTS) if event.key == "catalog.denied")
    assert ("not-owner", "thermo") == (denied["code"], denied["name"])
    kept.pass_time(11)
    kept.garble()
    counts = [body(event)["count"] for event in kept.of(Stream.EVENTS) if event.key == "catalog.malformed"]
    assert 6 == sum(counts)


@pytest.mark.proves("CAT-083")
def test_every_event_of_the_catalog_has_a_name_of_its_own() -> None:
    names = {EVENTS[kind].name for kind in JOURNALED}
    assert len(JOURNALED) == len(names)
    assert {
        "catalog.denied",
        "catalog.malformed",
        "catalog.ignored",
        "catalog.pause",
        "catalog.held",
        "catalog.insecure",
    } <= names
