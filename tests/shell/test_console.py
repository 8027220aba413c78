"""What a console shows: last values, what is missing and why, who is silent; and what its viewers are sent."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import EraRecord, LostRecord, Record, StreamRecord
from weft.cli.top_view import Screen
from weft.shell.console import limits
from weft.shell.console.commands import Commands
from weft.shell.console.feed import Feed, difference
from weft.shell.console.lake import Lake
from weft.shell.console.lastvalues import LastValues, Ring
from weft.shell.console.picture import BAD, ODD, WELL, WORSE, Console, Facts
from weft.shell.console.routes import PAGES, Sources, routes_of
from weft.shell.http.logins import Logins
from weft.shell.http.messages import Request, Response, Stream
from weft.wire.alerts import Alert
from weft.wire.samples import Row, SampleBatch, Series, encode

WALL_S = 1_795_000_000
ROOT, COLLECTOR, SENSOR = (bytes([n]) * 16 for n in (1, 2, 3))
CPU = Series("cpu", "CPU", "percent", {"cpu": "total"})
MEMORY = Series("memory_percent", "MEMORY_PERCENT", "basic", {})
DISKS = [Series("disk_percent", "DISK_PERCENT", "basic", {"mount": mount}) for mount in ("/", "/data")]


def at(second: float) -> Now:
    return Now(round(second * SECOND) + SECOND, round((WALL_S + second) * SECOND))


def batch(
    node: bytes, second: float, sequence: int, *samples: tuple[Series, float, float | None], era: int = 1
) -> Record:
    rows = [Row(index, 0, value, base) for index, (_, value, base) in enumerate(samples)]
    t0_ms = round((WALL_S + second) * 1_000)
    body = encode(SampleBatch(t0_ms, tuple(series for series, _, _ in samples), rows))
    at_ns = t0_ms * MILLISECOND
    return StreamRecord(1, node, era, sequence, at_ns, at_ns, "weft.metric", body, {"n": len(rows)})


def place(node: bytes, name: str, level: str, port: int, parent: str, **more: Any) -> dict[str, Any]:
    row = {"node": node.hex(), "name": name, "level": level, "group": "web", "endpoint": f"127.0.0.1:{port}"}
    return row | {"parent": parent, "number": 7, "wanted": 7, "at": 0} | more


TREE = [
    place(COLLECTOR, "c1", "branch", 2_000, "127.0.0.1:1000"),
    place(SENSOR, "s1", "leaf", 3_000, "127.0.0.1:2000"),
]


def console(**changes: Any) -> Console:
    facts = Facts(
        node=ROOT,
        name="r",
        level="root",
        fleet="demo",
        port=1_000,
        version="1",
        tree=TREE,
        unassigned=[],
        root={"name": "r", "endpoint": "127.0.0.1:1000"},
        children={COLLECTOR: "c1"},
        checks=[],
        number=7,
        alerts={},
    )
    return Console(lambda: facts._replace(**changes), at(0))


def speak(shown: Console, until: int, *nodes: bytes) -> None:
    """Each says four samples a second."""
    for second in range(until):
        for node in nodes:
            shown.values.note([batch(node, second, 4 * second + 1, *[(MEMORY, 50.0, None)] * 4)], at(second))


def row(shown: Console, node: bytes, second: float) -> dict[str, Any]:
    found: dict[str, Any] = shown.look(at(second))["nodes"][node.hex()]
    return found


# Last values


@pytest.mark.proves("CON-001", part="last values and rings of metrics")
def test_a_share_of_counters_is_calculated_and_of_several_disks_the_fullest_is_shown() -> None:
    values = LastValues()
    values.note([batch(SENSOR, 0, 1, (CPU, 100, 1_000), (DISKS[0], 20.0, None), (DISKS[1], 93.5, None))], at(0))
    values.note([batch(SENSOR, 5, 4, (CPU, 125, 1_100), (MEMORY, 61.25, None))], at(5))
    machine = values.machines[SENSOR]
    last = {name: machine.last(name) for name in machine.rings}
    assert {"cpu": 25.0, "memory": 61.2, "disk": 93.5, "net": None} == last
    assert [(WALL_S // 5 + 1, 25.0)] == machine.rings["cpu"].since(0)


def test_a_ring_keeps_ten_minutes_and_no_value_of_a_round_before() -> None:
    ring = Ring()
    for slot in (1_000, 1_001, 1_100, 1_121):
        ring.put(slot, slot)
    ring.put(1_001, 7.0)
    assert [(1_100, 1_100.0), (1_121, 1_121.0)] == ring.since(0)
    assert [(1_121, 1_121.0)] == ring.since(1_121)


def test_of_a_busy_machine_few_batches_are_decoded_and_all_numbers_are_counted() -> None:
    values = LastValues()
    for index in range(20):
        values.note([batch(SENSOR, index / 50, index + 1, (MEMORY, float(index), None))], at(index / 50))
    assert (20, 20, 0) == values.machines[SENSOR].counts()
    assert 0.0 == values.machines[SENSOR].last("memory")


def test_no_more_machines_are_kept_than_there_is_room_for() -> None:
    values = LastValues()
    for index in range(limits.NODES_MAX + 5):
        values.note([batch(index.to_bytes(16, "big"), 0, 1, (MEMORY, 1.0, None))], at(0))
    assert 1_000 == len(values.machines)


def test_a_body_that_cannot_be_read_is_no_fault_here() -> None:
    values = LastValues()
    values.note([StreamRecord(1, SENSOR, 1, 1, 0, 0, "weft.metric", b"\xc1", {"n": 3})], at(0))
    assert (3, 3, 0) == values.machines[SENSOR].counts()


# What is missing


@pytest.mark.proves("CON-001", part="expected, received, missing; which numbers, and why")
def test_lost_numbers_are_counted_and_named_with_their_why_where_they_were() -> None:
    shown = console()
    speak(shown, 12, SENSOR)
    shown.values.note([LostRecord(1, SENSOR, 1, 49, 58, "spool-full")], at(12))
    shown.values.note([batch(SENSOR, 12, 59, (MEMORY, 1.0, None))], at(12.5))
    found = row(shown, SENSOR, 13)
    assert (59, 49, 10) == found["counts"]
    assert [(WORSE, "10 samples are lost: spool-full")] == [(each.much, each.text) for each in found["troubles"]]
    cell = WALL_S // 10 + 1
    told = shown.cell(SENSOR, cell)
    assert told is not None
    assert (41, 59, 9, 10) == (told["first"], told["last"], told["received"], told["lost"])
    assert [{"first": 49, "last": 58, "why": "spool-full"}] == told["why"]
    assert ".." + "ox" == found["strip"][-4:]


def test_what_a_start_before_had_and_has_not_come_is_missing() -> None:
    shown = console()
    shown.values.note([batch(SENSOR, 0, 1, *[(MEMORY, 1.0, None)] * 4)], at(0))
    shown.values.note([EraRecord(1, SENSOR, 2, 1, 10), batch(SENSOR, 1, 1, (MEMORY, 1.0, None), era=2)], at(1))
    found = row(shown, SENSOR, 1)
    assert (11, 5, 0) == found["counts"]
    assert [(ODD, "6 samples have not come yet")] == [(each.much, each.text) for each in found["troubles"]]


def test_who_is_heard_late_is_counted_from_there() -> None:
    values = LastValues()
    values.note([batch(SENSOR, 0, 1_001, *[(MEMORY, 1.0, None)] * 4)], at(0))
    assert (4, 4, 0) == values.machines[SENSOR].counts()


# Who is silent


@pytest.mark.proves("CON-001", part="who is silent is in trouble within seconds")
def test_a_machine_that_falls_silent_is_in_trouble_after_four_seconds_and_well_when_it_is_back() -> None:
    shown = console()
    speak(shown, 10, COLLECTOR, SENSOR)
    assert WELL == row(shown, SENSOR, 12)["much"]
    speak(shown, 14, COLLECTOR)
    found = row(shown, SENSOR, 14)
    assert [(BAD, "silent")] == [(each.much, each.text) for each in found["troubles"]]
    assert WELL == row(shown, COLLECTOR, 14)["much"]
    shown.values.note([batch(SENSOR, 14, 41, (MEMORY, 1.0, None))], at(14))
    assert WELL == row(shown, SENSOR, 14.5)["much"]


@pytest.mark.proves("CON-001", part="samples are counted from the start that is shown, whoever looks first when")
def test_samples_are_counted_from_the_start_that_is_shown() -> None:
    shown = console()
    speak(shown, 10, SENSOR)
    picture = shown.look(at(60))
    assert at(0).wall // MILLISECOND == picture["head"]["begun"]
    assert (40, 40, 0) == shown.values.machines[SENSOR].counts()


def test_who_is_silent_below_a_silent_one_is_a_consequence() -> None:
    shown = console()
    speak(shown, 10, COLLECTOR, SENSOR)
    shown.look(at(10))
    assert BAD == row(shown, COLLECTOR, 15)["much"]
    (trouble,) = row(shown, SENSOR, 15)["troubles"]
    assert (WORSE, "silent, as is c1 above it", "mend c1 first") == trouble[:3]


def test_who_was_never_heard_has_time_after_a_start() -> None:
    shown = console()
    assert WELL == row(shown, SENSOR, 0)["much"]
    assert WELL == row(shown, SENSOR, 19)["much"]
    assert BAD == row(shown, COLLECTOR, 21)["much"]


def test_a_machine_that_speaks_seldom_is_not_silent_between_two_words() -> None:
    shown = console()
    for index in range(3):
        shown.values.note([batch(SENSOR, 30 * index, index + 1, (MEMORY, 1.0, None))], at(30 * index))
    assert WELL == row(shown, SENSOR, 85)["much"]


def test_who_has_left_the_tree_is_shown_until_it_was_silent_for_ten_minutes() -> None:
    tree = list(TREE)
    shown = console(tree=tree)
    speak(shown, 3, COLLECTOR, SENSOR)
    shown.look(at(3))
    del tree[1]
    (trouble,) = row(shown, SENSOR, 30)["troubles"]
    assert BAD == trouble.much
    assert "silent, and it has no place in the tree any more" == trouble.text
    assert "s1" == row(shown, SENSOR, 30)["name"]
    assert SENSOR.hex() not in shown.look(at(700))["nodes"]
    assert SENSOR not in shown.values.machines


# What else is wrong


@pytest.mark.proves("CON-001", part="alerts are shown")
@pytest.mark.proves("MET-004", part="the console shows what fires")
def test_alerts_and_a_full_disk_and_an_old_configuration_are_trouble_the_worst_first() -> None:
    alert = Alert(
        name="hot", node="s1", metric="temperature", labels={}, value=91.5, unit="Cel", when="> 90 Cel", limit=90,
        severity="critical", text="cool it", since=5_000,
    )  # fmt: skip
    tree = [TREE[0], place(SENSOR, "s1", "leaf", 3_000, "127.0.0.1:2000", number=3)]
    shown = console(tree=tree, alerts={SENSOR: [alert]})
    shown.values.note([batch(SENSOR, 0, 1, (DISKS[0], 91.0, None))], at(0))
    assert [
        (BAD, "alert hot: cool it · temperature 91.5 Cel (> 90 Cel)", 5_000),
        (WORSE, "disk 91 % full", None),
        (ODD, "runs number 3 of the configuration, not 7", None),
    ] == [(each.much, each.text, each.since) for each in row(shown, SENSOR, 1)["troubles"]]


def test_that_a_machine_is_silent_stands_before_the_alert_that_it_last_told_of() -> None:
    alert = Alert(
        name="hot", node="s1", metric="temperature", labels={}, value=123_456.0, unit="Cel", when="> 90 Cel", limit=90,
        severity="critical", text="", since=5_000,
    )  # fmt: skip
    shown = console(alerts={SENSOR: [alert]})
    shown.values.note([batch(SENSOR, 0, 1, (DISKS[0], 11.0, None))], at(0))
    first, second = row(shown, SENSOR, 900)["troubles"][:2]
    assert ["silent", "alert hot: temperature 123456 Cel (> 90 Cel)"] == [first.text, second.text]


def test_this_node_says_what_its_own_health_finds() -> None:
    check = {"name": "lake", "state": "degraded", "since": 12, "text": "its device is full", "do": "make room"}
    assert [(WORSE, "lake: its device is full", "make room", 12_000)] == row(console(checks=[check]), ROOT, 0)[
        "troubles"
    ]


def test_a_node_that_is_no_root_says_where_the_root_is_and_a_root_does_not() -> None:
    assert "" == console().look(at(0))["head"]["root"]
    told = console(node=COLLECTOR, name="c1", level="collector", port=2_000).look(at(0))
    assert "http://127.0.0.1:1006/console/" == told["head"]["root"]


@pytest.mark.proves("SEC-003", part="the bar of the console")
def test_a_console_says_where_an_open_fabric_is_reached_by_other_machines() -> None:
    assert "" == console().look(at(0))["head"]["open"]
    assert "192.0.2.1, 192.0.2.2" == console(open_hosts=("192.0.2.1", "192.0.2.2")).look(at(0))["head"]["open"]


# The feed


@pytest.mark.proves("CON-001", part="viewers are sent what has changed, once a second")
def test_changes_added_up_are_the_picture() -> None:
    shown = console()
    before: dict[str, Any] = {}
    known: dict[str, dict[str, Any]] = {}
    for second in range(40):
        speaking = (COLLECTOR, SENSOR) if second < 25 else (COLLECTOR,)
        for node in speaking:
            shown.values.note([batch(node, second, second + 1, (MEMORY, second / 2, None))], at(second))
        picture = shown.look(at(second))
        change = difference(before, picture)
        for node, changed in change["nodes"].items():
            kept = known.setdefault(node, {"values": {}})
            for name, points in changed.pop("values", {}).items():
                before_them = kept["values"].get(name, points[:1])
                kept["values"][name] = before_them[: 1 + points[0] - before_them[0]] + points[1:]
            kept.update(changed)
        rows = shown.look(at(second))["nodes"].items()
        assert {node: now | {"values": shown.values_of(node, 120)} for node, now in rows} == known
        before = picture


@pytest.mark.proves("CON-003", part="nothing is made while nobody looks, one picture a second for all")
def test_of_one_second_all_viewers_get_the_same_picture_and_it_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Now] = []
    clock, shown = [at(0)], console()
    look = shown.look

    def noted(now: Now) -> dict[str, Any]:
        looks.append(now)
        return look(now)

    monkeypatch.setattr(shown, "look", noted)
    feed = Feed(shown, lambda: clock[0])
    assert [] == looks
    for second in (0, 0.2, 0.7, 1.0, 1.5):
        clock[0] = at(second)
        feed.refresh()
    assert [at(0), at(1.0)] == looks
    assert feed.whole() is feed.whole()


async def taken(events: AsyncIterator[bytes], count: int) -> list[Any]:
    return [json.loads((await anext(events)).removeprefix(b"data: ")) for _ in range(count)]


@pytest.mark.proves(
    "CON-003", part="of a new viewer: all machines with their newest values, then the values before them"
)
def test_a_new_viewer_is_sent_the_newest_values_first_and_then_the_ten_minutes_before_them() -> None:
    shown = console()
    speak(shown, 21, COLLECTOR, SENSOR)
    first, past = asyncio.run(taken(Feed(shown, lambda: at(20)).events(), 2))
    slot = WALL_S // 5 + 4
    assert {"memory": [slot, 50]} == first["nodes"][SENSOR.hex()]["values"]
    assert "memory" in past["nodes"][COLLECTOR.hex()]["values"]
    screen = Screen()
    for told in (first, past):
        screen.take(told)
    assert {"memory": [slot - 4, 50, 50, 50, 50, 50]} == screen.nodes[SENSOR.hex()]["values"]
    assert "s1" == screen.nodes[SENSOR.hex()]["name"]


def test_a_viewer_that_reads_slowly_misses_no_change_that_was_made_meanwhile() -> None:
    clock, shown = [at(0)], console()
    feed = Feed(shown, lambda: clock[0])

    async def numbers() -> list[int]:
        events = feed.events()
        found = await taken(events, 1)
        for second in (1, 2):  # others have had two pictures before it reads on
            clock[0] = at(second)
            feed.refresh()
        return [told["number"] for told in found + await taken(events, 3)]

    assert [1, 1, 2, 3] == asyncio.run(numbers())


@pytest.mark.proves("CON-001", part="served by the node itself")
def test_routes_answer_the_page_the_picture_a_cell_and_a_stream() -> None:
    shown = console()
    speak(shown, 3, SENSOR)
    routes = routes_of(
        Sources(shown, Feed(shown, lambda: at(3)), Lake(None, Commands()), Logins(lambda: 0.0), lambda: None)
    )

    def ask(path: str, query: str = "") -> Any:
        return routes[path].handle(Request("GET", path, query))

    page = ask("/console/")
    assert (200, "text/html; charset=utf-8") == page[:2]
    assert (308, (("location", "/console/"),)) == (ask("/console").status, ask("/console").more)
    assert b'"s1"' in ask("/console/state.json").body
    told = ask("/console/cell", f"node={SENSOR.hex()}&cell={WALL_S // 10}")
    assert b'"first":1,"last":12,"received":12,"lost":0' in told.body
    for query in ("", "node=zz&cell=1", "node=aa&cell=x", f"node={'ab' * 16}&cell=1"):
        assert 404 == ask("/console/cell", query).status
    live = ask("/console/live")
    assert isinstance(live, Stream)
    assert 1 == asyncio.run(taken(live.events, 1))[0]["number"]
    assert isinstance(page, Response)


# The page


@pytest.mark.proves("CON-004", part="no inline script or style, nothing from elsewhere")
@pytest.mark.parametrize("file", sorted(path.name for path in PAGES.iterdir()))
def test_a_file_of_the_page_loads_nothing_from_elsewhere_and_has_no_inline_script(file: str) -> None:
    text = (PAGES / file).read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
    assert [] == re.findall(
        r"""(?:https?:)?//[a-z0-9.]+\.[a-z]{2,}|@import|url\(|\bimport\(|\beval\(|innerHTML""", text
    )
    if file.endswith(".html"):
        assert [] == re.findall(r"""\son[a-z]+=["']|\sstyle=["']|<style|<script>""", text)


