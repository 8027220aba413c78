"""Clients of two bridged brokers: services behind the far one, their callers here, and taps at the near one.

Calls and answers carry a checksum, because an open bridge does not detect flipped bits. A message with a wrong checksum is
ignored.
"""

import json
import zlib
from collections import Counter
from typing import Any, ClassVar, Final

import zmq

from weft.torture import limits
from weft.torture.book import Book
from weft.torture.clients import LOCAL, Away, Client, Machine, Service, read_json, requested
from weft.torture.files import FAR_NET

CALL: Final = b"torture"
REPLY: Final = b"o_O"
BROKER_ITSELF: Final = "dbp.broker"
COUNTS: Final = ("seen", "copied", "dropped", "sampled")


def sealed(text: str) -> bytes:
    """The text with its checksum in front.

    >>> sealed("a"), unsealed(b"e8b7be43 a"), unsealed(b"e8b7be43 b")
    (b'e8b7be43 a', 'a', '')
    """
    return b"%08x %b" % (zlib.crc32(text.encode()), text.encode())


def unsealed(data: bytes) -> str:
    """The text; empty if its checksum is wrong."""
    text = data[9:].decode("utf-8", "replace")
    return text if sealed(text) == data else ""


class Far(Service):
    """A service of the far broker: it answers each call with its own name and the question, and counts its calls."""

    protocol = "bridged"

    def __init__(self, at: Machine, book: Book, seed: str, broker: str) -> None:
        super().__init__(at, book, seed, broker)
        self.served: Counter[str] = Counter()

    def answer(self, name: str, frames: list[bytes]) -> list[bytes]:
        begin = frames.index(b"") + 1 if b"" in frames else len(frames)
        match frames[begin:]:
            case [word, when, data, *_] if word == CALL and (text := unsealed(data)):
                self.served[text] += 1
                return [*frames[:begin], REPLY, when, sealed(f"{name} {text}")]
        return super().answer(name, frames)


class Caller(Client):
    """Looks up services of the far network at the near broker, and calls them there; a call is never repeated."""

    protocol = "calls"

    def __init__(self, at: Machine, book: Book, seed: str, broker: str, services: list[Far]) -> None:
        super().__init__(at, book, seed)
        self.broker, self.services = broker, services
        self.misanswered = 0
        """Calls that got the answer of another service or to another call."""

    def turn(self) -> None:
        while self.writes and not self.is_over.is_set():
            name = self.chance.choice(self.services).current
            if name and (place := self._place(f"{name}@{FAR_NET}")):
                self._call(name, place)
            self.pause()
        self.is_over.wait(limits.LOOK_S)

    def _place(self, name: str) -> str:
        """The address of a service, according to the near broker; empty: it has none now."""
        assert self.context is not None
        answer = requested(self.context, f"tcp://{self.broker}", b"u_U", name.encode())
        record = read_json(answer[2]).get(name) if answer[0] == REPLY and len(answer) > 2 else None
        ip, port = (record.get("ip"), record.get("port")) if isinstance(record, dict) else ("", 0)
        return f"tcp://{ip}:{port}" if ip and port else ""

    def _call(self, name: str, place: str) -> None:
        assert self.context is not None
        text = f"{self.at.name} {next(self.numbers)}"
        self.book.asks(self.at.name, self.protocol, text, "")
        answer = requested(self.context, place, CALL, sealed(text))
        heard = unsealed(answer[2]) if answer[0] == REPLY and len(answer) > 2 else ""
        if heard == f"{name} {text}":
            self.book.acknowledge(self.at.name, self.protocol, text, "")
        elif heard:
            self.misanswered += 1


class Tapper(Client):
    """Taps the broker of its machine at times, and notes the numbers of all copies, and how many there should be."""

    protocol = "taps"
    WANTED: ClassVar = {"service": BROKER_ITSELF, "sample": 4, "max_frame": 0, "seconds": limits.TAP_S}

    def __init__(self, at: Machine, book: Book, seed: str, port: int) -> None:
        super().__init__(at, book, seed)
        self.port = port
        self.counts: Counter[str] = Counter()
        """How many copies, reports and ends of taps have come."""

    def turn(self) -> None:
        assert self.context is not None
        heard: zmq.Socket[bytes] = self.context.socket(zmq.SUB)
        heard.setsockopt(zmq.LINGER, 0)
        tap = self.chance.randbytes(8).hex()
        try:
            heard.setsockopt(zmq.SUBSCRIBE, b"tap/" + tap.encode())
            heard.connect(self._place(self.port + 1))
            self.is_over.wait(limits.LOOK_S)
            wanted = json.dumps({**self.WANTED, "id": tap}).encode()
            answer = requested(self.context, self._place(self.port), b"u_U", b"dbp.tap", wanted)
            if answer[0] != REPLY or json.loads(answer[2]).get("tap") != tap:
                raise Away("no tap")
            self._listen(tap, heard)
        finally:
            heard.close()
        self.is_over.wait(limits.TAP_S)

    def _place(self, port: int) -> str:
        """The endpoint with a source address, because the broker only lets programs of its own machine tap."""
        return f"tcp://{LOCAL}:0;{self.at.inside}:{port}"

    def _listen(self, tap: str, heard: "zmq.Socket[bytes]") -> None:
        while not self.is_over.is_set():
            if not heard.poll(int(limits.ANSWER_S * 1000)):
                raise Away("the tap is silent")
            _, packed, *_ = heard.recv_multipart()
            header = json.loads(packed)
            self._note(tap, header)
            if header["type"] == "end":
                return

    def _note(self, tap: str, header: dict[str, Any]) -> None:
        """Note it in the form that the checker `tapped` reads."""
        self.counts[header["type"]] += 1
        counts = [header.get(name, 0) for name in COUNTS]
        if header["type"] == "copy":
            self.book.note(self.at.name, "info", "copied", [tap, header["instance"], header["seq"], ""])
        elif header["type"] == "report":
            self.book.note(self.at.name, "info", "tapped", [tap, header["instance"], *counts])
        else:
            self.book.note(self.at.name, "info", "untapped", [tap, *counts])
