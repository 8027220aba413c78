"""The kinds of filters against vectors, oracles and each other: batches, replays, two packages for CEL (CHN-061..066)."""

import json
from binascii import unhexlify
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import celpy
import pytest
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError
from hypothesis import given
from hypothesis import strategies as st

from tests.chains.views import APP, T0, at, link, parcel, passed, view
from tests.examples import examples
from weft.base.now import SECOND, Now
from weft.cores.chains import limits
from weft.cores.chains.expression import Expression
from weft.cores.chains.filters import Judgement, Sample, mixed
from weft.cores.chains.links import MAKERS, FilterLink
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.settings import parse_filters
from weft.cores.chains.states import Verdict
from weft.cores.chains.viewed import Viewed

LINES = (Path(__file__).parents[1] / "vectors" / "chains-filters.jsonl").read_text("utf-8").splitlines()
VECTORS = {vector["id"]: vector["means"] for vector in map(json.loads, LINES)}


# Vectors


def identity_of(key: str) -> dict[str, Any]:
    raw = unhexlify(key)
    return {"origin": raw[:16], "era": int.from_bytes(raw[16:24], "big"), "sequence": int.from_bytes(raw[24:], "big")}


@pytest.mark.proves("CHN-062")
@pytest.mark.parametrize("rate, keeps", [(0.25, "keep_25"), (0.5, "keep_50")])
def test_sampling_by_identity_is_that_of_the_vector(rate: float, keeps: str) -> None:
    of = link(kind="sample", rate=rate)
    for row in VECTORS["sample-mid"]["rows"]:
        seen = view({"a": 1}, **identity_of(row["key"]))
        assert [unhexlify(row["key"])] == seen.identities([0], b"")
        assert row["hash"] == mixed(crc32(unhexlify(row["key"]), crc32(b"\0")))
        assert row[keeps] is (of.offer(seen, at(0)) is Verdict.PASSED), row


@pytest.mark.proves("CHN-062")
def test_a_share_ends_exactly_at_its_hash() -> None:
    row = VECTORS["sample-mid"]["rows"][0]
    found = [
        passed(link(kind="sample", rate=(row["hash"] + more) / (1 << 32)), {}, **identity_of(row["key"]))
        for more in (0, 1)
    ]
    assert [None, {}] == found
    row = VECTORS["sample-fields"]["rows"][0]
    record = dict(zip(("node", "name"), row["fields"], strict=True))
    table: dict[str, Any] = {"kind": "sample", "salt": "night", "key": ["node", "name"]}
    found = [passed(link(**table, rate=(row["hash"] + more) / (1 << 32)), record) for more in (0, 1)]
    assert [None, record] == found


@pytest.mark.proves("CHN-062")
def test_sampling_by_fields_is_that_of_the_vector() -> None:
    of = link(kind="sample", rate=0.5, salt="night", key=["node", "name"])
    for row in VECTORS["sample-fields"]["rows"]:
        node, name = row["fields"]
        seen = view({"name": name} if node is None else {"node": node, "name": name}, "msgpack")
        assert [unhexlify(row["key"])] == seen.keys(("node", "name"), [0])
        assert row["hash"] == mixed(crc32(unhexlify(row["key"]), crc32(b"night\0")))
        assert row["keep_50"] is (of.offer(seen, at(0)) is Verdict.PASSED), row


@pytest.mark.proves("CHN-064")
def test_dedupe_is_that_of_the_vector() -> None:
    means = VECTORS["dedupe"]
    of = link(kind="dedupe", fields=["k"], within=means["within"], max_keys=means["max_keys"])
    found = [passed(of, {"k": key}, at(second * SECOND)) is not None for second, key, _ in means["rows"]]
    assert [passes for _, _, passes in means["rows"]] == found


