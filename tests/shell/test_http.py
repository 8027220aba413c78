"""The pages of a node, asked politely and rudely."""

import asyncio
import gc
import socket
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import weft
from tests.patience import PATIENCE_S
from tests.shell.ports import free_port
from weft.base.errors import UserError
from weft.shell.http import limits, server
from weft.shell.http.assets import assets
from weft.shell.http.gate import Gate
from weft.shell.http.limits import HEAD_BYTES_MAX
from weft.shell.http.messages import Request, Response, Route, Routes, Stream, event, json_response
from weft.shell.http.server import Server
from weft.shell.listening import with_loopback

HELLO = Route(lambda _: Response(200, "text/plain", b"hello\n"))


def ask(*requests: bytes, routes: Routes | None = None) -> list[bytes]:
    async def main() -> list[bytes]:
        served = Server(routes or {"/hello": HELLO}, Gate(is_loopback=True))
        port = await served.serve("127.0.0.1", 0)
        answers = [await say(port, request) for request in requests]
        await served.close()
        return answers

    return asyncio.run(main())


async def say(port: int, request: bytes) -> bytes:
    """One connection, which ends behind the request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    if writer.can_write_eof():
        writer.write_eof()
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.read()
    writer.close()
    return answer


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def test_a_page_is_answered_with_its_length_and_a_tight_policy() -> None:
    (answer,) = ask(b"GET /hello?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"hello\n" == body
    assert head.startswith(b"HTTP/1.1 200")
    told = dict(line.partition(": ")[::2] for line in head.decode().lower().split("\r\n")[1:])
    assert told["content-security-policy"].startswith("default-src 'self'; ")
    assert {
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "content-length": "6",
    }.items() <= told.items()


def test_unknown_pages_and_other_methods_are_refused() -> None:
    answers = ask(
        b"GET /secret HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    )
    assert [b"404", b"405"] == [answer.split(b" ", 2)[1] for answer in answers]


def test_garbage_and_oversized_heads_end_the_connection_and_the_next_is_served() -> None:
    answers = ask(
        b"\x00\xff\x00garbage\r\n\r\n",
        b"GET /hello HTTP/1.1\r\nX: " + b"a" * (HEAD_BYTES_MAX * 2) + b"\r\n\r\n",
        b"",
        b"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n",
    )
    assert [b"", b"", b""] == [answer.partition(b"\r\n\r\n")[2] for answer in answers[:3]]
    assert answers[3].endswith(b"hello\n")


def test_a_port_in_use_is_refused_with_the_mend() -> None:
    async def main() -> None:
        port = free_port()
        first = Server({}, Gate())
        await first.serve("127.0.0.1", port)
        with pytest.raises(UserError) as refused:
            await Server({}, Gate()).serve("127.0.0.1", port)
        await first.close()
        assert "port-taken" == refused.value.code

    asyncio.run(main())


def test_an_application_is_files_json_and_a_live_stream(tmp_path: Path) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "index.html").write_text("<script src=static/app.js></script>")
    (tmp_path / "static" / "app.js").write_text("1")
    (tmp_path.parent / "secret").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path.parent / "secret")

    async def ticks() -> AsyncIterator[bytes]:
        for number in range(3):
            yield event(b"%d" % number, number=str(number))

    routes = {
        **assets("/app/", tmp_path),
        "/app/state": Route(lambda request: json_response({"asked": request.query})),
        "/app/live": Route(lambda _: Stream(ticks())),
    }
    paths = (
        "/app/",
        "/app/index.html",
        "/app/static/app.js",
        "/app/state?x=1",
        "/app/live",
        "/app/link",
        "/app/../secret",
    )
    answers = ask(*map(get, paths), routes=routes)
    assert [200] * 5 + [404] * 2 == [status_of(answer) for answer in answers]
    index, same, script, state, live, *_ = (answer.partition(b"\r\n\r\n")[2] for answer in answers)
    assert (index, b"1", b'{"asked":"x=1"}\n') == (same, script, state)
    assert b"content-type: text/javascript; charset=utf-8" in answers[2].lower()
    assert b"content-type: text/event-stream" in answers[4].lower()
    told = [piece for piece in live.split(b"\r\n") if b"data" in piece]
    assert [b"id: %d\ndata: %d\n\n" % (number, number) for number in range(3)] == told
    assert live.endswith(b"0\r\n\r\n")


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def test_a_file_that_has_not_changed_is_not_sent_again(tmp_path: Path) -> None:
    (tmp_path / "app.js").write_text("1")
    (first,) = ask(get("/app.js"), routes=assets("/", tmp_path))
    tag = next(line for line in first.decode().split("\r\n") if line.startswith("etag")).partition(": ")[2]
    answers = ask(
        get("/app.js", f"If-None-Match: {tag}"), get("/app.js", 'If-None-Match: "x"'), routes=assets("/", tmp_path)
    )
    assert [304, 200] == [status_of(answer) for answer in answers]
    assert b"" == answers[0].partition(b"\r\n\r\n")[2]


def test_more_files_than_memory_is_meant_for_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.shell.http.assets.ASSET_BYTES_MAX", 1)
    (tmp_path / "a").write_text("12")
    with pytest.raises(UserError, match="more than 1 bytes"):
        assets("/", tmp_path)


@pytest.mark.proves("SEC-046")
def test_a_name_that_somebody_made_to_point_here_reads_nothing() -> None:
    answers = ask(
        b"GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET /elsewhere HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET /hello HTTP/1.0\r\n\r\n",
    )
    assert [421] * 3 == [status_of(answer) for answer in answers]


@pytest.mark.proves("SEC-046")
def test_a_head_that_does_not_end_is_waited_for_ten_seconds_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE_S", 0.05)

    async def main() -> tuple[bytes, int]:
        served = Server({"/hello": HELLO}, Gate(is_loopback=True))
        port = await served.serve("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /hello HTTP/1.1\r\n")
        async with asyncio.timeout(PATIENCE_S):
            try:
                answer = await reader.read()
            except ConnectionResetError:
                answer = b""
        writer.close()
        await served.close()
        return answer, served.refused

    assert (10.0, (b"", 1)) == (limits.PATIENCE_S, asyncio.run(main()))


@pytest.mark.proves("SEC-046")
def test_connections_beyond_the_bound_are_told_so_and_beyond_that_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 1)
    monkeypatch.setattr(server, "TOLD_MAX", 1)

    async def main() -> list[int]:
        asked, goes = asyncio.Semaphore(0), asyncio.Event()

        async def slow(_: Request) -> Response:
            asked.release()
            await goes.wait()
            return json_response("done")

        served = Server({"/hello": HELLO, "/slow": Route(slow)}, Gate(is_loopback=True))
        port = await served.serve("127.0.0.1", 0)
        answering = [asyncio.ensure_future(say(port, get("/slow")))]
        await asked.acquire()
        told = status_of(await say(port, get("/hello")))
        monkeypatch.setattr(server, "CONNECTIONS_MAX", 2)
        answering += [asyncio.ensure_future(say(port, get("/slow")))]
        await asked.acquire()
        monkeypatch.setattr(server, "CONNECTIONS_MAX", 1)
        try:
            closed = status_of(await say(port, get("/hello")))
        except ConnectionResetError:
            closed = 0
        goes.set()
        await asyncio.gather(*answering)
        await served.close()
        return [told, closed, served.refused]

    assert [503, 0, 2] == asyncio.run(main())


@pytest.mark.proves("SEC-053", part="viewers of HTTP leave room for whoever asks")
def test_a_crowd_of_viewers_kept_everybody_else_out_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STREAMS_MAX", 2)

    async def main() -> tuple[list[int], int]:
        async def silent() -> AsyncIterator[bytes]:
            yield event(b"1")
            await asyncio.Event().wait()

        served = Server({"/hello": HELLO, "/live": Route(lambda _: Stream(silent()))}, Gate(is_loopback=True))
        port = await served.serve("127.0.0.1", 0)
        viewers = []
        for _ in range(2):
            viewers.append(await asyncio.open_connection("127.0.0.1", port))
            viewers[-1][1].write(get("/live"))
            await viewers[-1][0].readuntil(b"data: 1")
        answers = [status_of(await say(port, get(path))) for path in ("/live", "/hello")]
        for _, writer in viewers:
            writer.close()
        refused = served.refused
        await served.close()
        return answers, refused

    assert ([503, 200], 1) == asyncio.run(main())
    assert limits.STREAMS_MAX + limits.BODIES_MAX < limits.CONNECTIONS_MAX


@pytest.mark.proves("SEC-053", part="connections of HTTP that have not said what they ask for: the longest wait ends")
def test_a_crowd_that_asked_for_nothing_kept_everybody_else_out_for_ten_seconds() -> None:
    async def main() -> tuple[int, int, list[bytes]]:
        served = Server({"/hello": HELLO}, Gate(is_loopback=True))
        port = await served.serve("127.0.0.1", 0)
        crowd = []
        for number in range(limits.CONNECTIONS_MAX + 20):
            crowd.append(await asyncio.open_connection("127.0.0.1", port))
            crowd[-1][1].write(b"GET /hello HTTP/1.1\r\n"[: number % 20])
        while served.refused < 20:  # noqa: ASYNC110  # a connection that was accepted tells no event
            await asyncio.sleep(0)
        answer = status_of(await say(port, get("/hello")))
        ended = [await _all_of(reader) for reader, _ in crowd[:21]]
        for _, writer in crowd:
            writer.close()
        refused = served.refused
        await served.close()
        return answer, refused, ended

    assert (200, 21, [b""] * 21) == asyncio.run(main())


def test_room_is_made_by_the_address_that_has_most_of_the_silent_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 4)

    async def main() -> list[int]:
        served = Server({"/hello": HELLO}, Gate(is_loopback=True))
        port = await served.serve("127.0.0.1", 0)
        other = ("127.0.0.2", 0)
        silent = [await asyncio.open_connection("127.0.0.1", port)]  # the oldest, and alone of its address
        silent += [await asyncio.open_connection("127.0.0.1", port, local_addr=other) for _ in range(4)]
        assert b"" == await _all_of(silent[1][0])
        for _, writer in silent[2:]:
            writer.close()
        silent[0][1].write(get("/hello"))
        answer = status_of(await _all_of(silent[0][0]))
        for _, writer in silent:
            writer.close()
        refused = served.refused
        await served.close()
        return [answer, refused]

    assert [200, 1] == asyncio.run(main())


async def _all_of(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


@pytest.mark.proves("SEC-046")
def test_an_answer_that_nobody_read_was_held_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE_S", 0.2)

    async def main() -> int:
        large = Route(lambda _: Response(200, "text/plain", bytes(60_000)))  # less than asyncio waits to be rid of
        served = Server({"/large": large}, Gate(is_loopback=True))
        port = await served.serve("127.0.0.1", 0)
        assert served._server is not None
        served._server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            client.connect(("127.0.0.1", port))
            client.sendall(get("/large"))
            async with asyncio.timeout(PATIENCE_S):
                while not served.refused:  # noqa: ASYNC110  # as above
                    await asyncio.sleep(0.01)  # tidy: as above
        await served.close()
        return served.refused

    assert 1 == asyncio.run(main())


def test_an_answer_under_way_is_given_a_moment_and_a_stream_is_cut() -> None:
    async def main() -> tuple[bool, int]:
        gate, ended = asyncio.Event(), asyncio.Event()

        async def slow(_: Request) -> Response:
            gate.set()
            await ended.wait()
            return json_response("done")

        async def endless() -> AsyncIterator[bytes]:
            try:
                yield event(b"x")
                await asyncio.Event().wait()
            finally:
                ended.set()

        served = Server({"/slow": Route(slow), "/live": Route(lambda _: Stream(endless()))}, Gate(is_loopback=True))
        port = await served.serve("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(get("/live"))
        await reader.readuntil(b"data: x")
        asked = asyncio.ensure_future(say(port, get("/slow")))
        await gate.wait()
        await served.close()
        writer.close()
        return ended.is_set(), status_of(await asked)

    assert (True, 200) == asyncio.run(main())


def test_a_stream_says_that_it_is_still_there_and_ends_with_who_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "STILL_HERE_S", 0.01)

    async def main() -> bytes:
        ended = asyncio.Event()

        async def silent() -> AsyncIterator[bytes]:
            try:
                await asyncio.Event().wait()
                yield b""
            finally:
                ended.set()

        served = Server({"/live": Route(lambda _: Stream(silent()))}, Gate(is_loopback=True))
        port = await served.serve("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(get("/live"))
        heard = await reader.readuntil(b"event: still\ndata: here\n\n")
        writer.transport.abort()
        async with asyncio.timeout(PATIENCE_S):
            await ended.wait()
        await served.close()
        return heard

    assert b"retry: 1000" in asyncio.run(main())


def test_who_breaks_off_a_stream_leaves_no_error_behind() -> None:
    async def main() -> list[str]:
        errors: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: errors.append(str(told)))

        async def flood() -> AsyncIterator[bytes]:
            while True:
                yield event(bytes(1_000))

        served = Server({"/live": Route(lambda _: Stream(flood()))}, Gate(is_loopback=True))
        port = await served.serve("127.0.0.1", 0)
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # it ends with a reset
            client.connect(("127.0.0.1", port))
            client.sendall(get("/live"))
            client.setblocking(False)
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.get_running_loop().sock_recv(client, 1)
        async with asyncio.timeout(PATIENCE_S):
            while not served.refused:  # noqa: ASYNC110  # as above
                await asyncio.sleep(0)
        await served.close()
        gc.collect()
        await asyncio.sleep(0)
        return errors

    assert [] == asyncio.run(main())


def test_a_page_that_fails_is_an_answer_and_no_error_of_the_process() -> None:
    """A node ends at an error that nobody handles: whoever could make a page fail could end it."""

    def at_once(_: Request) -> Response:
        raise ValueError("embedded null byte")

    async def later(_: Request) -> Response:
        await asyncio.sleep(0)
        raise TypeError("no such key")

    async def breaks_off() -> AsyncIterator[bytes]:
        yield event(b"1")
        raise KeyError("gone")

    async def main() -> tuple[list[bytes], list[str], int]:
        errors: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: errors.append(str(told)))
        pages = {"/a": Route(at_once), "/b": Route(later), "/c": Route(lambda _: Stream(breaks_off())), "/d": HELLO}
        served = Server(pages, Gate(is_loopback=True))
        port = await served.serve("127.0.0.1", 0)
        answers = [await say(port, get(path)) for path in pages]
        await served.close()
        gc.collect()
        await asyncio.sleep(0)
        return answers, errors, served.refused

    answers, errors, refused = asyncio.run(main())
    assert ([500, 500, 200, 200], [], 2) == ([status_of(answer) for answer in answers], errors, refused)
    assert b"our-fault" in answers[0]
    assert answers[2].endswith(b"data: 1\n\n\r\n0\r\n\r\n")


def test_an_order_that_fails_is_an_error_of_the_process() -> None:
    """Half of what it was to change may have changed: the node has to end, and restore itself."""

    def breaks(_: Request) -> Response:
        raise ValueError("half done")

    async def main() -> str:
        error: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().set_exception_handler(lambda _, told: error.set_result(str(told["exception"])))
        served = Server({"/order": Route(breaks, "POST", 9)}, Gate(is_loopback=True))
        port = await served.serve("127.0.0.1", 0)
        head = (
            "POST /order HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        )
        assert b"" == await say(port, head.encode())
        async with asyncio.timeout(PATIENCE_S):
            await error
        await served.close()
        return error.result()

    assert "half done" == asyncio.run(main())


def test_a_connection_that_is_ended_while_it_is_left_ends_without_an_error() -> None:
    async def main() -> bool:
        ours, theirs = socket.socketpair()
        with theirs:
            _, writer = await asyncio.open_connection(sock=ours)
            writer.write(bytes(4 << 20))  # nobody reads it
            leaving = asyncio.ensure_future(Server({}, Gate())._leave(writer))
            await asyncio.sleep(0)
            was_waiting = leaving.cancel()
            await leaving  # asyncio calls a handler that ends as cancelled an error
            writer.transport.abort()
            await asyncio.sleep(0)
            return was_waiting

    assert asyncio.run(main())


def test_a_node_listens_on_loopback_too_wherever_else() -> None:
    hosts = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "192.168.1.4", "sensor.example")
    expected = [1, 1, 1, 1, 1, 2, 2]
    assert expected == [len(with_loopback(host)) for host in hosts]


@pytest.mark.proves("HSE-005")
def test_one_module_parses_http() -> None:
    root = Path(weft.__file__).parent
    found = [path for path in root.rglob("*.py") if "import h11" in path.read_text("utf-8")]
    assert ["shell/http/server.py"] == [path.relative_to(root).as_posix() for path in found]
