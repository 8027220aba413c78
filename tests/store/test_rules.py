"""Types check values where they are written, and codecs turn them for some users (ADM-010, ADM-011)."""

from typing import Any

import pytest
from msgspec import UNSET, Raw

from tests.store.desk import Desk, Visitor, value_of
from tests.store.rig import change
from weft.cores.store.messages import ValueMistyped
from weft.cores.store.schema import BadSchema, Checker, Misfit
from weft.wire.store.clients import Op
from weft.wire.store.pack import PathValue, ext, pack

NUMBER = {"schema": {"type": "number"}, "good": [0, 1.5], "bad": ["x"]}
PERCENT = {"schema": {"minimum": 0, "maximum": 100}, "good": [0, 100], "bad": [101]}
LAMP = {"name": "switch", "in": [["on", True]], "out": [[False, "off"]]}


def ready() -> tuple[Desk, Visitor]:
    desk = Desk("n1")
    desk.node.write(":", "root")
    return desk, desk.client()


def rule(client: Visitor, path: str, value: Any) -> str:
    """Write an entry of the hidden tree, as upstream's command line does; the code of the refusal."""
    return client.ask("set_internal", path=path, value=value).etype


def typed(client: Visitor) -> None:
    assert ["", "", "", ""] == [
        rule(client, "type.number", NUMBER),
        rule(client, "type.number.percent", PERCENT),
        rule(client, "match.home.#.temp", {"type": PathValue(("number",))}),
        rule(client, "match.home.+.humidity", {"type": ["number", "percent"]}),
    ]


@pytest.mark.proves("ADM-010")
def test_what_does_not_fit_its_type_is_refused_and_takes_no_tick() -> None:
    desk, client = ready()
    client.ask("set_value", path="home.hall.temp", value="warm")
    typed(client)
    before = desk.node.context.tick
    for path, value, code in (
        ("home.hall.temp", "warm", "type-error"),
        ("home.a.b.c.temp", True, "type-error"),
        ("home.hall.humidity", 101, "type-error"),
        ("home.hall.humidity", "x", "type-error"),
    ):
        assert (path, code) == (path, client.ask("set_value", path=path, value=value).etype)
    ops = [Op(path=("fine",), value=client_raw(1)), Op(path=("home", "x", "temp"), value=client_raw("cold"))]
    assert "type-error" == client.ask("batch", ops=ops).etype
    assert before == desk.node.context.tick
    fine: dict[str, Any] = {"home.hall.temp": 21.5, "home.hall.humidity": 40, "home.a.b.humidity": "any", "temp": "any"}
    for path, value in fine.items():
        assert client.ask("set_value", path=path, value=value).changed is True
    assert client.ask("delete_value", path="home.hall.temp").changed is True, "a deletion has no type"


@pytest.mark.proves("ADM-010")
def test_a_batch_with_a_rule_is_checked_by_the_rules_before_it_and_done_whole() -> None:
    desk, client = ready()
    typed(client)
    match = Op(path=(None, "match", "warm"), value=client_raw({"type": ["number"]}))
    answer = client.ask("batch", ops=[match, Op(path=("warm",), value=client_raw("no number"))])
    assert answer.results is not UNSET, answer.etype
    assert [True, True] == [told["changed"] for told in answer.results]
    assert "no number" == desk.node.value("warm")
    assert "type-error" == client.ask("set_value", path="warm", value="again none").etype


def client_raw(value: Any) -> Raw:
    return Raw(pack(value))


@pytest.mark.proves("ADM-010")
def test_the_most_specific_match_counts_and_changes_count_at_once() -> None:
    _, client = ready()
    typed(client)
    assert "" == rule(client, "type.any", {"schema": {"type": "string"}, "good": ["a", "b"], "bad": [1]})
    assert "" == rule(client, "match.home.kitchen.temp", {"type": "any"})
    assert client.ask("set_value", path="home.kitchen.temp", value="hot").changed is True
    assert "type-error" == client.ask("set_value", path="home.hall.temp", value="hot").etype
    client.ask("delete_internal", path="match.home.#.temp")
    assert client.ask("set_value", path="home.hall.temp", value="hot").changed is True


@pytest.mark.proves("ADM-010")
def test_what_comes_from_others_is_kept_and_told() -> None:
    desk, client = ready()
    typed(client)
    assert ["first"] == desk.node.hear(change("n2:1", 50, "home.hall.temp", "warm"))
    desk.settle()
    assert "warm" == desk.node.value("home.hall.temp")
    told = [effect.event for turn in desk.turns for effect in turn if hasattr(effect, "event")]
    assert [("home.hall.temp", "n2", 1)] == [(e.path, e.node, e.tick) for e in told if isinstance(e, ValueMistyped)]


