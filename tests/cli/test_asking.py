"""How a command asks a node: one request, an answer that is whole or none."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from weft.base.endpoints import HTTP as HTTP_PORT
from weft.base.errors import UserError
from weft.cli.asking import order, page_of


@contextmanager
def answering(said: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """The port of a node that gives one answer and hangs up, and what it has heard."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            link, _ = server.accept()
            with link:
                heard.append(link.recv(1 << 16))
                link.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        yield server.getsockname()[1] - HTTP_PORT, heard
        thread.join()


def said(status: str, body: bytes, length: int | None = None) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    ("name", "says"),
    [("rotate-key", "the fabric is open"), ("listen", "ip -brief address"), ("invite", "--listen ADDRESS")],
)
def test_a_refusal_of_an_open_fabric_says_what_to_type(name: str, says: str) -> None:
    with answering(said("409 Conflict", b'{"text": "not here"}')) as (port, _), pytest.raises(UserError) as refused:
        order(port, name)
    assert says in refused.value.try_this


def test_a_page_is_asked_for_and_read() -> None:
    with answering(said("200 OK", b'{"name":"r"}')) as (port, heard):
        assert {"name": "r"} == page_of(port, "status")
    assert heard[0].startswith(f"GET /status HTTP/1.0\r\nhost: 127.0.0.1:{port + HTTP_PORT}\r\n".encode())


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-server\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        said("2x0", b"{}"),
        said("200 OK", b"{", 2),
        said("200 OK", b"{}", -1),
        said("200 OK", b"<html>"),
        said("404 Not Found", b"{}"),
        b"a: b\r\n" * 100,
    ],
)
def test_what_is_no_answer_is_nobody(answer: bytes) -> None:
    with answering(answer) as (port, _), pytest.raises(UserError) as refused:
        page_of(port, "status")
    assert refused.value.code == "unavailable"


def test_a_node_that_wants_a_login_is_somebody() -> None:
    with answering(said("401 ", b"<html>")) as (port, _), pytest.raises(UserError) as refused:
        page_of(port, "status")
    assert refused.value.code == "login"


def test_an_order_is_posted_and_its_refusal_told() -> None:
    with answering(said("409 Conflict", b'{"text":"not now"}')) as (port, heard), pytest.raises(UserError) as refused:
        order(port, "rollback", number=3)
    assert (refused.value.code, "not now" in str(refused.value)) == ("refused", True)
    assert heard[0].endswith(b'\r\n\r\n{"order": "rollback", "number": 3}')
    with answering(said("200 OK", b'{"number":4}')) as (port, _):
        assert {"number": 4} == order(port, "rollback", number=3)


def test_where_nobody_answers_the_node_that_runs_here_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(UserError) as refused:
        page_of(1, "status")
    assert "weft up, or --node or --port of a node that runs" == refused.value.mend
    place = tmp_path / "weft" / "lab" / "hall"
    place.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        (place / "http.endpoint").write_text(f"127.0.0.1:{server.getsockname()[1]}\n", "utf-8")
        with pytest.raises(UserError) as refused:
            order(1, "reload")
    assert "no node answers at 127.0.0.1:1 (asked port 7)" == refused.value.text
    assert "--node hall: it runs here" == refused.value.mend


def test_asking_loads_no_parser_of_mail_or_tls() -> None:
    program = (
        "import sys, weft.cli.status; print([n for n in ('ssl', 'email', 'http.client', 'rich') if n in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


@pytest.mark.proves("OPS-005", part="a node that does not take part says which table of its file is missing")
def test_a_node_without_a_store_says_how_it_gets_one() -> None:
    body = b'{"text": "this node has no store"}'
    with answering(said("503 Service Unavailable", body)) as (port, _), pytest.raises(UserError) as refused:
        order(port, "store-found")
    assert "refused store-found: this node has no store" in refused.value.text
    assert "[store] in the node's file, then: weft reload FILE" in refused.value.try_this
