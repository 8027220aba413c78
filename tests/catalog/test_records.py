"""What a service says of itself (CAT-009, CAT-013..018, limits of 2.7)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.cores.catalog import limits, records
from weft.cores.catalog.records import Address
from weft.cores.catalog.refusals import Refusal

VECTORS = Path(__file__).parents[1] / "vectors" / "catalog-computed.jsonl"
TOLD = [json.loads(line) for line in VECTORS.read_text("utf-8").splitlines()]
DENIED = [line for line in TOLD if line["id"].startswith("deny-")]


def refusal(attempt: Callable[[], object]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        attempt()
    return caught.value


def code(attempt: Callable[[], object]) -> str:
    return refusal(attempt).code


def body(**keys: Any) -> bytes:
    return json.dumps(keys).encode()


def read(**keys: Any) -> records.Registration:
    return records.registration(body(**{"name": "a", **keys}))


def nested(depth: int) -> bytes:
    return b'{"x":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


# JSON


@pytest.mark.proves("CAT-009", "CAT-080")
@pytest.mark.parametrize("line", DENIED, ids=lambda line: str(line["id"]))
def test_what_the_vectors_deny_is_denied_with_their_code(line: dict[str, Any]) -> None:
    said = bytes.fromhex(line["frames"][3])
    assert line["means"]["code"] == code(lambda: records.registration(said))


@pytest.mark.proves("CAT-009")
@pytest.mark.parametrize(
    "said",
    [
        *(b"", b" ", b"{", b"[]", b"1", b'"a"', b"null", b"{}x", b"{} {}", b'{"a":1,}', b"{'a':1}", b"{a:1}"),
        *(b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}', b'{"a":1e400}', b'{"a":-1e400}', b'{"a":01}'),
        *(b'{"a":9223372036854775808}', b'{"a":[{"b":-9223372036854775809}]}', b'{"a":' + b"9" * 5000 + b"}"),
        *(b'{"a":"\xff"}', b'{"\xff":1}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\\ud800"}', b'{"a":"\\ud800x"}'),
        *(b"\xef\xbb\xbf{}", '{"a":1}'.encode("utf-16"), b'{"a":"\n"}', b"\0{}", nested(33), nested(30_000)),
        *(b'{"y":[{}],' + nested(33)[1:],),
        *(b'{"a":' * 33 + b"1" + b"}" * 33,),
    ],
)
def test_what_is_no_json_object_within_the_limits_is_refused(said: bytes) -> None:
    assert "bad-json" == code(lambda: records.parse_object(said))


@pytest.mark.proves("CAT-009")
@pytest.mark.parametrize(
    "said, expected",
    [
        (b" {} ", {}),
        (b'{"a":1,"b":2,"a":{"c":3,"c":4}}', {"a": {"c": 4}, "b": 2}),
        (b'{"a":9223372036854775807,"b":-9223372036854775808}', {"a": 2**63 - 1, "b": -(2**63)}),
        (b'{"a":12345678901234567890.0,"b":1e308}', {"a": 12345678901234567890.0, "b": 1e308}),
        (b'{"a":"12345678901234567890"}', {"a": "12345678901234567890"}),
        (b'{"a":"\\ud83d\\ude00 \xc3\xbc"}', {"a": "😀 ü"}),
        (nested(32), json.loads(nested(32))),
        (b'{"y":[{}],' + nested(32)[1:], {"y": [{}], **json.loads(nested(32))}),
        (b'{"a":[' + b"[]," * 99 + b"{}]}", {"a": [[]] * 99 + [{}]}),
    ],
)
def test_objects_within_the_limits_are_read_and_the_last_of_equal_keys_wins(
    said: bytes, expected: dict[str, Any]
) -> None:
    assert expected == records.parse_object(said)


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


def numbers_of(value: object) -> list[int]:
    if isinstance(value, dict | list):
        return [
            found for inner in (value.values() if isinstance(value, dict) else value) for found in numbers_of(inner)
        ]
    return [value] if type(value) is int else []


EDGES = [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**18, 10**30]
LEAVES = st.none() | st.booleans() | st.sampled_from(EDGES) | st.integers() | st.text(max_size=5)
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))


@settings(max_examples=30)
@given(TREES, st.integers(0, 40))
def test_an_object_is_read_exactly_if_it_is_flat_enough_and_its_numbers_fit(inner: object, more: int) -> None:
    for _ in range(more):
        inner = [inner]
    value = {"x": inner}
    is_good = depth_of(value) <= 32 and all(-(2**63) <= number < 2**63 for number in numbers_of(value))
    said = json.dumps(value).encode()
    actual = records.parse_object(said) if is_good else code(lambda: records.parse_object(said))
    assert (value if is_good else "bad-json") == actual


# Registering


@pytest.mark.proves("CAT-013")
def test_a_registration_keeps_all_that_its_sender_said_but_the_name() -> None:
    line = next(line for line in TOLD if line["id"] == "msg-register")
    found = records.registration(bytes.fromhex(line["frames"][3]))
    expected = line["means"]["record"]
    assert (expected.pop("name"), "t1", expected) == (found.name, found.id, found.record)
    assert ({"x": [1, None], "tag": 0}, 1_000_000_000, "unknown") == (
        (other := read(x=[1, None], tag=0)).record,
        other.interval_ns,
        other.health,
    )


FOREIGN = [json.loads(line) for line in VECTORS.with_name("catalog-hermes.jsonl").read_text("utf-8").splitlines()]
REGISTERED = [line for line in FOREIGN if line["means"].get("command") == "REGISTRATION" and "frames" in line]


@pytest.mark.proves("CAT-013")
@pytest.mark.parametrize("line", REGISTERED, ids=lambda line: str(line["id"]))
def test_what_existing_nodes_say_of_themselves_is_taken_if_they_say_their_name(line: dict[str, Any]) -> None:
    said = dict(line["means"]["body"])
    frame = next(frame for frame in map(bytes.fromhex, line["frames"]) if frame.startswith(b"{"))
    if "name" not in said:
        assert "missing-field" == code(lambda: records.registration(frame))
        return
    found = records.registration(frame)
    assert (said.pop("name"), said) == (found.name, found.record)


GOOD: list[dict[str, Any]] = [
    *({"id": "a b"}, {"ip": "10.0.0.4"}, {"ip": "::1"}, {"ip": "host.lan"}, {"ip": ""}, {"port": 1}, {"port": 65535}),
    *({"function": ""}, {"heartbeat": 50}, {"heartbeat": 3_600_000}, {"topics": None}, {"topics": []}),
    *({"interfaces": {}}, {"interfaces": {"pub": {"ip": "10.0.0.4", "port": 1, "type": "PUB"}}}),
    *({"tags": []}, {"metadata": {"room": "küche"}}, {"version": "1.2"}, {"weight": 0}, {"weight": 65535}),
    *({"health": "critical"}, {"checks": [{"tcp": ""}]}, {"caps": ["tap"]}, {"beacon": False}),
    *({"tags": ["ä" * 64] * 64}, {"metadata": {str(number): "x" * 1024 for number in range(60)}}),
]
BAD = [
    *(
        {"id": 1},
        {"id": ""},
        {"id": "a@b"},
        {"id": "Error"},
        {"ip": 1},
        {"ip": None},
        {"ip": "a\nb"},
        {"ip": "x" * 256},
    ),
    *({"port": 0}, {"port": 65536}, {"port": 1.0}, {"port": "1"}, {"port": True}, {"function": 1}, {"function": None}),
    *({"heartbeat": 49}, {"heartbeat": 3_600_001}, {"heartbeat": 100.0}, {"heartbeat": "100"}, {"topics": "a"}),
    *({"topics": [1]}, {"interfaces": []}, {"interfaces": {"pub": 1}}, {"interfaces": {"pub": {"ip": "1.2.3.4"}}}),
    *({"interfaces": {"pub": {"ip": 1, "port": 1}}}, {"interfaces": {"pub": {"ip": "1.2.3.4", "port": 0}}}),
    *({"tags": "a"}, {"tags": [1]}, {"metadata": []}, {"metadata": {"a": 1}}, {"version": 1}, {"weight": -1}),
    *({"weight": 65536}, {"weight": 1.5}, {"weight": True}, {"health": "ill"}, {"health": []}, {"checks": {}}),
    *({"checks": [1]}, {"caps": "tap"}, {"caps": [1]}, {"beacon": 1}, {"beacon": None}),
]


@pytest.mark.proves("CAT-013")
@pytest.mark.parametrize("keys", GOOD, ids=lambda keys: str(keys)[:40])
def test_known_keys_of_the_right_type_are_taken(keys: dict[str, Any]) -> None:
    assert keys == read(**keys).record


@pytest.mark.proves("CAT-013", "CAT-080")
@pytest.mark.parametrize("keys", BAD, ids=lambda keys: str(keys)[:40])
def test_known_keys_of_a_wrong_type_are_refused_by_name(keys: dict[str, Any]) -> None:
    found = refusal(lambda: read(**keys, unknown=None))
    assert ("bad-field", tuple(keys), "a") == (found.code, found.fields, found.service)


def test_one_denial_lists_all_fields_that_are_wrong() -> None:
    assert ("port", "weight") == refusal(lambda: read(port=0, weight=-1, function="f")).fields


@pytest.mark.proves("CAT-013")
@pytest.mark.parametrize(
    "keys, missing",
    [
        ({}, ("name", "ip", "port", "function", "heartbeat")),
        ({"name": "a", "ip": "1.2.3.4", "function": "f"}, ("port", "heartbeat")),
        ({"name": "a", "interfaces": {"router": {"ip": "1.2.3.4", "port": 1}}}, ("function", "heartbeat")),
        (
            {"name": "a", "interfaces": {"pub": {"ip": "1.2.3.4", "port": 1}}, "function": "f"},
            ("ip", "port", "heartbeat"),
        ),
    ],
)
def test_a_strict_broker_names_all_that_misses_at_once(keys: dict[str, Any], missing: tuple[str, ...]) -> None:
    found = refusal(lambda: records.registration(body(**keys), is_strict=True))
    assert ("missing-field", missing) == (found.code, found.fields)


@pytest.mark.proves("CAT-013")
def test_a_strict_broker_takes_the_address_from_the_router_interface() -> None:
    keys = {"interfaces": {"router": {"ip": "1.2.3.4", "port": 1}}, "function": "f", "heartbeat": 1000}
    assert keys == records.registration(body(name="a", **keys), is_strict=True).record
    assert ("name",) == refusal(lambda: records.registration(b"{}")).fields


CODES = {"bad-json", "bad-name", "missing-field", "bad-field", "reserved-key", "immutable-field", "too-large"}
KEYS = st.sampled_from([*records.FIELDS, "name", "_dbp", "x"])
PLACES = st.fixed_dictionaries(
    {"ip": st.sampled_from(["127.0.0.1", "::1%eth0", "1.2.3.4", ""]), "port": st.integers(0, 9)}
)
STRANGE = st.dictionaries(KEYS, TREES | st.dictionaries(st.text(max_size=2), PLACES, max_size=3), max_size=3)


def together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {key: value for part in parts for key, value in part.items()}


FITTING = st.lists(PLACES | st.sampled_from(GOOD), max_size=4).map(together)
VALUES = STRANGE | FITTING | FITTING


@pytest.mark.proves("CAT-080", "CAT-081")
@given(VALUES, VALUES, st.sampled_from(["", "127.0.0.1", "10.0.0.4", "?"]))
def test_whatever_is_said_is_taken_or_refused_with_a_code_and_what_is_taken_has_an_address_or_none(
    said: dict[str, Any], changes: dict[str, Any], observed: str
) -> None:
    try:
        found = records.registration(body(**{"name": "a", **said}))
        found = records.merge(found.name, found.record, records.update(body(**changes)).changes)
    except Refusal as refused:
        assert refused.code in CODES
        return
    for rewrite in ("loopback", "always", "never"):
        shown, _ = records.rewritten(found.record, observed, rewrite)
        assert records.effective_address(shown, "", rewrite) == records.effective_address(
            found.record, observed, rewrite
        )
        assert isinstance(found.instance_id(observed, rewrite), str)


@pytest.mark.proves("CAT-081")
@given(st.binary(max_size=40) | st.text('{}[]":,0123456789eE.-+\\utrfalsn ', max_size=40).map(str.encode))
def test_any_bytes_are_an_object_or_refused(said: bytes) -> None:
    try:
        assert isinstance(records.parse_object(said), dict)
    except Refusal as refused:
        assert "bad-json" == refused.code


# Names


def check_names_that_nobody_may_have() -> None:
    for name in (
        "",
        "Error",
        "_dbp",
        "dbp.",
        "dbp.x",
        "a@b",
        "a\x00b",
        "a\tb",
        "\x7f",
        "\u2028",
        "x" * 256,
        "ü" * 128,
        5,
    ):
        found = refusal(lambda name=name: records.registration(body(name=name)))  # type: ignore[misc]  # a default
        assert ("bad-name", ("name",)) == (found.code, found.fields), name


@pytest.mark.proves("CAT-014")
def test_names_that_nobody_may_have_are_refused() -> None:
    check_names_that_nobody_may_have()


def test_that_error_can_be_registered_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "RESERVED_NAMES", frozenset({"_dbp"}))
    with pytest.raises(pytest.fail.Exception):
        check_names_that_nobody_may_have()


@pytest.mark.proves("CAT-014")
@pytest.mark.parametrize(
    "name", ["a", "door bell 2", "Küche", "温度", "😀", "x" * 255, "ü" * 127, "dbp", "error", "dbpx"]
)
def test_other_names_are_taken(name: str) -> None:
    assert name == records.registration(body(name=name)).name


@pytest.mark.proves("CAT-014")
def test_the_brokers_own_key_belongs_to_nobody_else() -> None:
    attempts = [
        lambda: read(_dbp={}),
        lambda: records.update(body(name="a", _dbp=None)),
        lambda: records.merge("a", {}, {"_dbp": 1}),
    ]
    assert ["reserved-key"] * 3 == [code(attempt) for attempt in attempts]


# Limits


@pytest.mark.proves("CAT-080")
@pytest.mark.parametrize(
    "keys",
    [
        {"tags": ["x"] * 65},
        {"tags": ["ü" * 65]},
        {"metadata": {str(number): "" for number in range(65)}},
        {"metadata": {"a": "x" * 1025}},
        {"metadata": {"x" * 1025: ""}},
        {"x": "x" * (64 << 10)},
    ],
    ids=["tags", "tag", "metadata", "value", "key", "record"],
)
def test_what_is_too_large_is_refused(keys: dict[str, Any]) -> None:
    assert "too-large" == code(lambda: read(**keys))


def test_a_record_of_just_the_size_is_taken_and_may_not_grow() -> None:
    filled = {"x": "x" * (limits.RECORD_BYTES_MAX - len(body(name="a", x="")))}
    record = read(**filled).record
    assert filled == record
    assert "too-large" == code(lambda: records.merge("a", record, {"y": "y" * 99}))


# Addresses and ids


@pytest.mark.proves("CAT-016")
@pytest.mark.parametrize(
    "keys, expected",
    [
        ({"ip": "10.0.0.4", "port": 9, "interfaces": {"router": {"ip": "10.0.0.5", "port": 8}}}, ("10.0.0.4", 9)),
        (
            {"port": 9, "interfaces": {"pub": {"ip": "1.1.1.1", "port": 7}, "router": {"ip": "1.1.1.2", "port": 8}}},
            ("1.1.1.2", 8),
        ),
        ({"interfaces": {"z": {"ip": "10.0.0.6", "port": 7}, "a": {"ip": "10.0.0.5", "port": 8}}}, ("10.0.0.6", 7)),
        ({"ip": "10.0.0.4"}, None),
        ({}, None),
        ({"ip": "127.0.0.1", "port": 9}, ("10.9.9.9", 9)),
        ({"interfaces": {"router": {"ip": "0.0.0.0", "port": 8}}}, ("10.9.9.9", 8)),
    ],
)
def test_the_address_is_the_top_level_one_else_of_the_router_else_of_the_first_interface(
    keys: dict[str, Any], expected: tuple[str, int] | None
) -> None:
    assert (expected and Address(*expected)) == records.effective_address(keys, "10.9.9.9")


@pytest.mark.proves("CAT-016")
@pytest.mark.parametrize(
    "declared, observed, rewrite, expected",
    [
        ("127.0.0.1", "10.0.0.4", "loopback", "10.0.0.4"),
        ("::1", "10.0.0.4", "loopback", "10.0.0.4"),
        ("0.0.0.0", "10.0.0.4", "loopback", "10.0.0.4"),
        ("::", "10.0.0.4", "loopback", "10.0.0.4"),
        ("127.0.0.1", "127.0.0.2", "loopback", "127.0.0.1"),
        ("127.0.0.1", "", "loopback", "127.0.0.1"),
        ("10.0.0.5", "10.0.0.4", "loopback", "10.0.0.5"),
        ("127.0.0.1", "10.0.0.4", "never", "127.0.0.1"),
        ("10.0.0.5", "10.0.0.4", "always", "10.0.0.4"),
        ("10.0.0.5", "", "always", "10.0.0.5"),
    ],
)
def test_a_declared_address_is_replaced_where_it_means_nothing_to_others(
    declared: str, observed: str, rewrite: records.Rewrite, expected: str
) -> None:
    record = {"ip": declared, "port": 9, "interfaces": {"pub": {"ip": declared, "port": 8, "x": 1}}}
    shown, original = records.rewritten(record, observed, rewrite)
    changed = {"ip": expected, "port": 9, "interfaces": {"pub": {"ip": expected, "port": 8, "x": 1}}}
    assert (changed, declared if declared != expected else None) == (shown, original)
    assert declared == record["ip"] == record["interfaces"]["pub"]["ip"]  # type: ignore[index]  # it is a table


def test_only_what_means_nothing_to_others_is_replaced() -> None:
    record = {"ip": "10.0.0.5", "interfaces": {"a": {"ip": "127.0.0.1", "port": 8}, "b": {"ip": "10.0.0.5", "port": 7}}}
    shown, original = records.rewritten(record, "10.0.0.4", "loopback")
    expected = {
        "ip": "10.0.0.5",
        "interfaces": {"a": {"ip": "10.0.0.4", "port": 8}, "b": {"ip": "10.0.0.5", "port": 7}},
    }
    assert (expected, "127.0.0.1") == (shown, original)


def check_ids() -> None:
    said = {"ip": "127.0.0.1", "port": 9}
    assert ["t1", "1.2.3.4:9", "10.0.0.4:0", "10.0.0.4:9", "10.0.0.5:9"] == [
        read(id="t1", **said).instance_id("10.0.0.4"),
        read(ip="1.2.3.4", port=9).instance_id("10.0.0.4"),
        read(ip="1.2.3.4").instance_id("10.0.0.4"),
        read(**said).instance_id("10.0.0.4"),
        read(**said).instance_id("10.0.0.5"),
    ]


@pytest.mark.proves("CAT-015")
def test_an_instance_is_called_as_it_says_else_by_its_address_as_others_see_it() -> None:
    check_ids()


def test_that_loopback_ids_of_two_hosts_collide_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_is_replaced", lambda declared, observed_ip, rewrite: False)
    with pytest.raises(AssertionError):
        check_ids()


# Updating


@pytest.mark.proves("CAT-018")
def test_an_update_lays_its_keys_over_the_record_and_null_deletes() -> None:
    record = {"ip": "1.2.3.4", "port": 9, "function": "echo", "metadata": {"a": "1"}, "topics": None}
    update = records.update(body(name="A", id="t1", port=10, function=None, metadata={"b": "2"}, gone=None))
    assert ("A", "t1") == (update.name, update.id)
    merged = records.merge("A", record, update.changes)
    assert {"ip": "1.2.3.4", "port": 10, "metadata": {"b": "2"}, "topics": None} == merged.record
    assert ("echo", 9) == (record["function"], record["port"])


@pytest.mark.proves("CAT-018")
@pytest.mark.parametrize(
    "keys, expected",
    [
        ({"name": None}, "immutable-field"),
        ({"id": None}, "immutable-field"),
        ({"id": 5}, "bad-field"),
        ({"name": "a@b"}, "bad-name"),
        ({"name": 5}, "bad-name"),
    ],
)
def test_an_update_cannot_touch_what_an_instance_is_called(keys: dict[str, Any], expected: str) -> None:
    assert expected == code(lambda: records.update(body(**keys)))


@pytest.mark.proves("CAT-018")
def test_the_merged_record_is_judged_as_a_whole() -> None:
    assert "bad-field" == code(lambda: records.merge("a", {"port": 9}, {"port": 0}))
    assert "too-large" == code(lambda: records.merge("a", {}, {"tags": ["x"] * 65}))
    assert "missing-field" == code(lambda: records.merge("a", {"ip": "1.2.3.4"}, {"ip": None}, is_strict=True))
    assert records.Update(None, None, {}) == records.update(b"{}")
    assert "bad-json" == code(lambda: records.update(b""))


@pytest.mark.proves("CAT-018")
@pytest.mark.parametrize(
    "one, other, expected",
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({}, {"a": None}, False),
    ],
)
def test_a_record_is_the_same_if_it_says_the_same(one: dict[str, Any], other: dict[str, Any], expected: bool) -> None:
    assert expected == records.is_same(one, other)
