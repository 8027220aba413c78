"""Files of a store: those of real servers are read, ours read back, and nonsense is refused (ADM-012)."""

import json
from pathlib import Path as File
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.rig import change
from tests.store.vectors import plain
from tests.store.wire.strategies import CHAINS, PATHS, TOCKS, VALUES
from weft.base.changes import Chain, Event
from weft.base.errors import PeerError
from weft.base.ranges import RangeSet
from weft.client.store.link import Frames
from weft.wire.store.files import Reader, State, Writer
from weft.wire.store.pack import pack, unpack
from weft.wire.store.path import text_of

ROWS = [
    json.loads(line) for line in (File(__file__).parents[2] / "vectors" / "store-files.jsonl").read_text().splitlines()
]
BY_ID = {row["id"]: row for row in ROWS}


def read(data: bytes) -> list[Event | State]:
    reader = Reader()
    return [reader.read(record) for record in Frames().feed(data)]


def told(said: Event | State) -> tuple[Any, ...]:
    """In few words: path, value if any, links and tock; or the state's ranges."""
    if isinstance(said, State):
        return dict(said.nodes), {node: list(ticks) for node, ticks in said.known.items()}, said.node, said.tock
    value = () if said.value is None else (unpack(said.value),)
    return text_of(said.path), *value, said.chain.links, said.tock


@pytest.mark.proves("ADM-012")
def test_a_file_that_a_real_server_saved_is_read() -> None:
    state, *entries = read(bytes.fromhex(BY_ID["new-save"]["payload"]))
    assert ({"n1": 9}, {"n1": [(2, 3)]}, "n1", 30) == told(state)
    assert [
        (":", "hello", (("n1", 1),), 3),
        (":n.actor.del", {"nodes": ["n1"]}, (("n1", 9),), 28),
        ("a.b", "y", (("n1", 4),), 13),
        ("c", 3.25, (("n1", 5),), 16),
        ("d:1:t", b"\x00\xff", (("n1", 6),), 19),
        ("e", 1 << 40, (("n1", 7),), 22),
    ] == [told(entry) for entry in entries]


@pytest.mark.proves("ADM-012")
def test_deletions_of_a_log_are_entries_without_value_and_count_for_the_paths_behind_them() -> None:
    state, *entries = read(bytes.fromhex(BY_ID["old-log"]["payload"]))
    assert isinstance(state, State)
    assert {"n1": [(8, 8)]} == {node: list(ticks) for node, ticks in state.deleted.items()}
    assert [
        ("l:0", 0, (("n1", 10),), 35),
        ("l:1", 1, (("n1", 11),), 38),
        ("l:2", 2, (("n1", 12),), 41),
        ("l:1", (("n1", 13),), 44),
        ("l:0", "again", (("n1", 14),), 47),
    ] == [told(entry) for entry in entries]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_every_record_means_what_the_vector_says(row: dict[str, Any]) -> None:
    records = Frames().feed(bytes.fromhex(row["payload"]))
    assert [plain(record) for record in row["means"]["records"]] == [unpack(record) for record in records]


@pytest.mark.proves("ADM-012")
def test_what_is_written_is_what_a_real_server_writes() -> None:
    row = BY_ID["new-save"]
    writer = Writer()
    read_back = read(bytes.fromhex(row["payload"]))
    written = [Writer.state(said) if isinstance(said, State) else writer.entry(said) for said in read_back]
    state, *entries = [unpack(record) for record in written]
    first, *others = [plain(record) for record in row["means"]["records"]]
    assert others == entries
    assert {**first, "deleted": {}} == state, "and it says that nothing is deleted"


@pytest.mark.proves("ADM-012")
@given(st.lists(st.builds(Event, CHAINS, TOCKS, PATHS, st.none() | VALUES.map(pack)), max_size=8))
def test_what_was_written_is_read_back(events: list[Event]) -> None:
    writer, state = Writer(), State({"a": 7}, {"a": RangeSet([(2, 3)])}, {"b": RangeSet([(1, 1)])}, "a", 9)
    assert [state, *events] == read(Writer.state(state) + b"".join(map(writer.entry, events)))


def test_a_state_may_stand_under_info() -> None:
    [state] = read(bytes(msgpack.packb({"info": {"nodes": {"a": 3}, "superseded": {"a": [1]}, "tock": 4}})))
    assert ({"a": 3}, {"a": [(1, 1)]}, "", 4) == told(state)


@pytest.mark.proves("ADM-012", "COD-007")
@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({}, "missing-field"),
        ({"value": 1}, "missing-field"),
        ({"seq": 0, "version": [0, 71, 40]}, "malformed"),
        ({"path": ["a"], "value": 1, "tock": 1}, "missing-field"),
        ({"path": "a", "value": 1, "tock": 1, "node": "n", "tick": 1}, "bad-path"),
        ({"path": ["a"], "depth": 1, "value": 1, "tock": 1, "node": "n", "tick": 1}, "bad-path"),
        ({"path": ["a"], "value": 1, "tock": -2, "node": "n", "tick": 1}, "bad-field"),
        ({"path": ["a"], "value": 1, "tock": 1, "node": "n", "tick": 1, "prev": 5}, "bad-chain"),
        ({"path": ["a"], "value": 1, "tock": 1, "node": "n", "tick": 1, "prev": {"node": "", "tick": 1}}, "bad-chain"),
        ({"nodes": {"": 3}}, "bad-field"),
        ({"nodes": {"a": -3}}, "bad-field"),
        ({"nodes": {"a": 3}, "known": {"a": [[5, 2]]}}, "malformed"),
        ({"nodes": 5}, "malformed"),
    ],
)
def test_what_is_no_record_is_refused(record: dict[str, Any], code: str) -> None:
    with pytest.raises(PeerError) as refused:
        read(bytes(msgpack.packb(record)))
    assert code == refused.value.code


def test_a_chain_may_be_cut() -> None:
    event = change("b:9", 20, "x.y", 1, "a:2 …")
    assert [event] == read(Writer().entry(event))
    assert Chain((("b", 9), ("a", 2)), is_cut=True) == event.chain
