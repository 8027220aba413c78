"""The further pages of the console: tables of a node, bounded, by name (CON-002)."""

import json
from typing import Any

import pytest

from tests.shell.test_console import at, console
from weft.shell.console.feed import Feed
from weft.shell.console.lake import Lake
from weft.shell.console.routes import Sources, routes_of
from weft.shell.console.tables import PAGES, Table, table
from weft.shell.http.logins import Logins
from weft.shell.http.messages import Request


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
        Sources(shown, Feed(shown, lambda: at(1)), Lake(None), Logins(lambda: 0.0), lambda: None, tables)
    )

    def ask(query: str) -> Any:
        return routes["/console/tables.json"].handle(Request("GET", "/console/tables.json", query))

    assert {"page": "store"} == json.loads(ask("of=store").body)
    assert [404, 404] == [ask(query).status for query in ("", "of=attic")]
    assert ["configuration", "alerts", "catalog", "store", "documents", "chains", "lake", "node"] == list(PAGES)