@pytest.mark.proves("ADM-010")
@pytest.mark.parametrize(
    "value",
    [
        5,
        {},
        {"schema": {"type": "number"}},
        {"schema": {"type": "number"}, "good": [1], "bad": ["x"]},
        {"schema": {"type": "number"}, "good": [1, 2], "bad": []},
        {"schema": {"type": "number"}, "good": [1, "x"], "bad": ["y"]},
        {"schema": {"type": "number"}, "good": [1, 2], "bad": [3]},
        {"schema": {"type": "figure"}, "good": [1, 2], "bad": [3]},
        {"schema": {"$ref": "http://elsewhere/x"}, "good": [1, 2], "bad": [3]},
        {"schema": {"$ref": "#"}, "good": [1, 2], "bad": [3]},
        {"schema": {"pattern": "("}, "good": ["1", "2"], "bad": ["3"]},
        {"schema": {"minimum": 5}, "good": [5, 6], "bad": [7]},
        {"schema": {"required": [[]]}, "good": [{}, {}], "bad": [3]},
    ],
)
def test_a_type_that_says_nonsense_is_refused(value: Any) -> None:
    desk, client = ready()
    typed(client)
    before = desk.node.context.tick
    assert "type-error" == rule(client, "type.number.odd", value)
    assert before == desk.node.context.tick


@pytest.mark.proves("PNG-031", part="a type with a schema is not written where real servers are: it ends moat-kv 0.71")
def test_a_type_that_would_end_real_servers_is_refused_where_they_are() -> None:
    desk, client = ready()
    desk.node.context.foreign["n9"] = None
    assert "type-error" == rule(client, "type.number", NUMBER)
    assert "" == rule(client, "type.theirs", {"code": "pass", "good": [1, 2], "bad": [3]})


def test_types_of_code_are_kept_and_check_nothing() -> None:
    _, client = ready()
    assert "" == rule(client, "type.theirs", {"code": "raise ValueError", "good": [1, 2], "bad": [3]})
    assert "" == rule(client, "match.x", {"type": "theirs"})
    assert client.ask("set_value", path="x", value=3).changed is True
    assert "type-error" == rule(client, "match.y", {"type": "absent"})
    assert "type-error" == rule(client, "match.y", {"kind": "theirs"})


@pytest.mark.proves("ADM-011")
def test_a_codec_turns_values_for_the_users_of_its_group_alone() -> None:
    desk, client = ready()
    assert ["", "", ""] == [
        rule(client, "codec.lamp", LAMP),
        rule(client, "conv.panel.home.+.lamp", {"codec": PathValue(("lamp",))}),
        rule(client, "conv.other.home.#", {"codec": "lamp"}),
    ]
    panel = desk.client()
    panel.say_hello("panel")
    watch = panel.open("watch", path="home", fetch=True)
    assert panel.ask("set_value", path="home.hall.lamp", value="on").changed is True
    assert desk.node.value("home.hall.lamp") is True
    assert ("on", True) == (
        value_of(panel.ask("get_value", path="home.hall.lamp")),
        value_of(client.ask("get_value", path="home.hall.lamp")),
    )
    assert "bad-value" == panel.ask("set_value", path="home.hall.lamp", value=5).etype
    assert panel.ask("set_value", path="home.hall.lamp", value="OFF", prev="on").changed is True
    assert panel.ask("set_value", path="home.hall.lamp", value="off", idem=True).changed is False
    assert "off" == value_of(panel.ask("set_value", path="home.hall.lamp", value="on"), "prev")
    assert [("home.hall.lamp", "on")] == [
        (f"home.{told[0]}", *told[1:])
        for told in panel.told(panel.open("get_tree", path="home"))
        if isinstance(told, tuple)
    ]
    assert ["start", "uptodate", ("hall.lamp", "on"), ("hall.lamp", "off"), ("hall.lamp", "on")] == panel.told(watch)
    assert panel.ask("set_value", path="home.hall.note", value="on").changed is True
    assert "on" == desk.node.value("home.hall.note"), "another path"
    desk.node.write("home.hall.lamp", 7)
    assert 7 == value_of(panel.ask("get_value", path="home.hall.lamp")), "what it cannot turn is shown as it is"


