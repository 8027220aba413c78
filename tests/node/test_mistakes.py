"""What is wrong in a node's file is said in people's words, each mistake with its place, whatever the mistake is."""

from typing import Any, get_args, get_origin

import msgspec
import pytest

from weft.base.errors import UserError
from weft.node import settings
from weft.node.settings import settings_of

TABLES = {
    field.name: kind
    for field in msgspec.structs.fields(settings.NodeSettings)
    for kind in (field.type, *get_args(field.type))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and field.name not in ("role", "trust")
    if get_origin(field.type) not in (dict, tuple)
}
PLACES = [
    (name, field.encode_name)
    for name, kind in TABLES.items()
    for field in msgspec.structs.fields(kind)
    if field.type is not Any
]
OF_MSGSPEC = ("Object contains", "Expected", "`$", "msgspec", "Invalid enum")


def refused(document: dict[str, Any]) -> str:
    document.setdefault("node", {}).setdefault("name", "a") if isinstance(document.get("node", {}), dict) else None
    with pytest.raises(UserError) as caught:
        settings_of(document, "a.toml")
    return caught.value.text


@pytest.mark.parametrize("name", TABLES)
def test_a_slip_in_a_key_names_its_place_and_the_key_that_is_near(name: str) -> None:
    key = next(field.encode_name for field in msgspec.structs.fields(TABLES[name]))
    assert f"E02 {name}.{key}s: is not known here" in refused({name: {f"{key}s": 1}})


@pytest.mark.parametrize(("name", "key"), PLACES, ids=lambda word: word)
def test_a_value_of_another_kind_is_told_in_peoples_words(name: str, key: str) -> None:
    """A nested list of nothing fits no key."""
    said = refused({name: {key: [[[]]]}})
    assert f" {name}.{key}" in said
    assert [] == [word for word in OF_MSGSPEC if word in said]


def test_each_mistake_of_a_file_is_told_also_below_a_table() -> None:
    document = {
        "node": {"nam": "root", "port": "27500"},
        "lakes": {},
        "notify": {"ops": {"mial": 1}},
        "doc": {"session": {"Hall 5": {"sheme": "derby"}}},
        "chains": {"allow": [{"usr": "uid:1"}]},
        "security": {"mode": "curv"},
        "journal": 3,
    }
    with pytest.raises(UserError) as caught:
        settings_of(document, "a.toml")
    assert [
        "E02 node.nam: is not known here, did you mean `name`?",
        "E03 node.name: is missing",
        "E04 node.port: has to be a whole number, not a text",
        "E04 journal: has to be a table",
        "E02 doc.session.'Hall 5'.sheme: is not known here, did you mean `schema`?",
        "E02 notify.ops.mial: is not known here, did you mean `mail`?",
        "E04 security.mode: 'curv' is none of '', 'curve', 'none'",
        "E02 chains.allow.usr: is not known here, did you mean `user`?",
        "E03 chains.allow.user: is missing",
        "E02 lakes: [lakes] is no table, did you mean `lake`?",
    ] == [
        line.strip() for line in caught.value.text.splitlines()[1:] if not line.strip().startswith("E03 chains.allow.v")
    ]
    assert "--name NAME" in caught.value.try_this
