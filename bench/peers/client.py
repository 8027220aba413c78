"""A client of a node's chains in pyzmq and msgspec and nothing else (CLI-001 to CLI-008), as the benches load nodes with."""

import os
import time
from typing import Any, Final, Self

import msgspec
import zmq

PATIENCE_MS: Final = 20_000
BEAT_S: Final = 1.0
NEVER: Final = float("inf")
pack: Final = msgspec.msgpack.Encoder().encode
unpack: Final = msgspec.msgpack.Decoder().decode
BEAT: Final = pack({"op": "beat"})


def dealer(endpoint: str) -> zmq.Socket[bytes]:
    """A socket to a ROUTER."""
    made = _patient(zmq.DEALER)
    made.setsockopt(zmq.ROUTING_ID, b"\x01" + os.urandom(15))
    made.connect(endpoint)
    return made


def router(endpoint: str) -> zmq.Socket[bytes]:
    """A socket for DEALERs."""
    made = _patient(zmq.ROUTER)
    made.bind(endpoint)
    return made


def _patient(kind: int) -> zmq.Socket[bytes]:
    """Patient, but not for ever."""
    made: zmq.Socket[bytes] = zmq.Context.instance().socket(kind)
    for option in (zmq.SNDTIMEO, zmq.RCVTIMEO, zmq.LINGER):
        made.setsockopt(option, PATIENCE_MS)
    return made


class Client:
    """One attached client."""

    def __init__(self, endpoint: str, name: str) -> None:
        self.socket = dealer(endpoint)
        self.said_at = 0.0
        self.say({"op": "hello", "v": 1, "role": "client", "name": name, "id": os.urandom(16), "pid": os.getpid()})
        self.welcome, _ = self.hear()
        assert self.welcome["op"] == "welcome", self.welcome

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.say({"op": "bye"})
        self.socket.close()

    def say(self, header: dict[str, Any], frames: list[bytes] | None = None) -> None:
        """Say a message; it waits if the node takes nothing."""
        self.socket.send_multipart([pack(header), *(frames or [])])
        self.said_at = time.monotonic()

    def hear(self) -> tuple[dict[str, Any], list[bytes]]:
        """The next message that is no beat, with its payload frames; whoever waits is still there, and says so."""
        ends_at = time.monotonic() + PATIENCE_MS / 1_000
        while time.monotonic() < ends_at:
            if time.monotonic() > self.said_at + BEAT_S:
                self.socket.send(BEAT)
                self.said_at = time.monotonic()
            header, *frames = self.socket.recv_multipart()
            told = unpack(header)
            if told["op"] != "beat":
                return told, frames
        raise TimeoutError(f"nothing but beats within {PATIENCE_MS} ms")

    def overhear(self) -> None:
        """Take what has come meanwhile, if anything; a refusal is a ValueError."""
        while self.socket.poll(0):
            told = unpack(self.socket.recv_multipart()[0])
            if told["op"] not in ("beat", "credit"):
                raise ValueError(told)

    def stand(self, reg: int, direction: str, kind: str, **more: Any) -> None:
        """Register, and wait until it is so."""
        self.say({"op": "reg", "reg": reg, "dir": direction, "type": kind, **more})
        told, _ = self.hear()
        assert told["op"] == "done", told


def sends(first: int, count: int, kind: str, payload: bytes, **more: Any) -> tuple[dict[str, Any], list[bytes]]:
    """One multipart of so many messages, with the tags from `first` on."""
    batch = [{"tag": tag, "type": kind, **more} for tag in range(first, first + count)]
    return {"op": "send", "m": batch}, [payload] * count


class Sender:
    """Sends within its credit: so many messages may be without their final status."""

    def __init__(self, client: Client, kind: str, payload: bytes, **more: Any) -> None:
        self.client, self.kind, self.payload, self.more = client, kind, payload, more
        self.credit = int(client.welcome["credit"])
        self.said = self.answered = 0
        self.refused: dict[str, int] = {}

    def send(self, count: int, batch: int) -> None:
        """So many messages, so many to a multipart; returns when all have their status."""
        goal = self.said + count
        while self.answered < goal:
            while self.said < goal and self.said - self.answered + batch <= self.credit:
                size = min(batch, goal - self.said)
                self.client.say(*sends(self.said + 1, size, self.kind, self.payload, **self.more))
                self.said += size
            self.note(*self.client.hear())

    def note(self, told: dict[str, Any], _: list[bytes]) -> None:
        """What the node says about sends."""
        if told["op"] == "status":
            self.answered += len(told["m"])
            for status in told["m"]:
                if not status["ok"]:
                    self.refused[status["why"]] = self.refused.get(status["why"], 0) + 1
        elif told["op"] == "credit":
            self.credit = told["credit"]
        elif told["op"] in ("error", "bye", "refuse"):
            raise ConnectionError(told)
