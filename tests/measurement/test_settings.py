"""Metric tables: what they may say, and all that is wrong with them at once (CFG-070, CFG-071)."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.now import MILLISECOND, SECOND
from weft.base.settings import DAY, MINUTE, Table, span_ns
from weft.cores.measurement.details import DETAILS
from weft.cores.measurement.settings import ON_DEMAND, ONCE, MetricSpec, Threshold, parse_metrics

EXAMPLE = """
[metric.nginx_mem]
detail = "PROC_MEM"
param = "nginx"
rate = "10s"
threshold = ">500000000"
[metric.net]
detail = "NET_IF"
rate = "1s"
aggregate = ["sum", "max"]
"""


def one(**table: Any) -> MetricSpec:
    specs, mistakes = parse_metrics({"m": {"detail": "CPU", "rate": "1s", **table}})
    assert [] == mistakes
    return specs[0]


def mistakes_of(**table: Any) -> list[str]:
    """Code and place of each mistake."""
    found = parse_metrics({"m": {"detail": "CPU", "rate": "2s", **table}})[1]
    return [" ".join(text.split(": ")[0].split(" ", 1)) for text in found]


@pytest.mark.proves("CFG-070")
def test_example_of_the_configuration_file() -> None:
    specs, mistakes = parse_metrics(tomllib.loads(EXAMPLE)["metric"])
    assert [] == mistakes
    nginx = MetricSpec(
        name="nginx_mem",
        detail="PROC_MEM",
        rate_ns=10 * SECOND,
        timeout_ns=5 * SECOND,
        param="nginx",
        threshold=Threshold(">", limit=500_000_000),
    )
    net = MetricSpec(name="net", detail="NET_IF", rate_ns=SECOND, timeout_ns=SECOND // 2, aggregate=("sum", "max"))
    assert [net, nginx] == specs


@pytest.mark.proves("CFG-070", "MEA-004")
@pytest.mark.parametrize(
    "rate, expected",
    [
        ("100ms", 100 * MILLISECOND),
        (0.1, 100 * MILLISECOND),
        (1, SECOND),
        ("1.5s", 1_500 * MILLISECOND),
        ("2m", 2 * MINUTE),
        ("1 h", 60 * MINUTE),
        ("1d", DAY),
        ("once", ONCE),
        ("on-demand", ON_DEMAND),
    ],
)
def test_rates(rate: object, expected: int) -> None:
    assert expected == one(rate=rate).rate_ns


@pytest.mark.proves("CFG-070")
@pytest.mark.parametrize(
    "rate", ["99ms", "25h", "1w", "s", "", -1, 0, True, "1e3s", "٣s", [], {}, float("nan"), float("inf"), "never"]
)
def test_what_is_no_rate(rate: object) -> None:
    assert ["E04 metric.m.rate"] == mistakes_of(rate=rate)


@pytest.mark.parametrize(
    "table, threshold",
    [
        ({"threshold": "*60s"}, Threshold("*", every_ns=MINUTE)),
        ({"threshold": "+5m"}, Threshold("+", every_ns=5 * MINUTE)),
        ({"threshold": "<1.5"}, Threshold("<", limit=1.5)),
        ({"threshold": "> -3"}, Threshold(">", limit=-3)),
        ({"threshold": ">90", "clear": 80}, Threshold(">", limit=90, clear=80)),
        ({"threshold": "<90", "clear": 91.5}, Threshold("<", limit=90, clear=91.5)),
        ({}, None),
    ],
)
def test_thresholds(table: dict[str, Any], threshold: Threshold | None) -> None:
    assert threshold == one(**table).threshold


@pytest.mark.proves("CFG-071")
@pytest.mark.parametrize(
    "table, expected",
    [
        ({"rat": "1s"}, ["E02 metric.m.rat"]),
        ({"detail": None}, ["E03 metric.m.detail"]),
        ({"rate": None}, ["E03 metric.m.rate"]),
        ({"detail": "CPUX"}, ["E07 metric.m.detail"]),
        ({"detail": 7}, ["E04 metric.m.detail"]),
        ({"param": "eth0"}, ["E04 metric.m.param"]),
        ({"detail": "PROC_CPU", "param": "re:("}, ["E04 metric.m.param"]),
        ({"detail": "PROC_CPU", "param": "pid:x"}, ["E04 metric.m.param"]),
        ({"detail": "PROC_CPU", "param": "x" * 257}, ["E04 metric.m.param"]),
        ({"per": "name"}, ["E04 metric.m.per"]),
        ({"detail": "MEMORY", "per": "core"}, ["E04 metric.m.per"]),
        ({"timeout": 0}, ["E04 metric.m.timeout"]),
        ({"timeout": "soon"}, ["E04 metric.m.timeout"]),
        ({"threshold": "*1s"}, ["E11 metric.m.threshold"]),
        ({"threshold": "*3s"}, ["E11 metric.m.threshold"]),
        ({"threshold": "+60"}, ["E11 metric.m.threshold"]),
        ({"threshold": "=3"}, ["E11 metric.m.threshold"]),
        ({"threshold": "*60s", "rate": "once"}, ["E11 metric.m.threshold"]),
        ({"threshold": "*60s", "clear": 3}, ["E11 metric.m.clear"]),
        ({"threshold": ">3", "clear": 4}, ["E11 metric.m.clear"]),
        ({"clear": 4}, ["E11 metric.m.clear"]),
        ({"clear": "x", "threshold": ">3"}, ["E11 metric.m.clear"]),
        ({"detail": "DISK_USE", "threshold": "> 90 %"}, ["E11 metric.m.threshold"]),
        ({"detail": "MEMORY", "threshold": "> 10 GIB"}, ["E11 metric.m.threshold"]),
        ({"detail": "MEMORY", "threshold": "> 10 GiB", "clear": "11 GiB"}, ["E11 metric.m.clear"]),
        ({"detail": "FILE_AGE"}, ["E03 metric.m.param"]),
        ({"detail": "FILE_AGE", "param": "var/log"}, ["E04 metric.m.param"]),
        ({"detail": "HTTP", "param": "ftp://host/"}, ["E04 metric.m.param"]),
        ({"detail": "HTTP", "param": "http://host:port/"}, ["E04 metric.m.param"]),
        ({"aggregate": ["sum", "median"]}, ["E12 metric.m.aggregate"]),
        ({"aggregate": 3}, ["E04 metric.m.aggregate"]),
        ({"aggregate": ["sum"], "threshold": ">3"}, ["E13 metric.m.aggregate"]),
    ],
)
def test_mistakes(table: dict[str, Any], expected: list[str]) -> None:
    full = {"detail": "CPU", "rate": "2s", **table}
    found = parse_metrics({"m": {key: value for key, value in full.items() if value is not None}})[1]
    assert expected == [text.split(": ")[0] for text in found]


@pytest.mark.proves("CFG-071")
def test_all_mistakes_are_said_at_once_with_the_nearest_name() -> None:
    _, mistakes = parse_metrics({"a b": {"detail": "CPUU", "raet": 1}, "c": 7, "d": {"rate": "x"}})
    assert [
        "E15 metric.a b: a name is 1 to 63 letters, digits, `_`, `.`, `-`",
        "E07 metric.a b.detail: 'CPUU' is no metric, did you mean `CPU`?",
        "E03 metric.a b.rate: is missing",
        "E02 metric.a b.raet: is not known here, did you mean `rate`?",
        "E04 metric.c: must be a table",
        "E03 metric.d.detail: is missing",
        'E04 metric.d.rate: \'x\' is none: "100ms" to "1d", a number of seconds, "once" or "on-demand"',
    ] == mistakes


def test_what_is_no_table_at_all() -> None:
    assert ([], ["E04 metric: must be tables, one per metric"]) == parse_metrics([])


def test_too_many_metrics() -> None:
    table = {f"m{n}": {"detail": "CPU", "rate": 1} for n in range(1_001)}
    assert ["E04 metric: 1001 metrics, 1000 at most"] == parse_metrics(table)[1]


def test_info_needs_no_rate() -> None:
    assert 0 == parse_metrics({"about": {"detail": "INFO"}})[0][0].rate_ns


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)
KEYS = ("detail", "rate", "param", "per", "threshold", "clear", "timeout", "phase", "aggregate", "x")


@pytest.mark.proves("CFG-071")
@given(
    st.dictionaries(
        st.text(max_size=8),
        st.one_of(
            JSON, st.dictionaries(st.sampled_from(KEYS), st.one_of(JSON, st.sampled_from([*DETAILS, "1s", "*2s"])))
        ),
        max_size=4,
    )
)
def test_any_table_gives_specs_and_mistakes_and_nothing_else(table: dict[str, Any]) -> None:
    specs, mistakes = parse_metrics(table)
    assert all(text[0] == "E" and text[1:3].isdecimal() and ": " in text for text in mistakes)
    if not mistakes:
        assert sorted(table) == [spec.name for spec in specs]


@given(st.integers(0, 10**6), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_spans_of_time(number: int, unit: str) -> None:
    scale = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3_600 * 10**9, "d": 86_400 * 10**9}[unit]
    assert number * scale == span_ns(f"{number}{unit}")
    assert number * scale + scale // 4 == span_ns(f"{number}.25{unit}")


def test_table_reads_what_is_typed_and_notes_the_rest() -> None:
    mistakes: list[str] = []
    table = Table({"n": 3, "f": True, "t": ["a"], "bad": "x", "far": 99}, "x", mistakes)
    assert (3, True, ("a",), 7) == (table.number("n"), table.flag("f"), table.texts("t"), table.whole("no", 7, 1, 9))
    assert (None, False, 5) == (table.number("bad"), table.flag("n"), table.whole("far", 5, 1, 9))
    table.end()
    assert ["E04 x.bad", "E04 x.n", "E04 x.far"] == [text.split(": ")[0] for text in mistakes]


@pytest.mark.proves("MET-003", part="limits with units are read")
@pytest.mark.parametrize(
    ("detail", "text", "expected"),
    [
        ("CPU", ">90", 90),
        ("CPU", "> 90 %", 90),
        ("MEMORY", "> 10 GiB", 10_737_418_240),
        ("MEMORY", "> 1.5GB", 1_500_000_000),
        ("DISK_PERCENT", "> 90 %", 90),
        ("DISK_FREE", "< 500 MiB", 524_288_000),
        ("NETWORK", "> 10 MB/s", 10_000_000),
        ("UPTIME", "< 5 m", 300),
        ("PRESSURE", "> 20 %", 200_000),
        ("CPU_MODE", "> 50 %", 0.5),
        ("TEMP", "> 80 °C", 80),
        ("FAN", "< 500 rpm", 500),
    ],
)
def test_a_limit_may_have_a_unit(detail: str, text: str, expected: float) -> None:
    specs, mistakes = parse_metrics({"m": {"detail": detail, "rate": "1s", "threshold": text}})
    assert [] == mistakes
    assert specs[0].threshold is not None
    assert expected == specs[0].threshold.limit


@pytest.mark.proves("MET-003")
@pytest.mark.parametrize(
    ("detail", "text", "expected"),
    [
        ("DISK_USE", "> 90 %", "DISK_USE is not measured in %; DISK_PERCENT is"),
        ("MEMORY", "> 90 %", "MEMORY is not measured in %; MEMORY_PERCENT is"),
        ("DISK_USE", "> 10 GiB", "DISK_USE is not measured in GiB; DISK_FREE is"),
        ("LOAD", "> 5 s", "LOAD is not measured in s"),
    ],
)
def test_a_unit_that_does_not_fit_is_refused_with_what_would(detail: str, text: str, expected: str) -> None:
    mistakes = parse_metrics({"m": {"detail": detail, "rate": "1s", "threshold": text}})[1]
    assert [f"E11 metric.m.threshold: {expected}"] == mistakes


def test_a_limit_of_clear_may_have_another_unit() -> None:
    table = {"detail": "MEMORY", "rate": "1s", "threshold": "> 2 GiB", "clear": "800 MiB"}
    (spec,), mistakes = parse_metrics({"m": table})
    assert ([], 838_860_800) == (mistakes, spec.threshold.clear if spec.threshold else None)
