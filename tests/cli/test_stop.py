"""`weft stop`: what it says of whom it stopped."""

from typing import Any

import pytest

from weft.cli import stop as module


@pytest.mark.parametrize(
    ("group", "stopped", "missing", "status", "said"),
    [
        ("web", ["s1"], [], 0, ""),
        ("", [], [], 0, ""),
        ("", ["s1"], ["s2"], 1, "no answer from: s2"),
        ("root", [], [], 0, "no machine has a place in a group 'root'"),
    ],
)
def test_whom_it_stopped_and_whom_it_did_not_find(  # tidy: one row of the table
    group: str,
    stopped: list[str],
    missing: list[str],
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def order(port: int, name: str, **fields: Any) -> dict[str, Any]:
        assert (27_500, "stop", {"group": group}) == (port, name, fields)
        return {"stopped": stopped, "missing": missing}

    monkeypatch.setattr(module, "order", order)
    assert status == module.stop(group)
    told = capsys.readouterr()
    assert f"stopped: {', '.join(stopped) or 'nobody'}\n" == told.out
    assert (said in told.err) if said else ("" == told.err)
