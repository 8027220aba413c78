"""A broker with publishers around it, in virtual time: whom it listens to, what it keeps, says and asks."""

import json
from collections import deque
from collections.abc import Iterable
from pathlib import Path as File
from typing import Any, Final

from weft.base.chance import Chance
from weft.base.effects import Connect, Disconnect, Persist, Send, Source, Tell
from weft.base.now import SECOND, Now
from weft.base.records import Record, Stream, StreamRecord
from weft.cores.catalog.context import EVENTS, PROBE, ROUTER, VALUES
from weft.cores.catalog.core import Catalog
from weft.cores.catalog.messages import CatalogSettings, Ports
from weft.wire.catalog.messages import (
    REGISTRATION,
    REPLY,
    REQUEST,
    UPDATE,
    Message,
    Publication,
    Subscription,
    Taken,
)

WALL_S: Final = 1_795_227_299
HOUR_MS: Final = 3_600_000
VECTORS: Final = File(__file__).parents[1] / "vectors" / "catalog-peers.jsonl"


def vectors(group: str) -> list[dict[str, Any]]:
    """The captured messages whose id begins so."""
    rows = [json.loads(line) for line in VECTORS.read_text("utf-8").splitlines()]
    return [row for row in rows if row["id"].startswith(group)]


class Broker:
    """The whole core, and everything that it did, by kind."""

    def __init__(self, *, is_open: bool = True, before: Iterable[Record] = (), era: int = 1, **settings: Any) -> None:
        settings = {"hold": False, "beacon_ns": 0, **settings}
        self.core = Catalog(CatalogSettings(**settings), bytes(16), era, Chance("listening"))
        self.now = Now(100 * SECOND, WALL_S * SECOND)
        self.published: list[Publication] = []
        self.records: list[Record] = []
        """All that the journal keeps."""
        self.logged: list[StreamRecord] = []
        self.asked: list[Send] = []
        self.answers: list[Message] = []
        self.told: list[Any] = []
        self.links: dict[bytes, Connect] = {}
        """Open sockets by tag."""
        self.opened = 0
        self.core.restore(enumerate(before, 1), self.now)
        if is_open:
            self.core.command(Ports(5246, 5247), self.now)
            self.pump()

    def pump(self) -> None:
        """Do what the core wants done."""
        for effect in self.core.effects():
            match effect:
                case Connect(channel=channel) if channel == VALUES:
                    self.links[effect.tag] = effect
                    self.opened += 1
                case Disconnect(channel=channel) if channel == VALUES:
                    del self.links[effect.peer]
                case Send(channel=channel) if channel == EVENTS:
                    self.published.append(effect.message)
                case Send(channel=channel) if channel == PROBE:
                    self.asked.append(effect)
                case Send(channel=channel) if channel == ROUTER:
                    self.answers.append(effect.message)
                case Persist():
                    self.records += effect.records
                    self.logged += [
                        r for r in effect.records if isinstance(r, StreamRecord) and r.stream == Stream.LOGS
                    ]
                case Tell():
                    self.told.append(effect.event)
                case _:
                    pass

    def advance(self, seconds: float) -> None:
        """Let time pass, waking the core when it wants to be."""
        until = self.now.mono + round(seconds * SECOND)
        while (due := self.core.deadline()) is not None and due <= until:
            self._to(max(due, self.now.mono))
            self.core.wake(self.now)
            self.pump()
        self._to(until)

    def _to(self, mono: int) -> None:
        self.now = Now(mono, self.now.wall + mono - self.now.mono)

    # What others say

    def route(self, command: bytes, *body: bytes, ip: str = "10.0.0.1") -> Message:
        """The answer to a message on the ROUTER."""
        self.core.receive(Message(command, b"", body), Source(ROUTER, b"req", kind=f"REQ {ip}"), self.now)
        self.pump()
        return self.answers[-1]

    def register(self, name: str, *, ip: str = "10.0.0.1", port: int = 9, **record: Any) -> bytes:
        """Register a service with a publisher at port 5300, and silence for an hour; the tag of its socket."""
        own = {"id": "a", "interfaces": {"pub": {"ip": ip, "port": 5300}}, "heartbeat": HOUR_MS, **record}
        self.route(REGISTRATION, json.dumps({"name": name, "ip": ip, "port": port, **own}).encode(), ip=ip)
        return f"{name}\0{own['id']}\0pub".encode()

    def update(self, name: str, **changes: Any) -> None:
        self.route(UPDATE, json.dumps({"name": name, **changes}).encode())

    def query(self, *body: bytes) -> Message:
        answer = self.route(REQUEST, *body)
        assert answer.command == REPLY
        return answer

    def ask(self, *body: bytes) -> Any:
        """The JSON that answers a query."""
        return json.loads(self.query(*body).body[0])

    def hear(self, tag: bytes, *frames: bytes) -> None:
        """A publisher says something."""
        self.core.receive(Taken(frames), Source(VALUES, tag), self.now)
        self.pump()

    def subscribe(self, topic: bytes, *, is_on: bool = True) -> None:
        self.core.receive(Subscription(is_on, topic), Source(EVENTS, b""), self.now)
        self.pump()

    def refill(self, peer: bytes, *body: bytes, command: bytes = REPLY) -> None:
        """A service answers what it was asked for."""
        self.core.receive(Message(command, b"", body), Source(PROBE, peer), self.now)
        self.pump()

    # What became of it

    def topics(self, prefix: bytes) -> list[Publication]:
        return [said for said in self.published if said.topic.startswith(prefix)]

    def kept(self) -> list[dict[str, Any]]:
        """The log records in the journal, in order."""
        return [json.loads(record.payload) for record in self.logged]

    def drops(self, metric: str, reason: str) -> int:
        return self.core.context.counters[metric, reason]


def own_form(seq: int, message: str = "", **more: Any) -> bytes:
    """A record as a service of this library says it."""
    said = {"v": 1, "ts": 1.5, "level": "WARNING", "service": "thermo", "instance": "a", "logger": "m", "fields": {}}
    return json.dumps({**said, "message": message or f"message {seq}", "seq": seq, **more}).encode()


class Process:
    """A service that logs, and remembers its last thousand records (LOG-006)."""

    def __init__(self, broker: Broker, tag: bytes) -> None:
        self.broker, self.tag, self.seq = broker, tag, 0
        self.ring: deque[tuple[int, bytes]] = deque(maxlen=1_000)

    def log(self, *, is_lost: bool = False) -> None:
        self.seq += 1
        said = own_form(self.seq)
        self.ring.append((self.seq, said))
        if not is_lost:
            self.broker.hear(self.tag, b"log.thermo.WARNING", said)

    def answer(self, asked: Send) -> None:
        """Say again what the broker asked for."""
        wanted = json.loads(asked.message.body[0])
        found = [said for seq, said in self.ring if wanted["from"] <= seq <= wanted["to"]]
        self.broker.refill(asked.peer, b'{"logs":[' + b",".join(found) + b"]}")


def heard(broker: Broker) -> list[int | tuple[int, int]]:
    """What is in the journal: numbers, and spans of those that are lost."""
    return [(row["lost"]["from"], row["lost"]["to"]) if "lost" in row else row["seq"] for row in broker.kept()]
