"""docs/events.md is made from the table of events."""

import typing
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.node.events import EVENTS
from weft.node.wiring import WIRES, append_event

NAMES = {row.name for row in EVENTS.values()}
PAGE = Path(__file__).parents[2] / "docs" / "events.md"
HEAD = """# Events

What a node writes into its stream of events: a journal record each, a log line each, a row of the lake each.
This page is generated from `weft.node.events`.

| event | level | meaning | what to do | fields |
|---|---|---|---|---|
"""


@pytest.mark.generates
@pytest.mark.proves("OBS-001", part="the page lists every event")
def test_the_page_lists_every_event(committed: Callable[[Path, str], None]) -> None:
    rows = [
        f"| `{row.name}` | {row.level} | {row.meaning} | {row.mend} | {', '.join(typing.get_type_hints(kind))} |"
        for kind, row in sorted(EVENTS.items(), key=lambda item: item[1].name)
    ]
    committed(PAGE, HEAD + "\n".join(rows) + "\n")


def test_every_event_with_a_row_is_journaled_and_no_other() -> None:
    journaled = {wire.kind for wire in WIRES if append_event in wire.actions}
    assert set(EVENTS) == journaled


def test_no_two_events_share_a_name() -> None:
    names = [row.name for row in EVENTS.values()]
    assert sorted(set(names)) == sorted(names)


CHAINS = {
    "client-up": "chains.client-up",
    "client-down": "chains.client-down",
    "registered": "chains.registered",
    "sick": "chains.sick",
    "recovered": "chains.recovered",
    "spool-high": "carrier.spool-high",
    "spool-full": "carrier.spool-dropped",
    "dropped": "chains.lost",
    "rollback": "carrier.rolled-back",
    "two-nodes-one-id": "carrier.child-refused",
    "config.applied": "chains.config.applied",
    "config.refused": "chains.config.refused",
    "denied": "chains.denied",
    "loop": "carrier.loop-found",
}
CONFIGURATION = {
    "config.applied": "config.applied",
    "config.wiped": "config.wiped",
    "config.resynced": "config.resynced",
    "config.rewound": "config.rewound",
    "config.refused": "config.refused",
    "config.lost_write": "config.lost-write",
    "topo.joined": "topo.joined",
    "topo.assigned": "topo.assigned",
    "topo.left": "topo.left",
    "topo.unassigned": "topo.unassigned",
    "topo.split": "root.election-called",  # one side of a split hears its root no longer
    "root.elected": "root.elected",
    "root.acting": "root.elected",  # its field `is_acting`
    "root.stepped_down": "root.stepped-down",
    "data.gap": "carrier.spool-dropped",
    "data.spool_full": "carrier.spool-high",
    "data.replayed": "carrier.caught-up",
    "security.denied": "node.input-refused",
}
STORE = """conflict joined incomplete split healed repaired purged stale-dropped id-clash name-collision dropped orphaned
malformed no-echo open-network link-up link-down read-only over-limit"""


@pytest.mark.proves("CHN-083")
@pytest.mark.parametrize(("seed", "name"), CHAINS.items())
def test_every_event_that_chains_have_by_the_specification_is_one(seed: str, name: str) -> None:
    assert name in NAMES, seed


@pytest.mark.proves("ADM-031", part="their names")
@pytest.mark.parametrize("seed", STORE.split())
def test_every_event_that_a_store_has_by_the_specification_is_one(seed: str) -> None:
    assert f"store.{seed}" in NAMES


@pytest.mark.proves("CFG-091")
@pytest.mark.parametrize(("seed", "name"), CONFIGURATION.items())
def test_every_event_that_the_configuration_has_by_the_specification_is_one(seed: str, name: str) -> None:
    assert name in NAMES, seed
    (kind,) = [kind for kind, row in EVENTS.items() if row.name == name]
    assert seed != "root.acting" or "is_acting" in typing.get_type_hints(kind)
