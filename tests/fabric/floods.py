"""Plain clients that flood one core of a node with its largest records, and one that goes on with its work meanwhile.

Each is a generator: every step says one thing and gives the outcome by name, `ok` or the protocol's refusal. They speak
the wire by its documents and use no code of Weft.
"""

import http.client
import itertools
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgpack
import zmq

LOCAL: Final = "127.0.0.1"
ORDERS, STORE = 6, 5
SESSION: Final = "flood"
OK: Final = "ok"
ANSWER_MS: Final = 10_000
LARGE: Final = "x" * 60_000


class Spot(NamedTuple):
    """Where a node is."""

    port: int
    broker: int
    """Port of its catalog."""
    state: Path


Steps = Iterator[str]
_context: "zmq.Context[Any]" = zmq.Context()
_open: list[Any] = []
"""Sockets of this process, for `close`."""


def close() -> None:
    """Let go of everything."""
    while _open:
        _open.pop().close()


def _dealer(endpoint: str) -> "zmq.Socket[bytes]":
    link: zmq.Socket[bytes] = _context.socket(zmq.DEALER)
    link.setsockopt(zmq.LINGER, 0)
    link.setsockopt(zmq.ROUTING_ID, b"\x01" + os.urandom(15))
    link.connect(endpoint)
    _open.append(link)
    return link


def _unique() -> Iterator[str]:
    own = os.urandom(4).hex()
    return (f"{own}-{number}" for number in itertools.count())


# Configuration


def _ordered(spot: Spot, key: str, value: str) -> str:
    link = http.client.HTTPConnection(LOCAL, spot.port + ORDERS, timeout=10)
    try:
        said = {"order": "set", "key": key, "value": json.dumps(value), "who": "flood", "ack": "local"}
        link.request("POST", "/order", json.dumps(said), {"content-type": "application/json"})
        answer = link.getresponse()
        told = json.loads(answer.read() or b"null")
        return OK if answer.status == http.HTTPStatus.OK else str(told.get("code", told.get("text")))
    finally:
        link.close()


def flood_configuration(spot: Spot) -> Steps:
    """New keys of a megabyte."""
    for name in _unique():
        yield _ordered(spot, f"/app/flood/{name}", "x" * 1_000_000)


def use_configuration(spot: Spot) -> Steps:
    """One key is set again and again."""
    for number in itertools.count(100):
        yield _ordered(spot, "/app/honest", f"{number:06}")


# Catalog


def _asked(link: "zmq.Socket[bytes]", command: bytes, *body: bytes) -> list[bytes]:
    link.send_multipart([b"", command, struct.pack("<f", time.time()), *body])
    while link.poll(ANSWER_MS):
        heard = link.recv_multipart()
        if heard[1] != b"<3":
            return heard
    raise TimeoutError(command)


def _registered(spot: Spot, name: str, **more: Any) -> "tuple[str, zmq.Socket[bytes]]":
    link = _dealer(f"tcp://{LOCAL}:{spot.broker}")
    record = {"name": name, "ip": LOCAL, "port": 9, "heartbeat": 3_600_000, **more}
    heard = _asked(link, b"UwU", json.dumps(record).encode())
    return (OK if heard[1] == b"OwO" else str(json.loads(heard[3])["code"])), link


def flood_catalog(spot: Spot) -> Steps:
    """New services with records of 60 kB."""
    large = {f"k{number}": "x" * 1_000 for number in range(60)}
    for name in _unique():
        outcome, link = _registered(spot, name, metadata=large)
        link.close()
        _open.remove(link)
        yield outcome


def flood_watcher(spot: Spot) -> Steps:
    """Somebody who watches and reads nothing, and a service whose record of 60 kB is another one each time."""
    link = http.client.HTTPConnection(LOCAL, spot.port + ORDERS, timeout=10)
    try:
        link.request("GET", "/status")
        port = json.loads(link.getresponse().read())["cores"]["catalog"]["events_port"]
    finally:
        link.close()
    deaf: zmq.Socket[bytes] = _context.socket(zmq.SUB)
    _open.append(deaf)
    for option, value in ((zmq.LINGER, 0), (zmq.RCVHWM, 1), (zmq.RCVBUF, 4_096), (zmq.SUBSCRIBE, b"")):
        deaf.setsockopt(option, value)
    deaf.connect(f"tcp://{LOCAL}:{port}")
    name = next(_unique())
    outcome, service = _registered(spot, name)
    yield outcome
    for number in itertools.count():
        large = {f"k{place}": f"{number:08}{'x' * 992}" for place in range(60)}
        heard = _asked(service, b"UoU", json.dumps({"name": name, "metadata": large}).encode())
        yield OK if heard[1] == b"u.u" else str(json.loads(heard[3])["code"])


