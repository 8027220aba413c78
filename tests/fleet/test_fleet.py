"""The fleet's file: every mistake at once, each with its line, path and code; and a file with one changes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fleet.fleets import EXAMPLE
from weft.base.errors import UserError
from weft.cores.measurement.alertsettings import parse_alerts
from weft.node.fleet import fleet_of, read_fleet
from weft.node.fleetparts import Mistake
from weft.node.members import may_meet
from weft.node.tomllines import line_at, lines_of

CPU = '[metric.cpu]\ndetail = "CPU"\nrate = "1s"\n'
GROUP = '[group.g]\nmembers = ["*"]\nmetrics = ["cpu"]\n'

CASES = [
    ("E01", "-", 4, CPU + "oops"),
    ("E14", "-", 4, CPU + "[metric.cpu]\n"),
    ("E14", "-", 4, CPU + 'rate = "2s"\n'),
    ("E02", "metrc", 1, "[metrc.cpu]\n"),
    ("E02", "node", 1, "[node]\nname = 'a'\n"),
    ("E02", "metric.cpu.rte", 4, CPU + 'rte = "1s"\n'),
    ("E02", "fleet.heart", 2, "[fleet]\nheart = 1\n"),
    ("E02", "group.g.metric.x.colour", 7, CPU + GROUP + "metric.x.colour = 1\n"),
    ("E03", "metric.a.rate", 1, "[metric.a]\ndetail = 'CPU'\n"),
    ("E03", "chains.filter[1].kind", 4, "[[chains.filter]]\nname='a'\nkind='match'\n[[chains.filter]]\nname='b'\n"),
    ("E07", "alert.a.metric", 5, CPU + "[alert.a]\nmetric = 'cpuu'\nwhen = '> 9'\n"),
    ("E11", "alert.a.when", 6, CPU + "[alert.a]\nmetric = 'cpu'\nwhen = '> 9 GiB'\n"),
    ("E04", "alert.a.for", 7, CPU + "[alert.a]\nmetric = 'cpu'\nwhen = '> 9'\nfor = '9d'\n"),
    ("E07", "group.g.alert.a.metric", 8, CPU + GROUP + "[group.g.alert.a]\nmetric = 'net'\nwhen = '> 9'\n"),
    ("E04", "metric.cpu.rate", 3, CPU.replace("1s", "1 fortnight")),
    ("E04", "fleet.heartbeat", 2, "[fleet]\nheartbeat = '2h'\n"),
    ("E04", "fleet.dead_after", 2, "[fleet]\ndead_after = 1\n"),
    ("E04", "fleet.name", 2, "[fleet]\nname = 1979-05-27\n"),
    ("E04", "fleet.heartbeat", 2, "[fleet]\nheartbeat = inf\n"),
    ("E04", "group", 1, "group = 3\n"),
    ("E04", "group.g.labels", 2, "[group.g]\nlabels = { a = 1 }\n"),
    ("E04", "group.g.fanout", 7, CPU + GROUP + "fanout = 0\n"),
    ("E04", "chp.port", 2, "[chp]\nport = 80\n"),
    ("E04", "chp.writable[1]", 2, "[chp]\nwritable = ['/a/', 'b']\n"),
    ("E04", "security.mode", 2, "[security]\nmode = 'open'\n"),
    ("E05", "chp.import", 2, "[chp]\nimport = 'x'\n"),
    ("E05", "group.g.members[1]", 8, CPU + "[group.g]\nmetrics = ['cpu']\nmembers = [ # all\n '*', '::1'\n]\n".replace("'*', ", "'*',\n")),
    ("E05", "group.g.collectors[0]", 7, CPU + GROUP + "collectors = ['web*']\n"),
    ("E05", "group.g.exclude[0]", 7, CPU + GROUP + "exclude = ['1.2.3.4/99']\n"),
    ("E06", "group.g.collectors[1]", 7, CPU + GROUP + "collectors = ['a:5000', 'A:5009']\n"),
    ("E07", "group.g.metrics[0]", 3, GROUP),
    ("E07", "group.g.filters[0]", 7, CPU + GROUP + "filters = ['no']\n"),
    ("E07", "metric.cpu.detail", 2, CPU.replace("CPU", "CPUU")),
    ("E08", "group.g.parent", 7, CPU + GROUP + "parent = 'h'\n"),
    ("E09", "group.g.parent", 7, CPU + GROUP + "parent = 'g'\n"),
    ("E10", "group.h", 7, CPU + GROUP + "[group.h]\nmetrics = ['cpu']\n"),
    ("E11", "metric.cpu.threshold", 4, CPU + "threshold = '*1500ms'\n"),
    ("E11", "metric.cpu.threshold", 4, CPU + "threshold = '+500ms'\n"),
    ("E12", "metric.cpu.aggregate", 4, CPU + "aggregate = ['median']\n"),
    ("E13", "metric.cpu.aggregate", 4, CPU + "aggregate = ['sum']\nthreshold = '>5'\n"),
    ("E14", "group.g.members[1]", 2, GROUP.replace('["*"]', '["a", "a"]')),
    ("E14", "group.g.metric.cpu", 7, CPU + GROUP + "[group.g.metric.cpu]\ndetail = 'CPU'\nrate = 1\n"),
    ("E14", "group.h.members[0]", 6, "[group.g]\nmembers = ['a:5']\nmetrics = ['cpu']\n[group.h]\nmetrics = []\nmembers = ['a:5']\n"),
    ("E15", "metric.a b", 1, "[metric.'a b']\ndetail = 'CPU'\nrate = 1\n"),
    ("E15", "group.global", 1, "[group.global]\nmembers = ['*']\n"),
    ("E15", "group.root", 1, "[group.root]\nmembers = ['*']\n"),
    ("E15", "fleet.name", 2, "[fleet]\nname = 'my lab'\n"),
    ("W01", "metric.cpu", 1, CPU + "[group.g]\nmembers = ['*']\n"),
    ("W02", "group.g", 1, "[group.g]\nmembers = ['*']\n"),
    ("W03", "group.g.exclude[0]", 3, "[group.g]\nmembers = ['web*']\nexclude = ['db1']\n"),
    ("W03", "group.g.members[0]", 2, "[group.g]\nmembers = ['a:5']\nexclude = ['a']\n"),
]  # fmt: skip


@pytest.mark.proves("CFG-071")
@pytest.mark.parametrize("code, path, line, text", CASES, ids=lambda value: str(value)[:24])
def test_every_code_has_its_place(code: str, path: str, line: int, text: str) -> None:
    reading = read_fleet(text)
    said = [(mistake.code, mistake.path, mistake.line) for mistake in (*reading.errors, *reading.warnings)]
    assert (code, path, line) in said, said
    assert code.startswith("W") or reading.fleet is None


@pytest.mark.proves("CFG-071")
def test_the_cases_hold_every_code() -> None:
    expected = [f"E{number:02}" for number in range(1, 16)] + ["W01", "W02", "W03"]
    assert expected == sorted({case[0] for case in CASES})


@pytest.mark.proves("CFG-071")
def test_all_errors_are_said_at_once_in_the_order_of_the_file() -> None:
    text = EXAMPLE.replace('"10s"', '"soon"').replace('parent = "site"', 'parent = "sight"').replace("web9.lab", "::9")
    reading = read_fleet(text)
    assert ["E04", "E08", "E05"] == [mistake.code for mistake in reading.errors]
    lines = text.splitlines()
    assert ["rate", "parent", "exclude"] == [lines[mistake.line - 1].split()[0] for mistake in reading.errors]
    with pytest.raises(UserError) as refused:
        fleet_of(text, "lab.toml")
    assert 3 == refused.value.text.count("lab.toml:")
    assert "did you mean `site`?" in refused.value.text


@pytest.mark.proves("CFG-070")
def test_the_smallest_file_measures_the_usual_everywhere() -> None:
    fleet = fleet_of("", "empty")
    group = fleet.groups["all"]
    assert (["all"], ("*",)) == (list(fleet.groups), group.members)
    assert "cpu" in group.metrics
    only = fleet_of(CPU, "one metric").groups["all"]
    assert ["cpu"] == list(only.metrics)


@pytest.mark.proves("CFG-070")
@pytest.mark.parametrize("text, seconds", [("2", 2), ("0.05", 0.05), ("'50ms'", 0.05), ("'1.5m'", 90), ("'1h'", 3600)])
def test_times_have_units(text: str, seconds: float) -> None:
    assert {"heartbeat": seconds} == fleet_of(f"[fleet]\nheartbeat = {text}\n", "it").times


@pytest.mark.proves("CFG-020")
@pytest.mark.parametrize("name", ["global", "root", "-a", "a b", "", "x" * 64])
def test_names_that_no_group_may_have(name: str) -> None:
    codes = {mistake.code for mistake in read_fleet(f"[group.{name!r}]\nmembers = ['*']\n").errors}
    assert {"E15"} == codes


def test_groups_nest_six_deep_and_no_deeper() -> None:
    def nested(count: int) -> str:
        heads = [f"[group.g{n}]\nmembers = ['10.{n}.0.0/16']\nparent = 'g{n - 1}'\n" for n in range(1, count)]
        return "[group.g0]\nmembers = ['a*']\n" + "".join(heads)

    assert () == read_fleet(nested(6)).errors
    assert ["E09"] == [mistake.code for mistake in read_fleet(nested(7)).errors]


def test_a_circle_of_parents_is_named_in_each_of_its_groups() -> None:
    text = "[group.a]\nmembers=['a']\nparent='b'\n[group.b]\nmembers=['b']\nparent='a'\n[group.c]\nmembers=['c']\nparent='a'\n"
    assert [3, 6] == [mistake.line for mistake in read_fleet(text).errors]


def test_a_mistake_says_file_line_code_place_and_sentence() -> None:
    assert "f:1: E15 a\x1b[2J: no" == Mistake("E15", "a\x1b[2J", 1, "no").describe("f")


@pytest.mark.parametrize(
    ("pattern", "endpoint", "is_meant"),
    [
        ("*", "web1.lab:27500", True),
        ("10.0.0.3:27500", "10.0.0.3:27500", True),
        ("10.0.0.3:27500", "10.0.0.3:27510", False),
        ("10.0.0.3", "10.0.0.3:27510", True),
        ("10.0.0.0/24", "10.0.0.255:1", True),
        ("10.0.0.0/24", "10.0.1.0:1", False),
        ("10.0.0.0/24", "web1.lab:1", False),
        ("2001:db8::/64", "[2001:db8::7]:27500", True),
        ("[2001:db8::7]:27500", "[2001:db8::7]:27500", True),
        ("[2001:db8::*]", "[2001:db8::7]:27500", True),
        ("web?.lab", "WEB1.LAB:27500", True),
        ("web?.lab", "web10.lab:27500", False),
        ("web1", "web10:27500", False),
        ("web1:*", "web1:27500", True),
        ("10.0.0.0/24", "web1", True),  # a node of that name may stand there
    ],
)
def test_who_is_meant_by_a_pattern(pattern: str, endpoint: str, is_meant: bool) -> None:
    assert is_meant == may_meet(pattern, endpoint)


@given(st.text(max_size=20), st.text(max_size=20))
def test_patterns_meet_both_ways(one: str, other: str) -> None:
    assert may_meet(one, other) == may_meet(other, one)


def test_places_in_a_text_with_everything() -> None:
    text = '# head\n[a]\nx = """\n[no]\n"""\ny = [ # [\n  1, "]",\n\n  [2, 3],\n]\nz.w = { q = "\\"" }\n[[b.c]]\n[[b.c]]\n"k.l" = 1\n'
    lines = lines_of(text)
    expected = {
        "a": 2,
        "a.x": 3,
        "a.y": 6,
        "a.y[0]": 7,
        "a.y[1]": 7,
        "a.y[2]": 9,
        "a.z.w": 11,
        "b.c[0]": 12,
        "b.c[1]": 13,
        "b.c[1].k.l": 14,
    }
    assert expected == {path: lines[path] for path in expected}
    assert "no" not in lines
    assert 11 == line_at(lines, "a.z.w.q")
    assert 1 == line_at(lines, "elsewhere")


@given(st.text("[]='\"\\\n#.,{} ab1", max_size=60))
def test_any_text_has_places_and_any_file_an_answer(text: str) -> None:
    assert all(1 <= line <= text.count("\n") + 1 for line in lines_of(text).values())
    reading = read_fleet(text)
    assert (reading.fleet is None) == bool(reading.errors)


@given(st.lists(st.sampled_from(EXAMPLE.splitlines()), max_size=30))
def test_any_lines_of_a_file_have_an_answer(lines: list[str]) -> None:
    reading = read_fleet("\n".join(lines))
    assert (reading.fleet is None) == bool(reading.errors)


@pytest.mark.proves("MET-004", part="an alert belongs to the groups that measure its metric")
def test_an_alert_of_the_fleet_belongs_to_each_group_with_its_metric_and_a_groups_own_stands_in_its_place() -> None:
    net = '[metric.net]\ndetail = "NET_IF"\nrate = "1s"\n'
    alert = '[alert.busy]\nmetric = "cpu"\nwhen = "> 90 %"\n'
    others = '[group.h]\nmembers = ["h"]\nmetrics = ["net"]\n[group.i]\nmembers = ["i"]\nmetrics = ["cpu"]\n'
    own = '[group.i.alert.busy]\nmetric = "cpu"\nwhen = "> 50 %"\n'
    fleet = fleet_of(CPU + net + alert + GROUP + others + own, "it")
    found = {
        name: {alert: table["when"] for alert, table in group.alerts.items()} for name, group in fleet.groups.items()
    }
    assert {"g": {"busy": "> 90 %"}, "h": {}, "i": {"busy": "> 50 %"}} == found


def test_an_alert_of_a_metric_that_groups_measure_otherwise_may_have_two_units() -> None:
    alert = '[alert.big]\nmetric = "m"\nwhen = "> 1 GiB"\nclear = "900 MiB"\n'
    group = '[group.g]\nmembers = ["10.0.0.0/8"]\n[group.g.metric.m]\ndetail = "MEMORY"\nrate = "1s"\n'
    (spec,), mistakes = parse_alerts(fleet_of(alert + group, "it").groups["g"].alerts, {"m": "MEMORY"})
    assert ([], 943_718_400) == (mistakes, spec.clear)