@pytest.mark.proves("CHN-066")
@pytest.mark.parametrize("is_batched", [True, False])
def test_edges_of_messages_are_those_of_the_vector(is_batched: bool) -> None:
    means = VECTORS["threshold-edge"]
    of = link(kind="threshold", above=means["above"], clear=means["clear"], mode="edge", **{"for": means["hold"]})
    records = [{"t": T0 + second * SECOND, "value": value} for second, value, _ in means["rows"]]
    expected = [record for record, (_, _, passes) in zip(records, means["rows"], strict=True) if passes]
    if is_batched:
        assert expected == passed(of, records)
    else:
        assert expected == [found for record in records if (found := passed(of, record)) is not None]


@pytest.mark.proves("CHN-066")
def test_a_record_that_does_not_say_its_time_is_as_old_as_its_message() -> None:
    means = VECTORS["threshold-edge"]
    of = link(kind="threshold", above=means["above"], clear=means["clear"], mode="edge", **{"for": means["hold"]})
    found = [passed(of, {"value": value}, at=T0 + second * SECOND) for second, value, _ in means["rows"]]
    assert [passes for _, _, passes in means["rows"]] == [record is not None for record in found]


@pytest.mark.proves("CHN-063")
@pytest.mark.parametrize("name", ["rate-5", "rate-slow"])
def test_rate_limits_of_messages_are_those_of_the_vector(name: str) -> None:
    means = VECTORS[name]
    per = f"{means['per_ns'] // 1_000_000}ms"
    of = link(kind="rate-limit", count=means["count"], per=per, burst=means["burst"])
    found = [passed(of, {}, at(ns)) is not None for ns, _, _ in means["rows"]]
    assert [passes for _, passes, _ in means["rows"]] == found


CONTEXT = VECTORS["cel"]["context"]


class Stated(MessageView):
    """A message of which the facts are those of a vector."""

    def facts(self, index: int, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: CONTEXT[name] for name in names}


def ours(source: str) -> object:
    true, erred = Expression(source, CONTEXT["dir"]).parted(Stated(parcel(json.dumps(CONTEXT["f"]).encode())), [0])
    return "error" if erred else bool(true)


def theirs(source: str) -> object:
    environment = celpy.Environment()
    try:
        found = environment.program(environment.compile(source)).evaluate(
            {name: json_to_cel(value) for name, value in CONTEXT.items()}
        )
    except CELEvalError:
        return "error"
    return bool(found) if isinstance(found, celpy.celtypes.BoolType) else "error"


@pytest.mark.proves("CHN-061")
@pytest.mark.parametrize("source, expected", VECTORS["cel"]["rows"])
def test_two_packages_agree_on_every_expression_of_the_vector(source: str, expected: object) -> None:
    if expected == "not-bool":
        expected = "error"
    assert (expected, expected) == (ours(source), theirs(source))


def test_our_own_half_of_the_library_is_loaded_without_its_command_line() -> None:
    import subprocess
    import sys

    loads = "from weft.cores.chains.expression import mistakes; assert mistakes('a.b == 1') != []; import sys; "
    script = f"{loads} print([name for name in sys.modules if name.startswith(('typer', 'prompt_toolkit'))])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert "[]" == done.stdout.strip()


# Sampling


@pytest.mark.proves("CHN-062")
@pytest.mark.parametrize("rate, expected", [(0, 0), (0.1, 105), (0.5, 491), (1, 1_000)])
def test_a_rate_keeps_about_its_share(rate: float, expected: int) -> None:
    of = link(kind="sample", rate=rate)
    kept = [n for n in range(1, 1_001) if passed(of, {}, sequence=n) is not None]
    assert abs(expected - len(kept)) <= (40 if 0 < rate < 1 else 0)


@pytest.mark.proves("CHN-062")
def test_every_keeps_the_first_of_each_n_by_key() -> None:
    records = [{"host": host, "n": n} for n, host in enumerate("aababaab")]
    assert [0, 3, 6] == [r["n"] for r in passed(link(kind="sample", every=3), records)]
    assert [0, 2, 3, 6, 7] == [r["n"] for r in passed(link(kind="sample", every=2, key=["host"]), records)]


