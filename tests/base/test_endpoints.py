"""Endpoints: host and first port of a block, taken apart and put together."""

import re
from ipaddress import IPv6Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weft.base import endpoints
from weft.base.endpoints import PORT_MAX, endpoint_of, host_of, is_endpoint, port_of, shifted

NAMES = st.from_regex(re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}", re.ASCII), fullmatch=True)
HOSTS = NAMES | st.ip_addresses().map(str) | st.ip_addresses(v=6).map(str)
PORTS = st.integers(1, PORT_MAX)


@pytest.mark.prove("many hosts")
@given(HOSTS, PORTS)
def test_host_and_port_make_an_endpoint_that_gives_them_back(host: str, port: int) -> None:
    endpoint = endpoint_of(host, port)
    assert is_endpoint(endpoint)
    assert (host, port) == (host_of(endpoint), port_of(endpoint))
    assert (":" in host) == endpoint.startswith("[")


@given(HOSTS, PORTS, st.integers(0, 9))
def test_every_port_of_a_block_is_a_port_on_the_same_host(host: str, port: int, by: int) -> None:
    moved = shifted(endpoint_of(host, port), by)
    assert (host, port + by) == (host_of(moved), port_of(moved))
    assert port_of(moved) <= 65_535


@given(st.ip_addresses(v=6), PORTS)
def test_an_ipv6_address_stays_itself(address: IPv6Address, port: int) -> None:
    assert address == IPv6Address(host_of(endpoint_of(str(address), port)))


@given(st.text("ab.:[]%-_ 019\n/é", max_size=30))
@example("[::1]:65526")
@example("host:00001")
def test_whatever_is_an_endpoint_can_be_taken_apart(text: str) -> None:
    if is_endpoint(text):
        assert 1 <= port_of(text) <= 65_535 - 9
        assert host_of(text)
        assert text == f"{text.rpartition(':')[0]}:{text.rpartition(':')[2]}"
        assert is_endpoint(endpoint_of(host_of(text), port_of(text)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "host",
        "host:",
        ":27500",
        "host:0",
        "host:65527",
        "host:99999",
        "host:123456",
        "host:27500 ",
        "host:27500\n",
        "host:-1",
        "host:٣",
        "a b:27500",
        "-host:27500",
        "é:27500",
        "::1:27500",
        "[::1]",
        "[]:27500",
        "[::1]27500",
        "tcp://host:27500",
        "h" * 256 + ":27500",
    ],
)
def test_what_is_no_endpoint(text: str) -> None:
    assert not is_endpoint(text)


def test_the_ports_of_a_block_differ_and_fit_into_it() -> None:
    names = ("ANNOUNCEMENTS", "CONTROL", "UPDATES", "SNAPSHOTS", "DATA", "HTTP", "LINK")
    ports = [getattr(endpoints, name) for name in names]
    assert len(ports) == len(set(ports))
    assert all(0 <= port <= 9 for port in ports)


@pytest.mark.parametrize(
    "host, is_loopback",
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.255.0.9", True),
        ("::1", True),
        ("0:0:0:0:0:0:0:1", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("128.0.0.1", False),
        ("192.168.1.20", False),
        ("::ffff:192.168.1.20", False),
        ("fe80::1%eth0", False),
        ("127.0.0.1.example", False),
        ("127.0.0.1000", False),
        ("laptop.local", False),
        ("", False),
    ],
)
def test_what_only_this_machine_reaches_is_known(host: str, is_loopback: bool) -> None:
    assert is_loopback == endpoints.is_loopback(host)
