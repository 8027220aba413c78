"""The tables of all kinds: what is taken, what is refused with which code, and by which doors they come (CFG-071)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chains.views import at, parcel
from weft.base.now import SECOND
from weft.cores.chains import limits
from weft.cores.chains.links import FilterLink
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.options import KINDS
from weft.cores.chains.settings import LOCAL, FilterSpec, parse_filters
from weft.node.fleet import read_fleet
from weft.node.plan import plan_of, why_unusable
from weft.node.settings import settings_of

GOOD: dict[str, dict[str, Any]] = {
    "match": {"types": ["app.x"], "when": "f.level > 3"},
    "sample": {"rate": 0.1, "salt": "night"},
    "rate-limit": {"count": 5, "per": "1s", "key": ["name"]},
    "dedupe": {"fields": ["name", "value"], "within": "1m", "max_keys": 10},
    "edit": {"types": ["app.*"], "edits": [["set", "a", 1], ["replace", "b", "x+", "y"]]},
    "threshold": {"above": 90.0, "mode": "edge", "clear": 80, "for": "5s"},
    "forward": {"types": ["app.*"], "dir": "in"},
    "journal": {"types": ["*"], "dir": "in", "place": 7},
    "aggregate": {"types": ["app.*"], "dir": "in", "window": "1m", "group": ["host"], "functions": ["mean", "p99.9"]},
    "batch": {"types": ["app.*"], "dir": "in", "count": 8, "within": "2s"},
    "route": {"types": ["app.*"], "to": "direct:C:7"},
    "absorb": {"types": ["app.*"]},
    "stdout": {"types": ["app.*"]},
    "python": {"types": ["app.*"], "call": "weft.programs:judge"},
}


def test_there_is_an_example_of_every_kind() -> None:
    assert list(KINDS) == list(GOOD)


@pytest.mark.parametrize("kind", [kind for kind in GOOD if kind not in LOCAL])
def test_every_kind_comes_by_the_file_of_a_node_and_by_the_configuration_of_its_group(kind: str) -> None:
    table = {"kind": kind, **GOOD[kind]}
    settings = settings_of({"node": {"name": "n"}, "chains": {"filter": [{"name": "x", **table}]}})
    plan = plan_of({"/CONFIG/web/filter/x": json.dumps(table).encode()}, ("web",))
    expected, mistakes = parse_filters([{"name": "x", **table}])
    assert ([], ()) == (mistakes, plan.mistakes)
    assert tuple(expected) == settings.filters == plan.filters


@pytest.mark.proves("CHN-069")
def test_a_function_of_a_program_is_named_in_a_nodes_own_file_only() -> None:
    table = {"kind": "python", **GOOD["python"]}
    settings = settings_of({"node": {"name": "n"}, "chains": {"filter": [{"name": "x", **table}]}})
    assert ["python"] == [spec.kind for spec in settings.filters]
    plan = plan_of({"/CONFIG/web/filter/x": json.dumps(table).encode()}, ("web",))
    assert ((), 1) == (plan.filters, len(plan.filter_mistakes))
    assert "E11 kind: a python filter stands in a node's own file only" in plan.filter_mistakes[0]
    assert why_unusable("/CONFIG/web/filter/x", json.dumps(table).encode()) is not None
    errors = read_fleet('[[chains.filter]]\nname = "x"\nkind = "python"\ntypes = ["a"]\ncall = "a:b"\n').errors
    assert ["E11"] == [mistake.code for mistake in errors]


def spec_of(**table: Any) -> FilterSpec:
    specs, mistakes = parse_filters([{"name": "x", **table}])
    assert [] == mistakes
    return specs[0]


def test_forward_and_journal_stand_last_unless_told_otherwise() -> None:
    places = [spec_of(kind=kind, **GOOD[kind]).place for kind in ("forward", "journal", "sample")]
    assert [4_000_000_000, 7, 1_000] == places


APP: dict[str, Any] = {"types": ["app.x"]}


@pytest.mark.proves("CFG-071", "CHN-061", "CHN-065")
@pytest.mark.parametrize(
    "table, expected",
    [
        ({"kind": "match"}, ["E03 where"]),
        ({"kind": "match", "when": 5}, ["E04 when"]),
        ({"kind": "match", "when": " "}, ["E04 when"]),
        ({"kind": "match", "when": "f.a >"}, ["E04 when"]),
        ({"kind": "match", "when": "lvl > 3"}, ["E02 when"]),
        ({"kind": "match", "when": "true || " * 256 + "true"}, ["E04 when"]),
        ({"kind": "match", "when": "(" * 25 + "true" + ")" * 25}, ["E04 when"]),
        ({"kind": "match", "when": "f.a.all(x, f.b.exists(y, x == y))"}, ["E04 when"]),
        ({"kind": "match", **APP, "where": {"a..b": 1}}, ["E15 where.a..b"]),
        ({"kind": "match", **APP, "where": {"a": {"gtt": 1}}}, ["E02 where.a.gtt"]),
        ({"kind": "match", **APP, "where": {"a": {"gt": True}}}, ["E04 where.a.gt"]),
        ({"kind": "match", **APP, "where": {"a": {"prefix": 1}}}, ["E04 where.a.prefix"]),
        ({"kind": "match", **APP, "where": {"a": {"in": [[]]}}}, ["E04 where.a.in"]),
        ({"kind": "match", **APP, "where": {"a": {"exists": 1}}}, ["E04 where.a.exists"]),
        ({"kind": "match", **APP, "where": {"a": [1]}}, ["E04 where.a.eq"]),
        ({"kind": "sample"}, ["E03 rate"]),
        ({"kind": "sample", "rate": 0.5, "every": 2}, ["E03 rate"]),
        ({"kind": "sample", "rate": 1.5}, ["E04 rate"]),
        ({"kind": "sample", "rate": "x"}, ["E04 rate"]),
        ({"kind": "sample", "every": 0}, ["E04 every"]),
        ({"kind": "sample", "rate": 1, "salt": "x" * 65}, ["E04 salt"]),
        ({"kind": "sample", "rate": 1, "key": ["host"]}, ["E02 key"]),
        ({"kind": "sample", "rate": 1, **APP, "key": [".host"]}, ["E15 key"]),
        ({"kind": "sample", "rte": 1, "rate": 1}, ["E02 rte"]),
        ({"kind": "dedupe"}, ["E03 fields", "E03 within"]),
        ({"kind": "dedupe", "fields": [], "within": "1s"}, ["E03 fields"]),
        ({"kind": "dedupe", "fields": ["value"], "within": 0}, ["E04 within"]),
        ({"kind": "dedupe", "fields": ["nam"], "within": 1}, ["E02 fields"]),
        ({"kind": "dedupe", "fields": ["name"], "within": 1, "max_keys": 0}, ["E04 max_keys"]),
        ({"kind": "edit", **APP}, ["E03 edits"]),
        ({"kind": "edit", **APP, "edits": []}, ["E04 edits"]),
        ({"kind": "edit", **APP, "edits": ["set"]}, ["E04 edits[0]"]),
        ({"kind": "edit", **APP, "edits": [["remove", "a"], ["sett", "a", 1]]}, ["E04 edits[1]"]),
        ({"kind": "edit", **APP, "edits": [["set", "a"]]}, ["E04 edits[0]"]),
        ({"kind": "edit", **APP, "edits": [["set", "", 1]]}, ["E04 edits[0]"]),
        ({"kind": "edit", **APP, "edits": [["set", "a", {}]]}, ["E04 edits[0]"]),
        ({"kind": "edit", **APP, "edits": [["set", "a", "x" * 257]]}, ["E04 edits[0]"]),
        ({"kind": "edit", **APP, "edits": [["rename", "a", 5]]}, ["E04 edits[0]"]),
        ({"kind": "edit", **APP, "edits": [["replace", "a", "(", ""]]}, ["E04 edits[0]"]),
        ({"kind": "edit", **APP, "edits": [["replace", "a", "x", r"\1"]]}, ["E04 edits[0]"]),
        ({"kind": "edit", **APP, "edits": [["replace", "a", "x", "\\"]]}, ["E04 edits[0]"]),
        ({"kind": "edit", **APP, "edits": [["replace", "a", "x", r"\n"]]}, ["E04 edits[0]"]),
        ({"kind": "edit", **APP, "edits": [["replace", "a", r"(x)\1", ""]]}, ["E04 edits[0]"]),
        ({"kind": "edit", **APP, "edits": [["remove", "a"]] * 65}, ["E04 edits"]),
        ({"kind": "edit", "edits": [["remove", "a"]]}, ["E11 types"]),
        ({"kind": "edit", "types": ["*"], "edits": [["remove", "a"]]}, ["E11 types"]),
        ({"kind": "threshold", **APP, "above": 1, "field": "a."}, ["E15 field"]),
        ({"kind": "forward", **APP}, ["E11 dir"]),
        ({"kind": "journal", **APP, "dir": "out"}, ["E11 dir"]),
        ({"kind": "forward", **APP, "dir": "in", "to": "root"}, ["E02 to"]),
    ],
)
def test_mistakes(table: dict[str, Any], expected: list[str]) -> None:
    _, mistakes = parse_filters([{"name": "x", **table}])
    assert [f"{code[:4]}chains.filter[0].{code[4:]}" for code in expected] == [text.split(": ")[0] for text in mistakes]


@pytest.mark.proves("CHN-061")
@pytest.mark.parametrize(
    "source",
    [
        'f.text == ".all(" && f.list.all(x, x > 0)',
        "f.map == 1 && f.filter > 2",
        'r"\\(((((((((((((((((((((((((" != f.x',
        "f.a > 1 // .all( ((((((((((((((((((((((((((((",
        "f.list.map(y, y + 1).size() > 2",
    ],
)
def test_texts_and_comments_are_no_macros_and_no_brackets(source: str) -> None:
    assert [] == parse_filters([{"name": "x", "kind": "match", "when": source}])[1]


@pytest.mark.parametrize(
    "old, new, stays",
    [
        (
            {"kind": "dedupe", "fields": ["a"], "within": 9},
            {"kind": "dedupe", "fields": ["a"], "within": 9, "max_keys": 5},
            True,
        ),
        ({"kind": "dedupe", "fields": ["a"], "within": 9}, {"kind": "dedupe", "fields": ["a"], "within": 8}, False),
        ({"kind": "dedupe", "fields": ["a"], "within": 9}, {"kind": "dedupe", "fields": ["b"], "within": 9}, False),
        ({"kind": "sample", "every": 2}, {"kind": "sample", "every": 2, "salt": "x"}, True),
        ({"kind": "sample", "every": 2}, {"kind": "sample", "every": 3}, False),
        (
            {"kind": "rate-limit", "count": 1, "per": "1h"},
            {"kind": "rate-limit", "count": 1, "burst": 1, "per": "1h"},
            True,
        ),
        ({"kind": "rate-limit", "count": 1, "per": "1h"}, {"kind": "rate-limit", "count": 1, "per": "2h"}, False),
    ],
)
def test_a_filter_of_the_same_kind_key_and_window_keeps_its_state(
    old: dict[str, Any], new: dict[str, Any], *, stays: bool
) -> None:
    first, second = FilterLink(spec_of(**APP, **old)), FilterLink(spec_of(**APP, **new))
    first.offer(MessageView(parcel(b'{"a":1}')), at(0))
    second.follow(first)
    second.offer(MessageView(parcel(b'{"a":1}')), at(1))
    assert (1 if stays else 2, 2) == (second.counters.passed, second.counters.offered)


def test_a_bucket_goes_on_at_the_new_rate() -> None:
    slow, fast = (FilterLink(spec_of(**APP, kind="rate-limit", count=n, per="1h", burst=1)) for n in (1, 2))
    slow.offer(MessageView(parcel(b"{}")), at(0))
    fast.follow(slow)
    for minute in (29, 30):
        fast.offer(MessageView(parcel(b"{}")), at(minute * 60 * SECOND))
    assert (2, 1) == (fast.counters.passed, fast.counters.dropped)


def test_a_dedupe_that_may_remember_less_keeps_what_passed_last() -> None:
    wide, narrow = (FilterLink(spec_of(**APP, kind="dedupe", fields=["a"], within=9, max_keys=n)) for n in (9, 1))
    for n in (1, 2):
        wide.offer(MessageView(parcel(b'{"a":%d}' % n)), at(0))
    narrow.follow(wide)
    narrow.offer(MessageView(parcel(b'{"a":2}')), at(1))
    narrow.offer(MessageView(parcel(b'{"a":1}')), at(1))
    assert (3, 1) == (narrow.counters.passed, narrow.counters.dropped)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)
LIKELY = st.sampled_from(
    [
        "1s",
        "edge",
        ["name"],
        5,
        0.5,
        "f.a > 1",
        "in",
        [["set", "a", 1]],
        [["replace", "a", "a*", "b"]],
        [["hash", "a"]],
        {"a": 1},
    ]
)
KEYS = [
    "types",
    "dir",
    "where",
    "when",
    "on_error",
    "above",
    "mode",
    "for",
    "key",
    "count",
    "per",
    "rate",
    "every",
    "salt",
    "fields",
    "within",
    "edits",
]


@pytest.mark.proves("CFG-071")
@given(
    st.sampled_from(list(KINDS)),
    st.dictionaries(st.sampled_from(KEYS), st.one_of(JSON, LIKELY), max_size=5),
    st.sampled_from([["app.x"], ["*"], ["weft.metric"]]),
)
def test_any_table_gives_a_filter_that_works_or_mistakes(kind: str, rest: dict[str, Any], types: list[str]) -> None:
    specs, mistakes = parse_filters([{"name": "x", "kind": kind, "types": types, **rest}])
    assert all(text[0] == "E" and text[1:3].isdecimal() and ": " in text for text in mistakes)
    if not mistakes:
        of = FilterLink(specs[0])
        of.offer(MessageView(parcel(b'[{"a":1,"name":"x"},{"a":"b"},{}]')), at(0))
        assert 3 == of.counters.offered
        assert of.counters.passed + of.counters.dropped == 3


def test_an_expression_may_be_as_long_as_promised() -> None:
    source = "f.a == '" + "x" * (limits.EXPRESSION_BYTES_MAX - 9) + "'"
    assert [[], 1] == [
        parse_filters([{"name": "x", "kind": "match", "when": source}])[1],
        len(parse_filters([{"name": "x", "kind": "match", "when": source + " "}])[1]),
    ]
