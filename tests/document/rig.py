"""One node of a session, driven by hand: what is said to it, what it says, and when.

    node = Rig()                                    # A, which listens
    node.hear(B, Helo(EB)) == [(EB, Helo(EA)), (EB, Bout("")), (EB, GSIP_B_0)]
    node.pass_seconds(5)                            # everything that it says meanwhile

Instants of tests are seconds; A's session time at 0 is 1763800000. `Lone` is a session of peers alone, without log and document;
a whole `Session` can stand in its place.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, Protocol, cast

from weft.base.effects import Disconnect, Effect, Perform, Send, Source, Tell
from weft.base.now import SECOND, Now, seconds
from weft.cores.document import messages
from weft.cores.document.context import PEERS, Context
from weft.cores.document.mesh import Mesh
from weft.cores.document.messages import SessionSettings
from weft.cores.document.peers import Peers
from weft.wire.document import frames
from weft.wire.document.messages import Beat, Bout, Envelope, Gsip, Helo, Message, Progress, Time

A, B, C, D = (bytes.fromhex(f"{letter}0000000000040008000{n:012x}") for n, letter in enumerate("abcd", 1))
EA, EB, EC, ED = (f"127.0.0.1:{port}" for port in range(50_001, 50_005))
EPOCH: Final = 1_763_800_000
START: Final = 10_000 * SECOND
"""Monotonic time of second 0: nothing may depend on where that clock starts."""
VECTORS: Final = Path(__file__).parents[1] / "vectors" / "document-mesh.jsonl"


class Word(NamedTuple):
    """Something said, and to whom."""

    to: str
    message: Message


class Node(Protocol):
    """What the rig needs of a core."""

    context: Context
    peers: Peers
    mesh: Mesh

    def receive(self, message: Any, source: Source, now: Now) -> None: ...
    def command(self, order: Any, now: Now) -> None: ...
    def wake(self, now: Now) -> None: ...
    def deadline(self) -> int | None: ...
    def effects(self) -> list[Effect]: ...


class Lone:
    """A session that has nothing but peers; what they say about logs is noted, and no more."""

    def __init__(self, settings: SessionSettings) -> None:
        self.context = Context(settings)
        self.peers = Peers(self.context)
        self.passed: list[tuple[bytes, Message]] = []
        log = cast("Any", SimpleNamespace(latest=lambda source: 0, check=0))
        gossip = cast(
            "Any",
            SimpleNamespace(
                greet=lambda peer: None,
                gone=lambda peer: None,
                hear=lambda peer, message: self.passed.append((peer.id, message)),
            ),
        )
        self.mesh = Mesh(self.context, self.peers, log, gossip)

    def receive(self, message: Any, source: Source, now: Now) -> None:
        self.context.begin(now)
        self.mesh.hear(message.sender, message.message, source.kind, now)

    def command(self, order: Any, now: Now) -> None:
        self.context.begin(now)
        ORDERS[type(order)](self.mesh, order, now)

    def wake(self, now: Now) -> None:
        self.context.begin(now)
        self.mesh.wake(now)

    def deadline(self) -> int | None:
        return self.mesh.deadline()

    def effects(self) -> list[Effect]:
        return self.context.take()


ORDERS: Final[dict[type, Callable[[Mesh, Any, Now], None]]] = {
    messages.Begin: lambda mesh, order, now: mesh.open(now),
    messages.Opened: lambda mesh, order, now: mesh.opened(order.endpoint, now),
    messages.Found: lambda mesh, order, now: mesh.found(order, now),
    messages.Vanished: lambda mesh, order, now: mesh.vanish(order.endpoint),
    messages.LinkFull: lambda mesh, order, now: mesh.link_full(order.endpoint),
    messages.Stop: lambda mesh, order, now: mesh.bye(""),
}


def settings(uuid: bytes = A, **changes: Any) -> SessionSettings:
    """Of the unnamed session, which listens on loopback."""
    known: dict[str, Any] = {"name": "", "uuid": uuid, "mdns": False}
    return SessionSettings(**(known | changes))


class Rig:
    """A node, what is around it, and one clock. Each verb gives what was said in it, in order."""

    def __init__(self, make: Callable[[SessionSettings], Node] = Lone, *, at: float = 0, **changes: Any) -> None:
        self.node = make(settings(**changes))
        self.seconds = at
        self.told: list[Any] = []
        self.dropped: list[str] = []
        self.performed: list[Any] = []
        self.effects: list[Effect] = []
        """All of the last verb."""
        self._do(lambda now: self.node.command(messages.Begin(), now))
        self.first = self.order(messages.Opened("", EA))

    @property
    def mesh(self) -> Mesh:
        return self.node.mesh

    @property
    def gossip(self) -> Any:
        """What the mesh tells of the log, to be replaced."""
        return self.node.mesh.gossip

    @property
    def peers(self) -> Peers:
        return self.node.peers

    @property
    def counters(self) -> dict[str, int]:
        return dict(self.node.context.counters)

    @property
    def session_time(self) -> float:
        self.node.context.begin(self.now)
        return self.node.context.time

    @property
    def now(self) -> Now:
        since = seconds(self.seconds)
        return Now(START + since, EPOCH * SECOND + since)

    # What happens to it

    def hear(self, sender: bytes, *said: Message, address: str = "127.0.0.1") -> list[Word]:
        """Somebody says one thing after the other, at once."""
        return [word for message in said for word in self._hear(Envelope(sender, message), address)]

    def _hear(self, said: Envelope, address: str) -> list[Word]:
        source = Source(PEERS, said.sender, kind=address)
        return self._do(lambda now: self.node.receive(said, source, now))

    def order(self, order: Any) -> list[Word]:
        return self._do(lambda now: self.node.command(order, now))

    def meet(self, endpoint: str, how: str = "manual") -> list[Word]:
        """A person, mDNS or a peer says that there is one."""

        def meet(now: Now) -> None:
            self.node.context.begin(now)
            self.mesh.meet(endpoint, how)

        return self._do(meet)

    def do(self, verb: Callable[[], Any]) -> list[Word]:
        """Something else, at this instant."""

        def act(now: Now) -> None:
            self.node.context.begin(now)
            verb()

        return self._do(act)

    def pass_seconds(self, span: float, heard: Iterable[bytes] = ()) -> list[Word]:
        """Time passes, and the node is woken whenever it asks; those in `heard` say BEAT every two seconds, and see what we see."""
        end, beating = self.seconds + span, tuple(heard)
        beat_at = self.seconds + 2
        said: list[Word] = []
        while True:
            due = self.node.deadline()
            due_at = end if due is None else max(self.seconds, (due - START) / SECOND)
            self.seconds = min(end, due_at, beat_at if beating else end)
            if beating and self.seconds >= beat_at:
                beat_at += 2
                for uuid in beating:
                    said += self.hear(uuid, Beat(self.mesh.log.latest(uuid), self.peers.view, self.mesh.log.check))
            elif self.seconds >= end and due_at > end:
                return said
            elif due is not None and due <= self.now.mono:
                said += self._do(self.node.wake)
            if self.seconds >= end and (due is None or due > self.now.mono):
                return said

    def at(self, instant: float) -> list[Word]:
        """Time passes until then."""
        return self.pass_seconds(instant - self.seconds)

    def befriend(self, uuid: bytes, endpoint: str, *, time: float | None = None) -> list[Word]:
        """A peer that came in by itself becomes ACTIVE, and may tell a time."""
        told = [] if time is None else [Time(time)]
        return self.hear(uuid, Helo(endpoint), Bout(self.node.context.settings.text), *told)

    def _do(self, verb: Callable[[Now], None]) -> list[Word]:
        verb(self.now)
        self.effects = self.node.effects()
        self.told += [effect.event for effect in self.effects if isinstance(effect, Tell)]
        self.performed += [effect.work for effect in self.effects if isinstance(effect, Perform)]
        self.dropped += [effect.peer.decode() for effect in self.effects if isinstance(effect, Disconnect)]
        sends = [effect for effect in self.effects if isinstance(effect, Send) and effect.channel == PEERS]
        return [Word(effect.peer.decode(), effect.message) for effect in sends]

    def events(self, kind: type) -> list[Any]:
        """What was told, of one kind."""
        return [event for event in self.told if isinstance(event, kind)]


def gsip(source: bytes, upto: int = 0) -> Gsip:
    """As it is said, one source at a time."""
    return Gsip((Progress(source, upto),))


def only(said: Iterable[Word], *kinds: type) -> list[Word]:
    """Of these types alone."""
    return [word for word in said if type(word.message) in kinds]


# Transcripts


class Line(NamedTuple):
    """One line of a transcript."""

    id: str
    direction: str
    at: float
    peer: str
    frames: tuple[bytes, ...]
    means: dict[str, Any]

    @property
    def words(self) -> tuple[str, tuple[bytes, ...]]:
        return self.peer, self.frames


def transcripts(*names: str) -> dict[str, list[Line]]:
    """Of the vectors, those of these names; all, without one."""
    found: dict[str, list[Line]] = {}
    for row in map(json.loads, VECTORS.read_text("utf-8").splitlines()):
        means = row["means"]
        said = tuple(bytes.fromhex(frame) for frame in row["frames"])
        line = Line(row["id"], row["direction"], means["at"], means["peer"], said, means)
        if not names or means["transcript"] in names:
            found.setdefault(means["transcript"], []).append(line)
    return found


def as_frames(said: Iterable[Word]) -> list[tuple[str, tuple[bytes, ...]]]:
    """As `Line.words`; of a BEAT without our capabilities, which the vectors do not know (FLD-030)."""
    return [(word.to, tuple(frames.encode(without_caps(word.message)))) for word in said]


def without_caps(message: Message) -> Message:
    """A BEAT that says what we can, as one that does not."""
    if not isinstance(message, Beat):
        return message
    assert ("c1", "z1") == message.caps
    return Beat(message.sequence, message.view, message.check)
