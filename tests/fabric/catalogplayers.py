"""Programs beside a broker: `catalogplayers.py plain|library FIRST COUNT BROKER BEACON-PORT INTERVAL-MS OUT`, or
`catalogplayers.py asks CLIENTS NAMES BROKER PERIOD-MS OUT`.

`library`: services as programs have them. `plain`: what an existing node does, out of bare sockets: a DEALER each, beats
by UDP, and a registration anew wherever the beacon has another epoch. Both write `ready` when all are approved, `denied`
and why, and `late FROM TO` when the process itself stood still. `asks`: REQ clients in lock-step, that check what they
are answered; they write down whatever is not a service that was found, and at the end how much they asked.
"""

import asyncio
import json
import random
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import msgspec
import zmq

import weft.catalog  # its parts are loaded when they are used

APPROVED, DENIED, HEARTBEAT, DISCONNECT, AWK = b"OwO", b"(O_O)", b"<3", b"</3", b"u.u"
REQUEST, REPLY = b"u_U", b"o_O"
ANSWER_S, ASKED_S = 2.0, 3.0
"""Until a service, and a client, tries a new socket."""
TURN_MS = 20
LATE_S = 1.0
FLOAT32_S = 256.0
"""So far a time of four bytes may be off."""


def name_of(number: int) -> str:
    return f"s{number}"


def time_frame() -> bytes:
    return struct.pack("<f", time.time())