@pytest.mark.proves("ADM-011")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("codec.x", 5),
        ("codec.x", {}),
        ("codec.x", {"name": "no such"}),
        ("codec.x", {"name": "switch"}),
        ("codec.x", {**LAMP, "in": [["on", False]]}),
        ("codec.x", {**LAMP, "out": [[1, "on"]]}),
        ("codec.x", {**LAMP, "out": [5]}),
        ("conv.panel", {"codec": "lamp"}),
        ("conv.panel.x", {}),
    ],
)
def test_a_codec_whose_examples_do_not_hold_is_refused(path: str, value: Any) -> None:
    _, client = ready()
    assert "type-error" == rule(client, path, value)
    assert client.ask("get_internal", path=path, nchain=1).chain is None


@pytest.mark.parametrize(
    ("name", "stored", "shown"),
    [
        ("json", {"a": [1, None]}, '{"a":[1,null]}'),
        ("int", 5, "5"),
        ("float", 0.1, "0.1"),
        ("utf8", "für", "für".encode()),
        ("hex", b"\x00\xff", "00ff"),
        ("base64", b"\x00\xff", "AP8="),
        ("celsius", 20.0, 68.0),
    ],
)
def test_every_codec_turns_both_ways(name: str, stored: Any, shown: Any) -> None:
    desk, client = ready()
    assert "" == rule(client, "codec.c", {"name": name, "in": [[shown, stored]], "out": [[stored, shown]]})
    assert "" == rule(client, "conv.g.#", {"codec": "c"})
    user = desk.client()
    user.say_hello("g")
    assert user.ask("set_value", path="x", value=shown).changed is True
    assert (stored, shown) == (desk.node.value("x"), value_of(user.ask("get_value", path="x")))


FITS: list[tuple[Any, Any]] = [
    (True, object),
    ({"type": ["null", "integer"]}, None),
    ({"type": "integer"}, 2.0),
    ({"const": 1}, 1.0),
    ({"enum": [[1, 2]]}, [1, 2.0]),
    ({"multipleOf": 0.1}, 0.3),
    ({"minLength": 2, "maxLength": 2}, "ab"),
    ({"minLength": 2}, 7),
    ({"pattern": "^a+$"}, "aaa"),
    ({"items": {"type": "string"}, "prefixItems": [{"type": "null"}]}, [None, "a"]),
    ({"contains": {"const": 1}, "maxContains": 2}, [1, 1, 0]),
    ({"uniqueItems": True}, [1, True, "1"]),
    (
        {"properties": {"a": {"type": "null"}}, "additionalProperties": False, "patternProperties": {"^b": True}},
        {"a": None, "bc": 1},
    ),
    ({"required": ["a"], "dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 2}),
    ({"propertyNames": {"pattern": "^[a-z]+$"}, "maxProperties": 1}, {"a": 1}),
    ({"oneOf": [{"minimum": 5}, {"maximum": 3}]}, 7),
    ({"not": {"type": "string"}}, 5),
    ({"if": {"type": "number"}, "then": {"minimum": 1}, "else": {"type": "string"}}, "x"),
    ({"$defs": {"tree": {"items": {"$ref": "#/$defs/tree"}, "type": "array"}}, "$ref": "#/$defs/tree"}, [[], [[]]]),
    ({"type": "object", "format": "date", "unknown": 1}, {}),
]
MISFITS: list[tuple[Any, Any]] = [
    (False, 1),
    ({"type": "integer"}, 2.5),
    ({"type": "integer"}, True),
    ({"type": "string"}, b"bytes"),
    ({"type": "array"}, PathValue(("a",))),
    ({"type": "object"}, ext(5, b"x")),
    ({"const": 1}, True),
    ({"enum": [1, 2]}, 3),
    ({"exclusiveMaximum": 3}, 3),
    ({"multipleOf": 2}, 3),
    ({"multipleOf": 0.1}, 0.25),
    ({"multipleOf": 0.1}, float("inf")),
    ({"maxLength": 1}, "ab"),
    ({"pattern": "^a+$"}, "ab"),
    ({"items": {"type": "string"}}, ["a", 1]),
    ({"contains": {"const": 1}}, [0]),
    ({"uniqueItems": True}, [1, 1.0]),
    ({"additionalProperties": {"type": "null"}}, {"a": 1}),
    ({"required": ["a"]}, {}),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}),
    ({"allOf": [{"minimum": 1}, {"minimum": 5}]}, 3),
    ({"anyOf": [{"minimum": 5}]}, 3),
    ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 3),
    ({"if": {"type": "number"}, "then": {"minimum": 5}}, 3),
    ({"$ref": "#"}, 1),
    ({"items": {"anyOf": [{"const": n} for n in range(1_000)]}}, [-1] * 100),
]


