"""Finds the peers of a session by multicast DNS, if zeroconf is installed (PEE-020, PEE-021; seed: Discovery).

    mdns = Mdns(found, vanished)
    why = mdns.open(Announced("Jam Timer", "192.168.1.20:50001", uuid, "Final"))  # why not; empty: it is announced
    await mdns.close()

Each session has one `Mdns`. A session is announced on the interfaces where it can be reached, and on no other, so a
session on loopback stays on this machine. `found(endpoint, uuid, text)` and `vanished(endpoint)` are called in the loop
that called `open`. Entries are reported unfiltered, own ones and those of other sessions too, because the core decides
whom to call. Known entries are reported again every minute: the core stops calling a peer that stays away, and
zeroconf's cache does not report one that comes back before its record has expired.

The library runs in a thread with a loop of its own. A node's loop treats every unhandled exception as a fault of Weft
and stops the node, and multicast from strangers must not cause that. When a network appears, disappears or changes its
address, everything is announced and queried again.
"""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import psutil

from weft.cores.document.messages import Found, OpenSession, Vanished
from weft.wire.document import endpoints
from weft.wire.document.frames import uuid_of, uuid_text

if TYPE_CHECKING:
    from zeroconf import ServiceInfo, ServiceStateChange, Zeroconf
    from zeroconf.asyncio import AsyncServiceBrowser, AsyncZeroconf

TYPE: Final = "_nsode_derbyos_com._tcp.local."
"""The seed's service type; it is longer than DNS-SD allows, so the library's check is turned off."""
LABEL_BYTES_MAX: Final = 63  # of DNS
KNOWN_MAX: Final = 512  # as many endpoints as a session remembers (PEE-014)
LOOKS_MAX: Final = 32  # entries queried at the same time
LOOK_MS: Final = 3_000.0
TEND_S: Final = 15.0  # between two checks of the machine's addresses
GOODBYE_S: Final = 3.0  # how long closing waits for the withdrawal to be sent
REMIND_TENDS: Final = 4
"""Known entries are reported again every so many checks."""
EVERYWHERE: Final = "0.0.0.0"  # noqa: S104  # not bound to
NOT_INSTALLED: Final = "zeroconf is not installed"

Address = IPv4Address | IPv6Address
TellFound = Callable[[str, bytes | None, str], None]
TellVanished = Callable[[str], None]


class Announced(NamedTuple):
    """What others see of a session."""

    label: str
    """The visible name of the node."""
    endpoint: str
    """Where its ROUTER listens; the host may be a wildcard."""
    uuid: bytes
    text: str
    """Its session string (PEE-011)."""


class Local(NamedTuple):
    """An address of this machine, and its network."""

    address: Address
    network: Any  # tidy: the network of either version


class Mdns:
    """Announces one session, and watches for others."""

    def __init__(self, found: TellFound, vanished: TellVanished) -> None:
        self._found, self._vanished = found, vanished
        self._thread: _Thread | None = None
        self._inside: _Inside | None = None
        self._opening: Future[None] | None = None

    def open(self, mine: Announced) -> str:
        """Announce the session and look for others, from about a second later on; returns why it cannot be, or "".

        May be called again with another announcement.
        """
        try:
            import zeroconf  # noqa: F401  # an extra: what needs it is imported after this check
        except ImportError:
            return NOT_INSTALLED
        logging.getLogger("zeroconf").setLevel(logging.CRITICAL)  # bad multicast from strangers is not logged
        if self._thread is None:
            self._thread = _Thread()
            self._thread.start()
            loop = asyncio.get_running_loop()
            self._inside = _Inside(_calls(loop, self._found), _calls(loop, self._vanished))
        assert self._inside is not None, "made together"
        self._opening = self._thread.begin(self._inside.open(mine))
        return ""

    async def close(self) -> None:
        """Withdraw the entry, so that others notice at once."""
        thread, self._thread = self._thread, None
        if thread is not None and self._inside is not None and self._opening is not None:
            self._opening.cancel()
            await asyncio.wrap_future(thread.begin(self._inside.close()))
            thread.end()