class Diary:
    """What the process says; and whether it stood still itself."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._last = time.time()

    def say(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def tick(self) -> None:
        now = time.time()
        if now - self._last > LATE_S:
            self.say(f"late {self._last} {now}")
        self._last = now


class Plain:
    """One service out of bare sockets."""

    def __init__(self, host: "Host", number: int) -> None:
        self.host, self.name = host, name_of(number)
        record = {
            "name": self.name,
            "id": self.name,
            "heartbeat": host.interval_ms,
            "metadata": {"number": f"{number}"},
        }
        self.record = json.dumps(record).encode()
        self.epoch = ""
        self.has_been_approved = False
        self.dealer: Any = None
        self.beats_at = 0.0
        self.dial()

    def dial(self) -> None:
        """A new socket, since an id that was closed is answered no more."""
        if self.dealer is not None:
            self.host.drop(self)
        self.epoch = ""
        self.dealer = self.host.context.socket(zmq.DEALER)
        self.dealer.linger = 0
        self.dealer.connect(f"tcp://{self.host.broker}")
        self.host.take(self)
        self.say(b"UwU", self.record)
        self.dials_at = time.monotonic() + ANSWER_S

    def say(self, command: bytes, *body: bytes) -> None:
        self.dealer.send_multipart([b"", command, time_frame(), *body], zmq.DONTWAIT)

    def hear(self, frames: list[bytes]) -> None:
        if frames[1] == APPROVED:
            told = json.loads(frames[3])
            self.epoch, self.host.beats_port = told["epoch"], told["hb"]
            self.dials_at = float("inf")
            if not self.has_been_approved:
                self.beats_at = time.monotonic() + random.random() * self.host.interval_s  # spread
            self.has_been_approved = True
        elif frames[1] == HEARTBEAT:
            self.say(HEARTBEAT, self.name.encode(), self.name.encode())
        elif frames[1] == DISCONNECT:
            self.dial()
        elif frames[1] == DENIED:
            self.host.diary.say(f"denied {self.name} {frames[3]!r}")

    def move(self, now: float) -> None:
        """Whatever is due: another try, another broker, a beat."""
        if now >= self.dials_at:
            self.dial()
        if self.has_been_approved and now >= self.beats_at:
            self.beats_at = now + self.host.interval_s * random.uniform(0.95, 1.05)  # BEA-010
            line = f"<3 {time.time():.3f} {self.name}\tid={self.name}".encode()
            self.host.beats.sendto(line, ("127.0.0.1", self.host.beats_port))

    def note_epoch(self, epoch: str, now: float) -> None:
        if self.epoch not in ("", epoch):
            self.epoch = ""
            self.dials_at = now + random.random() * self.host.interval_s  # BEA-021: not all at once

    def leave(self) -> None:
        self.dealer.linger = 500
        self.say(DISCONNECT, self.name.encode(), self.name.encode())
        self.dealer.close()


class Host:
    """Many of them in one process."""

    def __init__(self, broker: str, beacon_port: int, interval_ms: int, diary: Diary) -> None:
        self.broker, self.interval_ms, self.interval_s, self.diary = broker, interval_ms, interval_ms / 1000, diary
        self.context: zmq.Context[Any] = zmq.Context()
        self.poller = zmq.Poller()
        self.beats = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.beats_port = 0
        self.beacons = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.beacons.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.beacons.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.beacons.bind(("127.255.255.255", beacon_port))
        self.beacons.setblocking(False)
        self.poller.register(self.beacons, zmq.POLLIN)
        self.by_dealer: dict[Any, Plain] = {}
        self.is_ended = self.is_ready = False

    def take(self, service: Plain) -> None:
        self.by_dealer[service.dealer] = service
        self.poller.register(service.dealer, zmq.POLLIN)

    def drop(self, service: Plain) -> None:
        del self.by_dealer[service.dealer]
        self.poller.unregister(service.dealer)
        service.dealer.close(0)

    def end(self, *_: object) -> None:
        self.is_ended = True

    def run(self, numbers: range) -> None:
        services = [Plain(self, number) for number in numbers]
        while not self.is_ended:
            for ready, _ in self.poller.poll(TURN_MS):
                if isinstance(ready, int):
                    self._hear_beacon(services)
                elif ready in self.by_dealer:
                    self.by_dealer[ready].hear(ready.recv_multipart())
            now = time.monotonic()
            for service in services:
                service.move(now)
            self.diary.tick()
            if not self.is_ready and all(service.has_been_approved for service in services):
                self.is_ready = True
                self.diary.say("ready")
        for service in services:
            service.leave()
        self.context.term()

    def _hear_beacon(self, services: list[Plain]) -> None:
        tokens = self.beacons.recv(512).decode().split(" ")
        epochs = [token[3:] for token in tokens if token.startswith("id=")]
        for service in services:
            service.note_epoch(epochs[0], time.monotonic())


def plain(numbers: range, broker: str, beacon_port: int, interval_ms: int, diary: Diary) -> None:
    host = Host(broker, beacon_port, interval_ms, diary)
    signal.signal(signal.SIGTERM, host.end)
    host.run(numbers)


def library(numbers: range, broker: str, beacon_port: int, interval_ms: int, diary: Diary) -> None:
    async def play() -> None:
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        services = [
            weft.catalog.Service(
                name_of(number),
                id=name_of(number),
                metadata={"number": f"{number}"},
                interval_s=interval_ms / 1000,
                broker=broker,
                beacon_port=beacon_port,
            )
            for number in numbers
        ]
        for service in services:
            await service.start(wait_s=None)
        is_ready = False
        while not ended.is_set():
            await asyncio.sleep(TURN_MS / 1000)  # tidy: it shows whether the process stands still
            diary.tick()
            if not is_ready and all(service.is_registered for service in services):
                is_ready = True
                diary.say("ready")
        await asyncio.gather(*(service.stop() for service in services))

    asyncio.run(play())


class Asking:
    """One REQ client: a question at a time, about services that no other client asks about."""

    def __init__(self, asks: "Asks", numbers: list[int]) -> None:
        self.asks, self.numbers = asks, numbers
        self.socket: Any = None
        self.number: int | None = None
        """Who is asked about; None: nobody is."""
        self.asked_at = self.asks_at = 0.0

    def open(self) -> None:
        if self.socket is not None:
            self.asks.poller.unregister(self.socket)
            self.socket.close(0)
        self.socket = self.asks.context.socket(zmq.REQ)
        self.socket.linger = 0
        self.socket.connect(f"tcp://{self.asks.broker}")
        self.asks.poller.register(self.socket, zmq.POLLIN)
        self.number = None

    def move(self, now: float) -> None:
        if self.number is None and now >= self.asks_at:
            self.number = random.choice(self.numbers)  # who is asked about
            self.asked_at = now
            try:
                self.socket.send_multipart([REQUEST, time_frame(), name_of(self.number).encode()], zmq.DONTWAIT)
            except zmq.Again:
                self.asks.counts["unsent"] += 1
                self.open()
        elif self.number is not None and now - self.asked_at > ASKED_S:
            self.asks.counts["timeouts"] += 1
            self.open()

    def hear(self, now: float) -> None:
        assert self.number is not None
        try:
            frames = self.socket.recv_multipart(zmq.DONTWAIT)
        except zmq.Again:  # a REQ drops what is no answer to it
            self.asks.counts["dropped"] += 1
            return
        said = judged(self.number, frames)
        counts = self.asks.counts
        counts["answers"] += 1
        counts["slowest_ms"] = max(counts["slowest_ms"], round((now - self.asked_at) * 1000))
        if said != "found":
            self.asks.note({"number": self.number, "asked": self.asked_at, "answered": now, "said": said})
        self.number, self.asks_at = None, now + self.asks.period_s


def judged(number: int, frames: list[bytes]) -> str:
    """`found`, `away`, or what is wrong with an answer."""
    name = name_of(number)
    if len(frames) != 3 or frames[0] != REPLY or len(frames[1]) != 4:
        return f"frames {frames!r}"
    if abs(struct.unpack("<f", frames[1])[0] - time.time()) > FLOAT32_S:
        return f"time {frames[1]!r}"
    try:
        told = msgspec.json.decode(frames[2], type=dict[str, Any])
    except msgspec.MsgspecError:
        return f"body {frames[2]!r}"
    if "Error" in told:
        return "away" if (told.get("service"), told.get("warning")) == (name, "inactive") else f"of another: {told}"
    is_right = set(told) == {name} and told[name]["metadata"]["number"] == f"{number}"
    return "found" if is_right else f"of another: {told}"


class Asks:
    """All REQ clients of the process."""

    def __init__(self, broker: str, period_ms: int, diary: Diary) -> None:
        self.broker, self.period_s, self.diary = broker, period_ms / 1000, diary
        self.context: zmq.Context[Any] = zmq.Context()
        self.poller = zmq.Poller()
        self.counts = {"answers": 0, "timeouts": 0, "unsent": 0, "dropped": 0, "slowest_ms": 0}
        self.is_ended = False

    def note(self, what: dict[str, Any]) -> None:
        self.diary.say(json.dumps(what))

    def end(self, *_: object) -> None:
        self.is_ended = True

    def run(self, clients: int, names: int) -> None:
        signal.signal(signal.SIGTERM, self.end)
        askings = [Asking(self, list(range(at, names, clients))) for at in range(clients)]
        for asking in askings:
            asking.open()
        while not self.is_ended:
            ready = {at for at, _ in self.poller.poll(TURN_MS)}
            now = time.time()
            for asking in askings:
                if asking.socket in ready:
                    asking.hear(now)
                asking.move(now)
        self.note(self.counts)
        self.context.destroy(0)


HOSTS: dict[str, Callable[[range, str, int, int, Diary], None]] = {"plain": plain, "library": library}


def main(kind: str, *words: str) -> None:
    with Path(words[-1]).open("a", encoding="utf-8") as out:
        if kind == "asks":
            clients, names, broker, period_ms = words[:-1]
            Asks(broker, int(period_ms), Diary(out)).run(int(clients), int(names))
        else:
            first, count, broker, beacon_port, interval_ms = words[:-1]
            numbers = range(int(first), int(first) + int(count))
            HOSTS[kind](numbers, broker, int(beacon_port), int(interval_ms), Diary(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
