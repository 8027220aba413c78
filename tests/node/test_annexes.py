"""What an installed package may add to a node, and what is refused with a sentence before anything runs."""

import sys
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from weft.base.effects import Source
from weft.base.errors import PeerError, UserError
from weft.base.keys import Binding, Trust
from weft.cores.template.core import Template
from weft.node import installed
from weft.node.annexes import Annex, admit, ports_of
from weft.node.assembly import build_node
from weft.node.authority import Authority
from weft.node.channels import BINDS, CALLS, CHANNELS, INSIDE, Channel
from weft.node.rows import Named, Row
from weft.node.settings import settings_of
from weft.wire import template as codec

SENSOR = b"s" * 16


class Table(msgspec.Struct, forbid_unknown_fields=True):
    port: int = 0


class Order(Named):
    """What a person says."""


def bound(**changed: Any) -> Channel:
    row = Channel("presence", "stream", codec.decode, codec.encode, socket="ROUTER", how=BINDS, block="presence")
    return row._replace(verb="join", **changed) if "verb" not in changed else row._replace(**changed)


def core(_: Any, start: Any) -> Template:
    made = Template(start.chance("presence"))
    made.name = "presence"
    return made


GOOD = Annex(name="presence", what="Who is there.", settings=Table, make=core, channels={"presence": bound()})


def install(monkeypatch: pytest.MonkeyPatch, annex: Any, name: str = "presence") -> None:
    """Let an entry point of that name lead to it; channels are as before when the test ends."""
    point = SimpleNamespace(load=lambda: annex, value="there:ANNEX", module="there", dist=None)
    monkeypatch.setattr(installed, "_points", lambda: {name: point})
    for channel in getattr(annex, "channels", {}):
        if channel not in CHANNELS:
            monkeypatch.setitem(CHANNELS, channel, bound())
            monkeypatch.delitem(CHANNELS, channel)


@pytest.mark.proves("HSE-007", part="a node runs it if its file has its table")
def test_a_node_with_its_table_runs_it_and_no_other_does(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, GOOD)
    file = {"node": {"name": "a"}}
    node = build_node(settings_of(file), b"n" * 16, 1, "1")
    assert (False, False) == ("presence" in node.cores, "presence" in CHANNELS)
    settings = settings_of(file | {"presence": {"port": 4_000}})
    node = build_node(settings, b"n" * 16, 1, "1")
    assert ("presence", True) == (node.cores["presence"].name, "presence" in node.channels)
    assert {"presence": 4_000} == ports_of(settings)
    assert 0 < settings.budgets["presence"] == node.cores["presence"].budget.bytes_max
    assert {} == ports_of(settings_of(file | {"presence": {}}))


def test_whoever_has_no_table_of_an_annex_does_not_look_for_any(monkeypatch: pytest.MonkeyPatch) -> None:
    def look() -> Any:
        raise AssertionError("looked")

    monkeypatch.setattr(installed, "_points", look)
    assert {} == settings_of({"node": {"name": "a"}, "chp": {}, "metric": {}}).annexes


@pytest.mark.parametrize(
    "annex, told",
    [
        (sys, "its entry point names no Annex"),
        (GOOD._replace(name="other"), "it calls itself 'other'"),
        (GOOD._replace(channels={"up": bound()}), "the channel up is not its own"),
        (GOOD._replace(channels={"presence": bound(core="carrier")}), "the channel presence is not its own"),
        (GOOD._replace(channels={"presence": bound(block="")}), "the channel presence has the block ''"),
        (GOOD._replace(channels={"presence": bound(how=CALLS)}), "the channel presence has the block 'presence'"),
        (GOOD._replace(channels={"presence": bound(how=INSIDE)}), "the channel presence is none of stream, publish"),
        (GOOD._replace(channels={"presence": bound(kind="tcp")}), "the channel presence is none of stream, publish"),
        (GOOD._replace(channels={"presence": bound(verb="")}), "has the verb '', which no role has"),
        (GOOD._replace(channels={"presence": bound(verb="rule")}), "has the verb 'rule', which no role has"),
        (GOOD._replace(orders={"set": Row("presence", Order, print)}), "the order set is not its own"),
        (GOOD._replace(orders={"presence": Row("store", Order, print)}), "the order presence is not its own"),
    ],
)
def test_what_would_get_into_the_way_of_others_is_refused(
    monkeypatch: pytest.MonkeyPatch, annex: Any, told: str
) -> None:
    before = dict(CHANNELS)
    install(monkeypatch, annex)
    with pytest.raises(UserError) as caught:
        admit("presence")
    assert ("bad-annex", True) == (caught.value.code, told in caught.value.text), caught.value.text
    assert before == CHANNELS


def test_the_name_of_a_core_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, GOOD._replace(name="topology", channels={}), "topology")
    with pytest.raises(UserError) as caught:
        admit("topology")
    assert "a core of Weft is called so" in caught.value.text


@pytest.mark.parametrize("verb, code", [("join", ""), ("serve", "denied")])
def test_on_a_fabric_with_keys_its_channel_hears_whose_role_has_its_verb(
    monkeypatch: pytest.MonkeyPatch, verb: str, code: str
) -> None:
    monkeypatch.setitem(CHANNELS, "presence", bound(verb=verb))
    binding = Binding(curve=("s" * 40,), name="s", roles=("sensor",))
    authority = Authority(Trust(bindings={SENSOR.hex(): binding}, places={}))
    said = []
    for proved in (SENSOR, None, b"x" * 16):
        try:
            authority.hear(Source("presence", b"", proved), codec.Ping(1))
            said.append("")
        except PeerError as error:
            said.append(error.code)
    assert [code, "no-key", "denied"] == said
