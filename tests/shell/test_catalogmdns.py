"""A broker by multicast DNS, on loopback: a real node announces itself, and takes that back at its end."""

import asyncio
import socket
from pathlib import Path
from typing import Any, Self

import pytest
from zeroconf import ServiceStateChange
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from tests.client.catalogbroker import running
from tests.client.node import in_loop
from weft.catalog import Client

TYPE = "_dbp._tcp.local."


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a name is taken is asked three times within a tenth of a second, and not within one and a half."""
    monkeypatch.setattr("zeroconf._core._CHECK_TIME", 30, raising=False)
    monkeypatch.setattr("zeroconf._core._PROBE_RANDOM_DELAY_INTERVAL", (5, 6), raising=False)


class Looking:
    """Whoever looks for brokers on loopback, and what it was told."""

    def __init__(self) -> None:
        self.found: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self.zeroconf = AsyncZeroconf(interfaces=["127.0.0.1"])
        self.browser = AsyncServiceBrowser(self.zeroconf.zeroconf, TYPE, handlers=[self._change])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.browser.async_cancel()
        await self.zeroconf.async_close()

    def _change(self, *, name: str, state_change: ServiceStateChange, **_: Any) -> None:
        self.found.put_nowait((state_change.name, name))

    async def until(self, what: str, name: str) -> str:
        while True:
            change, found = await self.found.get()
            if change == what and name in found:
                return found


@pytest.mark.proves("BEA-006")
@in_loop
async def test_a_broker_is_found_by_mdns_with_what_its_beacon_says_and_leaves(tmp_path: Path) -> None:
    async with Looking() as looking:
        async with running(tmp_path, net="mdns-lab", mdns=True) as ports, Client(ports.broker) as client:
            name = await looking.until("Added", "mdns-lab")
            info = AsyncServiceInfo(TYPE, name)
            assert await info.async_request(looking.zeroconf.zeroconf, 3_000)
            told = await client.status()
            expected = {
                "dbp": "1",
                "id": told["epoch"],
                "hb": f"{told['hb']}",
                "pub": f"{told['pub']}",
                "net": "mdns-lab",
            }
            assert {**expected, "caps": ",".join(told["caps"])} == info.decoded_properties
            assert (ports.router, [socket.inet_aton("127.0.0.1")]) == (info.port, info.addresses)
        await looking.until("Removed", "mdns-lab")


@pytest.mark.proves("BEA-006", part="off by default")
@in_loop
async def test_a_broker_whose_file_does_not_want_it_says_nothing(tmp_path: Path) -> None:
    async with Looking() as looking:
        async with running(tmp_path / "quiet", net="quiet-lab"), running(tmp_path / "loud", net="loud-lab", mdns=True):
            await looking.until("Added", "loud-lab")
        told = [
            name
            for _, name in iter(lambda: looking.found.get_nowait() if looking.found.qsize() else ("", ""), ("", ""))
        ]
        assert not [name for name in told if "quiet-lab" in name]
