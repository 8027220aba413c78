"""Checks with real sockets and processes: each kind passes, fails, and ends in its time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import zmq

from tests.patience import PATIENCE_MS
from weft.cores.catalog.messages import CheckDone, RunCheck
from weft.shell.catalogchecks import CheckRunner
from weft.shell.links import Links

TIME_NS = 10 * 10**9


class Orders:
    """What a runner would hear."""

    def __init__(self) -> None:
        self.performers: dict[type, Callable[[Any], None]] = {}
        self.came: asyncio.Queue[CheckDone] = asyncio.Queue()

    def order(self, core: str, order: CheckDone) -> None:
        assert "catalog" == core
        self.came.put_nowait(order)


async def outcome(kind: str, target: str = "", timeout_ns: int = TIME_NS, **more: Any) -> str:
    links, orders = Links(lambda: None), Orders()
    checks = CheckRunner(orders, links)  # type: ignore[arg-type]  # only what is asked of it
    orders.performers[RunCheck](RunCheck(7, kind, target, timeout_ns, **more))
    async with asyncio.timeout(PATIENCE_MS / 1000):
        done = await orders.came.get()
    checks.close()
    links.close()
    assert 7 == done.id
    return done.outcome


def with_server(answer: bytes, work: Callable[[str], Awaitable[str]]) -> str:
    """What comes of it at a server that says this to whatever it hears."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await (reader.readline() if answer else reader.read())
            writer.write(answer)
            await writer.drain()
        except OSError:
            pass  # who looked has gone
        finally:
            writer.close()

    async def main() -> str:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            found = await work(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))  # of the server
        return found

    return asyncio.run(main())


@pytest.mark.proves("BEA-024", part="tcp and http, real")
@pytest.mark.parametrize(
    ("answer", "status", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", (200,), "passing"),
        (b"HTTP/1.1 204 No\r\n\r\n", (200, 204), "passing"),
        (b"HTTP/1.1 500 No\r\n\r\n", (200,), "critical"),
        (b"HELLO\r\n", (200,), "critical"),
        (b"HTTP/1.1 200", (200,), "critical"),
        (b"x" * 5_000, (200,), "critical"),
    ],
)
def test_a_get_is_answered_with_a_good_status_or_not(answer: bytes, status: tuple[int, ...], expected: str) -> None:
    assert expected == with_server(answer, lambda at: outcome("http", f"http://{at}/health", status=status))


@pytest.mark.proves("BEA-024", part="bounded in time")
def test_who_accepts_and_says_nothing_passes_by_tcp_and_fails_by_http_in_time() -> None:
    assert "passing" == with_server(b"", lambda at: outcome("tcp", at))
    assert "critical" == with_server(b"", lambda at: outcome("http", f"http://{at}/", 50_000_000, status=(200,)))


@pytest.mark.proves("BEA-024", part="a port without anybody")
def test_a_port_that_is_none_is_critical() -> None:
    assert "critical" == asyncio.run(outcome("tcp", "127.0.0.1:65536"))


@pytest.mark.proves("BEA-024", part="tcp and http, real")
def test_a_port_without_anybody_is_critical() -> None:
    assert "critical" == asyncio.run(outcome("tcp", "127.0.0.1:1"))
    assert "critical" == asyncio.run(outcome("zmq", "127.0.0.1:1", 50_000_000))


@pytest.mark.proves("BEA-024", part="zmq, real")
def test_a_router_that_answers_a_ping_is_passing() -> None:
    async def main() -> str:
        context = zmq.Context[zmq.Socket[bytes]]()
        router = context.socket(zmq.ROUTER)
        port = router.bind_to_random_port("tcp://127.0.0.1")

        def answer() -> None:
            assert router.poll(PATIENCE_MS), "a ping comes"
            peer, *frames = router.recv_multipart()
            assert [b"", b"ping"] == frames[:2]
            router.send_multipart([peer, b"", b"pong", b"t", b"web"])

        answering = asyncio.get_running_loop().run_in_executor(None, answer)
        try:
            return await outcome("zmq", f"127.0.0.1:{port}")
        finally:
            await answering
            router.close()
            context.term()

    assert "passing" == asyncio.run(main())


def test_a_node_ends_while_a_check_waits_for_its_answer() -> None:
    async def main() -> int:
        links, orders = Links(lambda: None), Orders()
        checks = CheckRunner(orders, links)  # type: ignore[arg-type]  # only what is asked of it
        orders.performers[RunCheck](RunCheck(7, "zmq", "127.0.0.1:1", TIME_NS))
        await asyncio.sleep(0)
        checks.close()
        links.close()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
        return orders.came.qsize()

    assert 0 == asyncio.run(main())


@pytest.mark.proves("BEA-024", part="commands, real")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("true",), "passing"),
        (("false",), "warning"),
        (("sh", "-c", "exit 2"), "critical"),
        (("/nowhere/at/all",), "critical"),
    ],
)
def test_a_command_says_it_by_its_exit_status(words: tuple[str, ...], expected: str) -> None:
    assert expected == asyncio.run(outcome("command", command=words))


@pytest.mark.proves("BEA-024", part="a command that does not end")
def test_a_command_that_does_not_end_is_killed() -> None:
    assert "critical" == asyncio.run(outcome("command", "", 100_000_000, command=("sleep", "1000")))
