"""What a query or a watch looks for (CAT-035, CAT-041; P7)."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from weft.cores.catalog import filters, limits
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.states import State

VECTORS = Path(__file__).parents[1] / "vectors" / "catalog-computed.jsonl"
TOLD = [json.loads(line) for line in VECTORS.read_text("utf-8").splitlines()]


def instance_of(
    name: str = "a", *, state: State = State.ACTIVE, health: str = "unknown", net: str = "", **record: Any
) -> Instance:
    instance = Instance(name, "1", "10.0.0.1", "10.0.0.1")
    instance.state, instance.health, instance.net, instance.record = state, health, net, record
    return instance


def parse(wanted: dict[str, Any]) -> filters.Filter:
    return filters.parse(json.dumps(wanted).encode())


# Topics


@pytest.mark.proves("CAT-041")
@pytest.mark.parametrize(
    "line", [line for line in TOLD if line["id"].startswith("filter-")], ids=lambda line: line["id"]
)
def test_equal_filters_have_equal_topics(line: dict[str, Any]) -> None:
    found = parse(line["means"]["filter"])
    assert line["means"]["canonical"] == found.canonical.decode() == filters.canonical(found).decode()
    assert line["means"]["topic"] == found.topic


def test_a_filter_says_which_name_and_which_tag_all_have_that_it_means() -> None:
    found = [parse(wanted) for wanted in ({}, {"name": "a", "tags": ["x", "y"]}, {"name": "a*", "tags": []})]
    assert [(None, None), ("a", "x"), (None, None)] == [(one.exact_name, one.first_tag) for one in found]


# Matching


def fits(pattern: str, name: str) -> bool:
    """As one would explain it; slow."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(fits(pattern[1:], name[at:]) for at in range(len(name) + 1))
    return bool(name) and pattern[0] in ("?", name[0]) and fits(pattern[1:], name[1:])


LETTERS = "ab.ü\n"
NAMES = st.text(LETTERS, max_size=7)
PATTERNS = st.text(LETTERS + "**?", max_size=7)


@pytest.mark.proves("CAT-035")
@examples(100)
@given(PATTERNS, NAMES)
def test_a_glob_fits_what_it_is_explained_to_fit(pattern: str, name: str) -> None:
    assert fits(pattern, name) == filters.glob(pattern)(name)


@pytest.mark.parametrize("pattern", ["[a]", "a|b", "a+", "(a)", "\\a", "a$", "^a", "{1}", ".", "a#b c"])
def test_only_stars_and_question_marks_are_special(pattern: str) -> None:
    assert (True, True, False) == (
        filters.glob(pattern)(pattern),
        filters.glob(f"*{pattern}?")(f"x{pattern}y"),
        filters.glob(pattern)("a") and pattern != "a",
    )


class SlowError(Exception):
    """It does not end in its time of work."""


