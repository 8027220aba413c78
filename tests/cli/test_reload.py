"""`weft reload`: a running node follows [store], [catalog] and [doc] of its changed file; what it cannot have, it says (OPS-007)."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S, until
from weft.base.errors import UserError
from weft.cli.asking import order, page_of, post, status_of, try_status
from weft.cli.reload import reload
from weft.node.settings import settings_of
from weft.shell.blocks import free_blocks
from weft.shell.http.messages import Request
from weft.shell.reloading import Reloading

HEAD = '[node]\nname = "r1"\nlevel = "root"\nport = {port}\nstate = "{state}"\nbeacons = false\n'
METRIC, DISK = "/CONFIG/all/metric/disk", {"detail": "DISK_PERCENT", "rate": "1s"}
ALERT, FULL = "/CONFIG/all/alert/full", {"metric": "disk", "when": "> 0.01 %"}


class Running:
    """A node in a process of its own, and its file."""

    def __init__(self, place: Path) -> None:
        self.port, self.catalog = free_blocks(2, 15_000)
        self.file = place / "r1.toml"
        self.head = HEAD.format(port=self.port, state=place / "r1")
        self.write("")
        words = [sys.executable, "-m", "weft.cli.main", "up", str(self.file)]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        until(lambda: try_status(self.port), "the node answers")

    def write(self, more: str) -> None:
        self.file.write_text(self.head + more, "utf-8")

    def cores(self) -> set[str]:
        return {"store", "catalog", "document"} & set(status_of(self.port)["cores"])

    def end(self) -> tuple[int, list[str]]:
        """Its exit status, and what it said to people."""
        self.process.terminate()
        _, said = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, [line for line in said.splitlines() if not line.startswith("{")]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    yield running
    running.process.kill()
    running.process.communicate()


@pytest.mark.proves("OPS-007", part="[store], [catalog] and [doc] are followed while the process runs, and taken away")
def test_tables_are_followed_while_the_process_runs(node: Running, capsys: pytest.CaptureFixture[str]) -> None:
    assert set() == node.cores()
    node.write("[store]\n")
    assert 0 == reload(node.file)
    assert {"store"} == node.cores()
    order(node.port, "store-found", value="a5686f757365")
    session = '[doc.session.minutes]\nschema = "plain"\n'
    node.write(f"[store]\n[catalog]\nport = {node.catalog}\nbeacons = false\n{session}")
    assert 0 == reload(node.file, json=True)
    assert {"store", "catalog", "document"} == node.cores()
    node.write("[store]\n")
    assert 0 == reload(node.file)
    assert {"store"} == node.cores()
    assert 0 == reload(node.file)
    said = capsys.readouterr().out.splitlines()
    assert f"r1 follows [store] of {node.file}" == said[0]
    assert {"name": "r1", "tables": ["catalog", "doc"]} == json.loads(said[1])
    assert [f"r1 follows [catalog], [doc] of {node.file}", "r1 follows all of that already"] == said[2:]
    assert node.process.poll() is None
    status, told = node.end()
    assert 0 == status
    assert told[-3:] == [
        "weft: r1 starts again with the changed [store] of its file",
        "weft: r1 starts again with the changed [catalog], [doc] of its file",
        "weft: r1 starts again with the changed [catalog], [doc] of its file",
    ]


@pytest.mark.proves("OPS-007", part="who is told of alerts, and who gets the values, is followed too")
def test_who_is_told_is_followed_while_the_process_runs(
    node: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def sinks() -> list[str]:
        return [sink["sink"] for sink in page_of(node.port, "alerts")["sinks"]]

    told = tmp_path / "told.json"
    assert [] == sinks()
    node.write(f'[notify.me]\ncommand = ["tee", "-a", "{told}"]\n')
    assert 0 == reload(node.file)
    assert ["me"] == sinks()
    until(lambda: _has_loaded(node.port), "it leads, and takes an alert that fires")
    until(lambda: told.exists() and "raised" in told.read_text(), "it is told")
    node.write('[export.old]\nprometheus = "http://127.0.0.1:9/api/v1/write"\n')
    assert 0 == reload(node.file)
    assert ([], True) == (sinks(), "export" in status_of(node.port)["cores"])
    said = capsys.readouterr().out.splitlines()
    assert [f"r1 follows [{name}] of {node.file}" for name in ("notify", "notify], [export")] == said
    assert 0 == node.end()[0]


def _has_loaded(port: int) -> bool:
    pairs = {"/CONFIG/all/members": ["*"], METRIC: DISK, ALERT: FULL}
    try:
        order(port, "load", pairs=pairs, prefixes=["/CONFIG/"])
    except UserError:
        return False  # it does not lead yet
    return True


@pytest.mark.proves("OPS-007", part="what cannot be had changes nothing: the node goes on with the old tables")
def test_a_port_that_is_taken_leaves_the_node_as_it_was(node: Running, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", node.catalog))
        other.listen()
        node.write(f"[store]\n[catalog]\nport = {node.catalog}\nbeacons = false\n")
        assert 5 == reload(node.file)
    said = f"weft: r1 does not follow [store], [catalog]\n  try: weft status --port {node.port}; its log says why\n"
    assert said == capsys.readouterr().err
    assert set() == node.cores()
    assert 0 == reload(node.file)
    assert {"store", "catalog"} == node.cores()
    status, told = node.end()
    assert (0, True) == (status, "  r1 goes on with the old tables" in told)


@pytest.mark.proves("OPS-007", part="a file that cannot be used, or of another node, is refused, and changes nothing")
def test_a_file_that_cannot_be_used_is_refused(node: Running, tmp_path: Path) -> None:
    node.write("[store]\nwrong = 1\n")
    with pytest.raises(UserError) as refused:
        reload(node.file)
    assert "bad-settings" == refused.value.code
    node.head = node.head.replace('"r1"', '"r2"')
    node.write("[store]\n")
    with pytest.raises(UserError) as refused:
        reload(node.file)
    assert refused.value.text.endswith("this is node r1, and the file is that of r2")
    assert set() == node.cores()


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"nonsense", 400, "the file cannot be read as JSON: "),
        (b'{"node": {"name": "a", "wrong": 1}}', 409, "the file cannot be used:"),
        (b'{"node": {"name": "b"}}', 409, "this is node a, and the file is that of b"),
    ],
)
def test_what_is_no_file_of_this_node_is_refused_and_nothing_follows(body: bytes, status: int, told: str) -> None:
    heard: list[Any] = []
    desk = Reloading(settings_of({"node": {"name": "a", "level": "root"}}), 7, heard.append)
    desk.is_ours = lambda *_: True
    answer = desk.take(Request("POST", "/reload", body=body))
    assert status == answer.status
    assert json.loads(answer.body)["text"].startswith(told)
    assert (None, []) == (desk.following, heard)


@pytest.mark.proves(
    "SEC-002", part="who is no program of the node's own user names no command, on an open fabric neither"
)
@pytest.mark.parametrize(
    "table",
    [
        {"notify": {"me": {"command": ["/tmp/evil"]}}},
        {"catalog": {"checks": [{"service": "*", "command": ["/tmp/evil"]}]}},
        {"export": {"me": {"prometheus": "http://10.0.0.1/"}}},
    ],
)
def test_neither_a_login_nor_the_token_nor_another_user_changes_the_file_of_a_node(table: dict[str, Any]) -> None:
    """Any user of the machine of an open node let it run a command of theirs, as an alert's; so did who had a login."""
    heard: list[Any] = []
    desk = Reloading(settings_of({"node": {"name": "a", "level": "root"}}), 7, heard.append)
    body = json.dumps({"node": {"name": "a", "level": "root"}, **table}).encode()
    for peer in ("127.0.0.1", "192.168.1.44", ""):  # of neither this kernel has a connection
        headers = {"authorization": "Bearer x"}
        request = Request("POST", "/reload", headers=headers, peer=peer, ports=(1, 2), host="127.0.0.1", body=body)
        assert 403 == desk.take(request).status
    assert (None, []) == (desk.following, heard)


def test_another_user_of_this_machine_is_refused_and_this_one_obeyed(node: Running) -> None:
    document = {"node": {"name": "r1", "level": "root", "port": node.port, "beacons": False}, "store": {}}
    for user in [65_534] * (os.geteuid() == 0):  # only root can be another user
        assert "programs of its own user" in said_to(user, lambda: post(node.port, "reload", document))
    assert ["store"] == post(node.port, "reload", document)["tables"]


def said_to(user: int, ask: Callable[[], Any]) -> str:
    """What somebody else is told, in a process of theirs."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:  # it ends without the tests' own clean-up
        os.setuid(user)
        try:
            os.write(writer, f"{ask()}".encode())
        except UserError as refused:
            os.write(writer, refused.text.encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(reader, 1_000).decode()
