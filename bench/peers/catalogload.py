"""The load of a catalog in plain pyzmq, and the bare ROUTER beside it: python -m bench.peers.catalogload MODE PORT COUNT.

echo             a ROUTER that says everything back, until it is ended
fill             COUNT registrations on one DEALER each, which stay
lookup           COUNT lookups of 300 names, one REQ in lock-step
dealer           COUNT lookups, one DEALER, 200 in flight
calls            COUNT calls of `read` at the service that listens at PORT, 200 in flight
call             COUNT calls of it, one REQ in lock-step
list             COUNT lists of everything
register         COUNT registrations of new instances, one REQ in lock-step
watch PUB        COUNT updates on one REQ, each until a SUB of the events port PUB has heard of it
redis            the same by a redis: SET and PUBLISH in one, until a subscriber has heard of it
redisget         COUNT GETs in lock-step
beats            COUNT instances, each with a datagram a second for SECONDS, from one socket

One line of JSON: per_second, p50, p99 (seconds).
"""

import json
import socket
import struct
import sys
import time
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

import zmq

NAMES: Final = 300
FLYING: Final = 200
AT_ONCE: Final = 50
T: Final = struct.pack("<d", time.time())
Socket = zmq.Socket[bytes]


def dialled(kind: int, port: int) -> Socket:
    made: Socket = zmq.Context.instance().socket(kind)
    made.setsockopt(zmq.LINGER, 0)
    made.setsockopt(zmq.RCVTIMEO, 20_000)
    made.connect(f"tcp://127.0.0.1:{port}")
    return made


def record(number: int, **more: Any) -> bytes:
    named = {"name": f"n{number}", "id": f"i{number}", "ip": "127.0.0.1", "port": 9_000, "tags": ["bench"]}
    return json.dumps(named | {"heartbeat": 3_600_000, **more}).encode()


def timed(count: int, one: Callable[[int], object]) -> list[float]:
    took = []
    for number in range(count):
        began = time.perf_counter()
        one(number)
        took.append(time.perf_counter() - began)
    return took


def echo(port: int, _: int) -> list[float]:
    router: Socket = zmq.Context.instance().socket(zmq.ROUTER)
    router.bind(f"tcp://127.0.0.1:{port}")
    while True:
        router.send_multipart(router.recv_multipart())


def asked(port: int, *frames: bytes) -> Callable[[int], object]:
    """One question after the other; `%d` is the number of a name."""
    req = dialled(zmq.REQ, port)

    def one(number: int) -> list[bytes]:
        filled = [frame.replace(b"%d", b"%d" % (number % NAMES)) for frame in frames]
        req.send_multipart(filled)
        return req.recv_multipart()

    return one


def lookup(port: int, count: int) -> list[float]:
    return timed(count, asked(port, b"u_U", T, b"n%d"))


def listed(port: int, count: int) -> list[float]:
    return timed(count, asked(port, b"u_U", T, b""))


def flying(port: int, count: int) -> list[float]:
    dealer = dialled(zmq.DEALER, port)
    began, sent, heard = time.perf_counter(), 0, 0
    while heard < count:
        while sent < min(count, heard + FLYING):
            dealer.send_multipart([b"", b"u_U", T, b"n%d" % (sent % NAMES)])
            sent += 1
        dealer.recv_multipart()
        heard += 1
    return [(time.perf_counter() - began) / count] * count


def calls(port: int, count: int) -> list[float]:
    """Calls of `read` at a service, one DEALER, each in an envelope of its own."""
    dealer = dialled(zmq.DEALER, port)
    began, sent, heard = time.perf_counter(), 0, 0
    while heard < count:
        while sent < min(count, heard + FLYING):
            dealer.send_multipart([b"%d" % (sent + 1), b"", b"read", T, b"x" * 100])
            sent += 1
        dealer.recv_multipart()
        heard += 1
    return [(time.perf_counter() - began) / count] * count


def one_call(port: int, count: int) -> list[float]:
    """Calls of `read`, one REQ in lock-step."""
    req = dialled(zmq.REQ, port)

    def one(_: int) -> None:
        req.send_multipart([b"read", T, b"x" * 100])
        req.recv_multipart()

    return timed(count, one)


def fill(port: int, count: int) -> list[float]:
    req = dialled(zmq.REQ, port)

    def one(number: int) -> None:
        req.send_multipart([b"UwU", T, record(number)])
        assert req.recv_multipart()[0] == b"OwO"

    return timed(count, one)


