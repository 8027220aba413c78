"""`weft status` on pages that nodes could have shown: the whole fleet with one question to its root, or to any node."""

import json
import time
from typing import Any

import pytest

from weft.base.errors import UserError
from weft.base.now import SECOND
from weft.cli import status as module
from weft.cli.status import Picture, cells, explained, heading, members_of, open_doors, picture_of, status, troubles

NOW = 1_795_000_000 * SECOND
LEVEL = {"collector": "branch", "sensor": "leaf"}


def page(name: str, level: str, port: int, **more: Any) -> dict[str, Any]:
    """What a node shows of itself."""
    health = {"state": "ok", "checks": [{"name": "parent", "state": "ok", "text": "joined", "do": ""}]}
    about = {"name": name, "level": level, "port": port, "node": name.encode().hex(), "group": "", "open": False}
    known = {"fleet": "lab", "root": {"name": "root", "endpoint": "127.0.0.1:27500"}, "tree": [], "unassigned": []}
    loads = {"journal": {"bytes": 1_000_000, "state": "OPEN"}, "memory_bytes": 10_000_000, "uptime_s": 5}
    cores = {"configuration": {"number": more.pop("number", 9)}, "carrier": {"state": "OPEN"}}
    parent = {"name": more.pop("parent", ""), "endpoint": ""}
    return {**about, **known, **loads, "cores": cores, "health": health, "parent": parent, "neighbours": [], **more}


def record(name: str, level: str, port: int, parent: int, **more: Any) -> dict[str, Any]:
    """What a root knows of a node."""
    facts: dict[str, Any] = {"node": name.encode().hex(), "name": name, "level": LEVEL[level], "group": "site"}
    places = {"endpoint": f"127.0.0.1:{port}", "parent": f"127.0.0.1:{parent}", "tier": 1, "incarnation": 1}
    return {**facts, **places, "number": 9, "at": NOW - 3 * SECOND, "wanted": 9, **more}


TREE = [
    record("collector", "collector", 27_510, 27_500),
    record("s1", "sensor", 27_520, 27_510),
    record("s2", "sensor", 27_530, 27_510, number=7, at=NOW - 7_200 * SECOND),
    record("s3", "sensor", 27_540, 27_510, number=None, at=None),
]
GUEST = {"name": "stray", "endpoint": "127.0.0.1:27590"}


class Fabric:
    """Pages by port; every question is noted."""

    def __init__(self, *pages: dict[str, Any]) -> None:
        self.pages = {page["port"]: page for page in pages}
        self.asked: list[int] = []

    def ask(self, port: int, host: str = "127.0.0.1") -> dict[str, Any]:
        self.asked.append(port)
        if host != "127.0.0.1" or port not in self.pages:
            raise UserError("unavailable", f"no node answers at {host}:{port}", "weft up")
        return self.pages[port]

    def picture(self, port: int = 27_500) -> Picture:
        return picture_of(port, self.ask, NOW)


ROOT = page("root", "root", 27_500, tree=TREE, unassigned=[GUEST])
STRAY = page("stray", "sensor", 27_590, number=0)
STRAY["health"] = {
    "state": "degraded",
    "checks": [{"name": "parent", "state": "degraded", "text": "no place", "do": "start the root"}],
}


@pytest.fixture
def fabric() -> Fabric:
    return Fabric(
        ROOT, page("collector", "collector", 27_510, tree=TREE[:1]), page("s1", "sensor", 27_520, number=8), STRAY
    )


LINES = [
    ("root", "root", "-", "127.0.0.1:27500", "9", "-", "ok"),
    ("  collector", "collector", "site", "127.0.0.1:27510", "9", "3 s", "ok"),
    ("    s1", "sensor", "site", "127.0.0.1:27520", "9", "3 s", "ok"),
    ("    s2", "sensor", "site", "127.0.0.1:27530", "7, behind 9", "2 h", "no answer"),
    ("    s3", "sensor", "site", "127.0.0.1:27540", "nothing yet, behind 9", "-", "no answer"),
]


