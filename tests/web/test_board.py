"""The board of a session over HTTP (JAM-020, JAM-021), beside a node that is a stub."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.web import stub as stubs
from tests.web.browser import Heard, Viewer, ask
from tests.web.stub import Stub
from weft.shell.http import server
from weft.web import feed
from weft.web.board import Board
from weft.web.settings import Settings

TOKEN = "a token of the tests"
PASS = {"verb": "add", "reference": {"period": 1, "jam": 1}, "xml": '<pass team="home" points="4"/>'}


class Hall:
    """A board and its node."""

    def __init__(self, board: Board, node: Stub, port: int) -> None:
        self.board, self.node, self.port = board, node, port
        self._keys = 0

    async def get(self, path: str, **headers: str) -> Heard:
        return await ask(self.port, "GET", path, b"", headers)

    async def post(self, entry: Any, **headers: str) -> Heard:
        self._keys += 1
        told = {
            "authorization": f"Bearer {TOKEN}",
            "content_type": "application/json",
            "idempotency_key": f"key {self._keys}",
        }
        body = entry if isinstance(entry, bytes) else json.dumps(entry).encode()
        return await ask(self.port, "POST", "/ops", body, told | headers)

    async def until(self, holds: Callable[[Any], bool]) -> Any:
        async with Viewer(self.port) as viewer:
            return await viewer.until(holds)


@contextlib.asynccontextmanager
async def hall(place: Path, *, begin: bool = True, **settings: Any) -> AsyncIterator[Hall]:
    node = Stub(place / "doc.sock")
    if begin:
        await node.start()
    board = Board(Settings(node=node.endpoint, session="Hall 5", port=0, token=TOKEN, **settings))
    await board.start()
    until = asyncio.Event()
    running = asyncio.ensure_future(board.run(until))
    found = Hall(board, node, int(board.url.rstrip("/").rpartition(":")[2]))
    try:
        if begin:
            await found.until(lambda state: state["board"] is not None)
        yield found
    finally:
        until.set()
        await running
        await node.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path


def run(dialogue: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(dialogue, PATIENCE_S))


@pytest.mark.proves("JAM-020")
def test_pages_state_and_stream_are_where_they_are_promised(place: Path) -> None:
    async def dialogue() -> None:
        async with hall(place) as it:
            for path in ("/", "/entry"):
                heard = await it.get(path)
                assert (200, "text/html; charset=utf-8") == (heard.status, heard.headers["content-type"])
                assert heard.body.startswith(b"<!doctype html>")
            state = (await it.get("/state.json")).json
            assert ("Hall 5", {"home": 0, "away": 0}) == (
                state["session"],
                {side: team["score"] for side, team in state["board"]["teams"].items()},
            )
            async with Viewer(it.port) as viewer:
                event = await viewer.next()
                assert (it.node.check, "Hall 5") == (event.id, event.state["session"])

    run(dialogue())


@pytest.mark.proves("SEC-046")
@pytest.mark.parametrize(
    "method, path, host, status",
    [
        ("GET", "/elsewhere", "", 404),
        ("POST", "/", "", 405),
        ("GET", "/ops", "", 405),
        ("DELETE", "/ops", "", 405),
        ("HEAD", "/", "", 405),
        ("GET", "/", "evil.example", 421),
        ("GET", "/", "192.168.1.4:8090", 421),
        ("GET", "/", "localhost", 200),
        ("GET", "/", "[::1]:8090", 200),
        ("GET", "/" + "x" * 20_000, "", 431),
    ],
)
def test_what_is_asked_otherwise_is_refused(place: Path, method: str, path: str, host: str, status: int) -> None:
    async def dialogue() -> None:
        async with hall(place, begin=False) as it:
            heard = await ask(it.port, method, path, b"", {"host": host} if host else {})
            assert status == heard.status
            assert "access-control-allow-origin" not in heard.headers
            assert "default-src" in heard.headers["content-security-policy"] or status == 431

    run(dialogue())


@pytest.mark.proves("JAM-020")
def test_an_entry_is_answered_by_its_number_and_seen_by_who_watches(place: Path) -> None:
    async def dialogue() -> None:
        async with hall(place) as it, Viewer(it.port) as viewer:
            await viewer.next()
            heard = await it.post(PASS | {"by": "Ann"})
            assert (201, 1, "applied") == (heard.status, heard.json["sequence"], heard.json["outcome"])
            state = await viewer.until(lambda state: state["board"]["teams"]["home"]["score"] == 4)
            assert it.node.check == state["check"]
            assert "Ann" == it.node.edits[0]["by"]
            state = await viewer.until(lambda state: state["recent"])
            assert ("add", "period=1 jam=1", "Ann") == tuple(
                state["recent"][0][key] for key in ("verb", "reference", "by")
            )

    run(dialogue())


@pytest.mark.proves("JAM-020")
@pytest.mark.parametrize(
    "entry, headers, status, code",
    [
        (PASS, {"authorization": ""}, 401, "token"),
        (PASS, {"authorization": "Bearer another token"}, 401, "token"),
        (PASS, {"authorization": "Basic " + TOKEN}, 401, "token"),
        (PASS, {"origin": "http://evil.example"}, 403, "not-allowed"),
        (PASS, {"content_type": "text/plain"}, 415, "content-type"),
        (PASS, {"idempotency_key": ""}, 400, "no-key"),
        (PASS, {"idempotency_key": "k" * 129}, 400, "no-key"),
        (b"{", {}, 400, "bad-json"),
        (b"\xff", {}, 400, "bad-json"),
        (b"[" * 8_000, {}, 400, "bad-json"),
        ({"verb": "destroy"}, {}, 400, "bad-json"),
        (PASS | {"more": 1}, {}, 400, "bad-json"),
        (b" " * 16_385, {}, 413, "too-large"),
        (PASS | {"reference": {"eid": "nobody"}}, {}, 422, "no-reference"),
        (PASS | {"xml": "<pass"}, {}, 422, "bad-xml"),
        ({"verb": "resolve", "conflict": "none", "side": "first"}, {}, 404, "not-found"),
    ],
)
def test_an_entry_that_cannot_be_is_refused_with_its_reason(
    place: Path, entry: Any, headers: dict[str, str], status: int, code: str
) -> None:
    async def dialogue() -> None:
        async with hall(place) as it:
            heard = await it.post(entry, **headers)
            assert (status, code) == (heard.status, heard.json["error"])
            assert [] == it.node.operations

    run(dialogue())


@pytest.mark.proves("JAM-020")
def test_a_body_that_does_not_say_how_long_it_is_ends_at_sixteen_kilobytes(place: Path) -> None:
    async def dialogue() -> None:
        async with hall(place) as it:
            body = b"5000\r\n" + b" " * 0x5000 + b"\r\n0\r\n\r\n"
            heard = await it.post(body, content_length="", transfer_encoding="chunked")
            assert (413, "too-large") == (heard.status, heard.json["error"])

    run(dialogue())


@pytest.mark.proves("JAM-020")
def test_the_same_key_enters_once_and_another_body_under_it_is_refused(place: Path) -> None:
    async def dialogue() -> None:
        async with hall(place) as it:
            first, again = await asyncio.gather(*(it.post(PASS, idempotency_key="once") for _ in range(2)))
            later = await it.post(PASS, idempotency_key="once")
            other = await it.post(PASS | {"by": "Bo"}, idempotency_key="once")
            assert [201] * 3 == [heard.status for heard in (first, again, later)]
            assert first.body == again.body == later.body
            assert (422, "key-reused", 1) == (other.status, other.json["error"], len(it.node.operations))

    run(dialogue())


def test_what_may_have_happened_is_not_tried_again_under_its_key(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "TIMEOUT_S", 0.3)

    async def dialogue() -> None:
        async with hall(place) as it:
            it.node.is_deaf = True
            heard = await it.post(PASS, idempotency_key="once")
            it.node.is_deaf = False
            again = await it.post(PASS, idempotency_key="once")
            assert [(504, "unanswered")] * 2 == [(one.status, one.json["error"]) for one in (heard, again)]
            assert 201 == (await it.post(PASS, idempotency_key="another")).status
            assert 1 == len(it.node.operations)

    run(dialogue())


def test_what_did_not_happen_is_tried_again_under_the_same_key(place: Path) -> None:
    async def dialogue() -> None:
        async with hall(place, begin=False) as it:
            heard = await it.post(PASS, idempotency_key="once")
            assert (503, "unreachable") == (heard.status, heard.json["error"])
            await it.node.start()
            await it.until(lambda state: not state["is_away"])
            assert 201 == (await it.post(PASS, idempotency_key="once")).status

    run(dialogue())


@pytest.mark.proves("JAM-021")
def test_the_state_says_who_is_connected_what_waits_and_what_is_in_conflict(place: Path) -> None:
    async def dialogue() -> None:
        async with hall(place) as it:
            it.node.time, it.node.facts = 1_000.0, {"alone_s": 12}
            it.node.touch()
            state = await it.until(lambda state: state["time"] == 1_000)
            assert (988, []) == (state["alone_since"], state["peers"])
            it.node.peers = [{"uuid": "b", "endpoint": "127.0.0.1:50002", "state": "ACTIVE", "heard_s": 1}]
            it.node.peers.append({"uuid": "c", "endpoint": "127.0.0.1:50003", "state": "ACTIVE", "heard_s": 12})
            it.node.facts = {"active": 2}
            it.node.conflicts = [_conflict("0123456789abcdef")]
            it.node.touch()
            state = await it.until(lambda state: state["conflicts"])
            assert (None, "ACTIVE") == (state["alone_since"], state["peers"][0]["state"])
            assert [None, 988] == [peer["silent_since"] for peer in state["peers"]]
            conflict = state["conflicts"][0]
            resolve = {"verb": "resolve", "conflict": conflict["id"], "side": "second", "by": "Ann"}
            assert 201 == (await it.post(resolve)).status
            assert ("0123456789abcdef", "second", "Ann") == tuple(
                it.node.edits[0][key] for key in ("id", "choice", "by")
            )
            await it.until(lambda state: not state["conflicts"])

    run(dialogue())


def _conflict(number: str) -> dict[str, Any]:
    first, second = [stubs.SOURCE, 1, "90"], [stubs.SOURCE, 2, "91"]
    slot = {"kind": "set-set", "slot": "/period[1]/jam[1]", "attr": "duration"}
    return {"id": number, **slot, "first": first, "second": second, "open": True}


def test_what_people_say_is_shown_to_operators_and_not_to_the_hall(place: Path) -> None:
    async def dialogue() -> None:
        async with hall(place) as it, Viewer(it.port, "/events?view=hall") as viewer:
            assert (201, {"told": 0}) == (
                (heard := await it.post({"verb": "chat", "text": "Ready?"})).status,
                heard.json,
            )
            state = await it.until(lambda state: state["chats"])
            assert "Ready?" == state["chats"][0]["text"]
            await it.post(PASS)
            seen = await viewer.until(lambda state: state["check"] == it.node.check)
            assert [] == [name for name in ("chats", "recent") if name in seen]
            assert "passes" not in seen["board"]["rows"][0]["home"]

    run(dialogue())


def test_a_state_that_is_sent_late_says_how_old_it_is(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def dialogue() -> None:
        async with hall(place) as it:
            shown = it.board.feed.shown
            monkeypatch.setattr(time, "monotonic", lambda: shown.made + 30)
            assert 30.0 == json.loads(shown.aged(is_whole=True))["age"]
            monkeypatch.undo()

    run(dialogue())


@pytest.mark.proves("JAM-020")
def test_a_hundred_viewers_see_a_change(place: Path) -> None:
    async def dialogue() -> None:
        async with hall(place) as it, contextlib.AsyncExitStack() as stack:
            viewers = [await stack.enter_async_context(Viewer(it.port, "/events?view=hall")) for _ in range(100)]
            await asyncio.gather(*(viewer.next() for viewer in viewers))
            await it.post(PASS)
            states = await asyncio.gather(
                *(viewer.until(lambda state: state["board"]["teams"]["home"]["score"] == 4) for viewer in viewers)
            )
            assert [it.node.check] * 100 == [state["check"] for state in states]

    run(dialogue())


@pytest.mark.proves("JAM-020")
def test_a_slow_viewer_gets_the_newest_state_and_never_more_than_eight_older_ones(place: Path) -> None:
    async def dialogue() -> None:
        async with hall(place, begin=False) as it:  # no node: nothing else is published
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            connection.setblocking(False)
            await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", it.port))
            reader, writer = await asyncio.open_connection(sock=connection, limit=2_048)
            writer.write(f"GET /events HTTP/1.1\r\nhost: 127.0.0.1:{it.port}\r\n\r\n".encode())
            await reader.readuntil(b"data: ")
            state = it.board.feed._state
            for number in range(400):  # each of 10,000 bytes
                it.board.feed._publish({**state, "session": f"{number} ".ljust(10_000, "x")}, time.monotonic())
                await asyncio.sleep(0)
            text = ""
            while f'"session":"{number} ' not in text:
                text += (await reader.read(1 << 16)).decode()
            assert text.count("data: ") <= 8
            writer.close()

    run(dialogue())


def test_more_connections_than_there_is_room_for_are_told_so(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 1)

    async def dialogue() -> None:
        async with hall(place, begin=False) as it, Viewer(it.port) as viewer:
            await viewer.next()
            assert 503 == (await it.get("/")).status

    run(dialogue())


@pytest.mark.proves("JAM-021")
def test_a_node_that_is_away_is_said_to_be_and_comes_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "AWAY_S", 0.2)

    async def dialogue() -> None:
        async with hall(place) as it, Viewer(it.port) as viewer:
            it.node.is_deaf = True
            assert "Hall 5" == (await viewer.until(lambda state: state["is_away"]))["session"]
            it.node.is_deaf = False
            await viewer.until(lambda state: not state["is_away"])

    run(dialogue())


def test_an_answer_that_cannot_be_read_is_said_and_asked_for_again(place: Path) -> None:
    async def dialogue() -> None:
        async with hall(place) as it:
            it.node.conflicts = [{"id": 5}]
            it.node.touch()
            assert "id" in (await it.until(lambda state: state["is_away"]))["why"]
            it.node.conflicts = []
            await it.until(lambda state: not state["is_away"])

    run(dialogue())


def test_a_board_ends_with_its_parent(place: Path) -> None:
    async def dialogue() -> None:
        parent = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
        board = Board(Settings(node=f"ipc://{place}/doc.sock", port=0, parent=parent.pid))
        await board.start()
        running = asyncio.ensure_future(board.run(asyncio.Event()))
        await parent.communicate(b"\n")
        await asyncio.wait_for(running, PATIENCE_S)

    run(dialogue())


@pytest.mark.proves("JAM-020")
def test_a_board_is_a_program_that_says_where_it_is_and_ends_when_told(place: Path) -> None:
    settings = json.dumps({"node": f"ipc://{place}/doc.sock", "session": "S", "port": 0, "note": str(place / "url")})
    command = [sys.executable, "-m", "weft.web.board", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ.copy()) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(settings.encode())
        program.stdin.close()
        ready = json.loads(program.stdout.readline())
        assert ("ready", f"{ready['url']}\n") == (ready["event"], (place / "url").read_text("utf-8"))
        program.send_signal(signal.SIGTERM)
        assert 0 == program.wait(10)


def test_a_port_that_is_taken_ends_a_board_with_two(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = json.dumps({"node": "ipc:///x", "port": taken.getsockname()[1]})
        done = subprocess.run([sys.executable, "-m", "weft.web.board", settings], capture_output=True, check=False)
    assert (2, True) == (done.returncode, b"cannot be bound" in done.stderr)


@pytest.mark.proves("SEC-046")
def test_who_comes_from_elsewhere_is_asked_for_the_key_and_keeps_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = server._request
    monkeypatch.setattr(server, "_request", lambda head, writer: made(head, writer)._replace(peer="192.168.1.44"))

    async def dialogue() -> None:
        async with hall(place, begin=False) as it:
            assert [401] * 4 == [(await it.get(path)).status for path in ("/", "/entry", "/state.json", "/events")]
            assert b"its key" in (await it.get("/")).body
            opened = await it.get(f"/entry?key={it.board.gate.view}")
            cookie = opened.headers["set-cookie"].partition(";")[0]
            assert (303, "/entry") == (opened.status, opened.headers["location"])
            assert [200] * 2 == [(await it.get(path, cookie=cookie)).status for path in ("/", "/state.json")]
            assert 401 == (await it.post(PASS, authorization="", cookie=cookie)).status

    run(dialogue())