def register(port: int, count: int) -> list[float]:
    req, run = dialled(zmq.REQ, port), time.time_ns()

    def one(number: int) -> None:
        req.send_multipart([b"UwU", T, record(number, name=f"r{run}", id=f"{number}", heartbeat=1_000)])
        assert req.recv_multipart()[0] == b"OwO"

    return timed(count, one)


def watched(port: int, count: int) -> list[float]:
    req, sub = dialled(zmq.REQ, port), dialled(zmq.SUB, int(sys.argv[4]))
    sub.setsockopt(zmq.SUBSCRIBE, b"catalog/n0\0")
    sub.setsockopt(zmq.SUBSCRIBE, b"tick")
    sub.recv_multipart()  # it is subscribed
    sub.setsockopt(zmq.UNSUBSCRIBE, b"tick")
    run = time.time_ns()

    def one(number: int) -> None:
        req.send_multipart([b"UoU", T, b'{"name":"n0","function":"%d-%d"}' % (run, number)])
        while sub.recv_multipart()[0] == b"tick":
            pass
        req.recv_multipart()

    return timed(count, one)


class Redis:
    """Just enough of its protocol."""

    def __init__(self, port: int) -> None:
        self._link = socket.create_connection(("127.0.0.1", port), 20)
        self._link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, *commands: tuple[bytes, ...]) -> None:
        self._link.sendall(
            b"".join(
                b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
                for words in commands
            )
        )

    def hear(self, end: bytes) -> bytes:
        """What comes, until it ends so."""
        heard = b""
        while not heard.endswith(end):
            heard += self._link.recv(1 << 16)
        return heard


def by_redis(port: int, count: int) -> list[float]:
    writer, watcher = Redis(port), Redis(port)
    watcher.send((b"SUBSCRIBE", b"n0"))
    watcher.hear(b":1\r\n")

    def one(number: int) -> None:
        said = record(number)
        writer.send((b"SET", b"n0", said), (b"PUBLISH", b"n0", said))
        watcher.hear(said + b"\r\n")
        writer.hear(b":1\r\n")

    return timed(count, one)


def redis_get(port: int, count: int) -> list[float]:
    link = Redis(port)
    link.send((b"SET", b"n0", record(0)))
    link.hear(b"+OK\r\n")

    def one(_: int) -> None:
        link.send((b"GET", b"n0"))
        link.hear(record(0) + b"\r\n")

    return timed(count, one)


def beats(port: int, count: int) -> list[float]:
    """Register, fifty at once, and beat meanwhile and for so many seconds after; the time of each turn of ten milliseconds."""
    idle, seconds = [dialled(zmq.REQ, port) for _ in range(AT_ONCE)], float(sys.argv[5])
    source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    to = ("127.0.0.1", int(sys.argv[4]))
    began, took, known, turn, last = time.monotonic(), list[float](), list[int](), 0, sys.maxsize
    numbers, pending = iter(range(count)), dict[Socket, int]()
    while turn < last:
        time.sleep(max(0.0, began + turn / 100 - time.monotonic()))
        before = time.perf_counter()
        for req in [req for req in pending if req.poll(0)]:
            assert req.recv_multipart()[0] == b"OwO"
            known.append(pending.pop(req))
            idle.append(req)
        for number in islice(numbers, len(idle)):
            req = idle.pop()
            req.send_multipart([b"UwU", T, record(number, heartbeat=1_000)])
            pending[req] = number
        for number in known[turn % 100 :: 100]:
            source.sendto(b"<3 1 n%d\tid=i%d" % (number, number), to)
        took.append(time.perf_counter() - before)
        turn += 1
        if len(known) == count and last == sys.maxsize:
            last = turn + round(seconds * 100)
    return took


MODES: Final[dict[str, Callable[[int, int], list[float]]]] = {
    "echo": echo,
    "fill": fill,
    "lookup": lookup,
    "dealer": flying,
    "calls": calls,
    "call": one_call,
    "list": listed,
    "register": register,
    "watch": watched,
    "redis": by_redis,
    "redisget": redis_get,
    "beats": beats,
}

if __name__ == "__main__":
    took = MODES[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))
    ranked = sorted(took)
    rate = len(took) / sum(took)
    print(json.dumps({"per_second": rate, "p50": ranked[len(ranked) // 2], "p99": ranked[len(ranked) * 99 // 100]}))
