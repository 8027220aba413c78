"""A run in which a test hangs ends, and no test is watched for less than ten minutes."""

import faulthandler
from typing import Any

import pytest

from tests.house.hanging import Hanging


def test_each_test_has_ten_minutes_and_the_watch_is_renewed_each_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now, armed = 1_000.0, list[tuple[float, float]]()

    def arm(after: float, **how: Any) -> None:
        assert how["exit"]
        armed.append((now, now + after))

    monkeypatch.setattr(faulthandler, "dump_traceback_later", arm)
    watch = Hanging(lambda: now)
    for _ in range(100):
        watch.pytest_runtest_protocol()
        assert 600 <= armed[-1][1] - now <= 610
        now += 0.7
    assert 6 <= len(armed) <= 7
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", armed.clear)
    watch.pytest_unconfigure()
    assert [] == armed


def test_this_run_is_watched(request: pytest.FixtureRequest) -> None:
    assert [Hanging] == [type(one) for one in request.config.pluginmanager.get_plugins() if isinstance(one, Hanging)]
