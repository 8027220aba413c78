"""Alerts that can never fire: a root refuses what would leave one, and shows those that it has (MET-003)."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fleet.fleets import EXAMPLE, fleets
from weft.base.effects import Reply
from weft.base.now import SECOND, Now
from weft.cores.configuration.messages import LoadTree, OrderRefused, RollBack, TakeRoot, Write, WriteKeys, Written
from weft.cores.configuration.store import Room, Store
from weft.node.assembly import build_node
from weft.node.deadalerts import DeadAlerts, newly_dead
from weft.node.fleet import fleet_of
from weft.node.fleetkeys import to_pairs
from weft.node.node import Node
from weft.node.plan import plan_of
from weft.node.settings import NodeSettings, NodeTable
from weft.shell.alertfacts import dead_of, page_of
from weft.shell.health import DEGRADED, OK, Health

DISK, ALERT = "/CONFIG/web/metric/disk", "/CONFIG/web/alert/full"
BYTES, PERCENT = b'{"detail":"DISK","rate":"1s"}', b'{"detail":"DISK_PERCENT","rate":"1s"}'
FULL = b'{"metric":"disk","when":"> 90 %"}'
NOT_IN_PERCENT = "E11 when: DISK is not measured in %; DISK_PERCENT is"


class Root:
    """An assembled root node without a shell."""

    def __init__(self) -> None:
        table = NodeTable(
            name="root", level="root", runs=("configuration", "measurement", "chains", "carrier", "alerts")
        )
        self.node: Node = build_node(NodeSettings(node=table, follows=True), bytes(16), 1, "seed")
        self.at = 1_795_000_000 * SECOND
        self.tickets = 0
        self.do(TakeRoot(1))

    def do(self, order: Any) -> Any:
        self.at += SECOND
        now = Now(self.at, self.at)
        self.node.command("configuration", order, now)
        answers = [effect.answer for effect in self.node.effects() if isinstance(effect, Reply)]
        return answers[0] if answers else None

    def write(self, *writes: tuple[str, bytes], by: str = "", ttl_s: float | None = None) -> Any:
        self.tickets += 1
        return self.do(WriteKeys(self.tickets, tuple(Write(*write, ttl_s) for write in writes), by=by))

    def wait(self, seconds: int) -> None:
        self.at += seconds * SECOND
        self.node.wake(Now(self.at, self.at))
        self.node.effects()

    @property
    def dead(self) -> list[dict[str, str]]:
        page = page_of(self.node, Now(self.at, self.at))
        assert dead_of(self.node) == len(page["dead"])
        return cast("list[dict[str, str]]", page["dead"])


@pytest.mark.proves("MET-003", part="the root refuses an order that would leave an alert dead, whoever gives it")
def test_a_root_refuses_what_would_leave_an_alert_that_can_never_fire() -> None:
    root = Root()
    refused = root.write((ALERT, FULL))
    assert isinstance(refused, OrderRefused)
    assert (ALERT, (f"{ALERT}: E07 metric: there is no metric 'disk'",)) == (refused.key, refused.dead)
    assert isinstance(root.write((ALERT, FULL), (DISK, PERCENT)), Written), "what brings both is whole"
    assert (f"{ALERT}: {NOT_IN_PERCENT}",) == root.write((DISK, BYTES)).dead
    assert isinstance(root.do(LoadTree(99, ((ALERT, FULL),), ("/CONFIG/",))), OrderRefused)
    assert isinstance(root.write((DISK, b"")), OrderRefused)
    assert isinstance(root.write((ALERT, b""), (DISK, b"")), Written)
    assert [] == root.dead


@pytest.mark.proves("MET-003", part="what no refusal can stop is shown until it is mended")
@pytest.mark.parametrize("way", ["rollback", "clone", "time to live"])
def test_an_alert_that_can_never_fire_is_shown_until_it_is_mended(way: str) -> None:
    root = Root()
    first = root.write((DISK, BYTES)).number
    root.write((DISK, PERCENT), ttl_s=5 if way == "time to live" else None)
    root.write((ALERT, FULL))
    health = Health(root.node.settings, root.node, cast("Any", None), cast("Any", None), cast("Any", None))
    assert OK == cast("Any", health.alerts_check()).state
    match way:
        case "rollback":
            assert (f"{ALERT}: {NOT_IN_PERCENT}",) == root.do(RollBack(99, first, DISK)).dead
        case "clone":
            root.write((DISK, BYTES), by="clone")
        case _:
            root.wait(6)
    (shown,) = root.dead
    assert ALERT == shown["key"]
    check = health.alerts_check()
    assert check is not None
    assert (DEGRADED, f"1 alert can never fire: {ALERT}: {shown['why']}") == (check.state, check.text)
    assert isinstance(root.write(("/CONFIG/web/metric/cpu", b'{"detail":"CPU","rate":"1s"}')), Written)
    root.write((DISK, PERCENT))
    assert [] == root.dead


@pytest.mark.proves("MET-003", part="an alert of a group without machines is named, and not refused")
def test_an_alert_of_a_group_in_which_nobody_is_is_named_and_not_refused() -> None:
    root = Root()
    assert isinstance(root.write((DISK, PERCENT), (ALERT, FULL)), Written)
    page = page_of(root.node, Now(root.at, root.at))
    assert ([], [ALERT]) == (page["dead"], page["in_vain"])
    record = b'{"endpoint":"10.0.0.1:27500","level":"sensor","name":"s","parent":"","tier":1}'
    root.write((f"/TOPO/web/node/{'1' * 32}", record), by="topology")
    assert [] == page_of(root.node, Now(root.at, root.at))["in_vain"]


def store_of(pairs: Sequence[tuple[str, bytes]]) -> Store:
    store = Store(Room(1_000, 1 << 20))
    for number, (key, value) in enumerate(pairs, 1):
        store.apply(key, number, value, 0)
    return store


@pytest.mark.proves("MET-003", part="what a fleet's file may say, a root takes")
def test_a_fleet_whose_file_can_be_used_has_no_dead_alert() -> None:
    pairs = to_pairs(fleet_of(EXAMPLE, "it"))
    assert 3 == len([key for key, _ in pairs if "/alert/" in key])
    assert () == newly_dead(store_of(()), [Write(*pair) for pair in pairs])


@given(fleets())
def test_no_fleet_that_can_be_written_into_a_file_has_a_dead_alert(fleet: Any) -> None:
    assert () == newly_dead(store_of(()), [Write(*pair) for pair in to_pairs(fleet)])


GROUPS, KINDS, NAMES = ("web", "db"), ("metric", "alert"), ("a", "b")
VALUES = st.sampled_from(
    [
        b"",
        b"[]",
        BYTES,
        PERCENT,
        b'{"metric":"a","when":"> 90 %"}',
        b'{"metric":"a","when":"> 1 GiB"}',
        b'{"metric":"b","when":"> 90 %"}',
        b'{"metric":"b"}',
    ]
)
KEYS = st.sampled_from([f"/CONFIG/{group}/{kind}/{name}" for group in GROUPS for kind in KINDS for name in NAMES])


@given(st.lists(st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4), max_size=6))
def test_what_is_called_dead_is_what_a_node_of_the_group_does_not_judge(orders: list[list[tuple[str, bytes]]]) -> None:
    pairs: dict[str, bytes] = {}
    ledger = DeadAlerts()
    for order in orders:
        before = _unjudged(pairs)
        store = store_of(tuple(pairs.items()))
        pairs = {key: value for key, value in (pairs | dict(order)).items() if value}
        after = _unjudged(pairs)
        named = newly_dead(store, [Write(*write) for write in order])
        assert after - before == {each.partition(": ")[0] for each in named}
        ledger.learn([(key, value or None) for key, value in order])
        assert after == set(ledger.found())


def _unjudged(pairs: dict[str, bytes]) -> set[str]:
    """Alerts that are in the plan of no node, as the planner of a node of each group sees it."""
    found = set()
    for group in GROUPS:
        judged = {spec.name for spec in plan_of(pairs, (group,)).alerts}
        found |= {
            key for key in pairs if key.startswith(f"/CONFIG/{group}/alert/") and key.rpartition("/")[2] not in judged
        }
    return found


def test_a_node_that_is_no_root_names_no_dead_alerts() -> None:
    node = cast(
        "Any", SimpleNamespace(cores={}, settings=SimpleNamespace(node=SimpleNamespace(name="s"), level="sensor"))
    )
    page = page_of(node, Now(0, 0))
    assert (None, None) == (page["dead"], page["in_vain"])
