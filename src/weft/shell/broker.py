"""An MQTT broker inside a node (`[store] broker = "embedded"`), for the machines of one desk (LNK-010).

It runs in a thread with an event loop of its own: what it forgets to catch must not end the node, whose loop takes
every fault that nobody looks at for a broken promise of Weft.
"""

import asyncio
import contextlib
import logging
from concurrent.futures import Future
from threading import Thread
from typing import Any, Final

from weft.base.errors import UserError

LOOPBACK: Final = "127.0.0.1"
STOP_S: Final = 3.0  # for its goodbyes; the thread ends with the process in any case
TURNS: Final = 8  # of the loop, from a connection that is taken to the task that serves it: four
PLUGINS: Final = {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}}
"""All there is: no statistics of its own among the topics, no lines about every packet."""


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
        """Send everybody away, and stop."""
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
        except Exception as error:  # noqa: BLE001  # handed to who waits for the start
            began.set_exception(error)
            return
        began.set_result(None)
        await self._stopping.wait()
        with contextlib.suppress(Exception):  # a goodbye that went wrong is still the end
            await asyncio.wait_for(broker.shutdown(), STOP_S)


def _broker_class() -> Any:
    """The broker of the library, imported only where it is configured, and told to be quiet."""
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

    class Tidy(Amqtt):  # type: ignore[misc]  # it is known only here
        """It lets nobody in any more before it sends its guests away, and also sends away who has just come in.

        A server of asyncio that is closed between a connection and the task that serves it holds the connection for ever.
        """

        async def shutdown(self) -> None:
            for server in self._servers.values():
                for listening in server.instance.sockets:
                    asyncio.get_running_loop().remove_reader(listening.fileno())
            for _ in range(TURNS):
                await asyncio.sleep(0)  # who was let in by the last turn is met in the next ones
            await super().shutdown()

        async def stream_connected(
            self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, listener_name: str
        ) -> None:
            try:
                await super().stream_connected(reader, writer, listener_name)
            finally:
                writer.close()

    return Tidy
