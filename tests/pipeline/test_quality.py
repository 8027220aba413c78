"""What silver refuses for a reason that no single row shows: other content, unknown nodes, rules, colliding keys."""

from typing import Any

import pytest

from tests.pipeline.ground import MEM, NET, A, B, Ground, lost, taken
from weft.lake.series import SeriesDefinition
from weft.pipeline.ruleset import Rule, Rules
from weft.wire.samples import Series

pytestmark = pytest.mark.prove("whole batches in Spark")

IMPOSTOR = Series("impostor", "MEMORY", "basic", {})


def refused(ground: Ground) -> list[tuple[Any, ...]]:
    return ground.rows("quarantine.samples", "origin", "sequence", "value_long", "reason")


@pytest.mark.proves("PIP-030", "PIP-031", "PIP-032")
def test_a_number_that_comes_again_with_other_content_is_kept_aside(ground: Ground) -> None:
    done = ground.take(taken(1, [(MEM, 1, None), (MEM, 2, None), (MEM, 3, None)]), taken(2, [(MEM, 20, None)]))
    assert (4, 3, 0, 1) == done.outcome[:4]
    done = ground.take(taken(1, [(MEM, 1, None)]), taken(3, [(MEM, 30, None), (MEM, 4, None)]))
    assert (3, 1, 1, 1) == done.outcome[:4]
    assert [(A, 2, 20, "changed"), (A, 3, 30, "changed")] == refused(ground)
    assert [1, 2, 3, 4] == [value for (value,) in ground.rows("silver.samples", "value_long")]
    ground.job.fold()
    counted = ground.rows(
        "gold.completeness", "received", "silver_rows", "duplicates", "quarantined", "lost", "missing"
    )
    assert [(4, 4, 1, 2, 0, 0)] == counted


@pytest.mark.proves("PIP-031")
def test_rules_of_the_user_and_of_the_fleet(ground: Ground) -> None:
    rules = Rules(known_nodes=(A,), user=(Rule("hot", "value_long > 100"), Rule("odd", "value_long % 2 = 1", "flag")))
    ground.restart(ground.options._replace(rules=rules))
    ground.take(taken(1, [(MEM, 7, None), (MEM, 101, None), (MEM, 8, None)]), taken(1, [(MEM, 7, None)], origin=B))
    assert [(A, 2, 101, "rule:hot"), (B, 1, 7, "unknown-node")] == refused(ground)
    assert [(1, ["rule:odd"]), (3, [])] == ground.rows("silver.samples", "sequence", "flags")


@pytest.mark.proves("LAK-019", "PIP-031")
def test_a_key_that_already_stands_for_something_else(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    ground.take(taken(1, [(MEM, 1, None)]))
    (known,) = ground.rows("silver.series", "series", order=())
    monkeypatch.setattr(SeriesDefinition, "key", lambda _: known[0])
    ground.take(taken(2, [(IMPOSTOR, 2, None), (MEM, 3, None)]))
    assert [(A, 2, 2, "series-collision")] == refused(ground)
    assert [(1,), (3,)] == ground.rows("silver.samples", "sequence")


@pytest.mark.proves("LAK-019", "PIP-031")
def test_of_two_that_come_at_once_with_one_key_the_first_has_it(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SeriesDefinition, "key", lambda _: 7)
    ground.take(taken(1, [(MEM, 1, None), (IMPOSTOR, 2, None), (MEM, 3, None)]))
    assert [(A, 2, 2, "series-collision")] == refused(ground)
    assert [(1,), (3,)] == ground.rows("silver.samples", "sequence")
    assert [(7, MEM.config_name)] == ground.rows("silver.series", "series", "config_name", order=())


@pytest.mark.proves("PIP-043")
def test_what_comes_after_it_was_given_up_is_a_sample_without_a_pair(ground: Ground) -> None:
    rows = [(NET, 10 * number, None) for number in range(1, 6)]
    ground.take(taken(1, rows[:2]), taken(4, rows[3:]), lost(3, 3))
    ground.take(taken(3, rows[2:3]))
    assert [(1, 2), (2, 4), (4, 5)] == ground.pairs()
    assert [(3, ["after-lost"])] == [row for row in ground.rows("silver.samples", "sequence", "flags") if row[1]]
    ground.job.fold()
    columns = ("expected", "received", "lost", "complete_upto", "state")
    assert [(5, 5, 0, 5, "complete")] == ground.rows("gold.completeness", *columns)
