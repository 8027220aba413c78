"""An ordinary asyncio program as a service: found by name, called, monitored, subscribed to (CAT-070, CAT-071).

    service = Service("thermo", tags=["lab"])

    @service.endpoint
    async def celsius(sensor: bytes) -> str:
        return "21.5"

    asyncio.run(service.run())

`Service` is what programs use; `_Running` holds its sockets between start and stop.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar, overload

import zmq

from weft.client.catalog.driving import Driver, refused
from weft.client.catalog.endpoints import Endpoints, Function
from weft.client.catalog.errors import BadRequest, CatalogError, Closed, Unreachable
from weft.client.catalog.finding import Broker, seeds_of
from weft.client.catalog.handler import Bus, level_of
from weft.client.catalog.servicelimits import BEACON_PORT, LINGER_MS, REGISTER_S
from weft.client.catalog.sockets import Plug
from weft.client.catalog.speaking import Speaker
from weft.client.catalog.tapping import Tapping
from weft.client.link.keyring import Given, Keyring
from weft.client.link.sockets import Context
from weft.cores.service.messages import Denied, Registered, ServiceSettings, TapsChanged

F = TypeVar("F", bound=Function)
ANYWHERE: Final = frozenset({"0.0.0.0", "::", "*", ""})  # noqa: S104  # a program decides where it listens
LOCAL: Final = "127.0.0.1"
CAPS: Final = ("tap",)
"""Capabilities of this library's services that the seed does not have (MON-002)."""
FIXED: Final = frozenset({"name", "id", "instance", "ip", "port", "interfaces"})
"""Keys of the record that cannot change while the service runs: its identity and addresses."""


