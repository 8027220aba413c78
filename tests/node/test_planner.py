"""What a node makes of the configuration: its own group's metrics, the fleet's times, and nothing while it is stopped."""

from typing import Any

import msgspec
import pytest

from weft.node.plan import plan_of
from weft.node.planner import Planner
from weft.node.settings import Role, settings_of

CPU = b'{"detail":"CPU","rate":"1s"}'
FAST = b'{"detail":"CPU","rate":"100ms"}'


def planner(**node: Any) -> Planner:
    return Planner(plan_of, settings_of({"node": {"name": "n", **node}}))


def names(metrics: Any) -> list[tuple[str, int]] | None:
    return None if metrics is None else [(spec.name, spec.rate_ns) for spec in metrics]


@pytest.mark.proves("CFG-020", "CFG-036")
def test_only_what_the_own_group_says_is_measured_and_told_once() -> None:
    mine = planner()
    assert not mine.learn((("/CONFIG/web10/metric/cpu", CPU),))
    mine.group = "web1"
    assert (None, None, None) == mine.change()[:3]
    assert mine.learn((("/CONFIG/web1/metric/cpu", CPU),))
    assert [("cpu", 10**9)] == names(mine.change().metrics)
    assert mine.change().metrics is None
    assert mine.learn((("/CONFIG/web1/metric/cpu", FAST),))
    assert [("cpu", 10**8)] == names(mine.change().metrics)


def test_a_node_with_metrics_in_its_own_file_follows_no_others_but_the_times() -> None:
    document = {"node": {"name": "n", "parent": "r"}, "metric": {"own": {"detail": "LOAD", "rate": "1s"}}}
    own = Planner(plan_of, settings_of(document))
    own.group = "all"
    own.learn(
        (("/CONFIG/all/metric/cpu", CPU), ("/CONFIG/global/heartbeat", b"0.5"), ("/CONFIG/global/dead_after", b"7"))
    )
    change = own.change()
    assert (None, None, (5 * 10**8, 7)) == change[:3]
    assert own.change().times is None


@pytest.mark.proves("MET-004", part="alerts of the own group are in the plan")
def test_alerts_come_with_the_metrics_of_the_plan_and_only_about_those() -> None:
    mine = planner()
    mine.group = "all"
    mine.learn((("/CONFIG/all/metric/cpu", CPU), ("/CONFIG/all/alert/busy", b'{"metric":"cpu","when":"> 90 %"}')))
    change = mine.change()
    assert [("busy", 90)] == [(alert.name, alert.limit) for alert in change.alerts]
    mine.learn((("/CONFIG/all/alert/busy", b'{"metric":"cpu","when":"> 95 %"}'),))
    change = mine.change()
    assert ([("cpu", 10**9)], [95]) == (names(change.metrics), [alert.limit for alert in change.alerts])
    mine.learn((("/CONFIG/all/alert/busy", b'{"metric":"disk","when":"> 95 %"}'),))
    change = mine.change()
    assert ((), True) == (change.alerts, "E07 metric: there is no metric 'disk'" in change.mistakes[0])


def test_a_pair_that_cannot_be_used_is_said_once_and_the_others_count() -> None:
    mine = planner()
    mine.group = "all"
    mine.learn((("/CONFIG/all/metric/cpu", CPU), ("/CONFIG/all/metric/bad", b'{"detail":"NOPE"}')))
    change = mine.change()
    assert [("cpu", 10**9)] == names(change.metrics)
    assert any("/CONFIG/all/metric/bad" in mistake for mistake in change.mistakes)
    assert () == mine.change().mistakes


@pytest.mark.proves("TOP-017")
def test_who_was_stopped_measures_again_when_it_has_a_place_again() -> None:
    mine = planner()
    mine.group = "all"
    mine.learn((("/CONFIG/all/metric/cpu", CPU),))
    mine.change()
    mine.stop()
    assert mine.change().metrics is None
    mine.group = "all"
    assert [("cpu", 10**9)] == names(mine.change().metrics)


@pytest.mark.proves("TOP-015")
def test_a_root_belongs_to_the_group_that_wants_its_endpoint() -> None:
    settings = settings_of({"node": {"name": "r", "port": 27_600}})
    root = Planner(plan_of, msgspec.structs.replace(settings, role=Role("root", 1)))
    root.learn((("/CONFIG/db/members", b'["127.0.0.1:27600"]'), ("/CONFIG/web/members", b'["127.0.0.0/8"]')))
    root.learn((("/CONFIG/db/metric/cpu", CPU),))
    assert ("db", [("cpu", 10**9)]) == (root.group, names(root.change().metrics))