@pytest.mark.parametrize(("schema", "value"), FITS)
def test_what_fits_a_schema(schema: Any, value: Any) -> None:
    Checker(schema).check(value)


@pytest.mark.parametrize(("schema", "value"), MISFITS)
def test_what_does_not_fit_a_schema(schema: Any, value: Any) -> None:
    with pytest.raises(Misfit):
        Checker(schema).check(value)


@pytest.mark.parametrize(
    "schema",
    [
        5,
        {"type": "x"},
        {"enum": 1},
        {"minimum": "1"},
        {"required": 1},
        {"anyOf": []},
        {"properties": []},
        {"$ref": "#/x"},
        {"anyOf": [True], "$ref": "#/anyOf/\u0660"},
    ],
)
def test_what_is_no_schema(schema: Any) -> None:
    with pytest.raises(BadSchema):
        Checker(schema).check({})


@pytest.mark.proves("ADM-010")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": True, "prefixItems": 5}, [1]),
        ({"contains": True, "minContains": "x"}, [1]),
        ({"additionalProperties": True, "properties": 5}, {"a": 1}),
        ({"additionalProperties": True, "patternProperties": 5}, {"a": 1}),
        ({"required": [[1]]}, {"a": 1}),
        ({"dependentRequired": {"a": 5}}, {"a": 1}),
        ({"$defs": [1], "$ref": "#/$defs/" + "9" * 5_000}, 1),
    ],
)
def test_a_keyword_that_says_what_it_cannot_say_is_no_schema(schema: Any, value: Any) -> None:
    with pytest.raises(BadSchema):
        Checker(schema).check(value)


@pytest.mark.proves("ADM-010")
def test_rules_of_another_member_that_say_nonsense_check_nothing_and_end_nobody() -> None:
    desk, client = ready()
    odd = {"schema": {"required": [[1]]}, "good": [], "bad": []}
    told: tuple[tuple[str, Any], ...] = (
        ("type.odd", odd),
        ("match.a.#", {"type": ["odd"]}),
        ("match.b.#", {"type": [{}]}),
    )
    for tick, (path, value) in enumerate(told, 1):
        assert ["first"] == desk.node.hear(change(f"n2:{tick}", 50, f":n.{path}", value))
    assert ["first"] == desk.node.hear(change("n2:4", 50, "a.x", {"y": 1}))
    assert ["first"] == desk.node.hear(change("n2:5", 50, "b.x", 1))
    assert client.ask("set_value", path="a.z", value={"y": 1}).changed is True
    assert "type-error" == rule(client, "match.c", {"type": [{}]})


@pytest.mark.prove("large values")
@pytest.mark.proves("ADM-010")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"enum": list(range(8_000))}}, [7_999] * 8_000),
        (
            {"patternProperties": {f"x{number}": True for number in range(4_000)}},
            {f"y{number}": 0 for number in range(4_000)},
        ),
        ({"items": {"not": {"const": list(range(8_000))}}}, [1] * 8_000),
        ({"items": {"required": list(range(8_000))}}, [1] * 8_000),
        ({"items": {"dependentRequired": {"a": ["a"] * 8_000}}}, [{"a": 1}] * 8_000),
    ],
)
def test_a_check_ends_in_bounded_work(schema: Any, value: Any) -> None:
    with pytest.raises(Misfit, match="takes too long"):
        Checker(schema).check(value)


@pytest.mark.proves("ADM-010")
@pytest.mark.parametrize("depth, mistyped", [(128, []), (129, ["a.x"]), (498, ["a.x"])])
def test_a_value_of_another_member_that_is_nested_too_deep_to_be_compared_does_not_fit_and_ends_nobody(
    depth: int, mistyped: list[str]
) -> None:
    desk, client = ready()
    assert "" == rule(client, "type.one", {"schema": {"not": {"const": 1}}, "good": [2, 3], "bad": [1]})
    assert "" == rule(client, "match.a.#", {"type": "one"})
    deep: Any = 0
    for _ in range(depth):
        deep = [deep]
    assert ["first"] == desk.node.hear(change("n2:1", 50, "a.x", deep))
    desk.settle()
    told = [effect.event for turn in desk.turns for effect in turn if hasattr(effect, "event")]
    assert mistyped == [event.path for event in told if isinstance(event, ValueMistyped)]
