"""A child of a fleet in pyzmq and json and nothing else: what a program in any language says to live with Weft.

    +0 SUB, bound here   key, endpoint, uuid, content         calls of the root
    +1 REQ or DEALER     polo, endpoint, uuid, properties     answered by an assignment
    +2 SUB               KVPUB and HUGZ of the parent
    +3 REQ or DEALER     ICANHAZ, "", "", properties, subtree answered by KVSYNC* KTHXBAI, or by all of them at once

`+n` counts from the first port of a node. The kinds of socket differ in the envelope only: a REQ and a DEALER of Weft
put an empty frame before the message, a REQ that correlates also four bytes, a bare DEALER nothing.
"""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import zmq

from tests.patience import PATIENCE_MS

CALLS, CONTROL, UPDATES, SNAPSHOTS = 0, 1, 2, 3
KINDS = ("REQ", "correlated REQ", "DEALER", "bare DEALER")
BEAT = b"HUGZ"


class Snapshot(NamedTuple):
    """What a parent holds under a subtree; `messages`: in how many pieces it came."""

    pairs: dict[str, Any]
    number: int
    messages: int


class Update(NamedTuple):
    """One write of the root; no value: deleted."""

    key: str
    number: int
    root: bytes
    properties: dict[str, Any]
    value: Any


class Refused(Exception):
    """A WTF: its code, and its text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code, self.text = code, text


class Talk:
    """A conversation with one ROUTER."""

    def __init__(self, endpoint: str, kind: str) -> None:
        self.kind = kind
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REQ if kind.endswith("REQ") else zmq.DEALER)
        _be_patient(self.socket)
        if kind == "correlated REQ":
            self.socket.setsockopt(zmq.REQ_CORRELATE, 1)
        self.socket.connect(f"tcp://{endpoint}")

    def say(self, *frames: bytes) -> None:
        """Send a message in the envelope of this kind of socket."""
        self.socket.send_multipart([b"", *frames] if self.kind == "DEALER" else list(frames))

    def hear(self) -> list[bytes]:
        """The next answer, behind its envelope; Refused if it is a WTF."""
        frames: list[bytes] = self.socket.recv_multipart()
        if self.kind == "DEALER":
            empty, *frames = frames
            assert empty == b"", frames
        if frames[0] == b"WTF":
            raise Refused(int.from_bytes(frames[1], "big"), frames[2].decode())
        return frames


@contextmanager
def talk(endpoint: str, by: int, kind: str) -> Iterator[Talk]:
    """A conversation with the port `by` above the first of a node."""
    host, _, port = endpoint.rpartition(":")
    made = Talk(f"{host}:{int(port) + by}", kind)
    try:
        yield made
    finally:
        made.socket.close()


class Calls:
    """Our own +0: whoever is the root connects to it and calls."""

    def __init__(self, endpoint: str) -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.SUB)
        _be_patient(self.socket)
        self.socket.subscribe(b"")
        self.socket.bind(f"tcp://{endpoint}")

    def hear(self) -> tuple[str, str, dict[str, Any]]:
        """Key, endpoint and content of the next call."""
        key, endpoint, sender, content = self.socket.recv_multipart()
        assert len(sender) == 16
        return key.decode(), endpoint.decode(), json.loads(content)

    def close(self) -> None:
        """Hear no more."""
        self.socket.close()


class Updates:
    """What a parent publishes under some topics, and its beats."""

    def __init__(self, endpoint: str, *topics: str) -> None:
        host, _, port = endpoint.rpartition(":")
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.SUB)
        _be_patient(self.socket)
        for topic in (BEAT, *map(str.encode, topics)):
            self.socket.subscribe(topic)
        self.socket.connect(f"tcp://{host}:{int(port) + UPDATES}")

    def hear(self) -> Update | None:
        """The next update; None: a beat."""
        key, number, root, properties, value = self.socket.recv_multipart()
        if key == BEAT:
            assert (number, root, properties, value) == (bytes(8), b"", b"", b"")
            return None
        known = json.loads(properties) if properties else {}
        return Update(key.decode(), int.from_bytes(number, "big"), root, known, json.loads(value) if value else None)

    def close(self) -> None:
        """Hear no more."""
        self.socket.close()


def join(root: str, own: str, node: uuid.UUID, kind: str, name: str) -> dict[str, Any]:
    """Say POLO to the root; the assignment. Refused: no place."""
    about = json.dumps({"protocol": 1, "incarnation": 1, "name": name, "labels": {}, "holds": [0, 0]})
    with talk(root, CONTROL, kind) as said:
        said.say(b"polo", own.encode(), node.bytes, about.encode())
        command, endpoint, assigned, place = said.hear()
    assert (b"assignment", own.encode(), node.bytes) == (command, endpoint, assigned)
    found: dict[str, Any] = json.loads(place)
    return found


def snapshot(parent: str, subtree: str, kind: str) -> Snapshot:
    """Ask for all pairs of a subtree. A REQ hears one answer only, so it gets all frames in one message."""
    with talk(parent, SNAPSHOTS, kind) as said:
        said.say(b"ICANHAZ", b"", b"", b"", subtree.encode())
        frames, messages = said.hear(), 1
        while frames[-5] != b"KTHXBAI":
            assert not kind.endswith("REQ"), "a bundle ends with KTHXBAI"
            frames, messages = frames + said.hear(), messages + 1
    assert frames[-1].decode() == subtree
    rows = [frames[at : at + 5] for at in range(0, len(frames) - 5, 5)]
    pairs = {key.decode(): json.loads(value) for key, _, _, _, value in rows}
    return Snapshot(pairs, int.from_bytes(frames[-4], "big"), messages)


def _be_patient(socket: "zmq.Socket[bytes]") -> None:
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
