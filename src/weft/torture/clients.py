"""Plain clients of all protocols: each is a thread at one machine that writes, and notes the answers that it gets.

They are written from the documents of the protocols and use no code of Weft's client libraries. A client that is refused,
or not answered, reconnects and goes on with the next number. Only acknowledged values count as written.
"""

import http.client
import itertools
import json
import os
import socket
import struct
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import msgpack
import zmq

from weft.base.chance import Chance
from weft.torture import limits
from weft.torture.book import Book
from weft.torture.room import step_into

LOCAL: Final = "127.0.0.1"
"""Loopback of the machine of a thread: nodes accept orders only from there."""
ORDERS: Final = 6
STORE: Final = 5
SESSION: Final = "torture"
CATALOG: Final = 5_246


class Machine(NamedTuple):
    """The machine of a node, as its clients see it."""

    name: str
    host: str
    port: int
    namespace: str
    """Name of its network namespace; empty: that of this process."""
    state: Path
    is_closed: bool = False
    """Whether its node has keys: then it serves programs on the machine's loopback only."""

    @property
    def inside(self) -> str:
        """The address at which programs of this machine reach the node."""
        return LOCAL if self.is_closed else self.host


class Away(Exception):
    """Raised when the node does not answer."""


class Client(threading.Thread, ABC):
    """One client at one machine. `turn` is its work until it is interrupted."""

    protocol: ClassVar[str] = ""

    def __init__(self, at: Machine, book: Book, seed: str) -> None:
        super().__init__(name=f"{type(self).__name__} at {at.name}", daemon=True)
        self.at, self.book = at, book
        self.chance = Chance(f"{seed}/torture/{self.name}")
        self.numbers = itertools.count(1)
        self.writes = True
        self.is_over = threading.Event()
        self.fault = ""
        self.context: zmq.Context[Any] | None = None

    def run(self) -> None:
        """Run until `end`; an unexpected error ends it, and is reported."""
        step_into(self.at.namespace)
        self.context = zmq.Context()
        try:
            while not self.is_over.is_set():
                try:
                    self.turn()
                except (Away, OSError, zmq.ZMQError, http.client.HTTPException, EOFError):
                    self.is_over.wait(limits.AGAIN_S)
        except Exception as error:  # noqa: BLE001  # an exception in a thread is reported nowhere else
            self.fault = f"{self.name}: {error!r}"
        finally:
            self.context.destroy(0)

    @abstractmethod
    def turn(self) -> None:
        """Connect, and write until interrupted."""

    def rest(self) -> None:
        """Start no new write from here on; pending ones may be answered."""
        self.writes = False

    def end(self) -> None:
        """Stop, and send nothing more."""
        self.is_over.set()
        self.join(limits.ANSWER_S + 5)

    def pause(self) -> None:
        self.is_over.wait(limits.PAUSE_S * self.chance.uniform(0.5, 1.5))

    def endpoint(self, file: str) -> str:
        """The endpoint that a node has written into its state directory."""
        path = self.at.state / file
        if not path.exists():
            raise Away(file)
        return path.read_text("utf-8").strip()

    def dealer(self, endpoint: str) -> "zmq.Socket[bytes]":
        assert self.context is not None
        link: zmq.Socket[bytes] = self.context.socket(zmq.DEALER)
        link.setsockopt(zmq.LINGER, 0)
        link.setsockopt(zmq.ROUTING_ID, b"\x01" + os.urandom(15))
        link.connect(endpoint)
        return link


def ask(at: Machine, path: str, body: Any = None, patience_s: float = limits.ANSWER_S) -> tuple[int, Any]:
    """Send a request to a node over HTTP, from a thread on that machine; returns status and body."""
    link = http.client.HTTPConnection(LOCAL, at.port + ORDERS, timeout=patience_s)
    try:
        if body is None:
            link.request("GET", path)
        else:
            link.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        answer = link.getresponse()
        return answer.status, read_json(answer.read() or b"null")
    finally:
        link.close()


def read_json(text: bytes) -> Any:
    """An answer parsed as JSON; Away if it was altered on the way and cannot be read."""
    try:
        return json.loads(text)
    except ValueError:
        raise Away("an answer that cannot be read") from None