@pytest.mark.proves("CHN-062")
def test_two_salts_decide_independently() -> None:
    kept = [
        {n for n in range(400) if passed(link(kind="sample", rate=0.5, salt=salt), {}, sequence=n) is not None}
        for salt in ("a", "b")
    ]
    assert 60 < len(kept[0] & kept[1]) < 140


def test_counts_of_the_oldest_key_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEYS_MAX", 1)
    records = [{"k": key} for key in "aaba"]
    assert [{"k": "a"}, {"k": "b"}, {"k": "a"}] == passed(link(kind="sample", every=2, key=["k"]), records)


def test_a_long_key_is_remembered_by_its_digest() -> None:
    of = link(kind="dedupe", fields=["k"], within="1h")
    texts = ["x" * 9_999 + end for end in "aab"]
    assert [True, False, True] == [passed(of, {"k": text}) is not None for text in texts]
    assert [64] * 2 == [len(key) for key in of.filter._passed]  # type: ignore[attr-defined]  # a Dedupe


# Properties

TABLES: list[dict[str, Any]] = [
    {"kind": "match", "where": {"n": {"gt": 0}}},
    {"kind": "match", "when": "f.n > 0 && f.host == 'a'", "on_error": "drop"},
    {"kind": "sample", "rate": 0.5, "key": ["host", "n"]},
    {"kind": "sample", "every": 3, "key": ["host"]},
    {"kind": "sample", "every": 2},
    {"kind": "rate-limit", "count": 2, "per": "1s", "burst": 3, "key": ["host"]},
    {"kind": "dedupe", "fields": ["host", "n"], "within": "1s", "max_keys": 3},
    {"kind": "threshold", "field": "n", "above": 0},
    {"kind": "threshold", "field": "n", "above": 0, "clear": -1, "for": "2s", "mode": "edge", "key": ["host"]},
    {"kind": "edit", "edits": [["rename", "n", "m"], ["set", "x.y", 1], ["replace", "host", "a", "b"]]},
    {"kind": "edit", "edits": [["set", "n.deep", 1]], "where": {"host": "a"}, "on_error": "drop"},
]
RECORDS = st.lists(
    st.builds(
        lambda second, host, n: {"t": T0 + second * SECOND, "host": host, **({} if n is None else {"n": n})},
        st.integers(0, 9),
        st.sampled_from("ab"),
        st.one_of(st.none(), st.integers(-3, 3), st.just("text")),
    ),
    min_size=1,
    max_size=20,
)


def left(of: FilterLink, groups: list[list[dict[str, Any]]], fmt: str) -> list[dict[str, Any]]:
    found = [passed(of, group if len(group) > 1 else group[0], fmt=fmt) for group in groups]
    return [record for what in found if what for record in (what if isinstance(what, list) else [what])]


@pytest.mark.prove("many histories")
@pytest.mark.proves("CHN-060")
@examples(300)
@given(
    table=st.sampled_from(TABLES), records=RECORDS, size=st.integers(2, 20), fmt=st.sampled_from(["json", "msgpack"])
)
def test_batched_messages_are_as_single_ones(
    table: dict[str, Any], records: list[dict[str, Any]], size: int, fmt: str
) -> None:
    batches = [records[start : start + size] for start in range(0, len(records), size)]
    assert left(link(**table), [[record] for record in records], fmt) == left(link(**table), batches, fmt)


MESSAGES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 50), st.integers(-3, 3)),
    min_size=1,
    max_size=30,
    unique_by=lambda m: m[:2],
)
SAMPLES: list[dict[str, Any]] = [{"rate": 0.5}, {"rate": 0.3, "salt": "s"}, {"rate": 0.5, "key": ["n"]}]


