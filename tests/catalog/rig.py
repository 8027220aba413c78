"""A whole broker at frame level, in virtual time: what peers say goes in as frames, what they are told comes out as frames.

broker = Broker()
thermo = broker.dealer()
assert [b"OwO"] == thermo.commands(b"UwU", {"name": "thermo"})
broker.pass_time(1.6)
assert [("register", "thermo"), ("suspect", "thermo")] == broker.changes
again = broker.restart()
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.base.chance import Chance
from weft.base.effects import Effect, Persist, Send, SendFailed, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now, seconds
from weft.base.records import Entry, Record, Stream, StreamRecord
from weft.cores.catalog.context import BEATS, PROBE, ROUTER
from weft.cores.catalog.core import Catalog
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.messages import CatalogSettings, Garbled, Ports
from weft.cores.catalog.states import On
from weft.wire.catalog import beats, commands
from weft.wire.catalog.messages import PONG, Message

NODE = bytes(range(16))
T = bytes.fromhex("fd01d64e")
"""Of 1795227299, as existing nodes write it."""
WALL = 1_795_227_299 * SECOND
START = Now(SECOND, WALL)
Frames = list[bytes]
HERE = "127.0.0.1"


class Answer(NamedTuple):
    """What a peer was told: behind the envelope and the delimiter."""

    envelope: tuple[bytes, ...]
    command: bytes
    time: bytes
    body: tuple[bytes, ...]

    @property
    def json(self) -> Any:
        return json.loads(self.body[0])

    @property
    def frames(self) -> Frames:
        return [*self.envelope, b"", self.command, self.time, *self.body]


class Broker:
    """The core, its disk, and what it said to whom."""

    def __init__(self, *, journal: Sequence[Record] = (), era: int = 1, at: Now = START, **settings: Any) -> None:
        self.settings = settings
        self.now = at
        self.core = Catalog(CatalogSettings(**settings), NODE, era, Chance(f"broker/{era}"))
        self.journal: list[Record] = list(journal)
        self.said: list[tuple[bytes, Message]] = []
        """On the ROUTER, in order."""
        self.events: list[Any] = []
        self.probed: list[str] = []
        """Endpoints that were sent a ping."""
        self._peers = 0
        entries: list[Entry] = list(enumerate(self.journal, 1))
        self.core.restore(entries, at)
        self.core.command(Ports(5246, 5247), at)
        self.turn()

    # Peers

    def dealer(self, address: str = HERE) -> "Peer":
        return self._peer("DEALER", address)

    def req(self, address: str = HERE) -> "Peer":
        return self._peer("REQ", address)

    def admin(self) -> "Peer":
        """Who comes by way of the state directory."""
        return self._peer("REQ", "")

    def _peer(self, kind: str, address: str) -> "Peer":
        self._peers += 1
        return Peer(self, b"%b-%d" % (kind.lower().encode(), self._peers), kind, address)

    def unroutable(self, peer: bytes) -> None:
        self.core.command(SendFailed(ROUTER, peer), self.now)
        self.turn()

    def datagram(self, text: bytes, address: str = HERE) -> None:
        """A beat."""
        self.core.receive(beats.decode([text]), Source(BEATS, f"{address}:7".encode()), self.now)
        self.turn()

    def pong(self, endpoint: str) -> None:
        """A service answers a ping."""
        self.core.receive(Message(PONG, T, (b"x",)), Source(PROBE, endpoint.encode()), self.now)
        self.turn()

    def move(self, name: str, *ons: On) -> Instance:
        """Something happens to the only instance of that name, or that of `name/id`."""
        instance = self.one(*name.split("/"))
        for on in ons:
            self.core.registry.move(instance, on)
        self.turn()
        return instance

    # Time

    def pass_time(self, span_s: float) -> None:
        """Let it pass, and wake the broker whenever it asks for it."""
        until = self.now.mono + seconds(span_s)
        while (due := self.core.deadline()) is not None and due <= until:
            self._set(max(due, self.now.mono))
            self.core.wake(self.now)
            self.turn()
        self._set(until)

    def skip(self, span_s: float) -> None:
        """Let it pass, and wake nobody."""
        self._set(self.now.mono + seconds(span_s))

    def _set(self, mono: int) -> None:
        self.now = Now(mono, self.now.wall + mono - self.now.mono)

    # Turns

    def turn(self) -> list[Effect]:
        """The effects of the turn; what it keeps stands in front of what it says (CAT-050)."""
        effects = self.core.effects()
        kinds = [type(effect) for effect in effects]
        assert Persist not in kinds[1:], kinds
        self.perform(effects)
        return effects

    def perform(self, effects: list[Effect]) -> None:
        """Do what the core asks for; then it is another instant, since no two turns are at the same."""
        for effect in effects:
            if isinstance(effect, Persist):
                self.journal += effect.records
            elif isinstance(effect, Tell):
                self.events.append(effect.event)
            elif isinstance(effect, Send) and effect.channel == ROUTER:
                self.said.append((effect.peer, effect.message))
            elif isinstance(effect, Send) and effect.channel == PROBE:
                self.probed.append(effect.peer.decode())
        self._set(self.now.mono + 1)

    # Looking

    @property
    def rows(self) -> list[StreamRecord]:
        """The indexed changes that were kept."""
        return [row for row in self.journal if isinstance(row, StreamRecord) and row.stream == Stream.CATALOG]

    @property
    def changes(self) -> list[tuple[str, str]]:
        """The same in short: what happened, and to which name."""
        return [(str(row.attributes["op"]), row.key) for row in self.rows]

    @property
    def told(self) -> list[str]:
        """Names of the events."""
        return [type(event).__name__ for event in self.events]

    def one(self, name: str, instance_id: str | None = None) -> Instance:
        """The instance of that name and id, or the only one of that name."""
        if instance_id is None:
            (found,) = self.core.book.of_name(name)
            return found
        instance = self.core.book.get(name, instance_id)
        assert instance is not None, (name, instance_id)
        return instance

    def counted(self, metric: str, label: str | None = None) -> int:
        """How often; of all labels, if none is given."""
        counters = self.core.context.counters
        return sum(n for (name, of), n in counters.items() if name == metric and label in (None, of))

    def state(self) -> list[tuple[Any, ...]]:
        """All that a restart must give back."""
        return sorted(map(kept, self.core.book.all()))

    def restart(self, upto: int | None = None) -> "Broker":
        """The next start, with the first `upto` records of the journal."""
        at = Now(SECOND, self.now.wall + SECOND)
        return Broker(journal=self.journal[:upto], era=self.core.context.era + 1, at=at, **self.settings)


class Peer:
    """A socket at the ROUTER."""

    def __init__(self, broker: Broker, identity: bytes, kind: str, address: str) -> None:
        self.broker, self.identity, self.kind, self.address = broker, identity, kind, address
        self._heard = 0

    def send(self, frames: Frames) -> list[Answer]:
        """Say frames as they are on the wire behind the routing id; what this peer was told then."""
        broker = self.broker
        try:
            message = commands.decode(frames)
        except PeerError as error:
            broker.core.command(Garbled(ROUTER, self.identity, error.code), broker.now)
        else:
            broker.core.receive(message, Source(ROUTER, self.identity, None, f"{self.kind} {self.address}"), broker.now)
        self._heard = len(broker.said)
        broker.turn()
        assert [] == [peer for peer, _ in broker.said[self._heard :] if peer != self.identity], "somebody else was told"
        return self.heard()

    def heard(self) -> list[Answer]:
        """What it was told since it was asked last."""
        told = [message for peer, message in self.broker.said[self._heard :] if peer == self.identity]
        self._heard = len(self.broker.said)
        return [Answer(said.envelope, said.command, said.time, said.body) for said in told]

    def say(self, command: bytes, *body: bytes | dict[str, Any], time: bytes = T) -> list[Answer]:
        """Say a command; JSON is written."""
        frames = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in body]
        return self.send([b"", command, time, *frames])

    def ask(self, *names: bytes) -> Any:
        """The JSON that a request is answered with."""
        (answer,) = self.say(b"u_U", *names)
        assert answer.command == b"o_O", answer
        return answer.json

    def commands(self, command: bytes, *body: bytes | dict[str, Any]) -> list[bytes]:
        """The same as `say`, in short: the commands of the answers."""
        return [answer.command for answer in self.say(command, *body)]

    def code(self, command: bytes, *body: bytes | dict[str, Any]) -> str:
        """With which code it is denied."""
        (answer,) = self.say(command, *body)
        assert answer.command == b"(O_O)", answer
        return str(answer.json["code"])


def kept(instance: Instance) -> tuple[Any, ...]:
    """What of an instance survives."""
    return (
        *instance.key,
        json.dumps(instance.record),
        instance.state.name,
        instance.reason,
        instance.health,
        instance.owner,
        instance.observed_ip,
        instance.since,
        instance.interval_ns,
    )