class Configuration(Client):
    """Writes keys of its own at its node while that is the root, each confirmed by a majority."""

    protocol = "configuration"

    def turn(self) -> None:
        while self.writes and not self.is_over.is_set():
            status, answer = ask(self.at, "/status", patience_s=2.0)
            if status != http.HTTPStatus.OK or answer.get("level") != "root":
                raise Away("no root")
            self._write()
        self.is_over.wait(limits.LOOK_S)

    def _write(self) -> None:
        key, value = f"/app/torture/{self.at.name}/{self.chance.randrange(400)}", next(self.numbers)
        self.book.asks(self.at.name, self.protocol, key, value)
        order = {"order": "set", "key": key, "value": value, "who": "torture", "ack": "quorum"}
        status, answer = ask(self.at, "/order", order, patience_s=40.0)
        if status == http.HTTPStatus.OK and answer.get("is_confirmed"):
            self.book.acknowledge(self.at.name, self.protocol, key, value)
        self.pause()


class Messages(Client):
    """Sends messages up the tree; after a broken connection, repeats those without a final status under the same tags."""

    protocol = "messages"
    OPEN_MAX: ClassVar[int] = 32

    def __init__(self, at: Machine, book: Book, seed: str) -> None:
        super().__init__(at, book, seed)
        self.id = self.chance.randbytes(16)
        self.open: dict[int, str] = {}

    def turn(self) -> None:
        link = self.dealer(self.endpoint("chains.endpoint"))
        try:
            _hello(link, self.id, "sender")
            for tag, text in self.open.items():
                _send(link, tag, text)
            line, next_at = _Line(link), time.monotonic()
            while not self.is_over.is_set():
                if self.writes and len(self.open) < self.OPEN_MAX and time.monotonic() >= next_at:
                    next_at = time.monotonic() + limits.PAUSE_S
                    self._next(link)
                if frames := line.next(limits.PAUSE_S):
                    self._hear(msgpack.unpackb(frames[0]))
        finally:
            link.close()

    def _next(self, link: "zmq.Socket[bytes]") -> None:
        tag = next(self.numbers)
        text = f"{self.at.name} {tag}"
        self.book.asks(self.at.name, self.protocol, text, "")
        self.book.asks(self.at.name, "readers", text, "")
        self.open[tag] = text
        _send(link, tag, text)

    def _hear(self, header: dict[str, Any]) -> None:
        if header["op"] in ("bye", "refuse"):
            raise Away(header["op"])
        for status in header.get("m", ()) if header["op"] == "status" else ():
            text = self.open.pop(status["tag"], None)
            if text is None:
                continue
            if status["ok"] and status["why"] in ("spooled", "local"):
                self.book.acknowledge(self.at.name, self.protocol, text, "")
                self.book.acknowledge(self.at.name, "readers", text, "")

    def is_answered(self) -> bool:
        """Whether every sent message has its final status."""
        return not self.open


class Reader(Client):
    """Reads what arrives at its node, and confirms each."""

    protocol = "readers"

    def __init__(self, at: Machine, book: Book, seed: str) -> None:
        super().__init__(at, book, seed)
        self.id = self.chance.randbytes(16)
        self.seen: dict[str, int] = {}
        self.stands = False
        """Whether the node has accepted its registration once: messages that arrived before are not for this reader."""

    def turn(self) -> None:
        link = self.dealer(self.endpoint("chains.endpoint"))
        try:
            _hello(link, self.id, f"reader-{self.at.name}")
            stand = {"op": "reg", "reg": 1, "dir": "in", "type": "t.mail", "at": "before-all", "access": "ro"}
            _say(link, {**stand, "confirm": True, "window": 64})
            line = _Line(link)
            while not self.is_over.is_set():
                if frames := line.next(0.2):
                    self._hear(link, *frames)
        finally:
            link.close()

    def _hear(self, link: "zmq.Socket[bytes]", packed: bytes, *frames: bytes) -> None:
        header = msgpack.unpackb(packed)
        if header["op"] in ("bye", "refuse"):
            raise Away(header["op"])
        self.stands = self.stands or header["op"] == "done"
        if header["op"] == "rec":
            at = 0
            for each in header["m"]:
                text = frames[at].decode("utf-8", "replace")
                at += each.get("n", 1)
                self.seen[text] = self.seen.get(text, 0) + 1
            _say(link, {"op": "conf", "reg": header["reg"], "ids": [each["id"] for each in header["m"]]})