def test_a_root_that_no_group_wants_measures_nothing() -> None:
    settings = msgspec.structs.replace(settings_of({"node": {"name": "r", "level": "root"}}), follows=True)
    root = Planner(plan_of, settings)
    assert settings.metrics
    root.learn((("/CONFIG/web/members", b'["10.0.0.0/8"]'), ("/CONFIG/web/metric/cpu", CPU)))
    assert () == root.change().metrics
    assert root.change().metrics is None


@pytest.mark.proves("CHN-070", "TOP-015")
def test_a_root_that_no_group_wants_has_the_filters_of_all() -> None:
    """Without them, the root of `members = ["web-*"]` kept no message, although its filter was to hold everywhere."""
    settings = msgspec.structs.replace(settings_of({"node": {"name": "r", "level": "root"}}), follows=True)
    root = Planner(plan_of, settings)
    root.learn((("/CONFIG/web/members", b'["10.0.0.0/8"]'), ("/CONFIG/web/filter/hot", HOT)))
    root.learn((("/CONFIG/global/filter/debug", DEBUG),))
    assert [("debug", "match")] == kinds(root.change().filters)
    root.learn((("/CONFIG/global/filter/bad", b'{"kind":"treshold"}'),))
    change = root.change()
    assert (None, 1) == (change.filters, len(change.refused))


# Filters: all of a set, or none of it (CHN-070)

HOT = b'{"kind":"threshold","above":90}'
DEBUG = b'{"kind":"match","where":{"name":"debug"},"invert":true}'


def kinds(filters: Any) -> list[tuple[str, str]] | None:
    return None if filters is None else [(spec.name, spec.kind) for spec in filters]


def planned(*pairs: tuple[str, bytes | None], **document: Any) -> Planner:
    mine = Planner(plan_of, settings_of({"node": {"name": "web7"}, **document}))
    mine.group = "all"
    mine.learn((("/CONFIG/all/metric/cpu", CPU), *pairs))
    return mine


@pytest.mark.proves("CHN-070")
def test_a_set_of_filters_with_a_mistake_changes_nothing_and_all_its_mistakes_are_told() -> None:
    mine = planned(("/CONFIG/all/filter/hot", HOT))
    assert [("hot", "threshold")] == kinds(mine.change().filters)
    mine.learn(
        (
            ("/CONFIG/all/filter/hot", None),
            ("/CONFIG/all/filter/good", DEBUG),
            ("/CONFIG/all/filter/bad", b'{"kind":"treshold"}'),
            ("/CONFIG/global/filter/worse", b"[1]"),
        )
    )
    change = mine.change()
    assert (None, 2) == (change.filters, len(change.refused))
    assert change.refused[0].startswith("/CONFIG/all/filter/bad: E04 kind")
    assert change.refused[1].startswith("/CONFIG/global/filter/worse: ")
    assert () == mine.change().refused
    mine.learn((("/CONFIG/all/filter/bad", None), ("/CONFIG/global/filter/worse", None)))
    assert [("good", "match")] == kinds(mine.change().filters)


@pytest.mark.proves("CHN-070", part="group beats global; nodes narrows; pinned of the own file beats both")
def test_the_groups_filter_counts_before_the_fleets_and_a_pinned_one_before_both() -> None:
    pairs = (
        ("/CONFIG/global/filter/hot", HOT),
        ("/CONFIG/all/filter/hot", DEBUG),
        ("/CONFIG/global/filter/web", b'{"kind":"match","where":{"name":"x"},"nodes":["web*"]}'),
        ("/CONFIG/global/filter/db", b'{"kind":"match","where":{"name":"x"},"nodes":["db*", "web77"]}'),
    )
    assert [("hot", "match"), ("web", "match")] == kinds(planned(*pairs).change().filters)
    own = {"name": "hot", "kind": "sample", "rate": 0.5}
    pinned = planned(*pairs, chains={"filter": [{**own, "pinned": True}]})
    assert [("hot", "sample"), ("web", "match")] == kinds(pinned.change().filters)
    assert None is kinds(planned(*pairs, chains={"filter": [own]}).change().filters)


def test_a_node_without_an_earlier_set_takes_the_filters_that_it_can_use() -> None:
    mine = planned(("/CONFIG/all/filter/good", DEBUG), ("/CONFIG/all/filter/bad", b"{}"))
    change = mine.change()
    assert ([("good", "match")], 1) == (kinds(change.filters), len(change.refused))
    assert (None, ()) == (mine.change().filters, mine.change().refused)
