"""Beside nodes of the version before, and behind them: what they said is understood, and their journals go on.

`golden/` is of a fleet of the last version whose announcements and calls of the topology had no checksum (0.1.0): its root
and s1, a collector, were of that version, and s2, a sensor, of the one behind it, whose announcements have one. A value of the
store was written at each of the two, and a rate changed. `heard.msgpack.zst`: how the two older nodes were made, and all frames
that they heard, with their times. `journals.tar.zst`: what they left on their disks. Files of later versions come beside
these when the wire or the journal changes, and none is ever taken away.
"""

import io
import json
import tarfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgpack
import pytest
import zstandard

from weft.base.effects import Persist, Source, Tell
from weft.base.now import Now
from weft.base.records import DamageRecord, Entry, StreamRecord, UnknownRecord
from weft.cores.configuration.messages import PairsChanged
from weft.cores.drain.messages import LakeFound
from weft.cores.store.core import Store as StoreCore
from weft.cores.topology.messages import NodeSeen, PlaceAssigned
from weft.node.assembly import build_node
from weft.node.node import Node
from weft.node.settings import settings_of
from weft.shell.files import Files
from weft.shell.journal import Journal, Limits
from weft.wire.store.pack import unpack

GOLDEN: Final = Path(__file__).parent / "golden"
UNPACKED_MAX: Final = 1 << 24
TABLES: Final[dict[str, dict[str, Any]]] = {
    "root": {
        "node": {"name": "root", "level": "root", "port": 16_000},
        "store": {"found": "our house", "clock": "200ms"},
    },
    "s1": {"node": {"name": "s1", "port": 16_010}, "store": {"clock": "200ms"}},
}
"""The files of the two older nodes."""
HOME: Final = ("home", "temp")
LIMITS: Final = Limits(budget_bytes=1 << 28, ballast_bytes=0, free_bytes_min=0)
Number = tuple[int, Any, int | None, int]
"""Of a row: its stream, who made it, in which start, and its number there."""


@cache
def heard(name: str) -> dict[str, Any]:
    packed = (GOLDEN / "heard.msgpack.zst").read_bytes()
    told: dict[str, Any] = msgpack.unpackb(zstandard.ZstdDecompressor().decompress(packed, UNPACKED_MAX))[name]
    return told


def left_behind(name: str, place: Path) -> tuple[Journal, list[Entry]]:
    """The journal that an older node left, opened by the present version, and what that reads there."""
    data = zstandard.ZstdDecompressor().decompress((GOLDEN / "journals.tar.zst").read_bytes(), UNPACKED_MAX)
    with tarfile.open(fileobj=io.BytesIO(data)) as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)  # 3.11.2 has none; 3.13 warns without
        files.extractall(place)
    return opened(name, place)


def opened(name: str, place: Path) -> tuple[Journal, list[Entry]]:
    wall = heard(name)["heard"][-1][1]
    journal, recovery = Journal.open(place / name, identity(name), Files(), wall, LIMITS)
    assert ("clean", []) == (recovery.verdicts, recovery.damages)
    return journal, list(recovery.entries())


def identity(name: str) -> bytes:
    node: bytes = heard(name)["made"][0]
    return node


def made(name: str, *, era: int = 0) -> Node:
    node, first_era, seed, secret = heard(name)["made"]
    return build_node(settings_of(TABLES[name]), node, era or first_era, seed, secret)


class InItsPlace:
    """The present version in the place of an older node: it hears what that one heard, when it did."""

    def __init__(self, name: str) -> None:
        told = heard(name)
        self.node = made(name)
        self.done: list[Any] = []
        self._now = Now(*told["started"])
        self.node.restore([], 1, self._now)
        if name == "root":
            self.node.command("drain", LakeFound(()), self._now)
        for mono, wall, channel, peer, kind, frames in told["heard"]:
            self._wait(Now(mono, wall))
            self.node.hear([(Source(channel, peer, None, kind), frames)], self._now)
            self.done += self.node.effects()

    def _wait(self, then: Now) -> None:
        while (due := self.node.deadline()) is not None and due <= then.mono:
            mono = max(due, self._now.mono)
            self.node.wake(Now(mono, then.wall - (then.mono - mono)))
            self.done += self.node.effects()
        self._now = then

    @property
    def kept(self) -> list[Any]:
        """All records that it has made durable."""
        return [record for effect in self.done if isinstance(effect, Persist) for record in effect.records]

    def events(self, kind: type) -> list[Any]:
        return [effect.event for effect in self.done if isinstance(effect, Tell) and type(effect.event) is kind]


def of_others(records: Iterable[Any], node: str) -> set[Number]:
    """The rows of streams in these records that other nodes have made."""
    return {
        (record.stream, record.origin, record.era, record.sequence + row)
        for record in records
        if isinstance(record, StreamRecord) and isinstance(record.origin, bytes) and record.origin != identity(node)
        for row in range(record.attributes.get("n", 1))
    }


def temperature(node: Node) -> Any:
    store = node.cores["store"]
    assert isinstance(store, StoreCore)
    event = store.replica.tree.get(HOME)
    assert event is not None
    assert event.value is not None
    return unpack(event.value)


@pytest.mark.proves("OPS-003", part="what nodes of the version before say is understood, and nothing of it refused")
def test_a_root_takes_what_an_older_and_a_present_node_send(tmp_path: Path) -> None:
    root = InItsPlace("root")
    assert {} == root.node.refused
    assert {"s1", "s2"} == {event.name for event in root.events(NodeSeen)}
    then = of_others((entry[1] for entry in left_behind("root", tmp_path)[1]), "root")
    assert 2 == len({origin for _, origin, _, _ in then})
    assert then == of_others(root.kept, "root"), "all that the older root kept, and nothing else"
    assert 22 == temperature(root.node)


@pytest.mark.proves("OPS-003", part="what nodes of the version before say is understood, and nothing of it refused")
def test_below_an_older_root_a_node_has_a_place_the_configuration_and_the_store() -> None:
    s1 = InItsPlace("s1")
    unmeasured = ("up", "bad-upto")  # measured is nothing here: the root acknowledges what this one has not sent
    assert s1.node.refused.keys() <= {unmeasured}
    assert "127.0.0.1:16000" in {event.parent for event in s1.events(PlaceAssigned)}
    pairs = dict(pair for event in s1.events(PairsChanged) for pair in event.pairs)
    assert {"detail": "CPU", "rate": "500ms"} == json.loads(pairs["/CONFIG/all/metric/cpu"])
    assert 21.5 == temperature(s1.node), "what s2 wrote; 22 was written at s1 itself"


@pytest.mark.proves("OPS-003", part="a journal of the version before is read whole, and gone on with")
@pytest.mark.parametrize("name", ["root", "s1"])
def test_a_journal_of_an_older_node_goes_on(name: str, tmp_path: Path) -> None:
    journal, entries = left_behind(name, tmp_path)
    assert not [record for _, record in entries if isinstance(record, UnknownRecord | DamageRecord)]
    node, now = made(name, era=heard(name)["made"][1] + 1), Now(1, heard(name)["heard"][-1][1])
    node.restore(entries, journal.next_lsn, now)
    assert 22 == temperature(node)
    written = StreamRecord(1, identity(name), node.era, 1, now.wall, now.wall, "cpu", b"", {})
    assert journal.next_lsn == entries[-1][0] + 1
    journal.write([written], now.wall)
    journal.close(now.wall)
    assert written == opened(name, tmp_path)[1][-1][1]