class _Line:
    """A connection that was welcomed: beats once a second, and is given up when the node is silent for too long."""

    def __init__(self, link: "zmq.Socket[bytes]") -> None:
        self._link = link
        self._heard_at = self._beat_at = time.monotonic()

    def next(self, wait_s: float) -> list[bytes]:
        """The next message, waiting at most this long for it; empty: there is none. Away if the node is silent."""
        frames = self._link.recv_multipart() if self._link.poll(int(wait_s * 1000)) else []
        now = time.monotonic()
        if frames:
            self._heard_at = now
        if now - self._beat_at > limits.BEAT_S:
            self._beat_at = now
            _say(self._link, {"op": "beat"})
        if now - self._heard_at > limits.ANSWER_S:
            raise Away("silent")
        return frames


def _hello(link: "zmq.Socket[bytes]", own: bytes, name: str) -> None:
    _say(link, {"op": "hello", "v": 1, "role": "client", "name": name, "id": own, "pid": os.getpid()})
    if not link.poll(int(limits.ANSWER_S * 1000)):
        raise Away("no welcome")
    if msgpack.unpackb(link.recv_multipart()[0])["op"] != "welcome":
        raise Away("refused")


def _say(link: "zmq.Socket[bytes]", header: dict[str, Any], *frames: bytes) -> None:
    link.send_multipart([msgpack.packb(header), *frames], zmq.DONTWAIT)


def _send(link: "zmq.Socket[bytes]", tag: int, text: str) -> None:
    _say(link, {"op": "send", "m": [{"tag": tag, "type": "t.mail", "to": ["PARENTSOF"]}]}, text.encode())


class Stored(Client):
    """Writes and deletes its own entries in the store of its node, and reads the entries of others, too."""

    protocol = "store"
    KEYS: ClassVar[int] = 40

    def __init__(self, at: Machine, book: Book, seed: str, writers: tuple[str, ...]) -> None:
        super().__init__(at, book, seed)
        self.writers = writers
        """The nodes of all clients of this kind."""

    def turn(self) -> None:
        link = StoreLink(self.at)
        try:
            while self.writes and not self.is_over.is_set():
                name = f"{self.at.name}.{self.chance.randrange(self.KEYS)}"
                value = f"{self.at.name} {next(self.numbers)}" if self.chance.random() < 0.9 else None
                self.book.asks(self.at.name, self.protocol, name, value)
                path = StoreLink.path("t", *name.split("."))
                answer = link.ask("set_value", path=path, value=value) if value else link.ask("delete_value", path=path)
                if "error" not in answer:
                    self.book.acknowledge(self.at.name, self.protocol, name, value)
                self._read(link, name)
                self._read(link, f"{self.chance.choice(self.writers)}.{self.chance.randrange(self.KEYS)}")
                self.pause()
        finally:
            link.close()
        self.is_over.wait(limits.LOOK_S)

    def _read(self, link: "StoreLink", name: str) -> None:
        answer = link.ask("get_value", path=StoreLink.path("t", *name.split(".")))
        if "error" not in answer:
            self.book.note(self.at.name, "ok", "got", [self.protocol, name, answer.get("value")])


