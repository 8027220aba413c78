"""Bugs that were made on purpose are caught by the tests that stand against them (MET-004)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.alerts import test_alerts as root
from tests.measurement import test_alarms as node
from weft.cores.alerts import limits
from weft.cores.alerts.core import ACTIVE, Alerts
from weft.cores.alerts.lane import Lane
from weft.cores.measurement.alarms import Alarms
from weft.cores.measurement.alertsettings import AlertSpec


def nothing(*_: Any, **__: Any) -> None:
    """Does not do it."""


PLANTED: list[tuple[Any, str, Any, Callable[[], None]]] = [
    (Alarms, "_restore", nothing, node.test_a_start_neither_repeats_an_alert_nor_forgets_to_clear_it),
    (Alarms, "plan", nothing, node.test_it_fires_when_the_condition_has_held_for_its_span_and_ends_at_clear),
    (Alarms, "forget", nothing, node.test_a_break_in_the_span_begins_it_anew),
    (AlertSpec, "holds", lambda spec, value: value >= spec.limit, node.test_the_limit_itself_is_not_beyond_it),
    (
        AlertSpec,
        "is_back",
        lambda spec, value: not spec.holds(value),
        node.test_it_fires_when_the_condition_has_held_for_its_span_and_ends_at_clear,
    ),
    (Lane, "restored", nothing, root.test_a_root_that_died_before_it_sent_sends_after_its_start),
    (Lane, "restored_done", nothing, root.test_a_root_that_died_before_it_sent_sends_after_its_start),
    (
        Alerts,
        "_RESTORERS",
        Alerts._RESTORERS | {ACTIVE: nothing},
        root.test_a_root_that_died_before_it_sent_sends_after_its_start,
    ),
    (Lane, "put_off", nothing, root.test_what_was_not_sent_waits_is_said_once_and_goes_in_order),
    (limits, "GIVE_UP_MS", 10**12, root.test_after_a_day_it_is_given_up_and_said),
]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted[1])
def test_planted_bug_is_caught(
    planted: tuple[Any, str, Any, Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, bug, check = planted
    monkeypatch.setattr(where, name, bug)
    with pytest.raises((AssertionError, IndexError)):
        check()