class Entry:
    """An entry of another service type, announced from `open` to `close`; it does not look for others (BEA-006)."""

    def __init__(self, service_type: str) -> None:
        self._type = service_type
        self._thread: _Thread | None = None
        self._made: AsyncZeroconf | None = None
        self._opening: Future[None] | None = None

    def open(self, label: str, endpoint: str, fields: dict[str, str]) -> str:
        """Announce `host:port` where it can be reached, with `fields` as its TXT record.

        Returns why that is impossible, or "".
        """
        try:
            import zeroconf  # noqa: F401  # an extra: what needs it is imported after this check
        except ImportError:
            return NOT_INSTALLED
        logging.getLogger("zeroconf").setLevel(logging.CRITICAL)  # bad multicast from strangers is not logged
        self._thread = _Thread()
        self._thread.start()
        self._opening = self._thread.begin(self._announce(label, endpoint, fields))
        return ""

    async def close(self) -> None:
        """Withdraw the entry, so that others notice at once."""
        thread, self._thread = self._thread, None
        if thread is not None and self._opening is not None:
            self._opening.cancel()
            await asyncio.wrap_future(thread.begin(self._withdraw()))
            thread.end()

    async def _announce(self, label: str, endpoint: str, fields: dict[str, str]) -> None:
        from zeroconf import Error, ServiceInfo
        from zeroconf.asyncio import AsyncZeroconf

        here = _locals()
        host, port = endpoints.split(endpoint)
        addresses = [str(address) for address in _reachable(host, here)]
        name = f"{label_of(label)}.{self._type}"
        info = ServiceInfo(self._type, name, port=port, properties=dict(fields), parsed_addresses=addresses)
        mine = Announced(label, endpoint, b"", "")
        with contextlib.suppress(OSError, RuntimeError, Error):  # no such interface, or none with multicast
            self._made = AsyncZeroconf(interfaces=[*map(str, _interfaces(mine, here))])
            await self._made.async_register_service(info, allow_name_change=True, strict=False)

    async def _withdraw(self) -> None:
        if self._made is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_S):
                    await self._made.async_unregister_all_services()
                    await self._made.async_close()


class Eyes:
    """The `Mdns` of each session of a node."""

    def __init__(self, label: str, order: Callable[[Any], None]) -> None:
        self._label, self._order = label, order
        self._eyes: dict[str, Mdns] = {}

    def open(self, work: OpenSession, endpoint: str) -> None:
        """Announce a session that listens at `endpoint`, if its settings say so and the library is installed."""
        if not (work.mdns and endpoint):
            return
        name = work.session
        is_first = name == next(iter(self._eyes), name)
        if name not in self._eyes:
            self._eyes[name] = Mdns(
                lambda found, uuid, text: self._order(Found(name, found, uuid, text)),
                lambda gone: self._order(Vanished(name, gone)),
            )
        label = self._label if is_first else f"{self._label} {name}"  # two entries of one name would block each other
        self._eyes[name].open(Announced(label, endpoint, work.uuid, work.text))

    async def close(self) -> None:
        """Withdraw all entries."""
        await asyncio.gather(*[eye.close() for eye in self._eyes.values()])


def _calls(loop: asyncio.AbstractEventLoop, function: Callable[..., None]) -> Callable[..., None]:
    """A function that calls `function` in another loop, unless that loop has ended."""

    def call(*arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(function, *arguments)

    return call


class _Thread(threading.Thread):
    """Runs the library's event loop, and ignores its unhandled exceptions."""

    def __init__(self) -> None:
        super().__init__(name="weft-mdns", daemon=True)
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda _, __: None)

    def run(self) -> None:
        """Run the loop until `end`."""
        self._loop.run_forever()
        self._loop.close()

    def begin(self, work: Coroutine[Any, Any, None]) -> "Future[None]":
        """Run a coroutine in that loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def end(self) -> None:
        """Stop the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join(1.0)