class StoreLink:
    """One connection to a store."""

    def __init__(self, at: Machine) -> None:
        self._socket = socket.create_connection((at.inside, at.port + STORE), timeout=limits.ANSWER_S)
        self._heard = msgpack.Unpacker(strict_map_key=False)
        self._seq = itertools.count(1)
        self._hear()

    @staticmethod
    def path(*elements: Any) -> msgpack.ExtType:
        """A path in the wire format."""
        return msgpack.ExtType(3, b"".join(map(msgpack.packb, elements)))

    @staticmethod
    def elements(packed: Any) -> list[Any]:
        """The elements of a path in the wire format."""
        if not isinstance(packed, msgpack.ExtType):
            return list(packed)
        unpacker = msgpack.Unpacker()
        unpacker.feed(packed.data)
        return list(unpacker)

    def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        """Send a request that has one answer."""
        seq = self._say(action, fields)
        while (answer := self._hear()).get("seq") != seq:
            continue
        return answer

    def watch(self, *elements: Any) -> Iterator[tuple[str, Any]]:
        """The entries below a path, then each change: its path with dots, and the value, None if it was deleted.

        `("", None)` comes between the two, and again whenever the list is up to date. Raises Away if changes were left out.
        """
        seq = self._say("watch", {"path": self.path(*elements), "fetch": True})
        before: list[Any] = []
        while True:
            answer = self._hear()
            if answer.get("seq") != seq:
                continue
            if "error" in answer or answer.get("state") == "gap":
                raise Away(str(answer.get("error", "gap")))
            if answer.get("state") == "uptodate":
                yield "", None
            elif "path" in answer:
                before = before[: answer.get("depth", 0)] + self.elements(answer["path"])
                yield ".".join(map(str, before)), answer.get("value")

    def tree(self, *elements: Any) -> dict[str, Any]:
        """All values below a path, by their elements with dots between."""
        seq = self._say("get_tree", {"path": self.path(*elements)})
        found: dict[str, Any] = {}
        before: list[Any] = []
        while True:
            answer = self._hear()
            if answer.get("seq") != seq:
                continue
            if "error" in answer:
                raise Away(str(answer["error"]))
            if answer.get("state") == "end":
                return found
            if "path" in answer:
                before = before[: answer.get("depth", 0)] + self.elements(answer["path"])
                if "value" in answer:
                    found[".".join(map(str, before))] = answer["value"]

    def _say(self, action: str, fields: dict[str, Any]) -> int:
        seq = next(self._seq)
        self._socket.sendall(msgpack.packb({"seq": seq, "action": action, **fields}))
        return seq

    def _hear(self) -> dict[str, Any]:
        while True:
            for message in self._heard:
                return dict(message)
            data = self._socket.recv(65_536)
            if not data:
                raise EOFError
            self._heard.feed(data)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


class Documents(Client):
    """Enters notes into the document of its node."""

    protocol = "documents"

    def turn(self) -> None:
        link = DocumentLink(self.dealer(self.endpoint("doc.endpoint")))
        try:
            while self.writes and not self.is_over.is_set():
                text = f"{self.at.name}-{next(self.numbers)}"
                self.book.asks(self.at.name, self.protocol, text, "")
                (answer,) = link.ask("edit", {"verb": "add", "words": ["path=/", "note", f"n={text}"]})
                if not answer.get("code"):
                    self.book.acknowledge(self.at.name, self.protocol, text, "")
                self.pause()
        finally:
            link.close()
        self.is_over.wait(limits.LOOK_S)


