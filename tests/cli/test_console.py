"""`weft console` says where the page is, and what is needed to see it."""

from typing import Any

import pytest

from weft.base.errors import UserError
from weft.cli import console as module
from weft.cli.console import console, login


def told(monkeypatch: pytest.MonkeyPatch, **facts: Any) -> None:
    page = {"name": "c1", "level": "collector", "open": True, "root": {"name": "r", "endpoint": "10.0.0.1:27500"}}
    monkeypatch.setattr(module, "page_of", lambda port, name: page | facts)


def test_a_collector_names_the_roots_console_as_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told(monkeypatch)
    assert 0 == console(port=3_000)
    first, second = capsys.readouterr().out.splitlines()
    assert "http://127.0.0.1:3006/console/" == first
    assert second.endswith("http://10.0.0.1:27506/console/")


def test_a_closed_fabric_is_read_from_elsewhere_through_ssh(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told(monkeypatch, level="root", open=False)
    assert 0 == console(port=3_000)
    assert "ssh -L 3006:127.0.0.1:3006 MACHINE" in capsys.readouterr().out


@pytest.mark.proves("CON-004", part="weft console login prints an address with a token")
def test_who_logs_in_gets_an_address_that_holds_the_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[Any] = []

    def post(*words: Any) -> dict[str, Any]:
        said.append(words)
        return {"token": "t0k"}

    monkeypatch.setattr(module, "post", post)
    assert 0 == login(port=3_000, who="anna", span="30m")
    assert "http://127.0.0.1:3006/console/#login=t0k\n" == capsys.readouterr().out
    assert [(3_000, "console/login", {"who": "anna", "for_s": 1_800.0}, "console login")] == said
    with pytest.raises(UserError, match="no span"):
        login(port=3_000, span="soon")