def decided(of: FilterLink, messages: list[tuple[int, int, int]]) -> dict[tuple[int, int, int], bool]:
    return {
        message: passed(of, {"n": message[2]}, origin=bytes([message[0]]) * 16, sequence=message[1]) is not None
        for message in messages
    }


def check_replay(table: dict[str, Any], messages: list[tuple[int, int, int]]) -> None:
    """The same messages in another order, at another node or after a restart: the same decisions."""
    first = decided(link(kind="sample", **table), messages)
    again = link(kind="sample", **table)
    for order in (messages[::-1], messages, messages[::2]):
        for message, keeps in decided(again, order).items():
            assert first[message] is keeps, message


@pytest.mark.proves("CHN-062")
@pytest.mark.parametrize("table", SAMPLES)
@given(messages=MESSAGES)
def test_a_replay_is_sampled_alike(table: dict[str, Any], messages: list[tuple[int, int, int]]) -> None:
    check_replay(table, messages)


class SampleByChance(Sample):
    """The planted bug: the share is right, and nothing else is."""

    dice = Random(14)  # a test

    def judge(self, view: Viewed, seen: list[int], now: Now) -> Judgement:
        return Judgement([index for index in seen if self.dice.random() >= (self._options.rate or 0)], [])


def test_canary_14_sampling_by_chance_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MAKERS, "sample", SampleByChance)
    with pytest.raises(AssertionError):
        check_replay({"rate": 0.5}, [(0, n, 0) for n in range(1, 30)])


