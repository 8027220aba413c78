"""Paths: bytes, text, which of them are one entry (STO-004, COD-005)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.wire.computed import COMPUTED, group, path_of, payload
from tests.store.wire.strategies import ANY_PATHS, PATHS
from weft.base.changes import Path
from weft.base.errors import PeerError
from weft.wire.store import path
from weft.wire.store.pack import PathValue, pack, unpack
from weft.wire.store.path import ELEMENTS_MAX, key_of, normal, pack_path, parse, text_of, unpack_path

REFUSED = group("path-bad-")
ACCEPTED = group("path-in-")
BOTH = [name for name in group("path-") if name not in REFUSED + ACCEPTED]


@pytest.mark.proves("COD-005", "COD-002")
@pytest.mark.parametrize("name", BOTH)
def test_path_has_its_bytes_and_its_text(name: str) -> None:
    means = COMPUTED[name]["means"]
    path = path_of(means["path"])
    assert PathValue(path) == unpack(payload(COMPUTED[name]))
    assert payload(COMPUTED[name]) == pack(PathValue(path))
    assert (means["text"], path) == (text_of(path), parse(means["text"]))


@pytest.mark.proves("COD-005")
@pytest.mark.parametrize("name", ACCEPTED)
def test_other_ways_to_write_a_path_are_read(name: str) -> None:
    means = COMPUTED[name]["means"]
    assert path_of(means["path"]) == parse(means["text"])
    assert PathValue(path_of(means["path"])) == unpack(payload(COMPUTED[name]))


NO_TEXTS = ["::a:", ":q", ":1x", ":1_0", ":ud800-", ":u110000-", ":yabc", ":vü", ":s====", ":--1", ":+1", ": 1"]


@pytest.mark.proves("COD-005")
@pytest.mark.parametrize("text", [*(COMPUTED[name]["means"]["text"] for name in REFUSED), *NO_TEXTS])
def test_text_that_is_no_path_is_refused(text: str) -> None:
    assert "bad-path" == _code(lambda: parse(text))


@pytest.mark.proves("COD-005")
def test_nothing_in_a_path_is_evaluated_and_no_text_is_too_long_to_be_refused() -> None:
    texts = [":os", ":1+1", ":1e999", ":-9223372036854775809", ":" + "9" * 5_000, "a" * 9_000, "a:" * 4_000]
    assert ["bad-path"] * len(texts) == [_code(lambda text=text: parse(text)) for text in texts]


@pytest.mark.proves("STO-004")
@pytest.mark.parametrize("name", group("key-"))
def test_which_paths_are_one_entry_depends_on_the_keys(name: str) -> None:
    line = COMPUTED[name]
    bodies = [unpack(bytes.fromhex(frame)) for frame in line["frames"]]
    assert [path_of(path) for path in line["means"]["paths"]] == [tuple(body) for body in bodies]
    keys = [_key(tuple(body), line["means"]["keys"]) for body in bodies]
    assert line["means"]["same"] == (keys[0] == keys[1])


def _key(path: Path, keys: str) -> bytes | str:
    """Of its entry, or why there is none: floats are no elements of the seed."""
    try:
        return key_of(normal(path, keys))
    except PeerError as error:
        return error.code


def _code(does: object) -> str:
    assert callable(does)
    try:
        does()
    except PeerError as error:
        return error.code
    return "accepted"


NORMALS = [
    ("seed", ("a", b"", True, 1), ("a", "", True, 1)),
    ("moat", ("a", b"", True, 1.0, 0.5, False, -0.0), ("a", b"", 1, 1, 0.5, 0, 0)),
    ("moat", (1e300, float("inf"), -1e300), (int(1e300), float("inf"), -1e300)),
    ("seed", (None, "auth"), (None, "auth")),
    ("seed", ("x",) * ELEMENTS_MAX, ("x",) * ELEMENTS_MAX),
    ("seed", ("x" * 1_021,), ("x" * 1_021,)),
]


@pytest.mark.proves("STO-004")
@pytest.mark.parametrize("keys, path, expected", NORMALS)
def test_normal_form_is_the_one_that_is_kept(keys: str, path: Path, expected: Path) -> None:
    found = normal(path, keys)
    assert (expected, [*map(type, expected)]) == (found, [*map(type, found)])
    assert found == normal(found, keys)


NO_PATHS: list[tuple[str, tuple[object, ...]]] = [
    ("seed", ("a", None)),
    ("moat", ("a", None)),
    ("seed", (1.5,)),
    ("moat", (float("nan"),)),
    ("seed", (["a"],)),
    ("moat", ({},)),
    ("seed", (("a",),)),
    ("seed", ("x",) * (ELEMENTS_MAX + 1)),
    ("seed", ("x" * 1_022,)),
    ("seed", (-(1 << 63) - 1,)),
    ("seed", ("\ud800",)),
    ("seed", (bytearray(b"a"),)),
]


@pytest.mark.proves("STO-004")
@pytest.mark.parametrize("keys, path", NO_PATHS)
def test_path_that_no_entry_may_have_is_refused(keys: str, path: Path) -> None:
    assert "bad-path" == _code(lambda: normal(path, keys))


@pytest.mark.proves("COD-005", "COD-002")
@given(ANY_PATHS | PATHS)
def test_path_comes_back_from_its_bytes_and_from_its_text(path: Path) -> None:
    for found in (unpack_path(pack_path(path)), parse(text_of(path))):
        assert (path, [*map(type, path)]) == (found, [*map(type, found)])


@given(PATHS, PATHS)
def test_two_paths_have_one_text_only_if_they_are_one(one: Path, other: Path) -> None:
    assert (pack_path(one) == pack_path(other)) == (text_of(one) == text_of(other))


@pytest.mark.proves("COD-007")
@given(st.binary(max_size=40))
def test_any_bytes_are_a_path_or_no_path(body: bytes) -> None:
    try:
        path = unpack_path(body)
    except PeerError as error:
        assert "bad-path" == error.code
    else:
        assert path == unpack_path(pack_path(path))


@given(st.text(st.sampled_from("ab1:._uvstfnexyb-0=A e+ü\n"), max_size=12))
def test_any_text_is_a_path_or_no_path(text: str) -> None:
    try:
        path = parse(text)
    except PeerError as error:
        assert "bad-path" == error.code
    else:
        assert path == parse(text_of(path))


def test_planted_bug_that_1_and_true_are_one_entry_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(path._NORMALS, "seed", path._NORMALS["moat"])
    with pytest.raises(AssertionError):
        test_which_paths_are_one_entry_depends_on_the_keys("key-01")
