"""Peers by multicast DNS, on loopback: who is there, who has gone, and what happens without a network or a library."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_address, ip_network
from typing import Any, Final
from uuid import uuid4

import pytest
from zeroconf import ServiceInfo, ServiceStateChange
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from tests.document.wire.vectors import CAPTURED
from tests.patience import PATIENCE_S
from weft.cores.document.messages import Found, OpenSession
from weft.shell import mdns
from weft.shell.mdns import NOT_INSTALLED, Announced, Eyes, Local, Mdns, info_of, nearest, told_of

MULTICAST: Final = ("224.0.0.251", 5353)
LOOPBACK: Final = frozenset({Local(ip_address("127.0.0.1"), ip_network("127.0.0.0/8"))})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a name is taken is asked three times within a tenth of a second, and not within one and a half."""
    monkeypatch.setattr("zeroconf._core._CHECK_TIME", 30, raising=False)
    monkeypatch.setattr("zeroconf._core._PROBE_RANDOM_DELAY_INTERVAL", (5, 6), raising=False)


class Eye:
    """One session and what it was told, without the entries of others who are at work on this machine."""

    def __init__(self, endpoint: str, text: str, label: str = "") -> None:
        self.mine = Announced(label or f"Eye {uuid4()}", endpoint, uuid4().bytes, text)
        self.told: list[tuple[str, ...]] = []
        self.stirred = asyncio.Event()
        self.mdns = Mdns(self._found, self._vanished)

    def _found(self, endpoint: str, uuid: bytes | None, text: str) -> None:
        self._note("found", endpoint, uuid.hex() if uuid else "", text)

    def _vanished(self, endpoint: str) -> None:
        self._note("vanished", endpoint)

    def _note(self, *told: str) -> None:
        self.told.append(told)
        self.stirred.set()

    async def until(self, what: Callable[[list[tuple[str, ...]]], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not what(self.told):
                self.stirred.clear()
                await self.stirred.wait()

    async def sees(self, other: Announced) -> None:
        said = ("found", other.endpoint, other.uuid.hex(), other.text)
        await self.until(lambda told: said in told)


@contextlib.asynccontextmanager
async def eyes(*endpoints: str, label: str = "") -> AsyncIterator[list[Eye]]:
    """Open sessions of one name, each seen by the first."""
    text = f"session {uuid4()}"
    made = [Eye(endpoint, text, label) for endpoint in endpoints]
    try:
        for eye in made:
            assert "" == eye.mdns.open(eye.mine)
        for eye in made:
            await made[0].sees(eye.mine)
        yield made
    finally:
        await asyncio.gather(*[eye.mdns.close() for eye in made])


def present(told: list[tuple[str, ...]]) -> set[str]:
    """Endpoints that were found, and have not gone since."""
    last = {event[1]: event[0] for event in told}
    return {endpoint for endpoint, what in last.items() if what == "found"}


def multicast(data: bytes) -> None:
    """Say it to everybody who listens for mDNS on loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        made.sendto(data, MULTICAST)


@pytest.mark.proves("PEE-020", "PEE-021")
def test_two_find_each_other_whatever_strangers_say_and_one_sees_the_other_leave() -> None:
    async def play() -> None:
        async with eyes("127.0.0.1:50001", "127.0.0.1:50002") as (one, two):
            for payload in (
                b"",
                b"\xff" * 9,
                bytes.fromhex(CAPTURED["Z32"]["payload"])[:-7],
                b"\0" * 12 + b"\xc0\x0c" * 300,
            ):
                multicast(payload)
            await two.sees(one.mine)
            await two.mdns.close()
            await one.until(lambda told: ("vanished", two.mine.endpoint) in told)
            assert ("vanished", one.mine.endpoint) not in one.told

    asyncio.run(play())


def test_two_that_took_one_label_unasked_are_both_seen_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = AsyncZeroconf.async_register_service

    async def unasked(self: AsyncZeroconf, info: ServiceInfo, **_: Any) -> Any:
        return await asked(self, info, cooperating_responders=True, strict=False)

    monkeypatch.setattr(AsyncZeroconf, "async_register_service", unasked)

    async def play() -> None:
        async with eyes("127.0.0.1:50001", "127.0.0.1:50002", label=f"Jam Timer {uuid4()}") as (one, two):
            for eye in (one, two):
                await eye.until(lambda told: {one.mine.endpoint, two.mine.endpoint} == present(told))

    asyncio.run(play())


@pytest.mark.proves("PEE-021")
def test_captured_entry_of_another_stack_is_told() -> None:
    async def play() -> None:
        async with eyes("127.0.0.1:50001") as (one,):
            multicast(bytes.fromhex(CAPTURED["Z35"]["payload"]))
            said = ("found", "127.0.0.1:50001", "b0000000000040008000000000000002", "Bout 7")
            await one.until(lambda told: said in told)

    asyncio.run(play())


@pytest.mark.proves("PEE-021")
def test_session_goes_on_as_somebody_else() -> None:
    async def play() -> None:
        async with eyes("127.0.0.1:50001", "127.0.0.1:50002") as (one, two):
            again = two.mine._replace(uuid=uuid4().bytes)
            assert "" == two.mdns.open(again)
            await one.sees(again)

    asyncio.run(play())


def test_entries_that_show_while_others_are_asked_about_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mdns, "LOOKS_MAX", 1)
    names = [f"{letter}.{mdns.TYPE}" for letter in "abc"]

    async def play() -> None:
        asked: list[str] = []
        all_shown, all_asked = asyncio.Event(), asyncio.Event()

        async def request(info: AsyncServiceInfo, *_: Any) -> bool:
            asked.append(info.name)
            if len(asked) == len(names):
                all_asked.set()
            await all_shown.wait()
            return False

        monkeypatch.setattr(AsyncServiceInfo, "async_request", request)
        inside: Any = mdns._Inside(print, print)
        for name in names * 2:
            inside._change(zeroconf=None, name=name, state_change=ServiceStateChange.Added)
        all_shown.set()
        async with asyncio.timeout(PATIENCE_S):
            await all_asked.wait()
        assert names == asked[:3]

    asyncio.run(play())


def test_what_is_known_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mdns, "TEND_S", 0.05)

    async def play() -> None:
        async with eyes("127.0.0.1:50001") as (one,):
            await one.until(lambda told: len(told) > 2)
            assert 1 == len(set(one.told))

    asyncio.run(play())


def test_network_that_comes_later_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mdns, "TEND_S", 0.05)
    seen: list[frozenset[Local]] = []

    def locals_of() -> frozenset[Local]:
        seen.append(frozenset() if len(seen) < 3 else LOOPBACK)
        return seen[-1]

    monkeypatch.setattr(mdns, "_locals", locals_of)

    async def play() -> None:
        async with eyes("127.0.0.1:50001"):
            assert frozenset() == seen[0]

    asyncio.run(play())


def test_nothing_happens_where_the_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zeroconf", None)

    async def play() -> None:
        eye = Eye("127.0.0.1:50001", "x")
        assert NOT_INSTALLED == eye.mdns.open(eye.mine)
        await eye.mdns.close()
        assert [] == eye.told

    asyncio.run(play())


def test_one_that_was_hardly_open_is_closed() -> None:
    async def play() -> None:
        eye = Eye("127.0.0.1:50001", "x")
        eye.mdns.open(eye.mine)
        async with asyncio.timeout(PATIENCE_S):
            await eye.mdns.close()

    asyncio.run(play())


def test_sessions_of_a_node_are_told_apart_and_one_that_wants_no_mdns_has_none() -> None:
    async def play() -> None:
        orders: list[Any] = []
        stirred = asyncio.Event()

        def order(given: Any) -> None:
            orders.append(given)
            stirred.set()

        here = Eyes(f"Node {uuid4()}", order)
        works = {
            name: OpenSession(name, uuid4().bytes, "127.0.0.1", "", f"{name} {uuid4()}", mdns=name != "c")
            for name in "abc"
        }
        try:
            for port, work in enumerate(works.values(), 50_001):
                here.open(work, f"127.0.0.1:{port}")
            expected = {
                Found(name, f"127.0.0.1:{50_001 + place}", works[other].uuid, works[other].text)
                for name in "ab"
                for place, other in enumerate("ab")
            }
            async with asyncio.timeout(PATIENCE_S):
                while not expected <= set(orders):
                    stirred.clear()
                    await stirred.wait()
        finally:
            await here.close()
        assert {"a", "b"} == {given.session for given in orders}

    asyncio.run(play())


# What stands in an entry

A: Final = bytes.fromhex("a0000000000040008000000000000001")
HERE: Final = [
    Local(ip_address("127.0.0.1"), ip_network("127.0.0.0/8")),
    Local(ip_address("192.168.1.20"), ip_network("192.168.1.0/24")),
    Local(ip_address("2001:db8::20"), ip_network("2001:db8::/64")),
    Local(ip_address("fe80::20"), ip_network("fe80::/64")),
]


@pytest.mark.proves("PEE-021")
def test_entry_has_the_texts_of_the_captured_one_and_says_how_documents_are_folded() -> None:
    info = info_of(Announced("JamTimer", "127.0.0.1:49153", A, ""), HERE)
    captured = bytes.fromhex(CAPTURED["Z32"]["means"]["records"][2]["text"])
    assert captured + b"\x06fold=1" == info.text
    assert ("JamTimer._nsode_derbyos_com._tcp.local.", 49153) == (info.name, info.port)
    assert ["127.0.0.1"] == info.parsed_addresses()


@pytest.mark.parametrize(
    "endpoint, expected",
    [
        ("192.168.1.20:1", ["192.168.1.20"]),
        ("0.0.0.0:1", ["192.168.1.20"]),
        ("[::]:1", ["192.168.1.20", "2001:db8::20"]),
        ("127.0.0.1:1", ["127.0.0.1"]),
    ],
)
def test_entry_names_where_the_session_can_be_reached(endpoint: str, expected: list[str]) -> None:
    assert expected == info_of(Announced("a", endpoint, A, ""), HERE).parsed_addresses()


def test_wildcard_without_a_network_is_reached_from_here() -> None:
    assert ["127.0.0.1"] == info_of(Announced("a", "0.0.0.0:1", A, ""), LOOPBACK).parsed_addresses()


@pytest.mark.parametrize(
    "offered, expected",
    [
        (["172.17.0.1", "192.168.1.21"], "192.168.1.21"),
        (["127.0.0.1", "10.9.9.9"], "10.9.9.9"),
        (["2001:db8::21", "10.9.9.9"], "2001:db8::21"),
        (["fe80::21", "127.0.0.1"], "127.0.0.1"),
        (["fe80::21"], None),
        (["0.0.0.0"], None),
        ([], None),
    ],
)
def test_address_beside_one_of_ours_is_the_one_to_call(offered: list[str], expected: str | None) -> None:
    found = nearest(map(ip_address, offered), HERE)
    assert expected == (str(found) if found else None)


@pytest.mark.parametrize(
    "changed, expected",
    [
        ({}, ("192.168.1.21:50001", A, "Final")),
        ({"properties": {}}, ("192.168.1.21:50001", None, "")),
        ({"properties": {"UUID": "nobody", "BoutId": b"K\xc3\xb6ln"}}, ("192.168.1.21:50001", None, "Köln")),
        ({"properties": {"uuid": A.hex().upper(), "boutid": b"\xff"}}, ("192.168.1.21:50001", A, "\ufffd")),
        ({"properties": {"uuid": None}}, ("192.168.1.21:50001", None, "")),
        ({"port": 0}, None),
        ({"parsed_addresses": []}, None),
    ],
)
def test_entry_is_told_as_far_as_it_makes_sense(changed: dict[str, Any], expected: Any) -> None:
    entry = {
        "port": 50001,
        "parsed_addresses": ["192.168.1.21"],
        "properties": {"uuid": "a0000000-0000-4000-8000-000000000001", "boutid": "Final"},
    }
    assert expected == told_of(ServiceInfo(mdns.TYPE, f"x.{mdns.TYPE}", **{**entry, **changed}), HERE)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("Jam Timer", "Jam Timer"),
        ("laptop.local", "laptop-local"),
        ("a\nb", "a-b"),
        (" ", "weft"),
        ("é" * 40, "é" * 31),
    ],
)
def test_label_is_one_of_dns(name: str, expected: str) -> None:
    assert expected == mdns.label_of(name)
