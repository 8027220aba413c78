"""An MQTT broker inside a node (`[store] broker = "embedded"`), for the machines of one desk (LNK-010).

It runs in a separate thread with its own event loop: an exception that it does not catch must not end the node, whose
loop treats every unhandled exception as a fault of Weft.
"""

import asyncio
import contextlib
import logging
from concurrent.futures import Future
from threading import Thread
from typing import Any, Final

from weft.base.errors import UserError

LOOPBACK: Final = "127.0.0.1"
STOP_S: Final = 3.0  # seconds for its last messages; the thread ends with the process in any case
TURNS: Final = 8  # turns of the loop: after four, an accepted connection has the task that serves it
PLUGINS: Final = {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}}
"""The complete configuration: no statistics topics, no log line per packet."""


class Broker:
    """Listens on a port of this machine, from `start` to `close`."""

    def __init__(self, port: int, host: str = LOOPBACK) -> None:
        self.host, self.port = host, port
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    async def start(self) -> None:
        """Listen; UserError `not-installed`, `port-taken`."""
        began: Future[None] = Future()
        make = _broker_class()
        self._thread = Thread(target=self._run, args=(make, began), name="broker", daemon=True)
        self._thread.start()
        try:
            await asyncio.wrap_future(began)
        except Exception as error:
            where = f"{self.host}:{self.port}"
            raise UserError(
                "port-taken",
                f"the embedded broker cannot listen on {where}: {error}",
                '[store] broker = "embedded:PORT"',
            ) from error

    async def close(self) -> None:
        """Disconnect all clients, and stop."""
        if self._thread is None:
            return
        if self._loop is not None and self._stopping is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._stopping.set)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join, STOP_S)

    def _run(self, make: Any, began: "Future[None]") -> None:
        asyncio.run(self._serve(make, began))

    async def _serve(self, make: Any, began: "Future[None]") -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(lambda _, __: None)
        config = {"listeners": {"default": {"type": "tcp", "bind": f"{self.host}:{self.port}"}}, "plugins": PLUGINS}
        broker = make(config)
        try:
            await broker.start()
        except Exception as error:  # noqa: BLE001  # passed to the thread that waits for the start
            began.set_exception(error)
            return
        began.set_result(None)
        await self._stopping.wait()
        with contextlib.suppress(Exception):  # an error while stopping does not matter
            await asyncio.wait_for(broker.shutdown(), STOP_S)


def _broker_class() -> Any:
    """The broker class of the library, with its logging silenced; imported only if a broker is configured."""
    for name in ("amqtt", "transitions"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [logging.NullHandler()], False
        logger.setLevel(logging.CRITICAL)
    try:
        from amqtt.broker import Broker as Amqtt
    except ImportError as error:
        raise UserError(
            "not-installed", "the embedded broker needs amqtt, which is not installed", "pip install weft[mqtt]"
        ) from error

    class Tidy(Amqtt):  # type: ignore[misc]  # mypy does not know the type of the optional library
        """Stops accepting connections before it closes the open ones, including those just accepted.

        If a server of asyncio is closed between accepting a connection and starting its task, the connection stays open
        for ever.
        """

        async def shutdown(self) -> None:
            for server in self._servers.values():
                for listening in server.instance.sockets:
                    asyncio.get_running_loop().remove_reader(listening.fileno())
            for _ in range(TURNS):
                await asyncio.sleep(0)  # connections accepted in the last turn get their task in the next ones
            await super().shutdown()

        async def stream_connected(
            self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, listener_name: str
        ) -> None:
            try:
                await super().stream_connected(reader, writer, listener_name)
            finally:
                writer.close()

    return Tidy
