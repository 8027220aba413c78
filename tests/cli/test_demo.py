"""What the demonstration is made of, without its processes."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from weft.base.errors import UserError
from weft.cli.answers import QUESTIONS
from weft.cli.demo import NODES, FirstRows, Progress, judged, texts
from weft.cli.demo import _seconds as seconds
from weft.cli.demo_view import View
from weft.cli.fleet import Fleet, Member
from weft.cli.status import in_tree_order
from weft.node.fleet import fleet_of
from weft.node.settings import read_document, settings_of


def row(node: str, *, missing: int = 0, lost: int = 0) -> dict[str, Any]:
    return {"node": node, "missing": missing, "lost": lost, "received": 10}


def test_the_verdict_is_good_only_if_every_node_is_whole() -> None:
    whole = [row(name) for name in NODES]
    assert (True, "all 70 samples that were taken are in the tables, none is missing") == judged(whole, 0)
    assert (False, "nothing has arrived from sensor-4") == judged(whole[:-1], 0)
    assert not judged([*whole, row("root", missing=1)], 0)[0]
    assert not judged([*whole, row("root", lost=2)], 0)[0]
    assert (False, "29 segments are not in the tables yet: weft lake run adds them") == judged(whole, 29)


def test_tables_that_were_not_counted_are_not_called_empty() -> None:
    """On a slow machine the driver was killed while it folded, and the verdict said that nothing had arrived from anybody."""
    for is_whole, verdict in (judged([], 0), judged([row(name) for name in NODES], 0, is_cut=True)):
        assert not is_whole
        assert "nothing has arrived" not in verdict
        assert "weft lake run --once" in verdict


def test_who_does_not_end_in_time_is_killed_and_named(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
    fleet.add(Member("deaf", ("-c", deaf)))
    while not (tmp_path / "deaf.out").read_text("utf-8"):
        assert fleet.members[0].is_running
    assert ["deaf"] == fleet.stop(["deaf"], 0.1)
    assert [] == fleet.stop(["deaf"], 0.1)


def test_every_file_of_the_demonstration_can_be_used() -> None:
    files = texts(Path("place"), {name: 27_500 + 10 * number for number, name in enumerate(NODES)})
    fleet = files.pop("fleet.toml")
    (group,) = fleet_of(fleet, "fleet.toml").groups.values()
    assert (9, 1, 2) == (len(group.metrics), len(group.filters), len(group.collectors))
    for name, text in files.items():
        settings = settings_of(read_document(text, name))
        assert ("root" if name == "root.toml" else "auto", True) == (settings.place, settings.follows)


def test_progress_reads_a_growing_file_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "out"
    progress = Progress(path)
    assert {} == progress.read()
    line = '{"batch":0,"rows":5,"silver":4,"values":3,"duplicates":1,"quarantined":0,"missing":0,"freshness_ms":1500}\n'
    path.write_text(line + line[:20])
    assert 5 == progress.read()["rows"]
    path.write_text(line + line)
    assert (10, "1.5 s") == (progress.read()["rows"], progress.read()["freshness"])


@pytest.mark.proves("WEL-003", part="how long Spark has been starting, and how long it took the last time")
def test_who_waits_for_spark_reads_how_long_it_took_the_last_time(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("demo-1", "demo-2", "demo-3")]
    for place in places:
        place.mkdir()
    first = FirstRows(places[0], 100.0)
    assert "Spark has been starting for 3 s; the first rows can take a minute" == first.look(103.2, has_rows=False)
    for now_s in (141.0, 160.0):
        first.look(now_s, has_rows=True)
    second = FirstRows(places[1], 0.0)
    assert "Spark has been starting for 1 s; the last time its first rows took 41 s" == second.look(1.0, has_rows=False)
    (places[1] / "first-rows").write_text("soon")
    assert FirstRows(places[2], 0.0).last_s is None


@pytest.mark.parametrize("text", ["", "soon", "0s", "-3s"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UserError) as refused:
        seconds(text)
    assert "usage" == refused.value.code


def test_the_tree_is_listed_parents_first_and_orphans_last() -> None:
    nodes = [
        {"name": name, "level": name.partition("-")[0], "parent": {"name": parent}}
        for name, parent in [("sensor-1", "collector-1"), ("collector-1", "root"), ("root", ""), ("sensor-9", "nobody")]
    ]
    listed = [(depth, node["name"]) for depth, node in in_tree_order(nodes)]
    assert [(0, "root"), (1, "collector-1"), (2, "sensor-1"), (1, "sensor-9")] == listed


def test_there_are_five_questions_and_the_last_is_about_completeness() -> None:
    assert 5 == len(QUESTIONS)
    assert "gold.completeness" in QUESTIONS[-1].sql


def told(name: str, era: int, numbered: int, parent: str = "") -> dict[str, Any]:
    cores = {"measurement": {"numbered": numbered}, "carrier": {"state": "LIVE", "spool_records": 0}}
    parents = {"name": parent, "state": ""}
    return {"name": name, "era": era, "cores": cores, "parent": parents, "level": "sensor" if parent else "root"}


@pytest.mark.proves("WEL-003")
def test_the_view_shows_each_machine_and_counts_samples_over_starts_in_80_columns() -> None:
    shown = View(0.0)
    values = {"cpu": [1, 50.0, 100.0], "memory": [2, 21.0], "disk": [2, 29.0]}
    row = {"name": "sensor-1", "values": values, "busiest": ["a-process-of-a-long-name", 41.0]}
    shown.screen.take({"whole": True, "at": 10_000, "head": {"node": "s"}, "nodes": {"s": row}})
    lake = {"silver": 1_290, "duplicates": 3, "quarantined": 0, "missing": 0, "freshness": "1.2 s"}
    shown.line([told("root", 1, 1_000), told("sensor-1", 1, 200, "root")], {})
    statuses = [told("root", 1, 1_000), told("sensor-1", 2, 100, "root")]
    assert [word.strip() for word in shown.line(statuses, lake).strip().split("  ")] == [
        "0 s left",
        "nodes 2",
        "samples 1,300",
        "spool 0",
        "cpu 100 %",
        "memory 21 %",
        "disk 29 %",
        "busiest a-process-of-a-long-name 41 %",
        "in the tables 1,290 of 1,300, duplicates 3, newest 1.2 s old",
    ]
    out = Console(width=80, color_system=None)
    with out.capture() as said:
        out.print(shown.render(statuses, [], lake))
    line = next(each for each in said.get().splitlines() if "sensor-1" in each)
    assert ["300", "▅█", "100", "%", "21", "%", "29", "%", "a-process-o", "41", "%"] == [
        word for word in line.split() if word not in {"sensor-1", "live", "0"}
    ]
    assert 80 >= len(line)
