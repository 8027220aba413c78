"""Which Java is taken: an installed one that will do, else that of the wheel; and why the others were not."""

import stat
from pathlib import Path

import pytest

from weft.base.errors import EXIT_CODES, UserError
from weft.pipeline import java
from weft.pipeline.java import choose


def installed(home: Path, version: str) -> Path:
    """Something that looks like a Java of a version."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\n", "utf-8")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n', "utf-8")
    return home


@pytest.mark.proves("PIP-082")
def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, other = installed(tmp_path / "a", "21.0.8"), installed(tmp_path / "b", "17.0.15")
    found = choose(tmp_path, {"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (home, "21.0.8", "JAVA_HOME", ()) == found
    assert (other, "17.0.15", "PATH", ()) == choose(tmp_path, {"PATH": f"/nowhere:{other / 'bin'}"})


@pytest.mark.proves("PIP-082")
@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.20", "17.0.7", "25.0.2", "18.0.1"])
def test_a_java_that_will_not_do_is_passed_over_with_the_reason(tmp_path: Path, version: str) -> None:
    home, other = installed(tmp_path / "a", version), installed(tmp_path / "b", "17.0.8")
    found = choose(tmp_path, {"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (other, "17.0.8", "PATH", (f"JAVA_HOME has Java {version}",)) == found


@pytest.mark.proves("PIP-082")
def test_without_any_java_the_wheels_launcher_is_written(tmp_path: Path) -> None:
    found = choose(tmp_path / "state", {"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path / "gone")})
    assert (tmp_path / "state" / "java", "wheel") == (found.home, found.rule)
    assert "JAVA_HOME names no Java" in found.passed_over[0]
    launcher = found.home / "bin" / "java"
    assert 0o700 == stat.S_IMODE(launcher.stat().st_mode)
    written = launcher.stat()
    assert choose(tmp_path / "state", {}).home == found.home
    assert written.st_ino == launcher.stat().st_ino


@pytest.mark.proves("PIP-082")
def test_without_the_wheel_either_it_is_one_sentence_and_78(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_wheel", lambda: None)
    with pytest.raises(UserError) as refused:
        choose(tmp_path, {"PATH": "", "JAVA_HOME": str(installed(tmp_path / "a", "11.0.2"))})
    assert ("no-java", 78) == (refused.value.code, EXIT_CODES[refused.value.code])
    assert "JAVA_HOME has Java 11.0.2" in str(refused.value)
