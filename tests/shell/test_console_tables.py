"""The further pages of the console: tables of a node, bounded, by name (CON-002)."""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.chains.rig import Rig
from tests.shell.test_console import at, console
from tests.store.rig import Node as StoreNode
from tests.store.rig import change
from weft.base.chance import Chance
from weft.cores.chains.messages import PlanFilters
from weft.cores.chains.settings import parse_filters
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import ConfigurationSettings, TakeRoot, Write, WriteKeys
from weft.shell.console.commands import Commands
from weft.shell.console.feed import Feed
from weft.shell.console.lake import Lake
from weft.shell.console.roads import Roads
from weft.shell.console.routes import Sources, routes_of
from weft.shell.console.tables import PAGES, Table, table
from weft.shell.http.logins import Logins
from weft.shell.http.messages import Request, json_response


def test_a_table_is_bounded_in_rows_and_in_the_text_of_a_value() -> None:
    made = table("Much", ("a", "b"), ((number, "x" * 1_000) for number in range(507)), "weft ls")
    assert (500, 7, "weft ls") == (len(made.rows), made.more, made.ask)
    assert (3, "x" * 300 + "…") == made.rows[3]
    assert Table("t", ("a",), [('{"b":1}',), (None,), (True,)]) == table("t", ("a",), [({"b": 1},), (None,), (True,)])


@pytest.mark.proves("CON-002", part="a page by its name; a page that is not there is refused")
def test_a_page_is_asked_for_by_its_name() -> None:
    shown = console()
    tables = {"store": {"page": "store"}}.__getitem__
    routes = routes_of(
        Sources(shown, Feed(shown, lambda: at(1)), Lake(None, Commands()), Logins(lambda: 0.0), lambda: None, tables)
    )

    def ask(query: str) -> Any:
        return routes["/console/tables.json"].handle(Request("GET", "/console/tables.json", query))

    assert {"page": "store"} == json.loads(ask("of=store").body)
    assert [404, 404] == [ask(query).status for query in ("", "of=attic")]
    assert ["configuration", "alerts", "catalog", "store", "documents", "chains", "lake", "node"] == list(PAGES)


def tables(page: str, **cores: Any) -> dict[str, Table]:
    """The tables of a page of a node with these cores, by title."""
    node: Any = SimpleNamespace(cores=cores)
    status: dict[str, Any] = {"cores": {key: {"n": 1} for key in cores}, "tree": []}
    return {made.title: made for made in PAGES[page](node, status, at(1))}


@pytest.mark.proves("CON-002", part="alerts as weft alerts shows them: value with unit, since when, machine")
def test_alerts_are_told_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    fires = {
        "severity": "critical",
        "node": "s1",
        "name": "full",
        "value": 24.59804461493854,
        "unit": "%",
        "when": "> 10 %",
    }
    fires |= {"labels": {"mount": "/", "device": "sda"}, "text": "Try it.", "since": 1_795_000_000_500, "id": "b9bb"}
    ended = {**fires, "severity": "warning", "at": 1_795_000_060_000, "why": "back"}
    page: dict[str, Any] = {"fleet": [fires], "own": [], "ended": [ended], "dead": None, "in_vain": None}
    monkeypatch.setattr("weft.shell.console.tables.page_of", lambda node, now: page)
    made = tables("alerts", measurement=None)
    shown = ("s1", "full", "24.598 %", "> 10 %", "device=sda, mount=/", "Try it.", "2026-11-18 11:06:40")
    assert [("✖ critical", *shown, "b9bb")] == made["Fires"].rows
    assert [("▲ warning", *shown, "2026-11-18 11:07:40", "back")] == made["Over"].rows
    assert "Never fires" not in made
    page |= {"dead": [{"key": "/CONFIG/web/alert/a", "why": "no metric"}], "in_vain": ["/CONFIG/db/alert/b"]}
    never = [("/CONFIG/web/alert/a", "no metric"), ("/CONFIG/db/alert/b", "no machine is in its group")]
    assert never == tables("alerts", measurement=None)["Never fires"].rows


@pytest.mark.proves("CON-002", part="entries of the store with who changed them before, and conflicts with both sides")
def test_entries_say_who_changed_them_before_and_conflicts_what_was_lost() -> None:
    node = StoreNode("here")
    node.hear(change("b:1", 5, "home.temp", 20), change("a:1", 6, "home.temp", 21), change("a:2", 9, "door", 1, "b:2"))
    made = tables("store", store=SimpleNamespace(replica=node.replica))
    assert [("door", 1, "a:2", "", "b:2"), ("home.temp", 21, "a:1", "", "")] == sorted(made["Entries"].rows)
    assert [(1, "home.temp", "concurrent", 21, "a:1", "", 20, "b:1", "")] == made["Conflicts"].rows
    assert {} == tables("store")


