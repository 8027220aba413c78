"""One service core in virtual time, and a broker that says what a test tells it to.

rig = Rig()
rig.start()
rig.approve(hb=5246)
rig.run(3.0)
assert rig.said("beats") == [...]
"""

import json
from typing import Any

from weft.base.chance import Chance
from weft.base.effects import Connect, Disconnect, Reply, Send, Source, Tell
from weft.base.now import SECOND, Now, seconds
from weft.cores.service.core import Service
from weft.cores.service.messages import BEACONS, BEATS, BROKER, MONITOR, ServiceSettings, Start, Stop, Update
from weft.wire.catalog.messages import APPROVED, AWK, Beacon, Beat, Beats, Message

WALL = 1_795_227_299 * SECOND
EPOCH, OTHER = "0123456789abcdef", "fedcba9876543210"
SEED = "10.0.0.1:5246"


class Rig:
    def __init__(self, **parts: Any) -> None:
        usual = {"name": "thermo", "record": {"ip": "10.0.0.9", "port": 9}, "seeds": (SEED,)}
        self.core = Service(ServiceSettings(**{**usual, **parts}), Chance(parts.get("name", "thermo")))
        self.at = 1_000 * SECOND
        self.wrong_by = 0
        """Nanoseconds that the wall clock is before the right time."""
        self.started_at = self.at
        self.log: list[tuple[float, str, Any]] = []
        """All that it did: when, since the start, and what."""
        self.dialled: list[str] = []
        self.is_open = False
        self.answers_beats = False

    @property
    def now(self) -> Now:
        return Now(self.at, max(0, WALL + self.at + self.wrong_by))

    @property
    def seconds(self) -> float:
        return (self.at - self.started_at) / 1e9

    @property
    def state(self) -> str:
        return self.core.state.name

    def start(self) -> None:
        self.order(Start())

    def stop(self) -> None:
        self.order(Stop())

    def update(self, ticket: int, **changes: Any) -> None:
        self.order(Update(ticket, changes))

    def order(self, order: Any) -> None:
        self.core.command(order, self.now)
        self._take()
        self.run(0)

    def run(self, span_s: float) -> None:
        """Let time pass; the core is woken exactly when it wants to be."""
        end = self.at + seconds(span_s)
        while (due := self.core.deadline()) is not None and due <= end:
            self.at = max(self.at, due)
            self.core.wake(self.now)
            self._take()
        self.at = end

    def sleep(self, span_s: float) -> None:
        """Time passes, and the core is not woken: the process stood still."""
        self.at += seconds(span_s)

    def hear(self, message: Any, channel: str = BROKER, peer: bytes | None = None) -> None:
        self.core.receive(message, Source(channel, self.core.tag if peer is None else peer), self.now)
        self._take()
        self.run(0)

    def say(self, command: bytes, *body: bytes, **told: Any) -> None:
        """The broker says it on the connection; `told` as JSON."""
        self.hear(Message(command, b"", (*body, json.dumps(told).encode()) if told else body))

    def approve(self, **told: Any) -> None:
        """`OwO`, as our broker says it."""
        usual = {"dbp": 1, "epoch": EPOCH, "heartbeat": 1000, "liveness": 3, "instance": "i1", "hb": 5246}
        self.say(APPROVED, **{**usual, **told})

    def beacon(self, ip: str = "10.0.0.1", **parts: Any) -> None:
        usual = {"port": 5246, "dbp": 1, "id": EPOCH, "hb": 5246}
        self.hear(Beacon(**{**usual, **parts}), BEACONS, ip.encode())

    def acknowledge(self, name: str = "thermo") -> None:
        """`u.u` by datagram."""
        self.hear(Beats((Beat(AWK, name, 1.0),)), BEATS, b"10.0.0.1:5246")

    def run_with_beacons(self, span_s: float, **parts: Any) -> None:
        """Time passes, and the broker calls each second."""
        end = self.at + seconds(span_s)
        while self.at < end:
            self.run(min(1.0, (end - self.at) / 1e9))
            self.beacon(**parts)

    def said(self, channel: str = BROKER) -> list[bytes]:
        """The words that it said on a channel, and forgets them."""
        words = [what.command if channel == BROKER else what.word for _, on, what in self.log if on == channel]
        self.log = [entry for entry in self.log if entry[1] != channel]
        return words

    def told(self) -> list[Any]:
        """Its events, and the answers to orders; forgotten then."""
        events = [what for _, on, what in self.log if on in ("tell", "reply")]
        self.log = [entry for entry in self.log if entry[1] not in ("tell", "reply")]
        return events

    def times(self, channel: str) -> list[float]:
        return [at for at, on, _ in self.log if on == channel]

    def last(self, channel: str = BROKER) -> Any:
        return [what for _, on, what in self.log if on == channel][-1]

    def registration(self) -> dict[str, Any]:
        """What it registered last."""
        return dict(json.loads(self.last().body[0]))

    def _take(self) -> None:
        for effect in self.core.effects():
            self._perform(effect)

    def _perform(self, effect: Any) -> None:
        if isinstance(effect, Connect | Disconnect) and effect.channel == MONITOR:
            self.log.append((self.seconds, "taps", effect))
        elif isinstance(effect, Connect):
            assert not self.is_open, "a second socket beside the first"
            self.is_open = True
            self.dialled.append(effect.endpoint)
        elif isinstance(effect, Disconnect):
            self.is_open = False
        elif isinstance(effect, Send):
            assert self.is_open or effect.channel != BROKER, "said without a connection"
            self.log.append((self.seconds, effect.channel, effect.message))
        elif isinstance(effect, Tell):
            self.log.append((self.seconds, "tell", effect.event))
        elif isinstance(effect, Reply):
            self.log.append((self.seconds, "reply", (effect.ticket, effect.answer)))


def up(**parts: Any) -> Rig:
    """A service that is registered, and has said nothing since."""
    rig = Rig(**parts)
    rig.start()
    rig.approve()
    rig.log.clear()
    return rig


def waited(rig: Rig) -> float:
    """How long until it dials again."""
    dialled, begun = len(rig.dialled), rig.at
    while len(rig.dialled) == dialled:
        rig.run(0.001)
    return (rig.at - begun) / 1e9
