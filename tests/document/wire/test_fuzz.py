"""The targets of fuzz/ for documents run, with their corpus, and find what is planted."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from weft.cores.document.fold.folding import Fold
from weft.wire.document import endpoints, frames
from weft.wire.document.messages import Helo

FUZZ = Path(__file__).parents[3] / "fuzz"
TARGETS = sorted(path.stem for path in FUZZ.glob("document_*.py"))


def _run(name: str, into: Path, monkeypatch: pytest.MonkeyPatch, runs: int = 400) -> Any:
    """The exit status of a short run, by mutation alone."""
    monkeypatch.syspath_prepend(str(FUZZ))
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", FUZZ / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules["house.running"].__dict__, "find_spec", lambda _: None)
    monkeypatch.setattr(sys, "argv", [name, f"-runs={runs}", "-seed=7", str(into), str(FUZZ / "corpus" / name)])
    with pytest.raises(SystemExit) as caught:
        module.run(module.one)
    return caught.value.code


@pytest.mark.proves("PEE-006", "GSP-012")
@pytest.mark.parametrize("name", TARGETS)
def test_target_begins_with_its_corpus_and_finds_no_harm(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 3 < len(list((FUZZ / "corpus" / name).iterdir()))
    assert 0 == _run(name, tmp_path, monkeypatch)
    assert [] == list(tmp_path.iterdir())


def test_port_without_a_bound_is_found_and_its_bytes_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "parse", lambda text: text)
    assert 1 == _run("document_frames", tmp_path, monkeypatch, runs=3_000)
    assert 1 == len(list(tmp_path.iterdir()))


def test_fold_that_takes_nothing_back_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fold, "rewind", lambda *_: None)
    assert 1 == _run("document_operations", tmp_path, monkeypatch)


def test_message_that_does_not_come_back_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(frames._READ, b"HELO", lambda body: Helo(body.decode("utf-8", "replace").upper() + "\0:1"))
    assert 1 == _run("document_frames", tmp_path, monkeypatch)