@contextmanager
def working_at_most(seconds: float) -> Iterator[None]:
    """Counts work of this process only, not what others do on the machine."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SlowError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def check_globs_of_many_stars() -> None:
    with working_at_most(0.2):  # what tries every place again needs longer than the sun has
        for pattern in ("a*" * 127 + "b", "*" * 255, "*a" * 127 + "?", "*?a" * 85, "?*" * 127 + "b"):
            filters.parse(json.dumps({"name": pattern}).encode()).matches(instance_of("a" * 255))


@pytest.mark.proves("CAT-035")
def test_a_glob_of_many_stars_takes_no_longer_than_another() -> None:
    check_globs_of_many_stars()


def test_a_glob_that_tries_every_place_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(pattern: str) -> Callable[[str], bool]:
        import re

        match = re.compile("(?s:" + pattern.replace("?", ".").replace("*", ".*?") + r")\Z").match
        return lambda name: match(name) is not None

    monkeypatch.setattr(filters, "glob", planted)
    with pytest.raises(SlowError):
        check_globs_of_many_stars()


def is_meant(wanted: dict[str, Any], instance: Instance) -> bool:
    """A naive matcher: each condition as CAT-035 says it."""
    words = {State.ACTIVE: "active", State.SUSPECT: "suspect", State.INACTIVE: "inactive"}
    has = instance.record
    answers = {
        "name": lambda value: fits(value, instance.name),
        "tags": lambda value: all(tag in has.get("tags", []) for tag in value),
        "any_tags": lambda value: any(tag in has.get("tags", []) for tag in value),
        "metadata": lambda value: all(has.get("metadata", {}).get(key) == text for key, text in value.items()),
        "state": lambda value: words[instance.state] in value,
        "health": lambda value: instance.health in value,
        "net": lambda value: instance.net in value,
        "function": lambda value: has.get("function") in value,
    }
    return all(answers[key](value) for key, value in wanted.items())


TAGS = st.lists(st.sampled_from("xyz"), max_size=3)
PAIRS = st.dictionaries(st.sampled_from("kl"), st.sampled_from("12"), max_size=2)
HEALTHS = st.sampled_from(["passing", "unknown", "warning", "critical"])
NETS = st.sampled_from(["", "blue", "green"])
FUNCTIONS = st.sampled_from(["read", "write"])
STATES = [State.ACTIVE, State.SUSPECT, State.INACTIVE]
WANTED = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text("ab*?", max_size=3),
        "tags": TAGS,
        "any_tags": TAGS,
        "metadata": PAIRS,
        "state": st.lists(st.sampled_from(["active", "suspect", "inactive"]), max_size=2),
        "health": st.lists(HEALTHS, max_size=2),
        "net": st.lists(NETS, max_size=2),
        "function": st.lists(FUNCTIONS, max_size=2),
    },
)
RECORDS = st.fixed_dictionaries({}, optional={"tags": TAGS, "metadata": PAIRS, "function": FUNCTIONS})


INSTANCES = st.builds(
    lambda name, state, health, net, record: instance_of(name, state=state, health=health, net=net, **record),
    st.text("ab", max_size=3),
    st.sampled_from(STATES),
    HEALTHS,
    NETS,
    RECORDS,
)


@pytest.mark.proves("CAT-035")
@examples(100)
@given(WANTED, INSTANCES)
def test_a_filter_means_what_a_naive_matcher_means(wanted: dict[str, Any], instance: Instance) -> None:
    found = parse(wanted)
    assert is_meant(wanted, instance) == found.matches(instance)
    if found.matches(instance):
        assert found.exact_name in (None, instance.name)
        assert found.first_tag is None or found.first_tag in instance.record["tags"]


@pytest.mark.proves("CAT-035")
@pytest.mark.parametrize(
    "wanted, expected",
    [
        ({"tags": ["y"], "metadata": {"k": "1"}}, True),
        ({"tags": ["y", "z"]}, False),
        ({"any_tags": ["y", "z"]}, True),
        ({"any_tags": []}, False),
        ({"tags": [], "metadata": {}}, True),
        ({"metadata": {"k": "2"}}, False),
        ({"metadata": {"k": "1", "m": ""}}, False),
        ({"name": "the*", "function": "read"}, True),
        ({"name": "the?", "function": "read"}, False),
        ({"state": []}, False),
    ],
)
def test_an_instance_may_have_more_than_is_asked_for(wanted: dict[str, Any], expected: bool) -> None:
    instance = instance_of("thermo", tags=["x", "y"], metadata={"k": "1", "l": "2"}, function="read")
    assert expected == parse(wanted).matches(instance)


def test_one_word_is_as_good_as_a_list_of_one() -> None:
    instance = instance_of(state=State.SUSPECT, health="warning", net="blue", function="read")
    words = {"state": "suspect", "health": "warning", "net": "blue", "function": "read"}
    assert [True] * 4 == [parse({key: word}).matches(instance) for key, word in words.items()]
    assert [False] * 2 == [parse({key: word}).matches(instance) for key, word in {"net": "", "state": "active"}.items()]


def test_no_filter_means_everything() -> None:
    assert (True, b"{}") == ((found := filters.parse(b"")).matches(instance_of()), found.canonical)


# Refusing


@pytest.mark.proves("CAT-035", "CAT-034")
@pytest.mark.parametrize(
    "said",
    [
        *(b"[]", b"1", b"{", b"null", b'{"x":1}', b'{"name":"a","Name":"a"}', b'{"name":1}', b'{"name":null}'),
        *(b'{"tags":"a"}', b'{"tags":[1]}', b'{"any_tags":{}}', b'{"metadata":[]}', b'{"metadata":{"a":1}}'),
        *(
            b'{"state":"up"}',
            b'{"state":["active","ACTIVE"]}',
            b'{"health":"ill"}',
            b'{"net":1}',
            b'{"function":[null]}',
        ),
        *(b'{"name":"%b"}' % (b"a" * 256), b'{"tags":[%b"x"]}' % (b'"x",' * 64), b'{"net":"%b"}' % (b"a" * 70_000)),
        b'{"metadata":%b}' % json.dumps({str(number): "" for number in range(65)}).encode(),
    ],
)
def test_what_is_no_filter_is_refused(said: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        filters.parse(said)
    assert "bad-argument" == caught.value.code


def test_a_filter_takes_as_many_metadata_as_a_service_may_have() -> None:
    metadata = {str(number): "" for number in range(limits.METADATA_MAX)}
    assert parse({"metadata": metadata}).matches(instance_of(metadata=metadata))


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.proves("CAT-081")
@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from([*filters.CONDITIONS, "x"]), TREES, max_size=3))
def test_whatever_is_asked_for_is_a_filter_or_refused(wanted: dict[str, Any]) -> None:
    try:
        found = parse(wanted)
    except Refusal as refused:
        assert "bad-argument" == refused.code
    else:
        assert isinstance(found.matches(instance_of("a", tags=["x"], metadata={"k": "1"})), bool)
