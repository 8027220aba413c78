"""Machines that join by the commands, as processes of this machine: who comes in, who does not, and what is left on disk."""

import json
import os
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests.fabric.fabric import FIRST_PORT, FLEET
from tests.patience import PATIENCE_S
from weft.base.errors import UserError
from weft.cli import join, service
from weft.cli.asking import try_status
from weft.shell.blocks import free_blocks
from weft.torture.secrets import Secrets, written
from weft.wire import token

WEFT = [sys.executable, "-m", "weft.cli.main"]
PAGES = ("status", "metrics", "flight", "quarantine", "healthz")


class Site:
    """A root and those who join it, all below one directory; `with` ends every process."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.ports = free_blocks(4, FIRST_PORT)
        self.port, *self.others = self.ports
        self.running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.begin(*self.root_words(self.port))
        self.until(lambda: try_status(self.port) is not None, "the root answers")
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.running:
            each.terminate()
        for each in self.running:
            try:
                each.wait(20)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()

    def root_words(self, port: int) -> tuple[str, ...]:
        """What starts the first root."""
        lake = ("--lake", str(self.place / "lake"))
        return ("up", "--name", "root", "--level", "root", "--fleet", FLEET, *self.where("root", port), *lake)

    def where(self, name: str, port: int) -> list[str]:
        return ["--port", str(port), "--state", str(self.place / name)]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.place), "XDG_STATE_HOME": str(self.place / "state"), "COLUMNS": "200"}

    def begin(self, *words: str) -> None:
        with (self.place / f"said-{len(self.running)}").open("wb") as said:
            begun = subprocess.Popen([*WEFT, *words], env=self.environment(), stdout=said, stderr=subprocess.STDOUT)
        self.running.append(begun)

    def run(self, *words: str, expects: int = 0) -> str:
        """What a command says, or complains of; it has to end as is expected."""
        ran = subprocess.run(
            [*WEFT, *words], env=self.environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert expects == ran.returncode, ran.stdout + ran.stderr
        return ran.stderr if expects else ran.stdout

    def invite(self, *words: str) -> dict[str, Any]:
        asked = ("invite", "--listen", "127.0.0.1", "--port", str(self.port), "--json", *words)
        told: dict[str, Any] = json.loads(self.run(*asked))
        return told

    def join(self, line: str, name: str, number: int) -> None:
        where = [*self.where(name, self.others[number]), "--listen", "127.0.0.1"]
        self.begin("join", line, "--name", name, *where)

    def names(self) -> list[str]:
        """Who stands in the root's tree, with what it has said lately."""
        status = try_status(self.port) or {}
        return sorted(str(row["name"]) for row in status.get("children", []))

    def until(self, holds: Callable[[], bool], what: str) -> None:
        ends_at = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < ends_at, f"{what}\n{self.said()}"
            time.sleep(0.05)  # tidy: other processes tell this test nothing; bounded above

    def said(self) -> str:
        return "\n".join(path.read_text("utf-8", "replace")[-2_000:] for path in sorted(self.place.glob("said-*")))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path) as made:
        yield made


@pytest.mark.proves("SEC-020", "SEC-022", "SEC-023", "SEC-047")
def test_two_commands_bring_a_machine_in_and_nothing_that_they_write_holds_a_secret(site: Site) -> None:
    line = site.invite()["token"]
    site.join(line, "a", 0)
    site.until(lambda: site.names() == ["a"], "a has joined")
    assert "(used)" in site.run("join", line, "--name", "b", *site.where("b", site.others[1]), "--stay", expects=4)
    typo = line[:-3] + ("A" if line[-3] != "A" else "B") + line[-2:]
    assert "copy the whole line" in site.run("join", typo, "--name", "b", expects=2)
    assert "a copy" not in site.said()
    shown = {name: _page(site.port, name) for name in PAGES}
    arguments = {str(each.pid): Path(f"/proc/{each.pid}/cmdline").read_bytes() for each in site.running}
    site.running[0].send_signal(12)  # SIGUSR2: write the flight recorder down
    site.until(lambda: any(site.place.glob("root/flight/*")), "the flight recorder is written")
    site.__exit__()
    secrets, names = Secrets(), {name for name, _ in written(site.place)}
    secrets.add_token(line)
    for name in ("root", "a"):
        secrets.add_disk(site.place / name)
    assert 15 == len(secrets)
    assert {"said-0"} < names
    assert any(name.startswith("root/journal") for name in names)
    assert [] == secrets.leaks(site.place)
    assert [] == [name for name, data in {**shown, **arguments}.items() if secrets.found_in(data)]


