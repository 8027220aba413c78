"""When a node may start without keys, and how it says that it is open (SEC-001, SEC-003)."""

from typing import Any

import pytest
import zmq

from weft.base.errors import UserError
from weft.node.settings import NodeSettings, settings_of
from weft.shell.keys import Keys, Known
from weft.shell.process import trusting

KEYS = Keys(*(each.decode() for each in zmq.curve_keypair()))
OPEN = {"mode": "none", "allow_insecure": True}


def _settings(security: dict[str, Any], **hosts: str) -> NodeSettings:
    document: dict[str, Any] = {"node": {"name": "a", "level": "root"}, "security": security}
    document["node"]["host"] = hosts.get("node", "127.0.0.1")
    document["catalog"] = {"host": hosts.get("catalog", "")}
    document["doc"] = {"session": {"friday": {"schema": "plain", "listen": hosts.get("doc", "127.0.0.1")}}}
    return settings_of(document)


@pytest.mark.proves("SEC-001", "CFG-080")
@pytest.mark.parametrize(
    "hosts", [{"node": "192.0.2.1"}, {"catalog": "192.0.2.1"}, {"doc": "192.0.2.1"}, {"node": "0.0.0.0"}]
)  # nothing is bound
def test_a_node_without_keys_listens_on_loopback_or_where_an_open_network_was_asked_for(hosts: dict[str, str]) -> None:
    with pytest.raises(UserError) as refused:
        trusting(_settings({}, **hosts), None, Known())
    assert "no-keys" == refused.value.code
    assert not trusting(_settings(OPEN, **hosts), None, Known()).is_closed
    assert trusting(_settings({}, **hosts), KEYS, Known()).is_closed


def test_on_loopback_a_node_needs_no_keys_unless_its_file_wants_them() -> None:
    assert not trusting(_settings({}), None, Known()).is_closed
    with pytest.raises(UserError) as refused:
        trusting(_settings({"mode": "curve"}), None, Known())
    assert "no-keys" == refused.value.code
