"""A client and a server of the Clone pattern, written from its published description alone, on plain sockets.

Both know what the reference programs know and no more: five frames, numbers as signed 64 bit, a beat that is nothing
but a message with a number, properties as lines of text.
"""

import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Self

import zmq

from tests.patience import PATIENCE_S

Frames = list[bytes]


def number_in(frame: bytes) -> int:
    return int(struct.unpack("!q", frame)[0])


def bind(context: "zmq.Context[Any]", kind: int, port: int) -> "zmq.Socket[bytes]":
    made: zmq.Socket[bytes] = context.socket(kind)
    made.setsockopt(zmq.LINGER, 0)
    made.bind(f"tcp://127.0.0.1:{port}")
    return made


class Client:
    """As the clients of models 5 and 6: subscribes, asks, follows, writes."""

    def __init__(self, port: int, subtree: str = "") -> None:
        self.subtree = subtree.encode()
        self.context: zmq.Context[Any] = zmq.Context()
        self.snapshots = self._dial(zmq.DEALER, port)
        self.updates = self._dial(zmq.SUB, port + 1)
        self.updates.setsockopt(zmq.SUBSCRIBE, self.subtree)
        self.updates.setsockopt(zmq.SUBSCRIBE, b"HUGZ")
        self.writes = self._dial(zmq.XPUB, port + 2)  # a PUB that can tell when its server listens
        self.number = 0
        self.pairs: dict[bytes, bytes] = {}
        self.heard: list[Frames] = []
        self.synced: list[Frames] = []

    def _dial(self, kind: int, port: int) -> "zmq.Socket[bytes]":
        made: zmq.Socket[bytes] = self.context.socket(kind)
        made.setsockopt(zmq.LINGER, 0)
        made.setsockopt(zmq.RCVTIMEO, int(PATIENCE_S * 1_000))
        made.connect(f"tcp://127.0.0.1:{port}")
        return made

    def __enter__(self) -> Self:
        return self

    def meet(self) -> None:
        """Wait until both sides hear each other."""
        assert b"\x01" == self.writes.recv(), "the server listens to writes"
        self.next(lambda frames: frames[0] == b"HUGZ")  # so our subscription is there

    def __exit__(self, *_: object) -> None:
        self.context.destroy(linger=0)

    def sync(self) -> None:
        """Take the snapshot."""
        self.snapshots.send_multipart([b"ICANHAZ?", self.subtree])
        self.pairs, self.synced = {}, []
        while True:
            frames = self.snapshots.recv_multipart()
            assert 5 == len(frames)
            self.synced.append(frames)
            if frames[0] == b"KTHXBAI":
                self.number = number_in(frames[1])
                return
            self.pairs[frames[0]] = frames[4]

    def next(self, holds: Callable[[Frames], bool]) -> Frames:
        """Follow until a message is such a one. What has a higher number is stored, whatever it is."""
        ends_at = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends_at:
            frames = self.updates.recv_multipart()
            assert 5 == len(frames)
            self.heard.append(frames)
            key, number, _, _, value = frames
            if number_in(number) > self.number:
                self.number = number_in(number)
                if value:
                    self.pairs[key] = value
                else:
                    self.pairs.pop(key, None)
            if holds(frames):
                return frames
        raise AssertionError("not heard in time")

    def set(self, key: str, value: bytes, ttl: int | None = None) -> bytes:
        """Write; returns the UUID that tells this write from all others."""
        mark = uuid.uuid4().bytes
        lines = b"" if ttl is None else b"ttl=%d\n" % ttl
        self.writes.send_multipart([key.encode(), bytes(8), mark, lines, value])
        return mark


class Server:
    """As a primary of model 6: its state, its numbers, its beats. `mute`: how many questions it lets fall."""

    def __init__(self, port: int, *, mute: int = 0, late_s: float = 0.0, beats: bool = True) -> None:
        self.port, self.mute, self.late_s, self.beats = port, mute, late_s, beats
        self.number = 0
        self.pairs: dict[bytes, tuple[int, bytes, bytes]] = {}
        """Number, properties, value."""
        self.asked = 0
        self._said: list[Frames] = []
        self._lock = threading.Lock()  # number, pairs and what is to be published change together
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def set(self, key: str, value: bytes, ttl: int | None = None) -> None:
        """Somebody has written: numbered and published; a time to live stands in the state as an instant (ms)."""
        lines = b"" if ttl is None else b"ttl=%d\n" % ttl
        ends = b"" if ttl is None else b"ttl=%d\n" % (time.time_ns() // 1_000_000 + 1_000 * ttl)
        with self._lock:
            self.number += 1
            if value:
                self.pairs[key.encode()] = self.number, ends, value
            else:
                self.pairs.pop(key.encode(), None)
            self._said.append([key.encode(), struct.pack("!q", self.number), uuid.uuid4().bytes, lines, value])

    def skip(self) -> None:
        """A write that is published to nobody, as if it had been lost."""
        with self._lock:
            self.number += 1
            self.pairs[b"/skipped"] = self.number, b"", b"1"

    def _run(self) -> None:
        context: zmq.Context[Any] = zmq.Context()
        router, publisher = bind(context, zmq.ROUTER, self.port), bind(context, zmq.PUB, self.port + 1)
        beat_at, due = time.monotonic(), []
        while not self._is_over.is_set():
            if router.poll(5):
                due.append((time.monotonic() + self.late_s, router.recv_multipart()))
                self.asked += 1
            while due and due[0][0] <= time.monotonic():
                peer, command, subtree = due.pop(0)[1]
                assert b"ICANHAZ?" == command
                if self.asked > self.mute:
                    self._answer(router, peer, subtree)
            with self._lock:
                while self._said:
                    publisher.send_multipart(self._said.pop(0))
                    beat_at = time.monotonic() + 0.3
                if self.beats and time.monotonic() >= beat_at:
                    publisher.send_multipart([b"HUGZ", struct.pack("!q", self.number), uuid.uuid4().bytes, b"", b""])
                    beat_at = time.monotonic() + 0.3
        context.destroy(linger=0)

    def _answer(self, router: "zmq.Socket[bytes]", peer: bytes, subtree: bytes) -> None:
        with self._lock:
            number, snapshot = self.number, list(self.snapshot(subtree))
        for frames in snapshot:
            router.send_multipart([peer, *frames])
        router.send_multipart([peer, b"KTHXBAI", struct.pack("!q", number), uuid.uuid4().bytes, b"", b""])

    def snapshot(self, subtree: bytes) -> Iterator[Frames]:
        """KVSYNC for each pair, with the UUID of whoever wrote it."""
        for key, (number, lines, value) in self.pairs.items():
            if key.startswith(subtree):
                yield [key, struct.pack("!q", number), uuid.uuid4().bytes, lines, value]
