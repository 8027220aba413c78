"""The two ends of a measured road, each a process of its own: one that sends, and one that counts what comes.

    python -m bench.peers.loads WHAT ENDPOINT COUNT [BATCH]

A reader says `ready` when it stands, and in the end how many it had in which time, and how many were discarded.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import zmq

import weft
from bench.peers.client import Client, Sender, dealer, pack, router, sends

SIZE: Final = 256
KIND: Final = "bench.load"
PATIENCE_S: Final = 60.0
QUIET_S: Final = 2.0
PAYLOAD: Final = bytes(range(256))
HERE: Final = ["DIRECT"]
Socket = zmq.Socket[bytes]


class Count(NamedTuple):
    """What a reader has seen: messages after the first multipart, in the seconds since that one."""

    messages: int
    lost: int
    seconds: float

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.seconds


class Stopwatch:
    """Counts from the first multipart to the last."""

    def __init__(self, count: int) -> None:
        self.left, self.seen, self.lost = count, 0, 0
        self.began = self.ended = 0.0

    def note(self, messages: int, lost: int = 0) -> bool:
        """One multipart; whether there are more to come."""
        self.ended = time.perf_counter()
        if not self.began:
            self.began = self.ended
        else:
            self.seen += messages
        self.lost += lost
        self.left -= messages + lost
        return self.left > 0

    def say(self) -> None:
        print(json.dumps([self.seen, self.lost, self.ended - self.began]), flush=True)


def ready() -> None:
    print("ready", flush=True)


# Bare sockets


def raw_read(endpoint: str, count: int, _: int) -> None:
    socket = router(endpoint)
    watch = Stopwatch(count)
    ready()
    while True:
        peer, *frames = socket.recv_multipart()
        if not watch.note(len(frames) // 2):
            break
    watch.say()
    socket.send_multipart([peer, b"all"])
    socket.close()


def raw_send(endpoint: str, count: int, _: int) -> None:
    socket = dealer(endpoint)
    header = pack({"op": "send", "m": [{"tag": 1, "type": KIND, "to": HERE}]})
    for _ in range(count):
        socket.send_multipart([header, PAYLOAD])
    assert socket.recv() == b"all"  # what waits at a reader whose queue is full is lost with the connection
    socket.close()


# Clients of a node


def read(endpoint: str, count: int, _: int) -> None:
    with Client(endpoint, "reader") as client:
        client.stand(1, "in", KIND)
        watch = Stopwatch(count)
        ready()
        while True:
            told, _frames = client.hear()
            if told["op"] == "rec" and not watch.note(len(told["m"]), told["m"][0].get("lost", 0)):
                break
        watch.say()


def send(endpoint: str, count: int, batch: int) -> None:
    with Client(endpoint, "sender") as client:
        sender = Sender(client, KIND, PAYLOAD, to=HERE)
        sender.send(count, batch)
        assert not sender.refused, sender.refused


def send_only(endpoint: str, count: int, batch: int) -> None:
    """Nobody wants a status: as fast as the node takes them."""
    with Client(endpoint, "sender") as client:
        for first in range(1, count + 1, batch):
            client.say(*sends(first, batch, KIND, PAYLOAD, to=HERE, want="none", keep="memory"))
            client.overhear()
        client.stand(1, "in", "bench.nobody")  # answered behind all of them: the node has taken them before this ends


async def _read_by_library(endpoint: str, count: int) -> None:
    watch = Stopwatch(count)
    async with weft.chain_client("reader", node=endpoint) as chain:
        done = asyncio.Event()

        @chain.reads(KIND)
        def take(message: Any) -> None:
            if not watch.note(1, message.lost):
                done.set()

        await chain.ready()
        ready()
        async with asyncio.timeout(PATIENCE_S):
            await done.wait()
    watch.say()


async def _send_by_library(endpoint: str, count: int, batch: int) -> None:
    async with weft.chain_client("sender", node=endpoint) as chain:
        for _ in range(count // batch):
            await asyncio.gather(*(chain.send(KIND, PAYLOAD, to=weft.direct()) for _ in range(batch)))


def read_by_library(endpoint: str, count: int, _: int) -> None:
    asyncio.run(_read_by_library(endpoint, count))


def send_by_library(endpoint: str, count: int, batch: int) -> None:
    asyncio.run(_send_by_library(endpoint, count, batch))


ENDS: Final[dict[str, Callable[[str, int, int], None]]] = {
    "raw-read": raw_read,
    "raw-send": raw_send,
    "read": read,
    "send": send,
    "send-only": send_only,
    "library-read": read_by_library,
    "library-send": send_by_library,
}


# Running them


def start(what: str, endpoint: str, count: int, batch: int = 1) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "bench.peers.loads", what, endpoint, str(count), str(batch)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def flow(reads: str, sends: str, endpoint: str, count: int, batch: int = 1) -> Count:
    """So many messages from one process to the other; what the reader says."""
    reader = start(reads, endpoint, count)
    assert reader.stdout is not None
    try:
        assert reader.stdout.readline() == "ready\n"
        sender = start(sends, endpoint, count, batch)
        try:
            return Count(*json.loads(reader.stdout.readline()))
        finally:
            end(sender)
    finally:
        end(reader)


def end(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(QUIET_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    ENDS[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    zmq.Context.instance().term()  # an interpreter that ends does not wait for what is still to be sent
