"""The archive of Spark's classes: used where it fits, bounded, and never needed (PIP-104)."""

import importlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from weft.base.errors import UserError
from weft.cli.lake_tune import tune
from weft.lake.layout import Layout
from weft.lake.reader import Source
from weft.pipeline import classes, tuning
from weft.pipeline.java import Java, choose
from weft.pipeline.session import JAVA_OPTIONS, Options, default_state

HERE = Java(Path("/a/java"), "17.0.15", "PATH")
LISTED = [f"java/lang/Number{number}\n" for number in range(20_000)]
FEW = ["java/lang/Object\n", "java/lang/String\n", "java/lang/Integer\n"]


def kept_by(size_of: dict[int, int], state: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Have an archive made whose size depends on how many classes are in it; how many were tried."""
    tried: list[int] = []

    def dump(_java: Java, chosen: Sequence[str], _path: str, fresh: Path) -> int:
        tried.append(len(chosen))
        assert LISTED[: len(chosen)] == list(chosen), "what is loaded first is kept first"
        size = size_of.get(len(tried), 0)
        if size:
            fresh.write_bytes(b"classes")
        return size

    monkeypatch.setattr(tuning, "choose", lambda _: HERE)
    monkeypatch.setattr(tuning, "_loaded", lambda _: (LISTED, "a.jar"))
    monkeypatch.setattr(tuning, "_dump", dump)
    try:
        tuning.keep(state)
    finally:
        assert {classes.archive(state, HERE)} >= set(state.iterdir()), "nothing else is left"
    return tried


@pytest.mark.proves("PIP-104", part="an archive of classes, of the very Java and Spark, below 100 MB")
def test_a_start_takes_the_archive_of_its_own_java_and_spark_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert () == classes.options(tmp_path, HERE)
    kept_by({1: 90_000_000}, tmp_path, monkeypatch)
    found = classes.options(tmp_path, HERE)
    assert f"-XX:SharedArchiveFile={classes.archive(tmp_path, HERE)}" == found[0]
    assert () == classes.options(tmp_path, HERE._replace(version="21.0.8"))
    monkeypatch.setattr(classes, "version", lambda _: "4.2.0")
    assert () == classes.options(tmp_path, HERE)
    assert (1, 0) == (classes.drop(tmp_path), classes.drop(tmp_path))


def test_an_archive_that_is_too_large_is_made_anew_of_fewer_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = tuning.CLASSES_MAX
    assert [most, most * 95 // 200] == kept_by({1: 200_000_000, 2: 95_000_000}, tmp_path, monkeypatch)


@pytest.mark.parametrize("sizes", [{}, {1: 200_000_000, 2: 100_000_001}])
def test_where_no_small_archive_can_be_made_the_earlier_one_stays(
    sizes: dict[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes.archive(tmp_path, HERE).write_bytes(b"earlier")
    with pytest.raises(UserError, match="archive of") as refused:
        kept_by(sizes, tmp_path, monkeypatch)
    assert ("no-archive", b"earlier") == (refused.value.code, classes.archive(tmp_path, HERE).read_bytes())


def test_a_program_that_fails_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="enough") as refused:
        tuning._run(["sh", "-c", "echo first >&2; echo enough >&2; exit 3"])
    assert "no-archive" == refused.value.code
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("is_there", [True, False])
def test_a_session_starts_its_java_with_the_archive_if_there_is_one(
    is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = importlib.import_module("weft.pipeline.session")
    seen: dict[str, str] = {}
    monkeypatch.setattr(module, "choose", lambda _: HERE)
    monkeypatch.setattr(module, "_prepare_environment", lambda _: None)
    monkeypatch.setattr(module, "_start", lambda settings, _: seen.update(settings))
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession, "builder", SimpleNamespace(getOrCreate=lambda: None))
    state = tmp_path / "a state"
    state.mkdir()
    kept = classes.archive(state, HERE)
    if is_there:
        kept.write_bytes(b"classes")
    module.session(Options(state=state))
    assert is_there == (f"'-XX:SharedArchiveFile={kept}'" in seen[JAVA_OPTIONS])


@pytest.mark.prove("Java keeps a few classes, and starts with them and with a file of nonsense")
def test_java_starts_with_the_archive_and_without_one_that_it_cannot_use(tmp_path: Path) -> None:
    java = choose(tmp_path)
    size = tuning._dump(java, FEW, "", tmp_path / "fresh.jsa")
    assert 0 < size < tuning.BYTES_MAX
    (tmp_path / "fresh.jsa").rename(kept := classes.archive(tmp_path, java))
    for bytes_of in (kept.read_bytes(), b"nonsense", b""):
        kept.unlink()
        kept.write_bytes(bytes_of)
        words = [str(java.home / "bin" / "java"), *classes.options(tmp_path, java), "-version"]
        done = subprocess.run(words, capture_output=True, check=True, text=True)
        assert "" == done.stdout, "the rows of a driver go there"


def test_the_lake_that_a_start_is_watched_with_has_samples_of_its_own_drain(tmp_path: Path) -> None:
    tuning._fill(lake := Layout(tmp_path / "lake"))
    source = Source(lake, "samples")
    assert [1_000] == [manifest.rows for manifest in source.manifests({}, source.latest())]


@pytest.mark.proves("PIP-091", part="tune")
def test_the_command_says_what_it_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    default_state().mkdir()
    (default_state() / "classes-java17-spark4.jsa").write_bytes(b"classes")
    for expected in (1, 0):
        tune(remove=True, json=True)
        assert f'{{"removed":{expected}}}\n' == capsys.readouterr().out
