"""`weft service`: units as systemd takes them, installed into a directory; a node is run by the words of its unit."""

import json
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from weft.base.errors import UserError
from weft.cli import service as module
from weft.cli.asking import try_status
from weft.cli.journal import backup
from weft.cli.service import install, ls, remove, restart
from weft.cli.service_units import Service, unit_of
from weft.shell.blocks import free_blocks

FLEET = '[metric.cpu]\ndetail = "CPU"\nrate = "200ms"\n'


def node_file(place: Path, more: str = "") -> Path:
    (place / "fleet.toml").write_text(FLEET)
    (place / "node.toml").write_text(f'[node]\nname = "r1"\nlevel = "root"\nconfig = "fleet.toml"\n{more}')
    return place / "node.toml"


def lines_of(unit: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        key, is_one, value = line.partition("=")
        if is_one:
            found.setdefault(key, []).append(value)
    return found


@pytest.mark.proves("OPS-002", part="unit files for a node and the lake; removed without a trace")
def test_a_service_is_installed_listed_and_removed_without_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "image"
    assert 0 == install(node_file(tmp_path), root=root, memory="512M")
    assert 0 == install(lake="lake", root=root)
    units, settings = root / "etc/systemd/system", root / "etc/weft"
    told = lines_of(units / "weft-r1.service")
    assert ["0.toml:/etc/weft/r1.toml", "1.toml:/etc/weft/r1.fleet.toml"] == told["LoadCredential"]
    assert told["ExecStart"][0].endswith("weft.cli.main up --state /var/lib/weft/r1 %d/0.toml --config %d/1.toml")
    assert (["yes"], ["weft"], ["512M"]) == (told["DynamicUser"], told["StateDirectory"], told["MemoryMax"])
    assert lines_of(units / "weft-lake.service")["ExecStart"][0].endswith("weft.cli.main lake run --lake lake")
    assert (FLEET, 0o600) == ((settings / "r1.fleet.toml").read_text(), (settings / "r1.toml").stat().st_mode & 0o777)
    capsys.readouterr()
    assert 0 == ls(root=root, json=True)
    assert ["lake", "r1"] == [row["name"] for row in json.loads(capsys.readouterr().out)]
    state = root / "var/lib/weft/r1"
    state.mkdir(parents=True)
    assert 0 == remove("lake", root=root)
    assert 0 == remove("r1", purge=True, root=root)
    assert [] == [path for path in root.rglob("*") if "weft" in path.name and path != root / "var/lib/weft"]


@pytest.mark.proves("SEC-014", part="the unit of a node has a limit of memory, also where nobody says one")
def test_a_unit_limits_the_memory_of_its_node_to_twice_its_own_limit(tmp_path: Path) -> None:
    units = tmp_path / "etc/systemd/system"
    install(node_file(tmp_path), root=tmp_path)
    assert ["4096M"] == lines_of(units / "weft-r1.service")["MemoryMax"]
    install(node_file(tmp_path, "[limits]\nmemory_megabytes = 300\n"), root=tmp_path)
    assert ["600M"] == lines_of(units / "weft-r1.service")["MemoryMax"]


def test_state_stays_unless_it_is_purged(tmp_path: Path) -> None:
    install(node_file(tmp_path), root=tmp_path)
    (tmp_path / "var/lib/weft/r1").mkdir(parents=True)
    remove("r1", root=tmp_path)
    assert (tmp_path / "var/lib/weft/r1").is_dir()


def test_settings_that_cannot_be_used_and_names_that_are_not_there_are_refused(tmp_path: Path) -> None:
    refused: list[Callable[[], int]] = [
        lambda: install(node_file(tmp_path, 'state = "/srv/r1"\n'), root=tmp_path),
        lambda: install(node_file(tmp_path, "wrong = 1\n"), root=tmp_path),
        lambda: install(root=tmp_path),
        lambda: remove("r2", root=tmp_path),
    ]
    for act in refused:
        with pytest.raises(UserError):
            act()
    assert not (tmp_path / "etc").exists()


def test_without_systemd_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BOOTED", tmp_path / "none")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with pytest.raises(UserError) as refused:
        install(node_file(tmp_path), mine=True)
    assert "no-systemd" == refused.value.code
    assert not (tmp_path / "config").exists()


def test_systemd_is_told_what_to_do_and_what_it_refuses_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_, said = tmp_path / "bin", tmp_path / "said"
    bin_.mkdir()
    (bin_ / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {said}\n[ "$2" != start ]\n')
    (bin_ / "systemctl").chmod(0o755)
    monkeypatch.setattr(module, "BOOTED", tmp_path)
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    install(node_file(tmp_path), mine=True)
    restart("r1", mine=True)
    remove("r1", mine=True)
    unit = "weft-r1.service"
    words = [
        "daemon-reload",
        f"enable {unit}",
        f"restart {unit}",
        f"restart {unit}",
        f"disable --now {unit}",
        "daemon-reload",
    ]
    assert [f"--user {each}" for each in words] == said.read_text().splitlines()
    (bin_ / "systemctl").write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    with pytest.raises(UserError) as refused:
        install(node_file(tmp_path), mine=True)
    assert "unavailable" == refused.value.code


def run_as_unit(unit: Path, root: Path, port: int) -> subprocess.Popen[str]:
    """As systemd does: its credentials in a directory, its words, its working directory; places below `root`."""
    told = lines_of(unit)
    given = root / "credentials"
    given.mkdir(exist_ok=True)
    for each in told["LoadCredential"]:
        name, path = each.split(":")
        (given / name).write_bytes((root / path.lstrip("/")).read_bytes())
    start = told["ExecStart"][0].replace("%d", str(given)).replace("/var/lib/weft", str(root / "var/lib/weft"))
    home = root / "var/lib/weft"
    home.mkdir(parents=True, exist_ok=True)
    words = [*shlex.split(start), "--port", str(port)]
    return subprocess.Popen(words, cwd=home, env={"PATH": "/usr/bin:/bin"}, stderr=subprocess.PIPE, text=True)


def measured(tmp_path: Path, port: int) -> tuple[str, int]:
    """Who measured under the unit, and in which start; the journal was copied meanwhile."""
    node = run_as_unit(tmp_path / "etc/systemd/system/weft-r1.service", tmp_path, port)
    try:
        while not (told := try_status(port)) or not told["cores"]["measurement"]["numbered"]:
            assert node.poll() is None, node.communicate()[1]
        assert "weft r1" == Path(f"/proc/{node.pid}/comm").read_text().strip()
        backup(tmp_path / "var/lib/weft/r1/journal", tmp_path / f"backup-{told['era']}")
    finally:
        node.send_signal(signal.SIGTERM)
        said = node.communicate(timeout=PATIENCE_S)[1]
    assert 0 == node.returncode, said
    return str(told["node"]), int(told["era"])


@pytest.mark.prove("a real node under its unit")
@pytest.mark.proves("OPS-002", part="a node under the words of its unit measures, starts again as itself, is removed")
@pytest.mark.proves("OPS-003", part="a root is backed up while it runs, and restored")
def test_a_node_under_its_unit_measures_starts_again_and_is_restored(tmp_path: Path) -> None:
    install(node_file(tmp_path), root=tmp_path)
    (port,) = free_blocks(1, 17_600)
    state = tmp_path / "var/lib/weft/r1"
    name, first = measured(tmp_path, port)
    again, second = measured(tmp_path, port)
    shutil.rmtree(state)
    shutil.copytree(tmp_path / f"backup-{second}", state)
    restored, third = measured(tmp_path, port)
    assert [name, name] == [again, restored]
    assert first < second < third
    remove("r1", purge=True, root=tmp_path)
    assert [] == [path.name for path in (tmp_path / "var/lib/weft").iterdir()]


def test_words_of_a_unit_keep_spaces_and_signs() -> None:
    text = unit_of(Service("a", "A", ("up", "my $HOME 100%")), "/opt/w/bin/python")
    assert 'ExecStart=/opt/w/bin/python -m weft.cli.main up "my $$HOME 100%%"\n' in text