@pytest.mark.parametrize(
    "packed, shown",
    [
        ("81c001", "{None: 1}"),
        ("81c3c2", "{True: False}"),
        ("819101c0", "(bytes of others)"),
        ("91d40561", '[[5,"YQ=="]]'),
        ("d6ff00000000", '[-1,"AAAAAA=="]'),
        ("91" * 400 + "c0", "[" * 300 + "…"),
        ("91" * 9_000 + "c0", "(bytes of others)"),
        ("c1", "(bytes of others)"),
    ],
)
def test_a_page_of_the_store_shows_whatever_value_a_program_has_set(packed: str, shown: str) -> None:
    """A map with a key that is null ended the node of whoever looked at the page."""
    entry = msgspec.structs.replace(change("b:1", 5, "home.temp", 20), value=bytes.fromhex(packed))
    replica = SimpleNamespace(tree=SimpleNamespace(walk=lambda: [entry]), conflicts=())
    ((_, value, *_),) = tables("store", store=SimpleNamespace(replica=replica))["Entries"].rows
    assert shown == value
    json_response(value)


@pytest.mark.proves("CON-002", part="a page says whether there are more pairs")
@pytest.mark.parametrize("pairs, more", [(2, 0), (3, 1), (4, 1)])
def test_a_page_says_whether_there_are_more_pairs_than_it_shows(
    pairs: int, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.shell.console.tables.ROWS_MAX", 2)
    core = Configuration(ConfigurationSettings(), bytes(16), Chance("pairs"))
    core.command(TakeRoot(0), at(1))
    core.command(WriteKeys(1, tuple(Write(f"/CONFIG/web/{number}", b"1s") for number in range(pairs)), "joe"), at(2))
    shown = tables("configuration", configuration=core)["Pairs"]
    assert ([("/CONFIG/web/0", "1s"), ("/CONFIG/web/1", "1s")], more) == (shown.rows, shown.more)


@pytest.mark.proves("CON-002", part="who stands in which chain of a node, and what it did")
def test_links_stand_in_the_order_of_their_chain_with_what_they_did() -> None:
    rig = Rig({"a": "b", "b": None})
    specs, wrong = parse_filters([{"name": "no", "kind": "match", "types": ["t"], "dir": "in", "when": "size > 1"}])
    assert not wrong, wrong
    core = rig.sites["b"].core
    core.command(PlanFilters(tuple(specs)), rig.now)
    for number, payload in enumerate(("x", "zz"), 1):
        rig.send("a", "s", number, payload, fmt="text")
    made = tables("chains", chains=core)
    ((chain, _, who, kind, *counts),) = made["Who stands where"].rows
    assert (("in t", "no", "match"), [2, 1, 1, 1, 0]) == ((chain, who, kind), counts)
    assert [("in", "t", 2, 1, "1 deleted")] == made["Chains"].rows
    assert ["Chains", "Who stands where", "Messages that passed"] == list(made)
    assert {} == tables("chains")


@pytest.mark.proves("CON-002", part="the way of one record to the lake, as the command line tells it")
def test_the_way_of_a_record_is_asked_of_the_command_line() -> None:
    def road(query: str, lake: Path | None = None) -> Any:
        program = "import json, sys; print(json.dumps(sys.argv[1:]))"
        shown, roads = console(), Roads(27_500, lake, Commands((sys.executable, "-c", program)))
        sources = Sources(
            shown, Feed(shown, lambda: at(1)), Lake(None, Commands()), Logins(lambda: 0.0), lambda: None, roads=roads
        )
        route: Any = routes_of(sources)["/console/road.json"]
        assert "GET" == route.method
        return asyncio.run(route.handle(Request("GET", "/console/road.json", query)))

    words = ["trace", "--json", "--port", "27500"]
    assert [[*words, "--", "s1", "12"]] == json.loads(road("origin=s1&number=12").body)["rows"]
    assert [[*words, "--lake", "l", "--", "--x", "7"]] == json.loads(road("origin=--x&number=7", Path("l")).body)[
        "rows"
    ]
    for query in ("", "origin=s1", "origin=s1&number=-1", "number=7", f"origin={'x' * 129}&number=7"):
        assert 404 == road(query).status
