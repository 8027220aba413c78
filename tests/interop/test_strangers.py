"""Intruders on a machine of their own, at every port that two machines of a closed fabric have beyond their loopback (SEC-027)."""

import contextlib
import http.client
import json
import re
import socket
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import zmq

from tests.fabric.test_closed_doors import REFUSALS, WORDS, Intruder
from tests.interop.netns import Net, host_of
from tests.interop.programs import needed
from tests.interop.test_two_machines import MORE, Machine
from weft.shell.keys import Keys, load_keys
from weft.shell.orders import ORDERS

FACTS: Final = (
    ["config", "list", "--json"],
    ["key", "ls", "--json"],
    ["get", "home.kitchen.temp"],
    ["catalog", "ls", "--json"],
    ["doc", "show"],
)
"""What is held, as its owner sees it."""
HTTP: Final = 27_506
BEACON: Final = b"WEFTN1 weft evil " + b"e" * 32 + b" root 27500 9"
RAW: Final = {
    "store": b"\x83\xa3seq\x01\xa6action\xa9get_value\xa4path\x90",
    "mqtt": b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04evil",
    "noise": bytes(range(256)) * 16,
}
SAID_S: Final = 1.0
GREETING: Final = b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03"
"""How every ZeroMQ port begins."""
GREETING_BYTES: Final = 64
PAGES: Final = ("/status", "/metrics", "/console/", "/flight", "/quarantine", "/alerts")
MDNS: Final = 5_353


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[dict[int, Machine]]:
    """Machine 1 is the root, machine 2 has joined it, machine 3 has the key of a bridge and runs nothing."""
    needed("ip")
    with Net(3) as net:
        made = {number: Machine(net, number, tmp_path) for number in net.numbers}
        try:
            _begin(made)
            yield made
        finally:
            for each in reversed(made.values()):
                each.end()


def _begin(made: dict[int, Machine]) -> None:
    root, member, outside = made.values()
    assert "[store]" in MORE
    root.begin(["up", "more.toml", "--name", "root", "--level", "root", "--lake", "lake"])
    root.until(["status"], lambda said: "root" in said)
    token = root.run(["invite", "--listen", host_of(1)]).split()[-1]
    member.begin(["join", token, "more.toml", "--name", "m2"])
    root.until(["status"], lambda said: " m2 " in said)
    outside.run(["join", root.run(["invite", "--role", "bridge"]).split()[-1], "--name", "bridge"])
    root.run(["store", "found", "home"])
    root.until(["set", "home.kitchen.temp", "21.5"], lambda _: True)
    root.begin(["catalog", "register", "thermo", "--ip", "127.0.0.1", "--port", "9000", "--keep"])
    root.until(["catalog", "ls"], lambda said: "thermo" in said)
    root.until(["doc", "add", "period=1", "jam=3", '<penalty team="home" person="123" code="B"/>'], lambda _: True)


def facts(machine: Machine) -> list[str]:
    return [re.sub(r'"(until|age|seen|heard|uptime)[a-z_]*": *[0-9.]+', "", machine.run(words)) for words in FACTS]