def use_catalog(spot: Spot) -> Steps:
    """A service that was there before the flood is looked up."""
    outcome, link = _registered(spot, "honest")
    yield outcome
    while True:
        heard = _asked(link, b"u_U", b"honest")
        yield OK if b"honest" in heard[3] else "lost"


# Store


class StoreLink:
    """One connection to a store."""

    def __init__(self, spot: Spot) -> None:
        self._socket = socket.create_connection((LOCAL, spot.port + STORE), timeout=ANSWER_MS / 1000)
        _open.append(self._socket)
        self._heard = msgpack.Unpacker(strict_map_key=False)
        self._seq = itertools.count(1)
        self._hear()

    def ask(self, action: str, path: str, **fields: Any) -> dict[str, Any]:
        seq, packed = next(self._seq), msgpack.ExtType(3, msgpack.packb("t") + msgpack.packb(path))
        self._socket.sendall(msgpack.packb({"seq": seq, "action": action, "path": packed, **fields}))
        while (told := self._hear()).get("seq") != seq:
            continue
        return told

    def _hear(self) -> dict[str, Any]:
        while True:
            for told in self._heard:
                return dict(told)
            data = self._socket.recv(65_536)
            if not data:
                raise EOFError
            self._heard.feed(data)


def flood_store(spot: Spot) -> Steps:
    """New entries of 60 kB."""
    link = StoreLink(spot)
    for name in _unique():
        told = link.ask("set_value", name, value=LARGE)
        yield str(told.get("etype", "refused")) if "error" in told else OK


def use_store(spot: Spot) -> Steps:
    """One entry is set again and again."""
    link = StoreLink(spot)
    for number in itertools.count(100):
        told = link.ask("set_value", "honest", value=f"{number:06}")
        yield str(told.get("etype", "refused")) if "error" in told else OK


# Documents