class Service:
    """One instance of a service.

    topics: prefixes of topics whose last values the catalog keeps; None: all. record: more keys of the registration, such
    as `weight` or `function`. interval_s: seconds between two beats. host, port: where calls are received; port 0: a free
    one. advertise: the address that others are told, if it is not `host`. broker: `host:port`, or several of them; None:
    `WEFT_CATALOG`, else the first broker whose beacon is heard, of network `net` and signed with `beacon_key`, if these
    are given. keys, or `WEFT_KEYS`: the directory that `weft join` wrote, for the broker of a closed fabric on another
    machine.
    """

    def __init__(  # tidy: all but the name have a default that fits most
        self,
        name: str,
        *,
        tags: Sequence[str] = (),
        metadata: Mapping[str, str] | None = None,
        version: str = "",
        topics: Sequence[str] | None = (),
        record: Mapping[str, Any] | None = None,
        id: str = "",  # noqa: A002  # the word of the record
        interval_s: float = 1.0,
        host: str = LOCAL,
        port: int = 0,
        advertise: str = "",
        broker: Broker = None,
        net: str = "",
        beacon_key: str = "",
        beacon_port: int = BEACON_PORT,
        keys: Given = None,
    ) -> None:
        self.name, self.id, self.version = name, id, version
        self.metadata = dict(metadata or {})
        self.bus = Bus(name)
        """Takes log records from `Handler`."""
        self.endpoints = Endpoints(name)
        self.endpoints.build_in("dbp.info", lambda _: self.info())
        self.endpoints.build_in("dbp.logs", self.bus.again)
        self.address: tuple[str, int] | None = None
        """IP and port for calls; None while it does not run."""
        self._record = {"tags": list(tags), "topics": None if topics is None else list(topics), **(record or {})}
        self._record["caps"] = [*dict.fromkeys([*self._record.get("caps", ()), *CAPS])]
        self._record |= {key: value for key, value in (("metadata", self.metadata), ("version", version)) if value}
        self._interval_ms = round(interval_s * 1_000)
        self._place = (host, port, advertise or (LOCAL if host in ANYWHERE else host))
        self._broker, self._net, self._key, self._beacon_port = broker, net, beacon_key, beacon_port
        self.keyring = Keyring.of(keys)
        """The keys for connections to brokers; None: it has none."""
        self._running: _Running | None = None

    @overload
    def endpoint(self, function: F) -> F: ...

    @overload
    def endpoint(self, function: str) -> Callable[[F], F]: ...

    def endpoint(self, function: F | str) -> F | Callable[[F], F]:
        """Decorator: the function answers calls of its own name, or of the given one.

        It gets the frames of a call as bytes, one argument each. Its result is the answer: bytes or text, a tuple of
        these for several frames, None for an empty one; anything else is sent as JSON. An exception is answered with the
        code `failed`, a CatalogError with its own code.
        """
        if not isinstance(function, str):
            self.endpoints.add(function)
            return function
        name = function

        def decorate(function: F) -> F:
            self.endpoints.add(function, name)
            return function

        return decorate

    @property
    def instance(self) -> str:
        """The broker's name for this instance; empty while it is not registered."""
        return self.bus.instance

    @property
    def is_registered(self) -> bool:
        """Whether a broker has approved it since its start. A registration that is lost later is renewed by itself."""
        return self._running is not None and self._running.is_registered

    def info(self) -> dict[str, Any]:
        """The content of `dbp.info` (CAT-071)."""
        return {
            "name": self.name,
            "id": self.instance or self.id,
            "version": self.version,
            "metadata": self.metadata,
            "endpoints": sorted(self.endpoints.table),
        }

    def publish(self, topic: str | bytes, *frames: str | bytes) -> None:
        """Publish to all subscribers; the catalog is one of them, for the topics whose last value it keeps."""
        if self._running is None:
            raise Closed(f"{self.name} is not running")
        self._running.publish([part.encode() if isinstance(part, str) else part for part in (topic, *frames)])

    async def update(self, **changes: Any) -> None:
        """Change keys of the record; None deletes a key (CAT-018). CatalogError if the broker refuses: nothing has changed.

        `bus_level` is the lowest level of log records that go to the bus. Name, id and addresses cannot be changed:
        BadRequest.
        """
        if self._running is None:
            raise Closed(f"{self.name} is not running")
        if fixed := tuple(sorted(FIXED.intersection(changes))):
            text = f"{', '.join(fixed)} cannot be changed while the service runs"
            raise BadRequest(text, "immutable-field", service=self.name, fields=fixed)
        level = level_of(changes["bus_level"]) if changes.get("bus_level") is not None else None
        await self._running.driver.update(changes)
        if level is not None:
            self.bus.threshold = level

    async def start(self, wait_s: float | None = REGISTER_S) -> None:
        """Listen, register, and return when a broker has approved; with `wait_s` None return at once.

        CatalogError if a broker refuses, Unreachable if none approves within `wait_s` seconds; then it is stopped again.
        """
        if self._running is not None:
            raise CatalogError(f"{self.name} is running already", "running")
        running = self._running = _Running(self)
        try:
            await running.open(self._settings, self._place, self._beacon_port)
            if wait_s is not None:
                await running.registered(wait_s)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Tell the broker, end running calls, and close, all within half a second (CAT-023)."""
        running, self._running, self.address = self._running, None, None
        if running is not None:
            await running.close()

    async def run(self) -> None:
        """Serve until cancelled, or until the process gets SIGTERM. There need not be a broker at the start.

        CatalogError if a broker refuses finally, so that trying again would not help.
        """
        await self.start(wait_s=None)
        running = self._running
        assert running is not None, "it was just started"
        try:
            with _Terminated(running.end):
                await running.ended
        finally:
            await self.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _settings(self, port: int, pub: int) -> ServiceSettings:
        """The registration, now that the ports are known (CAT-071)."""
        ip = self._place[2]
        self.address = (ip, port)
        interfaces = {"router": {"ip": ip, "port": port}, "pub": {"ip": ip, "port": pub}}
        return ServiceSettings(
            name=self.name,
            id=self.id,
            record={"ip": ip, "port": port, "interfaces": interfaces, **self._record},
            interval_ms=self._interval_ms,
            seeds=seeds_of(self._broker),
            net=self._net,
            beacon_key=self._key,
        )


class _Running:
    """A service between start and stop: its sockets, and the core that registers it."""

    driver: Driver

    def __init__(self, service: Service) -> None:
        loop = asyncio.get_running_loop()
        self.is_registered = False
        self.ended: asyncio.Future[None] = loop.create_future()
        """Done when the service shall end; with an error if a broker has refused finally."""
        self._service, self._loop = service, loop
        self._context: Context = zmq.Context()
        self._router = Plug(self._context, zmq.ROUTER, service.endpoints.hear)
        self._speaker = Speaker(self._context)
        self._tapping: Tapping | None = None
        """Copies the service's messages; None while nobody taps it."""
        self._approved: asyncio.Future[None] = loop.create_future()
        self._begun = False
        self._last_refusal: Denied | None = None
        """A broker's last refusal that is not final: the core tries again."""

    async def open(
        self, settings: Callable[[int, int], ServiceSettings], place: tuple[str, int, str], beacon_port: int
    ) -> None:
        """Listen, then register."""
        host, port, _ = place
        host = "0.0.0.0" if host in ("", "*") else host  # noqa: S104  # requested explicitly
        ports = self._router.bind(host, port), self._speaker.bind(host)
        self.driver = Driver(settings(*ports), self._context, self._hear, self._service.keyring)
        self._service.endpoints.open(self._router.say)
        self._begun = True
        await self.driver.start(beacon_port)

    async def registered(self, wait_s: float) -> None:
        """Wait until a broker has approved."""
        try:
            async with asyncio.timeout(wait_s):
                await self._approved
        except TimeoutError:
            if self._last_refusal is not None:
                raise refused(self._last_refusal) from None
            seeds = self.driver.core.settings.seeds
            who = f"no broker at {', '.join(seeds)}" if seeds else "no broker that was heard by beacon"
            raise Unreachable(f"{self._service.name}: {who} has approved it within {wait_s:g} s") from None

    def publish(self, frames: list[bytes]) -> None:
        """Publish to all subscribers."""
        self._speaker.say(frames)
        traffic = self._service.endpoints.traffic
        if traffic.on_publication is None:
            traffic.publications += 1
        else:
            traffic.on_publication(frames)

    def end(self) -> None:
        """Make `run` return."""
        if not self.ended.done():
            self.ended.set_result(None)

    async def close(self) -> None:
        """Tell the broker, end calls, and let the last messages leave."""
        if self._begun:
            self.driver.stop()
        await self._service.endpoints.close()
        self._service.bus.close()
        self._router.close(LINGER_MS)
        self._speaker.close(LINGER_MS)
        for future in (self.ended, self._approved):
            future.cancel()
        await self._loop.run_in_executor(None, self._context.term)  # until the last messages have left

    def _hear(self, event: Any) -> None:
        """Handle an event of the core."""
        if isinstance(event, Registered):
            self.is_registered = True
            self._service.bus.instance = event.instance
            self._service.bus.open(self._stir, self.publish)
            self._speaker.note_approved()
            if not self._approved.done():
                self._approved.set_result(None)
        elif isinstance(event, TapsChanged):
            self._tap(is_on=event.is_on)
        elif isinstance(event, Denied) and not event.is_final:
            self._last_refusal = event
        elif isinstance(event, Denied):
            for future in (self.ended, self._approved):
                if not future.done():
                    future.set_exception(refused(event))
                    future.exception()  # marks it as seen, so that asyncio does not complain if nobody waits

    def _tap(self, *, is_on: bool) -> None:
        """Another tap runs, or one less; `is_on`: any."""
        if not is_on and self._tapping is not None:
            self._tapping.end()
            self._tapping = None
        elif is_on and self._tapping is None:
            self._tapping = Tapping(self._router, self.driver, self._service.endpoints.traffic)

    def _stir(self) -> None:
        """A log record waits; called from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._service.bus.flush)
        except RuntimeError:  # the loop is closed, and the record can no longer be published
            self._service.bus.dropped += 1


class _Terminated:
    """While active, SIGTERM stops the service instead of the process, unless the program handles the signal itself."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._is_taken = False

    def __enter__(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end)
            self._is_taken = True

    def __exit__(self, *_: object) -> None:
        if self._is_taken:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