def ports(machine: Machine, kind: str = "tcp", listening: str = "0A") -> list[int]:
    """Where something waits at an address that other machines reach."""
    table = machine.net.command(machine.number, ["cat", f"/proc/net/{kind}"])
    rows = [
        row.split() for row in subprocess.run(table, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    ]
    found = [row[1].split(":") for row in rows if row[3] == listening]
    return sorted(int(port, 16) for host, port in found if not host.endswith("7F"))


async def _page() -> dict[str, Any]:
    return _read_page()


def _read_page() -> dict[str, Any]:
    """Called by a thread that stands at the machine: another thread's sockets would not be there."""
    with urllib.request.urlopen(f"http://127.0.0.1:{HTTP}/status", timeout=10) as answer:
        told: dict[str, Any] = json.load(answer)
    return told


def refused(machine: Machine) -> Counter[str]:
    """What a node has counted of strangers, by what they were refused for."""
    told = machine.net.at(machine.number).call(_page())
    counts = Counter({why: count for why, count in told["security"]["handshakes"].items() if why != "ok"})
    counts.update({f"denied {what}": count for what, count in told["refused"].items()})
    counts.update({f"http {why}": count for why, count in _numbers(told["http"]["refused"])})
    counts.update({what: count for what, count in told["dropped"].items() if what.startswith("beacon:")})
    return counts


def _numbers(refused: Any) -> list[tuple[str, int]]:
    return list(refused.items()) if isinstance(refused, dict) else [("", int(refused))]


# What an intruder does at one port; all of it runs on its own machine


def said_raw(host: str, port: int, data: bytes) -> bytes:
    """What a port answers to bytes that are not of its protocol, or that begin no handshake; nothing, if it has closed meanwhile."""
    heard = b""
    with contextlib.suppress(OSError), socket.create_connection((host, port), 5) as link:
        link.settimeout(SAID_S)
        link.sendall(data)
        while piece := link.recv(4_096):
            heard += piece
    return heard


def said_zmq(host: str, port: int, keys: Keys | None, server: str) -> list[list[bytes]]:
    """What a port answers to every message that some door of a node understands."""
    intruder = Intruder(keys)
    try:
        words = [frames for each in WORDS.values() for frames in each]
        intruder.knock(f"tcp://{host}:{port}", "DEALER", words, server)
        ends_at = time.monotonic() + SAID_S
        while time.monotonic() < ends_at:
            intruder.speak()
            time.sleep(0.1)  # tidy: an answer that does not come wakes nobody; bounded above
        return intruder.heard
    finally:
        intruder.close()


def said_http(host: str, method: str, path: str) -> int:
    link = http.client.HTTPConnection(host, HTTP, timeout=10)
    try:
        body = json.dumps({"order": "set", "key": "/CONFIG/evil", "value": "1"})
        link.request(method, path, body if method == "POST" else None, {"content-type": "application/json"})
        return link.getresponse().status
    finally:
        link.close()


async def ordered(host: str, orders: list[dict[str, Any]], token: str) -> dict[str, int]:
    """What the orders of a program are answered, that says this token or none."""
    said = {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
    found = {}
    for order in orders:
        link = http.client.HTTPConnection(host, HTTP, timeout=40)
        try:
            link.request("POST", "/order", json.dumps(order), said)
            found[str(order["order"])] = link.getresponse().status
        finally:
            link.close()
    return found


async def knock_everywhere(host: str, ports: list[int], known: Keys, server: str) -> list[str]:
    """All intruders at all ports of a machine; what came that should not have."""
    stranger = Keys(*(each.decode() for each in zmq.curve_keypair()))
    found = []
    for port in ports:
        if port == HTTP:
            asked = [("GET", page) for page in PAGES] + [("POST", "/order")]
            found += [f"{host} {method} {page}" for method, page in asked if said_http(host, method, page) < 400]
            continue
        for name, data in RAW.items():
            if not is_greeting(heard := said_raw(host, port, data)):
                found.append(f"{host}:{port} answered {name}: {heard[:80]!r}")
        for who, keys in (("plain", None), ("unknown", stranger), ("bridge", known)):
            heard_here = said_zmq(host, port, keys, server)
            allowed = [frames for frames in heard_here if who == "bridge" and is_refusal(frames)]
            if len(allowed) < len(heard_here):
                found.append(f"{host}:{port} answered {who}: {heard_here[:2]!r}")
    return found


def is_greeting(heard: bytes) -> bool:
    """Whether a port has said no more than ZMTP's greeting, the same to everybody."""
    return len(heard) <= GREETING_BYTES and heard[: len(GREETING)] == GREETING[: len(heard)]


def is_refusal(frames: list[bytes]) -> bool:
    return any(frame.startswith(REFUSALS) for frame in frames)


async def shout(port: int) -> None:
    """Beacons: one as a stranger makes them, and noise."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        for data in (BEACON, b"noise") * 3:
            for number in (1, 2):
                link.sendto(data, (host_of(number), port))


@pytest.mark.proves("SEC-027", part="from another machine, at every port of a root and of a node below it")
@pytest.mark.proves("SEC-055", part="the store's clients and the catalog have no port beyond the machine's loopback")
@pytest.mark.proves("SEC-015", part="a stranger's beacon from another machine is dropped and counted")
def test_intruders_on_another_machine_change_nothing_and_are_counted(fabric: dict[int, Machine]) -> None:
    root, member, outside = fabric.values()
    (state,) = outside.home.rglob("keys/node.key_secret")
    known = load_keys(state.parent.parent)
    assert known is not None
    before, counted = facts(root), {each.number: refused(each) for each in (root, member)}
    for each in (root, member):
        (secret,) = each.home.rglob("keys/node.key_secret")
        own = load_keys(secret.parent.parent)
        assert own is not None
        waiting = ports(each)
        assert {27_500, HTTP} <= {*waiting}, waiting
        assert not {27_505, 5_246} & {*waiting}, "what has no keys waits on loopback only"
        knocked = knock_everywhere(host_of(each.number), waiting, known, own.public)
        assert [] == outside.net.at(3).begin(knocked).result(240)
    (beacons,) = {port for port in ports(root, "udp", "07") if port in ports(member, "udp", "07")} - {MDNS}
    outside.net.at(3).call(shout(beacons))
    for each in (root, member):
        each.until(["status"], lambda said: " m2 " in said)
        more = refused(each) - counted[each.number]
        assert {"no-handshake", "unknown-key", "beacon:bad-mac"} <= {*more}, more
        assert any(what.startswith("denied control:denied") for what in more), more
        assert any(what.startswith("http") for what in more), more
    assert before == facts(root)


@pytest.mark.proves("SEC-056", part="from another machine each order needs the node's token")
def test_no_order_of_another_machine_is_obeyed_but_with_the_token(fabric: dict[int, Machine]) -> None:
    root, _, outside = fabric.values()
    before, at, every = facts(root), outside.net.at(3), [{"order": name} for name in ORDERS]
    (path,) = root.home.rglob("keys/http.token")
    token = path.read_text("utf-8").strip()
    assert len(every) > 20
    for wrong in ("", "0" * 64, token[:-1]):
        assert dict.fromkeys(ORDERS, 401) == at.call(ordered(host_of(1), every, wrong)), wrong
    assert before == facts(root)
    write = {"order": "set", "key": "/CONFIG/global/heartbeat", "value": 2.5}
    assert {"set": 200} == at.call(ordered(host_of(1), [write], token))
    assert before != facts(root)