class DocumentLink:
    """One connection to the document of a node."""

    def __init__(self, spot: Spot) -> None:
        self._link = _dealer((spot.state / "doc.endpoint").read_text("utf-8").strip())
        self._numbers = itertools.count(1)

    def ask(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        number = struct.pack(">Q", next(self._numbers))
        self._link.send_multipart([number, msgpack.packb({"verb": verb, "session": SESSION, "args": arguments})])
        while self._link.poll(ANSWER_MS):
            heard, packed = self._link.recv_multipart()
            if heard == number:
                return dict(msgpack.unpackb(packed))
        raise TimeoutError(verb)


def flood_document(spot: Spot) -> Steps:
    """New entries of 60 kB."""
    link = DocumentLink(spot)
    for name in _unique():
        told = link.ask("edit", {"verb": "add", "words": ["path=/", f'<note n="{name}">{LARGE}</note>']})
        yield str(told.get("code") or OK)


def use_document(spot: Spot) -> Steps:
    """It is asked which entries are there."""
    link = DocumentLink(spot)
    while True:
        yield str(link.ask("sources", {}).get("code") or OK)


# Messages


class Messages:
    """One program attached to a node."""

    def __init__(self, spot: Spot, name: str) -> None:
        self._link = _dealer((spot.state / "chains.endpoint").read_text("utf-8").strip())
        self._tags = itertools.count(1)
        self._said_at = time.monotonic()
        self.say({"op": "hello", "v": 1, "role": "client", "name": name, "id": os.urandom(16), "pid": os.getpid()})
        self.hear(ANSWER_MS)

    def say(self, header: dict[str, Any], *frames: bytes) -> None:
        self._link.send_multipart([msgpack.packb(header), *frames])

    def hear(self, patience_ms: int) -> dict[str, Any]:
        """What the node says next; empty: nothing. It is told now and then that we are here."""
        if time.monotonic() - self._said_at > 1.0:
            self._said_at = time.monotonic()
            self.say({"op": "beat"})
        if not self._link.poll(patience_ms):
            return {}
        header = dict(msgpack.unpackb(self._link.recv_multipart()[0]))
        if header["op"] in ("bye", "refuse"):
            raise EOFError(str(header))
        return header

    def send(self, kind: str, payload: bytes) -> int:
        tag = next(self._tags)
        self.say({"op": "send", "m": [{"tag": tag, "type": kind, "to": ["PARENTSOF"]}]}, payload)
        return tag

    def statuses(self, patience_ms: int) -> list[dict[str, Any]]:
        header = self.hear(patience_ms)
        return list(header.get("m", ())) if header.get("op") == "status" else []


def flood_chains(spot: Spot) -> Steps:
    """Messages of a megabyte that wait at a program which never gives them back."""
    holder = Messages(spot, f"holder-{os.getpid()}")
    about = {"dir": "out", "type": "t.flood", "at": "before-all", "access": "rw"}
    holder.say({"op": "reg", "reg": 1, **about, "window": 10_000, "timeout": 60_000})
    yield from _sends(spot, "t.flood", holder)


def flood_inbox(spot: Spot) -> Steps:
    """Messages of a megabyte for a program that never confirms them."""
    holder = Messages(spot, f"reader-{os.getpid()}")
    about = {"dir": "in", "type": "t.flood", "at": "before-all", "access": "ro", "confirm": True}
    holder.say({"op": "reg", "reg": 1, **about, "window": 10_000})
    yield from _sends(spot, "t.flood", holder)


def _sends(spot: Spot, kind: str, holder: Messages) -> Steps:
    senders = [Messages(spot, f"sender-{os.getpid()}-{number}") for number in range(8)]
    payload = b"x" * 1_000_000
    while True:
        for sender in senders:
            sender.send(kind, payload)
            holder.hear(0)
            for status in sender.statuses(20):
                yield OK if status["ok"] else str(status["why"])
        yield "sent"


def use_chains(spot: Spot) -> Steps:
    """A small message to this node has its status."""
    link = Messages(spot, "honest")
    while True:
        tag = link.send("t.honest", b"x")
        while True:
            found = [status for status in link.statuses(ANSWER_MS) if status["tag"] == tag]
            if found:
                yield OK if found[0]["ok"] else str(found[0]["why"])
                break


class Case(NamedTuple):
    """How one core is flooded."""

    core: str
    flood: Callable[[Spot], Steps]
    use: Callable[[Spot], Steps]
    refusals: frozenset[str]
    """What the protocol says where no memory is left."""
    honest: frozenset[str] = frozenset({OK})
    """What the honest client may hear."""


CASES: Final = {
    "configuration": Case("configuration", flood_configuration, use_configuration, frozenset({"6"})),
    "catalog": Case("catalog", flood_catalog, use_catalog, frozenset({"limit"})),
    "store": Case("store", flood_store, use_store, frozenset({"storage-full"})),
    "document": Case("document", flood_document, use_document, frozenset({"log-full"})),
    "chains": Case("chains", flood_chains, use_chains, frozenset({"overload"})),
    "inbox": Case("chains", flood_inbox, use_chains, frozenset({"overload"}), frozenset({OK, "overload"})),
}
WORSE: Final = {"watcher": Case("catalog", flood_watcher, use_catalog, frozenset({"limit"}))}
"""What no budget bounds, but the guard of the process; it takes longer until there is something to see."""

SETTINGS: Final = """
[node]
name = "root"
level = "root"
port = {port}
state = "{state}"
beacons = false
runs = ["topology", "configuration", "carrier", "chains", "drain"]
[fleet]
name = "{fleet}"
[lake]
path = "{state}/lake"
[limits]
memory_megabytes = {megabytes}
[limits.cores]
{budgets}
[metric]
{more}
"""
MORE: Final = {
    "catalog": "[catalog]\nport = {broker}\nbeacons = false\n",
    "store": '[store]\nopen = true\nfound = 1\nclock = "0.5s"\n',
    "document": '[doc.session.flood]\nmdns = false\nlisten = "127.0.0.1:{doc}"\nadvertise = "127.0.0.1:{doc}"\n',
}


def settings(cores: Iterable[str], spot: Spot, megabytes: int, budget: int, fleet: str) -> str:
    """The file of a node whose cores are to be flooded: the process may have so much, and each of these cores."""
    names = dict.fromkeys(cores)
    more = "".join(MORE.get(core, "").format(broker=spot.broker, doc=spot.broker + 5) for core in names)
    budgets = "\n".join(f"{core} = {budget}" for core in names)
    words = {"port": spot.port, "state": spot.state, "megabytes": megabytes}
    return SETTINGS.format(**words, budgets=budgets, fleet=fleet, more=more)