class _Inside:
    """The part that runs in the library's loop."""

    def __init__(self, found: Callable[..., None], vanished: Callable[..., None]) -> None:
        self._found, self._vanished = found, vanished
        self._mine: Announced | None = None
        self._renaming: asyncio.Task[None] | None = None
        self._turns = asyncio.Lock()
        """Held by a start or a stop, so that there is one at a time."""
        self._zeroconf: AsyncZeroconf | None = None
        self._browser: AsyncServiceBrowser | None = None
        self._saying: Awaitable[Any] | None = None
        """The announcement, which the library repeats three times; nothing waits for it."""
        self._info: ServiceInfo | None = None
        """This session's entry; the library changes its name if another entry has it."""
        self._locals: frozenset[Local] = frozenset()
        self._known: dict[str, tuple[str, bytes | None, str]] = {}
        """What was reported of each entry."""
        self._waiting: dict[str, None] = {}
        """Names of entries to query, in the order in which they appeared."""
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._tending: asyncio.Task[None] | None = None

    async def open(self, mine: Announced) -> None:
        """Start; if it runs already, start again with this announcement."""
        async with self._turns:
            await self._stop()
            self._mine = mine
            await self._start()
            if self._tending is None:
                self._tending = asyncio.create_task(self._tend())

    async def close(self) -> None:
        """Stop for good."""
        async with self._turns:
            if self._tending is not None:
                self._tending.cancel()
            await self._stop()

    async def _start(self) -> None:
        """Announce and query; without a network nothing happens, and `_tend` tries again."""
        from zeroconf import Error
        from zeroconf.asyncio import AsyncServiceBrowser, AsyncZeroconf

        assert self._mine is not None, "set by `open`"
        self._locals = _locals()
        self._known.clear()
        self._waiting.clear()
        info = self._info = info_of(self._mine, self._locals)
        try:
            self._zeroconf = AsyncZeroconf(interfaces=[*map(str, _interfaces(self._mine, self._locals))])
            self._browser = AsyncServiceBrowser(self._zeroconf.zeroconf, TYPE, handlers=[self._change])
            self._saying = await self._zeroconf.async_register_service(info, allow_name_change=True, strict=False)
        except (OSError, RuntimeError, Error):  # no such interface, or none with multicast
            await self._stop()

    async def _stop(self) -> None:
        for look in list(self._looks.values()):
            look.cancel()
        browser, self._browser = self._browser, None
        made, self._zeroconf = self._zeroconf, None
        if browser is not None:
            await browser.async_cancel()
        if made is not None:
            await made.async_unregister_all_services()
            await made.async_close()

    async def _tend(self) -> None:
        """Start again when the machine's addresses change, and report known entries again every minute."""
        tends = 0
        while True:
            await asyncio.sleep(TEND_S)
            tends += 1
            async with self._turns:
                if _locals() != self._locals or self._zeroconf is None:
                    await self._stop()
                    await self._start()
            if tends % REMIND_TENDS == 0:
                for found_entry in self._known.values():
                    self._found(*found_entry)

    def _change(self, *, zeroconf: "Zeroconf", name: str, state_change: "ServiceStateChange", **_: Any) -> None:
        """Callback of the library, which passes these argument names."""
        if state_change.name == "Removed":
            self._forget(name)
        elif len(self._waiting) < KNOWN_MAX:
            self._waiting[name] = None
            self._look_on(zeroconf)

    def _look_on(self, zeroconf: "Zeroconf") -> None:
        """Query waiting entries, at most `LOOKS_MAX` at a time, and no entry twice at a time."""
        for name in [name for name in self._waiting if name not in self._looks][: LOOKS_MAX - len(self._looks)]:
            del self._waiting[name]
            self._looks[name] = asyncio.create_task(self._look(zeroconf, name))

    async def _look(self, zeroconf: "Zeroconf", name: str) -> None:
        """Query an entry, and report what it says."""
        from zeroconf.asyncio import AsyncServiceInfo

        try:
            info = AsyncServiceInfo(TYPE, name)
            if await info.async_request(zeroconf, LOOK_MS) and (found_entry := told_of(info, self._locals)):
                self._learn(name, found_entry)
        finally:
            del self._looks[name]
        self._look_on(zeroconf)

    def _learn(self, name: str, found_entry: tuple[str, bytes | None, str]) -> None:
        if self._known.get(name, found_entry)[0] != found_entry[0]:
            self._forget(name)
        if name in self._known or len(self._known) < KNOWN_MAX:
            self._known[name] = found_entry
            self._found(*found_entry)
        mine = self._mine
        if mine is not None and self._info is not None and name == self._info.name and found_entry[1] != mine.uuid:
            self._rename(mine)

    def _rename(self, mine: Announced) -> None:
        """Take another name: a peer that started in the same second has this one, and the library has not noticed it."""
        own = f" {mine.uuid.hex()[:4]}"
        if not mine.label.endswith(own):
            cut = mine.label.encode()[: LABEL_BYTES_MAX - len(own)].decode("utf-8", "ignore")
            self._renaming = asyncio.create_task(self.open(mine._replace(label=cut + own)))

    def _forget(self, name: str) -> None:
        if (found_entry := self._known.pop(name, None)) is not None:
            self._vanished(found_entry[0])


