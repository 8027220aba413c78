"""What `make interop` needs stands in one script; a name brings what it needs and nothing else, and it is said beforehand."""

import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
SCRIPT = HERE / "scripts" / "interop-install"
ASKED = re.compile(r'needed\(\s*"([^"]+)"|PROGRAM: Final = "([^"]+)"')
APT = """#!/bin/sh
echo "apt-get $*" >>"$0.calls"
[ "$2" != --simulate ] || printf 'Inst mosquitto (2.0)\\nInst libssl3 [3.0] (3.1)\\nConf mosquitto\\n'
"""


def script(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([SCRIPT, *words], capture_output=True, text=True, env=environment or None, check=False)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("new", "new: iproute2 mosquitto var/peers/moat-new"),
        ("readers", "readers: var/peers/readers"),
        ("calls", "calls: strace"),
        ("mdns", "mdns: avahi-daemon avahi-utils dbus"),
    ],
)
def test_a_name_brings_what_it_needs_and_nothing_else(name: str, expected: str) -> None:
    assert expected == script("--print", name).stdout.strip()


def test_a_name_that_is_not_there_is_refused_with_those_that_are() -> None:
    ended = script("nwe")
    assert (2, "") == (ended.returncode, ended.stdout)
    assert "there is no name nwe here; known are: calls children browser" in ended.stderr


def test_without_a_name_it_brings_every_program_that_a_test_asks_for() -> None:
    asked = {
        one or other
        for path in (HERE / "tests" / "interop").rglob("*.py")
        for one, other in ASKED.findall(path.read_text("utf-8"))
    }
    assert len(asked) >= 10, asked
    named = set(re.findall(r"[\s\"]([\w/.-]+):[\w-]+", SCRIPT.read_text("utf-8").partition("declare -A pythons")[0]))
    assert {"bash", "env"} == asked - named  # no Debian is without them


def test_what_apt_will_do_is_said_before_it_does_it(tmp_path: Path) -> None:
    """`apt-get`, the packages' programs and root are stand-ins; nothing is installed."""
    place = tmp_path / "scripts"
    place.mkdir()
    text = SCRIPT.read_text("utf-8").replace("/usr/sbin/mosquitto:", "/nowhere/mosquitto:").replace("EUID == 0", "1")
    (place / "interop-install").write_text(text + "echo the end\n", "utf-8")
    (tmp_path / "apt-get").write_text(APT, "utf-8")
    for made in (place / "interop-install", tmp_path / "apt-get"):
        made.chmod(0o755)
    done = tmp_path / "var" / "peers" / "moat-new" / "weft.done"
    done.parent.mkdir(parents=True)
    done.touch()  # newer than its pins, which are not here
    words = [str(place / "interop-install"), "new"]
    environment = {"PATH": f"{tmp_path}:/usr/sbin:/usr/bin:/bin", "HOME": str(tmp_path)}
    ended = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    said = [
        "weft: mosquitto: of the system, apt-get will do this:",
        "  installs mosquitto",
        "  upgrades libssl3",
        "the end",
    ]
    assert said == ended.stdout.splitlines()
    calls = (tmp_path / "apt-get.calls").read_text("utf-8").splitlines()
    expected = [
        "update -qq",
        "install --simulate --no-install-recommends mosquitto",
        "install -y --no-install-recommends mosquitto",
    ]
    assert [f"apt-get {words}" for words in expected] == calls