@pytest.mark.proves("CFG-092")
def test_the_root_shows_the_whole_tree_also_nodes_that_do_not_answer(fabric: Fabric) -> None:
    picture = fabric.picture()
    assert LINES == [cells(member) for member in picture.members]
    assert "fleet lab, root 127.0.0.1:27500, configuration number 9" == heading(picture)
    assert [27_500, 27_510, 27_520, 27_530, 27_540] == sorted(fabric.asked)


@pytest.mark.proves("CFG-092")
@pytest.mark.parametrize("port", [27_510, 27_520, 27_590])
def test_any_node_leads_to_the_same_tree(fabric: Fabric, port: int) -> None:
    assert LINES == [cells(member) for member in fabric.picture(port).members]


@pytest.mark.proves("CFG-092")
def test_who_has_no_group_or_does_not_answer_is_listed_with_what_to_do(fabric: Fabric) -> None:
    found = dict(troubles(fabric.picture(27_590)))
    assert ["stray at 127.0.0.1:27590: no group wants it, so it has no place"] == [w for w in found if "stray" in w]
    assert '"127.0.0.1:27590"' in next(iter(found.values()))
    assert "see whether it runs; there: weft status --port 27530" == found["s2 at 127.0.0.1:27530 does not answer"]


def test_without_its_root_a_node_shows_what_it_knows() -> None:
    own = [{**known, "number": None, "at": None, "wanted": None} for known in TREE[:2]]
    fabric = Fabric(page("collector", "collector", 27_510, tree=own), page("s1", "sensor", 27_520, number=8))
    picture = fabric.picture(27_510)
    assert "its root 127.0.0.1:27500 does not answer; this is what collector knows" in heading(picture)
    assert [("collector", "9"), ("  s1", "8")] == [(line[0], line[4]) for line in map(cells, picture.members)]
    assert "the root at 127.0.0.1:27500 does not answer" in dict(troubles(picture))


def test_a_root_that_does_not_lead_yet_says_so() -> None:
    picture = Fabric(page("root", "root", 27_500, number=0, root={"name": "", "endpoint": ""})).picture()
    assert "its root has just started" in heading(picture)
    assert ["nothing yet"] == [cells(member)[4] for member in picture.members]


def test_an_elected_root_stands_above_the_one_that_was_its_parent() -> None:
    tree = [record("old", "collector", 27_500, 27_510), record("new", "collector", 27_510, 27_500), *TREE[1:2]]
    root = page("new", "root", 27_510, tree=tree, root={"name": "new", "endpoint": "127.0.0.1:27510"})
    members = Fabric(root, page("old", "collector", 27_500, tree=tree)).picture(27_510).members
    expected = [("new", "root"), ("  old", "collector"), ("  s1", "sensor")]
    assert expected == [cells(member)[:2] for member in members]


def test_nodes_with_fixed_parents_stand_below_them() -> None:
    neighbours = [{"name": "c", "level": "collector", "host": "127.0.0.1", "port": 27_510}]
    root = page("root", "root", 27_500, neighbours=[*neighbours, {**neighbours[0], "port": 27_520}])
    fabric = Fabric(
        root,
        page("c", "collector", 27_510, parent="root"),
        page("s", "sensor", 27_520, parent="c", root={"name": "", "endpoint": ""}),
    )
    assert ["root", "  c", "    s"] == [cells(member)[0] for member in fabric.picture().members]
    assert ["s"] == [cells(member)[0] for member in fabric.picture(27_520).members]
    assert "no root is known here" in heading(fabric.picture(27_520))


def test_another_node_on_the_port_of_a_known_one_is_not_taken_for_it() -> None:
    other = page("other", "sensor", 27_520)
    (_, s1) = members_of(page("root", "root", 27_500, tree=TREE[1:2]), {"127.0.0.1:27520": other}, NOW)
    assert ("s1", "no answer") == (s1.name, s1.health)