@pytest.mark.proves("CHN-060")
@given(table=st.sampled_from(TABLES), records=RECORDS)
def test_the_same_messages_at_the_same_times_are_decided_alike(
    table: dict[str, Any], records: list[dict[str, Any]]
) -> None:
    runs = []
    for _ in range(2):
        of = link(**table)
        runs.append([passed(of, record, at(n * SECOND // 2)) for n, record in enumerate(records)])
    assert runs[0] == runs[1]


@pytest.mark.proves("CHN-064")
def test_who_passed_longest_ago_is_forgotten_first_not_who_came_first() -> None:
    of = link(kind="dedupe", fields=["k"], within=10, max_keys=2)
    times = [(0, "a", True), (5, "b", True), (10, "a", True), (11, "c", True), (12, "a", False), (13, "b", True)]
    found = [passed(of, {"k": key}, at(second * SECOND)) is not None for second, key, _ in times]
    assert [passes for _, _, passes in times] == found


@pytest.mark.prove("many histories")
@pytest.mark.proves("CHN-064")
@examples(300)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=10, max_size=40),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_dedupe_is_that_of_an_oracle(arrivals: list[tuple[int, int]], within: int, max_keys: int) -> None:
    of = link(kind="dedupe", fields=["k"], within=within, max_keys=max_keys)
    passes: list[tuple[int, int]] = []  # when, which; the oracle keeps all of them
    second = 0
    for gap, key in arrivals:
        second += gap
        latest = {which: when for when, which in passes}
        remembered = sorted(latest.items(), key=lambda item: max(n for n, p in enumerate(passes) if p[1] == item[0]))
        last = dict(remembered[-max_keys:]).get(key)
        expected = last is None or second - last >= within
        if expected:
            passes.append((second, key))
        assert expected is (passed(of, {"k": key}, at(second * SECOND)) is not None)


@pytest.mark.proves("CHN-063")
@given(st.lists(st.tuples(st.integers(0, 700), st.integers(0, 2)), max_size=40), st.integers(1, 4), st.integers(1, 4))
def test_buckets_by_key_are_those_of_an_oracle(arrivals: list[tuple[int, int]], count: int, burst: int) -> None:
    of = link(kind="rate-limit", count=count, per="1s", burst=burst, key=["k"])
    level: dict[int, int] = {}
    since: dict[int, int] = {}
    now_ms = 0
    for gap, key in arrivals:  # in thousandths of a token, to which a millisecond adds `count`
        now_ms += gap
        level[key] = min(burst * 1_000, level.get(key, burst * 1_000) + (now_ms - since.get(key, now_ms)) * count)
        since[key] = now_ms
        expected = level[key] >= 1_000
        level[key] -= 1_000 if expected else 0
        assert expected is (passed(of, {"k": key}, at(now_ms * 1_000_000)) is not None)


PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(1 << 63), (1 << 64) - 1),
        st.floats(),
        st.text(max_size=9),
        st.binary(max_size=9),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(["n", "host", "x", "t"]), st.text(max_size=3)), inner, max_size=4),
        st.dictionaries(
            st.one_of(st.integers(0, 9), st.binary(max_size=2), st.none(), st.booleans()), inner, max_size=2
        ),
    ),
    max_leaves=12,
)
SALAD = st.one_of(
    st.binary(max_size=60),
    PLAIN.map(lambda value: view(value, "msgpack").parcel.frames[0]),
    PLAIN.map(lambda value: view([{"n": value, "host": value}, {"t": value}], "msgpack").parcel.frames[0]),
    st.builds(
        lambda code, data: b"\x81\xa1n\xc7" + bytes([len(data), code]) + data,
        st.integers(0, 255),
        st.binary(max_size=16),
    ),
    st.sampled_from([b"\x81\xa1n" + b"\x91" * depth + b"\x01" for depth in (10, 100, 500, 900, 990, 1_100, 5_000)]),
    st.sampled_from(
        [b'{"n":' + b"[" * depth + b"1" + b"]" * depth + b"}" for depth in (10, 100, 500, 900, 990, 5_000)]
    ),
    st.sampled_from(
        [b'{"n":1e999}', b'{"n":123456789012345678901234567890}', b'{"t":1e400}', b'{"n":"\xff"}', b"[{}", b"[]", b"{}"]
    ),
)
KEYED: list[dict[str, Any]] = [
    {"kind": "edit", "edits": [["hash", "n"], ["mask", "host"], ["set", "t.x.y", 1], ["rename", "x", "n.q"]]},
    {"kind": "match", "when": "size(f) > 1 || f.n.exists(x, x == f.host)"},
    {"kind": "match", "when": "f.n == f.host || f.t > 1", "on_error": "drop"},
    {
        "kind": "match",
        "where": {"n": {"in": [1, "a", True]}, "host": {"ne": 2.5}, "t": {"lt": "x"}},
        "on_error": "fail",
    },
    {"kind": "forward", "dir": "in", "when": "f.n == 1"},
]


@pytest.mark.proves("CHN-060")
@examples(500)
@given(
    table=st.sampled_from(TABLES + KEYED),
    payload=SALAD,
    fmt=st.sampled_from(["json", "msgpack", "raw", "xml", "strange"]),
)
def test_any_bytes_give_a_verdict(table: dict[str, Any], payload: bytes, fmt: str) -> None:
    of = link(**table)
    seen = MessageView(parcel(payload, fmt, b"more"))
    verdict = of.takes(seen) if table["kind"] == "forward" else of.offer(seen, at(0))
    assert verdict is None or verdict in (Verdict.PASSED, Verdict.CHANGED, Verdict.DROPPED, Verdict.FAILED)
    frames = seen.close()
    assert (2, b"more") == (len(frames), frames[1])
    if verdict is Verdict.CHANGED:
        assert MessageView(parcel(frames[0], fmt)).is_readable
        assert of.counters.offered == of.counters.passed + of.counters.dropped


def test_a_filter_of_messages_may_stand_among_samples_as_well() -> None:
    specs, mistakes = parse_filters([{"name": "x", "kind": "match", "types": ["*"], "where": {"host": "a"}}])
    assert ([], True) == (mistakes, FilterLink(specs[0]).covers(APP))
