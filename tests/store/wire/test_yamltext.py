"""Values as YAML (COD-006)."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.store.wire.computed import COMPUTED, group, payload
from tests.store.wire.strategies import YAML_VALUES
from weft.base.errors import PeerError
from weft.wire.store import yamltext
from weft.wire.store.pack import PathValue, ext, pack, unpack
from weft.wire.store.yamltext import dump, load

REFUSED = group("yaml-bad-")


@pytest.mark.proves("COD-006")
@pytest.mark.parametrize("name", [name for name in group("yaml-") if name not in REFUSED])
def test_value_has_its_yaml(name: str) -> None:
    text, raw = COMPUTED[name]["means"]["yaml"], payload(COMPUTED[name])
    assert text == dump(unpack(raw))
    assert raw == pack(load(text))


MORE = [
    "a: 1\na: 2\n",
    "1: a\ntrue: b\n",
    "? [1]\n: 2\n",
    "a: *b\n",
    "<<: {a: 1}\n",
    "--- 1\n--- 2\n",
    "a: !!set {x}\n",
    "a: !hex 0\n",
    "a: !hex 00ff\n",
    "a: !hex [1]\n",
    "a: !bin [1]\n",
    "a: !P {}\n",
    "a: 'b\n",
    "a: \x00\n",
    "[" * 200,
    "[" * 101 + "]" * 101,
    "1" * 5_000,
]


@pytest.mark.proves("COD-006")
@pytest.mark.parametrize("text", [*(COMPUTED[name]["means"]["yaml"] for name in REFUSED), *MORE])
def test_text_that_is_more_than_a_value_is_refused(text: str) -> None:
    with pytest.raises(PeerError) as caught:
        load(text)
    assert "bad-yaml" == caught.value.code


def test_text_that_is_longer_than_any_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yamltext, "TEXT_CHARACTERS_MAX", 3)
    assert 1 == load("  1")
    with pytest.raises(PeerError):
        load("   1")


@pytest.mark.proves("COD-006")
def test_what_people_write_is_read() -> None:
    written = "{day: 2026-11-21, none: ~, [a]: 1}".replace("[a]: 1", "n: [1, 2.5, !P a:1, !bin 'x y', 0x10]")
    assert {"day": "2026-11-21", "none": None, "n": [1, 2.5, PathValue(("a", 1)), b"x y", 16]} == load(written)
    assert (None, "plain words", b"") == (load(""), load("plain words"), load("!hex ''"))


NUMBERS = [
    "1e5",
    "0o17",
    "1_000",
    "-.5",
    "12:30",
    "2026-11-21",
    "0x1f",
    "+1",
    ".inf",
    "yes",
    "null",
    "~",
    "=",
    "<<",
    "",
    " a",
    "a: b",
]


@pytest.mark.proves("COD-006")
@pytest.mark.parametrize("text", NUMBERS)
def test_text_that_would_read_as_something_else_is_quoted(text: str) -> None:
    assert "'" == dump({"a": text})[3]
    assert [text] == load(dump([text]))


def test_value_without_a_word_in_yaml_is_unencodable() -> None:
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    for value in (ext(5, b"x"), [{"a": object()}], "\ud800", deep):
        with pytest.raises(PeerError) as caught:
            dump(value)
        assert "unencodable" == caught.value.code


def test_one_word_is_one_line() -> None:
    assert ["a\n", "1\n", "a: wait...\n", "'...'\n", '"a\\nb"\n'] == [
        dump(value) for value in ("a", 1, {"a": "wait..."}, "...", "a\nb")
    ]


@pytest.mark.proves("COD-006")
@given(YAML_VALUES)
@example({"\x85": "\u2028", "a\tb": "\ufeff", "c": "\x7f\U0001f600", "d": " x ", "e": "\n", "f": "a  b: c #d"})
@example([float("inf"), -0.0, 1e16, 1e-7, 5e-324, b"", b"\x00", "e3", "1__0", "0b1", "@", "`", "%", "- a", "? b"])
def test_value_comes_back_from_its_yaml(value: Any) -> None:
    assert pack(value) == pack(load(dump(value)))


@given(st.text(st.sampled_from("a1:-?[]{},#&*!|>'\"%@`~ \n\t.=<yé\x00Pbinhex"), max_size=14))
def test_any_text_is_yaml_or_refused(text: str) -> None:
    try:
        value = load(text)
    except PeerError as error:
        assert "bad-yaml" == error.code
    else:
        assert pack(value) == pack(load(dump(value)))