def test_a_machine_of_a_closed_fabric_that_shows_nothing_to_others_is_no_machine_that_does_not_answer() -> None:
    """Nor is a node listed twice that answers at another address of its machine than that of its record."""

    def ask(port: int, host: str = "127.0.0.1") -> dict[str, Any]:
        if host == "10.0.0.2":
            raise UserError("login", "it shows itself on its own machine only", "ask it there")
        return {27_500: root, 27_510: page("here", "sensor", 27_510)}[port]

    tree = [
        record("far", "sensor", 27_520, 27_500, endpoint="10.0.0.2:27520"),
        record("here", "sensor", 27_510, 27_500, endpoint="10.0.0.2:27510"),
    ]
    heard = [{"name": "here", "level": "sensor", "host": "127.0.0.1", "port": 27_510}]
    root = page("root", "root", 27_500, tree=tree, neighbours=heard)
    picture = picture_of(27_500, ask, NOW)
    assert [("root", "ok"), ("far", "closed"), ("here", "ok")] == [(one.name, one.health) for one in picture.members]
    assert ["closed: it runs, and tells how"] == [line[:30] for line in explained(picture.members)]
    assert [] == explained(picture.members[:1])
    assert {} == dict(troubles(picture))


def test_the_second_machine_of_a_closed_fabric_says_where_the_fleet_is_shown() -> None:
    def ask(port: int, host: str = "127.0.0.1") -> dict[str, Any]:
        if host != "127.0.0.1":
            raise UserError("login", "it shows itself on its own machine only", "ask it there")
        return page("s1", "sensor", 27_500, root={"name": "root", "endpoint": "10.0.0.1:27500"})

    picture = picture_of(27_500, ask, NOW)
    assert (
        "fleet lab, its root 10.0.0.1:27500 shows all of it on its own machine only; this is what s1 knows"
        == heading(picture)
    )
    assert {} == dict(troubles(picture))


def test_records_in_a_ring_and_strange_words_are_shown_once() -> None:
    ring = [
        {**record("a", "collector", 27_510, 27_520), "level": ["x"]},
        {**record("b", "collector", 27_520, 27_510), "name": ""},
        {"node": "00", "group": "site", "number": None, "at": None, "wanted": None},
    ]
    picture = Fabric(page("root", "root", 27_500, tree=ring)).picture()
    assert ["root", "62", "a"] == sorted((member.name for member in picture.members), key=lambda name: name != "root")


def test_it_is_printed_for_people_and_for_programs(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "status_of", fabric.ask)
    monkeypatch.setattr(time, "time_ns", lambda: NOW)
    monkeypatch.setenv("COLUMNS", "160")
    assert 0 == status(long=True)
    shown = capsys.readouterr().out
    assert all(word in shown for line in LINES for word in line)
    assert "1.0 MB open" in shown
    assert 0 == status(json=True)
    told = json.loads(capsys.readouterr().out)
    assert [line[0].strip() for line in LINES] == [member["name"] for member in told["members"]]
    assert [False, False, False, True, True] == [member["is_behind"] for member in told["members"]]
    assert ([GUEST], 9, True) == (told["unassigned"], told["number"], told["has_root"])
    assert ["root", "collector", "s1"] == [node["name"] for node in told["nodes"]]


@pytest.mark.proves("FLD-032")
def test_what_each_core_holds_stands_beside_what_it_may_and_what_it_refused() -> None:
    part = {"bytes": 1, "budget_bytes": 2, "refused": 3}
    held = {"bytes": 1_500_000, "budget_bytes": 20_000_000, "parts": {"records": part, "values": part}}
    cores = {"catalog": held, "drain": {"bytes": 0, "budget_bytes": 9, "parts": {}}}
    told = page("root", "root", 27_500, memory={"cores": cores})
    assert [("root", "catalog", "1.5 MB", "20 MB", "6")] == module.memory_of(told)
    assert [] == module.memory_of(page("old", "root", 27_500))


@pytest.mark.proves("SEC-055", part="`weft status` shows them")
def test_doors_that_ask_for_no_key_are_shown_of_nodes_that_have_keys() -> None:
    door = {"name": "catalog", "at": "127.0.0.1:5246", "lets_in": "every user of this machine"}
    pages = [
        page("root", "root", 27_500, security={"doors": [door, {**door, "name": "store", "at": "127.0.0.1:27505"}]}),
        page("s1", "sensor", 27_510, security={"doors": []}),
        page("s2", "sensor", 27_520) | {"open": True, "security": {"doors": [door]}},
    ]
    who = "every user of this machine"
    assert [f"root asks for no key at catalog 127.0.0.1:5246 ({who}); store 127.0.0.1:27505 ({who})"] == open_doors(
        pages
    )
