"""`weft demo bout` (JAM-041): two laptops, a cable that is cut, and a verdict that can be FAIL."""

import json
import socket
import subprocess
import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from tests.patience import PATIENCE_S
from weft.base.errors import UserError
from weft.cli.demos.bout import Bout, Plan, bout, script
from weft.cli.demos.cable import Cable


@pytest.mark.prove("real nodes")
@pytest.mark.proves("JAM-041")
def test_laptops_that_were_cut_apart_and_one_that_came_late_end_with_every_entry_one_document_and_the_conflict(
    tmp_path: Path,
) -> None:
    words = [
        "demo",
        "bout",
        "--cut",
        "0.4",
        "--join",
        "3",
        "--within",
        "20",
        "--third",
        "--json",
        "--directory",
        str(tmp_path),
    ]
    command = [sys.executable, "-m", "weft.cli.main", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    result = json.loads(done.stdout) if done.returncode in (0, 1) else {}
    assert ("PASS", [], 0) == (result.get("verdict"), result.get("differences"), done.returncode), done.stderr
    assert (15, 1) == (result["entries"], len(result["conflicts"]))
    assert {"home": 1, "away": 3} == result["score"]


def _laptop(name: str, **facts: Any) -> Any:
    written = SimpleNamespace(source="s", sequence=1)
    told = {"digest": "d", "log": {("s", 1): b"body"}, "conflicts": ["c"], "page": {"conflicts": [{"id": "c"}]}} | facts
    return SimpleNamespace(
        name=name,
        entered=[written],
        client=SimpleNamespace(digest=lambda: {"digest": told["digest"]}),
        log=lambda: told["log"],
        conflicts=lambda: told["conflicts"],
        page=lambda: told["page"],
    )


@pytest.mark.proves("JAM-041")
@pytest.mark.parametrize(
    "facts, expected",
    [
        ({}, None),
        ({"digest": "other"}, "the documents differ"),
        ({"log": {}}, "bob lacks 2 of 2 entries"),
        ({"log": {("s", 1): b"another body"}}, "entries have different bodies"),
        ({"conflicts": []}, "the conflicts differ"),
        ({"page": {}}, "bob's board shows conflicts []"),
    ],
)
def test_whatever_is_different_at_the_end_is_said(tmp_path: Path, facts: dict[str, Any], expected: str | None) -> None:
    judged = Bout(tmp_path, Plan(equal_s=0.0), Console(quiet=True))
    judged.laptops = {"ann": _laptop("ann"), "bob": _laptop("bob", **facts)}
    found = judged._unequal() or judged._unshown()
    assert (expected is None) == (not found)
    assert expected is None or found[0].startswith(expected)


@pytest.mark.proves("JAM-041")
@pytest.mark.parametrize("found, expected", [([], ("PASS", 0)), (["bob lacks 2 of 15 entries"], ("FAIL", 1))])
def test_a_bout_that_ended_with_a_difference_has_failed(
    found: list[str],
    expected: tuple[str, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def entered(judged: Bout) -> Bout:
        judged.equal_after = 0.0
        teams = {"home": {"score": 1}, "away": {"score": 3}}
        judged.laptops = {"ann": _laptop("ann"), "bob": _laptop("bob")}
        setattr(judged.laptops["ann"].client, "board", lambda: {"board": {"teams": teams}})  # noqa: B010  # a double, whatever its type says
        return judged

    monkeypatch.setattr(Bout, "__enter__", entered)
    monkeypatch.setattr(Bout, "__exit__", lambda *_: None)
    monkeypatch.setattr(Bout, "play", lambda _: found)
    monkeypatch.setattr("weft.cli.demos.bout.signal.signal", lambda *_: None)
    status = bout(Plan(), directory=tmp_path, as_json=True)
    result = json.loads(capsys.readouterr().out)
    assert (expected, found) == ((result["verdict"], status), result["differences"])


def test_the_script_goes_on_in_order_and_disputes_the_first_jam_behind_the_cut() -> None:
    acts = list(islice(script(5.0), 60))
    assert [act.at for act in acts] == sorted(act.at for act in acts)
    disputes = [act for act in acts if act.who == "bob" and act.words[0] == "set" and "duration" in act.words[-1]]
    assert [("period=1", "jam=3", "duration=3.5")] == [act.words[1:] for act in disputes]


def test_a_cable_that_is_joined_before_it_is_cut_is_refused() -> None:
    with pytest.raises(UserError) as refused:
        bout(Plan(cut_s=5, join_s=4))
    with pytest.raises(UserError, match=r"--join 6\.5"):  # nobody disagrees so soon
        bout(Plan(cut_s=1, join_s=4))
    assert "usage" == refused.value.code


def _said(connection: socket.socket) -> bytes:
    connection.sendall(b"hello")
    try:
        return connection.recv(5)
    except OSError:
        return b""


def test_a_cable_passes_on_what_is_said_unless_it_is_cut() -> None:
    with socket.create_server(("127.0.0.1", 0)) as far, socket.create_server(("127.0.0.1", 0)) as spare:
        port = spare.getsockname()[1]
        spare.close()
        far.settimeout(PATIENCE_S)
        cable = Cable(port, far.getsockname()[1])
        with socket.create_connection(("127.0.0.1", port), 5) as near:
            end, _ = far.accept()
            near.sendall(b"hello")
            assert b"hello" == end.recv(5)
            cable.cut()
            assert b"" == near.recv(5)
            assert b"" == end.recv(5)
            end.close()
        with socket.create_connection(("127.0.0.1", port), 5) as near:
            assert b"" == _said(near)
        cable.join()
        with socket.create_connection(("127.0.0.1", port), 5) as near:
            end, _ = far.accept()
            end.sendall(b"hello")
            assert b"hello" == near.recv(5)
            end.close()
        cable.close()