def _page(port: int, name: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port + 6}/{name}", timeout=PATIENCE_S) as answer:
        return bytes(answer.read())


@pytest.mark.prove("a second story of enrolment")
@pytest.mark.proves("SEC-025", part="the root and its nodes hear a revoked key no more, and what it has open is closed")
@pytest.mark.proves("SEC-054", part="a stolen disk is revoked, and its machine comes in again by another token")
def test_a_revoked_machine_is_shut_out_until_it_is_invited_again(site: Site) -> None:
    site.join(site.invite()["token"], "a", 0)
    site.until(lambda: site.names() == ["a"], "a has joined")
    site.run("key", "revoke", "a", "--port", str(site.port))
    site.until(lambda: site.names() == [], "the root has lost a")
    assert ["root"] == [key["name"] for key in json.loads(site.run("key", "ls", "--port", str(site.port), "--json"))]
    site.running[-1].terminate()
    site.running.pop().wait(20)
    site.join(site.invite()["token"], "a", 0)
    site.until(lambda: site.names() == ["a"], "a is in again")


@pytest.mark.prove("a second story of enrolment")
def test_a_root_on_loopback_says_what_to_type_before_it_invites(site: Site) -> None:
    said = site.run("invite", "--port", str(site.port), expects=4)
    assert "weft invite --listen" in said
    said = site.run("invite", "--listen", "192.0.2.7", "--port", str(site.port), expects=4)
    assert "no address of this machine" in said


@pytest.mark.prove("a third story of enrolment")
@pytest.mark.proves("SEC-020", part="`--service`: the unit is installed, enabled and started; its words run the node")
def test_a_machine_joins_as_a_service_by_one_command(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _as_systemd(tmp_path, monkeypatch)
    line = str(site.invite()["token"])
    port = site.others[0]
    with pytest.raises(UserError, match="--stay"):
        join.join(line, name="m2", listen="127.0.0.1", port=port, service=True, stay=True)
    assert 0 == join.join(line, name="m2", listen="127.0.0.1", port=port, service=True)
    assert "weft-m2.service runs" in capsys.readouterr().out
    asked = [f"--user {each}" for each in ("daemon-reload", "enable weft-m2.service", "restart weft-m2.service")]
    assert asked == (tmp_path / "asked").read_text().splitlines()
    (unit,) = (tmp_path / "config").rglob("weft-m2.service")
    started = next(line for line in unit.read_text().splitlines() if line.startswith("ExecStart="))
    site.running.append(subprocess.Popen(shlex.split(started.removeprefix("ExecStart=")), cwd=tmp_path))
    site.until(lambda: "m2" in site.names(), "the node of the service stands in the tree")
    assert (tmp_path / "own" / "weft" / "m2" / "keys").is_dir()


def test_a_machine_without_systemd_or_a_key_of_a_program_joins_as_no_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked before the token is used, which would else be lost."""
    _as_systemd(tmp_path, monkeypatch)
    made = {role: token.encode(_token(role)) for role in ("sensor", "reader")}
    with pytest.raises(UserError, match="reader, which runs no node"):
        join.join(made["reader"], service=True)
    monkeypatch.setattr(service, "BOOTED", tmp_path / "none")
    with pytest.raises(UserError, match="systemd does not run"):
        join.join(made["sensor"], service=True)


@pytest.mark.parametrize(
    ("table", "said"),
    [("[store]\nfounds = 1\n", "founds"), ("[lakes]\n", "lakes"), ("[node]\nport = 80\n", "node.port")],
)
def test_a_file_that_no_node_can_use_uses_up_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, said: str
) -> None:
    """The machine had keys and a place in the fabric when its mistake was found, and was told that nothing was changed."""

    def knock(*_: object) -> None:
        pytest.fail("the door was knocked at")

    monkeypatch.setattr(join, "_enrol", knock)
    (tmp_path / "more.toml").write_text(table, "utf-8")
    with pytest.raises(UserError, match=said):
        join.join(
            token.encode(_token("sensor")), tmp_path / "more.toml", name="m2", listen="127.0.0.1", state=tmp_path / "m2"
        )
    assert not (tmp_path / "m2").exists()


def _token(role: str) -> token.Token:
    return token.Token(
        role=role,
        ident=bytes(8),
        secret=bytes(16),
        server_key=bytes(32),
        expires_minutes=1 << 30,
        endpoints=("127.0.0.1:1",),
    )


def _as_systemd(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of a machine where systemd runs; what it is asked is written down."""
    programs = place / "programs"
    programs.mkdir()
    (programs / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {place}/asked\n')
    (programs / "systemctl").chmod(0o755)
    monkeypatch.setattr(service, "BOOTED", place)
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "own"))