class DocumentLink:
    """One connection to the document of a node."""

    def __init__(self, link: "zmq.Socket[bytes]") -> None:
        self._link = link
        self._numbers = itertools.count(1)

    def ask(self, verb: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        """Send a request; returns all its answers."""
        number = struct.pack(">Q", next(self._numbers))
        request = {"verb": verb, "session": SESSION, "args": arguments}
        self._link.send_multipart([number, msgpack.packb(request)], zmq.DONTWAIT)
        answers: list[dict[str, Any]] = []
        while self._link.poll(int(limits.ANSWER_S * 1000)):
            heard, packed = self._link.recv_multipart()
            if heard != number:
                continue
            answers.append(msgpack.unpackb(packed))
            if not answers[-1].get("more"):
                return answers
        raise Away(verb)

    def close(self) -> None:
        """Hang up."""
        self._link.close()


class Service(Client):
    """A program that registers in the catalog, sends beats, answers calls, leaves after a while, and registers under a new name."""

    protocol = "catalog"

    def __init__(self, at: Machine, book: Book, seed: str, broker: str) -> None:
        super().__init__(at, book, seed)
        self.broker = broker
        self.current = ""
        """Its present name; empty: it is not registered."""

    def turn(self) -> None:
        if not self.writes:
            self.is_over.wait(limits.LOOK_S)
            return
        assert self.context is not None
        name = f"{self.at.name}-{next(self.numbers)}"
        calls: zmq.Socket[bytes] = self.context.socket(zmq.ROUTER)
        calls.setsockopt(zmq.LINGER, 0)
        port = calls.bind_to_random_port(f"tcp://{self.at.inside}")
        self.book.asks(self.at.name, self.protocol, name, "active")
        self.current = name
        try:
            self._live(name, calls, port)
        finally:
            self.current = ""
            calls.close()

    def _live(self, name: str, calls: "zmq.Socket[bytes]", port: int) -> None:
        """One life of the service. While clients write it ends with a goodbye; the last one lasts until the end."""
        record = {"name": name, "ip": self.at.inside, "port": port, "heartbeat": int(limits.CATALOG_BEAT_S * 1000)}
        ends_at = time.monotonic() + self.chance.uniform(*limits.LIFE_S)
        while not self.is_over.is_set():
            link = self.dealer(f"tcp://{self.broker}")
            try:
                _tell(link, b"UwU", json.dumps(record).encode())
                if self._serve(name, link, calls, ends_at):
                    return
            except zmq.Again:  # libzmq does not reconnect after a ZMTP error (altered bytes)
                self.is_over.wait(limits.AGAIN_S)
            finally:
                link.close(0)

    def _serve(self, name: str, link: "zmq.Socket[bytes]", calls: "zmq.Socket[bytes]", ends_at: float) -> bool:
        """Serve until `ends_at` and return True; or return False when the broker is gone and it must register again."""
        heard_at = beat_at = time.monotonic()
        while not self.is_over.is_set():
            ready = dict(self._poll(link, calls))
            now = time.monotonic()
            if calls in ready:
                self._answer(name, calls)
            if link in ready:
                heard_at = now
                if not self._hear(name, link):
                    return False
            if self.writes and now > ends_at:
                self.book.asks(self.at.name, self.protocol, name, None)
                _tell(link, b"</3")
                # a goodbye has no answer; if it is lost, silence has the same effect a little later
                self.is_over.wait(0.2)
                self.book.acknowledge(self.at.name, self.protocol, name, None)
                return True
            if now > beat_at:
                beat_at = now + limits.CATALOG_BEAT_S
                _tell(link, b"<3", name.encode())
            if now - heard_at > 3 * limits.CATALOG_BEAT_S:
                return False
        return True

    def _hear(self, name: str, link: "zmq.Socket[bytes]") -> bool:
        """Handle a message of the broker; False: register again."""
        match link.recv_multipart():
            case [_, b"OwO", *_]:
                self.book.acknowledge(self.at.name, self.protocol, name, "active")
            case [_, b"<3", *_]:
                _tell(link, b"u.u")
            case [_, b"</3" | b"(O_O)", *_] | [_]:  # a single frame was altered on the way
                return False
        return True

    def _answer(self, name: str, calls: "zmq.Socket[bytes]") -> None:
        if answer := self.answer(name, calls.recv_multipart()):
            calls.send_multipart(answer, zmq.DONTWAIT)

    def answer(self, name: str, frames: list[bytes]) -> list[bytes]:
        """The answer to a message at its own socket; empty: none."""
        match frames:
            case [peer, empty, b"ping", when, *_]:
                return [peer, empty, b"pong", when, name.encode()]
        return []

    @staticmethod
    def _poll(*links: "zmq.Socket[bytes]") -> list[tuple[Any, int]]:
        poller = zmq.Poller()
        for link in links:
            poller.register(link, zmq.POLLIN)
        return poller.poll(200)


def _tell(link: "zmq.Socket[bytes]", command: bytes, *body: bytes) -> None:
    link.send_multipart([b"", command, struct.pack("<f", time.time()), *body], zmq.DONTWAIT)


def listed(context: "zmq.Context[Any]", broker: str, names: list[str]) -> dict[str, str]:
    """Which of these services are active according to the catalog."""
    found: dict[str, str] = {}
    for begin in range(0, len(names), 16):
        words = [name.encode() for name in names[begin : begin + 16]]
        command, _, *body = requested(context, f"tcp://{broker}", b"u_U", *words)
        records = json.loads(body[0]) if command == b"o_O" and body else {}
        for name, record in records.items():
            if isinstance(record, dict) and record.get("_dbp", {}).get("state") in ("active", "suspect"):
                found[name] = "active"
    return found


def requested(context: "zmq.Context[Any]", endpoint: str, command: bytes, *body: bytes) -> list[bytes]:
    """The answer to a request: command, time, bodies; Away if there is none."""
    link: zmq.Socket[bytes] = context.socket(zmq.REQ)
    link.setsockopt(zmq.LINGER, 0)
    try:
        link.connect(endpoint)
        link.send_multipart([command, struct.pack("<f", time.time()), *body])
        if not link.poll(int(limits.ANSWER_S * 1000)):
            raise Away(endpoint)
        answer = link.recv_multipart()
    finally:
        link.close()
    if len(answer) < 2:  # altered on the way
        raise Away(endpoint)
    return answer
