"""Which node a program means, and what it is told when that is not clear."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from weft.base.errors import UserError
from weft.client.chain.finding import find


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state base of a user."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("WEFT_NODE", raising=False)
    return tmp_path / "weft"


@pytest.fixture
def listening() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def node(listening: ExitStack, directory: Path, *, is_live: bool = True, name: str = "chains.sock") -> Path:
    """A state directory with a socket at which somebody listens, or did."""
    directory.mkdir(parents=True)
    made = listening.enter_context(socket.socket(socket.AF_UNIX))
    made.bind(str(directory / name))
    if is_live:
        made.listen()
    return directory


@pytest.mark.parametrize("word", ["ipc:///run/chains.sock", "tcp://127.0.0.1:27508"])
def test_an_endpoint_is_taken_at_its_word(base: Path, word: str) -> None:
    assert word == find(word)


def test_the_only_live_node_is_found(base: Path, listening: ExitStack) -> None:
    node(listening, base / "lab" / "dead", is_live=False)
    (base / "lab" / "empty").mkdir()
    alive = node(listening, base / "lab" / "alive")
    assert f"ipc://{alive}/chains.sock" == find(None)


def test_a_name_or_a_state_directory_finds_its_node_and_the_environment_says_either(
    base: Path, listening: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = node(listening, base / "lab" / "one"), node(listening, base / "lab" / "two")
    assert [f"ipc://{one}/chains.sock"] * 3 == [find("one"), find(str(one)), find(one)]
    monkeypatch.setenv("WEFT_NODE", "two")
    assert [f"ipc://{two}/chains.sock", f"ipc://{one}/chains.sock"] == [find(None), find("one")]


def test_the_endpoint_file_is_the_truth(base: Path, listening: ExitStack, tmp_path: Path) -> None:
    directory = node(listening, base / "lab" / "far", name="x")
    (directory / "chains.endpoint").write_text(f"ipc://{directory}/x\n", "utf-8")
    assert [f"ipc://{directory}/x"] * 2 == [find(None), find(directory)]


def test_nobody_or_several_are_said_with_what_to_type(base: Path, listening: ExitStack) -> None:
    with pytest.raises(UserError) as nobody:
        find(None)
    assert ("unavailable", True) == (nobody.value.code, str(base) in nobody.value.text)
    assert nobody.value.try_this.endswith("a node that was started with --state is called by that directory")
    one, two = node(listening, base / "lab" / "same"), node(listening, base / "office" / "same")
    for word in (None, "same"):
        with pytest.raises(UserError) as several:
            find(word)
        assert "several-nodes" == several.value.code
        assert f"2 nodes run here: {one}, {two}" == several.value.text
        assert f"--node {one}; in a program node={str(one)!r}; for all WEFT_NODE={one}" == several.value.try_this
    three = node(listening, base / "lab" / "another")
    with pytest.raises(UserError) as several:
        find(None)
    assert f"3 nodes run here: {three}, {one}, {two}" == several.value.text
    assert "--node another; in a program node='another'; for all WEFT_NODE=another" == several.value.try_this
    with pytest.raises(UserError) as unknown:
        find("other")
    assert "'other'" in unknown.value.text


def test_a_directory_that_is_no_nodes_is_said(base: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError) as wrong:
        find(tmp_path)
    assert "unavailable" == wrong.value.code
