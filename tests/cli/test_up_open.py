"""`weft up --open`: an open network is asked for by name, or a node without keys stays on loopback (SEC-001)."""

import json
from typing import Any

import pytest

from weft.cli import up as module
from weft.cli.up import up
from weft.node.settings import settings_of


@pytest.mark.parametrize("is_open", [True, False])
def test_an_open_node_says_so_in_its_settings(is_open: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[dict[str, Any]] = []
    monkeypatch.setattr(module, "become", lambda document, _: became.append(document))
    up(name="a", level="root", listen="192.0.2.1", is_open=is_open)
    settings = settings_of(json.loads(json.dumps(became[0])))
    assert ("192.0.2.1", is_open) == (settings.node.host, settings.security.is_open)