def info_of(mine: Announced, here: Iterable[Local]) -> "ServiceInfo":
    """The entry of a session: PTR, SRV, TXT and addresses (PEE-021)."""
    from zeroconf import ServiceInfo

    host, port = endpoints.split(mine.endpoint)
    addresses = _reachable(host, here)
    return ServiceInfo(
        TYPE,
        f"{label_of(mine.label)}.{TYPE}",
        port=port,
        properties={"uuid": uuid_text(mine.uuid), "boutid": mine.text, "fold": "1"},
        server=f"weft-{mine.uuid.hex()}.local.",  # a host name of its own: the machine's name is announced by the machine
        parsed_addresses=[str(address) for address in addresses],
    )


def label_of(name: str) -> str:
    """A name as one label of DNS.

    >>> label_of("laptop.local"), label_of("")
    ('laptop-local', 'weft')
    """
    plain = "".join([letter if letter.isprintable() else "-" for letter in name]).replace(".", "-").strip()
    return plain.encode("utf-8", "replace")[:LABEL_BYTES_MAX].decode("utf-8", "ignore").strip() or "weft"


def told_of(info: "ServiceInfo", here: Iterable[Local]) -> tuple[str, bytes | None, str] | None:
    """Endpoint, UUID and session string of an entry; None if it has no address that can be called."""
    address = nearest([ip_address(text.partition("%")[0]) for text in info.parsed_addresses()], here)
    if address is None or not info.port:
        return None
    fields = {key.lower(): value or b"" for key, value in info.properties.items()}
    try:
        uuid = uuid_of(fields.get(b"uuid", b"").decode("ascii", "replace").strip())
    except ValueError:
        uuid = None
    return endpoints.join(str(address), info.port), uuid, fields.get(b"boutid", b"").decode("utf-8", "replace")


def nearest(offered: Iterable[Address], here: Iterable[Local]) -> Address | None:
    """Which of a peer's addresses to call: one in a network of this machine, IPv4 first; loopback only if it has no other.

    Link-local addresses are left out: they mean nothing without the interface, which an endpoint cannot name (PEE-004).
    """
    known = list(here)

    def cost(address: Address) -> tuple[bool, bool, int, int]:
        is_beside = any(address.version == one.address.version and address in one.network for one in known)
        return (address.is_loopback, not is_beside, address.version, int(address))

    return min((one for one in offered if not (one.is_link_local or one.is_unspecified)), key=cost, default=None)


def _locals() -> frozenset[Local]:
    """The addresses of interfaces that are up, with their networks."""
    up = {name for name, stats in psutil.net_if_stats().items() if stats.isup}
    found = [
        (ip_address(one.address.partition("%")[0]), one.netmask)
        for name, ones in psutil.net_if_addrs().items()
        if name in up
        for one in ones
        if one.family in (socket.AF_INET, socket.AF_INET6)
    ]
    return frozenset(Local(address, _network(address, netmask)) for address, netmask in found)


def _network(address: Address, netmask: str | None) -> Any:
    bits = int(ip_address(netmask)).bit_count() if netmask else address.max_prefixlen
    return ip_network(f"{address}/{bits}", strict=False)


def _reachable(host: str, here: Iterable[Local]) -> list[Address]:
    """The addresses at which other machines reach a listener at this host.

    For a wildcard host without such an address: the loopback addresses.
    """
    if not endpoints.is_any(host):
        return [ip_address(host)]
    ours = sorted(
        {one.address for one in here if ":" in host or one.address.version == 4}, key=lambda a: (a.version, a)
    )
    return [one for one in ours if not (one.is_loopback or one.is_link_local)] or [
        one for one in ours if one.is_loopback
    ]


def _interfaces(mine: Announced, here: Iterable[Local]) -> list[Address]:
    """The addresses on which to announce and listen: that of the host, or else all that other machines reach."""
    host, _ = endpoints.split(mine.endpoint)
    ours = {one.address for one in here}
    beside = [address for address in _reachable(host, here) if address in ours]
    found = beside or _reachable(EVERYWHERE, here)
    # one IP version suffices, and IPv6 would need the name of the link
    return [one for one in found if one.version == 4] or found