@pytest.mark.proves("CON-003", part="the picture is asked for while the page is still being loaded")
def test_the_stream_is_opened_before_anything_else_is_loaded() -> None:
    loaded = re.findall(r"""(?:src|href)="([a-z]+\.[a-z]+)\"""", (PAGES / "index.html").read_text("utf-8"))
    assert "live.js" == loaded[0]


def test_the_first_page_is_small_and_all_are() -> None:
    sizes = {path.name: path.stat().st_size for path in PAGES.iterdir()}
    first = re.findall(r"""(?:src|href)="([a-z]+\.[a-z]+)\"""", (PAGES / "index.html").read_text("utf-8"))
    assert 55_000 > sum(sizes[name] for name in {*first, "index.html"})
    assert 100_000 > sum(sizes.values())


@pytest.mark.proves("WEL-003", part="the busiest process of each machine")
def test_the_busiest_process_is_that_of_the_newest_measurement() -> None:
    shown = console()
    worker, idle = (Series("p", "PROC_CPU", "percent", {"process": name}) for name in ("worker", "idle"))
    total = Series("p", "PROC_CPU", "percent", {})
    shown.values.note([batch(SENSOR, 0, 1, (worker, 100, 1_000), (idle, 900, 1_000), (total, 1, 1_000))], at(0))
    assert None is row(shown, SENSOR, 0)["busiest"]
    shown.values.note([batch(SENSOR, 1, 4, (worker, 125, 1_100), (idle, 901, 1_100), (total, 99, 1_100))], at(1))
    assert ("worker", 25.0) == row(shown, SENSOR, 1)["busiest"]
    shown.values.note([batch(SENSOR, 2, 7, (idle, 911, 1_200))], at(2))
    assert ("idle", 10.0) == row(shown, SENSOR, 2)["busiest"]
