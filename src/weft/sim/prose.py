"""Tells what happened in plain words: one line per event, with names and relative times.

    12.034  c        holds samples 7-9 of a
    12.034  c        sends root 4-6: samples 7-9 of a

A node's second start is `a.2`: its numbers begin anew. Beats, beacons and messages between cores are left out.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from weft.base.effects import Connect, Disconnect, Tell
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, SECOND
from weft.base.ranges import RangeSet
from weft.base.records import Stream
from weft.cores.carrier import messages as carrier
from weft.cores.drain import messages as drain
from weft.cores.measurement import messages as measurement
from weft.cores.topology import messages as topology
from weft.node import events
from weft.node.node import Ended, Transmit
from weft.sim.disk import Claim
from weft.sim.plan import Action
from weft.sim.recorder import LINK, LOSS, RECORD
from weft.wire import hop
from weft.wire.carried import to_record

if TYPE_CHECKING:
    from weft.sim.fabric import Fabric

PLURAL: Final = {Stream.SAMPLES: "samples", Stream.MESSAGES: "messages", Stream.LOGS: "logs", Stream.EVENTS: "events"}
DISKS: Final = {
    "kept": "",
    "torn": " inside a write",
    "lost": "; its disk is lost",
    "old": "; its disk goes back to an image of the past",
}


class Prose:
    """Listens to a fabric and keeps its story. `node` and the two instants (ns) limit what is told."""

    def __init__(self, fabric: "Fabric", node: str = "", since: int = 0, until: int | None = None) -> None:
        self.fabric = fabric
        self.lines: list[str] = []
        self._node, self._since, self._until = node, since, until
        self._starts: dict[str, list[str]] = {}
        self.streams: frozenset[int] = frozenset(Stream)
        """Records of other streams are not told of."""
        fabric.recorder.listener = self.hear

    def hear(self, at: int, node: str, what: str, value: Any) -> None:
        """One thing has happened."""
        if what == "started":
            self._starts.setdefault(node, []).append(f"{node}/{value.era}")
        tell = _TELL.get(what, "")
        text = tell if isinstance(tell, str) else tell(self, node, value)
        if text and self._is_wanted(at, node):
            self.lines.append(f"{clock(at):>9}  {node:<8} {text}".rstrip())

    def _is_wanted(self, at: int, node: str) -> bool:
        in_time = self._since <= at and (self._until is None or at <= self._until)
        return in_time and (not self._node or node in (self._node, ""))

    def text(self) -> str:
        """The whole story."""
        return "\n".join([*self.lines, ""])

    # Names.

    def origin(self, text: str) -> str:
        """`a` for the first start of a, `a.2` for its second."""
        name = text.rpartition("/")[0]
        starts = self._starts.get(name, [])
        number = starts.index(text) + 1 if text in starts else 0
        return name if number == 1 else f"{name}.{number or '?'}"

    def claims(self, claims: Iterable[Claim], own: str = "") -> str:
        """What claims hold, put together: `samples 7-9 of a, events 2 of c`."""
        sets: dict[tuple[str, int, str], RangeSet] = {}
        links = 0
        for claim in claims:
            if claim.stream not in self.streams:
                continue
            if claim.kind == LINK:
                links += 1
            else:
                sets.setdefault((claim.kind, claim.stream, claim.origin), RangeSet()).add(claim.first, claim.last)
        parts = [self._numbers(*key, numbers, own) for key, numbers in sets.items()]
        return ", ".join([*parts, *(["where the era before ended"] if links else [])])

    def _numbers(self, kind: str, stream: int, origin: str, numbers: RangeSet, own: str) -> str:
        ranges = " ".join(str(first) if first == last else f"{first}-{last}" for first, last in numbers)
        name = PLURAL.get(Stream(stream), Stream(stream).name.lower())
        whose = "" if origin == own else f" of {self.origin(origin)}"
        return f"{'the loss of ' if kind == LOSS else ''}{name} {ranges}{whose}"

    # The process and its disk.

    def started(self, node: str, machine: Any) -> str:
        """The first start of a node, or another one and what it finds."""
        count = machine.disk.durable_upto - machine.disk.first_lsn + 1
        if machine.starts == 1:
            return "starts"
        return f"starts again, as {self.origin(f'{node}/{machine.era}')}, with {count or 'no'} records on its disk"

    def crashed(self, _: str, disk: str) -> str:
        """A node ends without goodbye."""
        return f"is killed{DISKS[disk]}"

    def durable(self, node: str, claims: Iterable[Claim]) -> str:
        """Records that a node made durable: its own, and those that it holds of others."""
        own = self._starts.get(node, [""])[-1]
        claims = [claim for claim in claims if claim.stream in self.streams]
        mine = [claim for claim in claims if claim.origin == own and claim.kind == RECORD]
        rest = [claim for claim in claims if claim not in mine]
        parts = [f"takes {self.claims(mine, own)}"] if mine else []
        parts += [f"holds {self.claims(rest, own)}"] if rest else []
        return ", ".join(parts)

    def published(self, _: str, what: Any) -> str:
        """A segment of the lake exists."""
        stream, segment = what
        content = self.claims(segment.claims)
        if not content:
            return ""
        return f"publishes segment {segment.number} of {PLURAL.get(Stream(stream), stream)}: {content}"

    # What is done to the fabric.

    def acted(self, _: str, action: Action) -> str:
        """Something is done to the fabric."""
        tell = _ACTED.get(action.do, "")
        return tell if isinstance(tell, str) else tell(action)

    # Effects.

    def spoke(self, node: str, effect: Any) -> str:
        """A node sends a message, or tells an event."""
        if isinstance(effect, Transmit):
            return self._transmits(node, effect) if effect.channel in ("up", "down") else ""
        if isinstance(effect, Connect):
            return ""
        if isinstance(effect, Disconnect):
            return "closes its socket upward" if effect.channel == "up" else ""
        event = effect.event if isinstance(effect, Tell | Ended) else None
        return _EVENTS.get(type(event), "").format(event=event)

    def _transmits(self, node: str, effect: Transmit) -> str:
        message = hop.decode(effect.frames)
        machine = self.fabric.machines[node]
        other = machine.plan.parent if effect.channel == "up" else self.fabric.child_of(effect.peer) or "a stranger"
        tell = _SAID.get(type(message))
        return tell(self, other, message) if tell is not None else ""

    def sends(self, other: str, message: hop.Hop) -> str:
        """Hop numbers, and what their messages hold."""
        claims = [claim for _, item, frames in message.numbered() if (claim := self._claim(item, frames)) is not None]
        last = message.s + len(message.m) - 1
        numbers = str(message.s) if last == message.s else f"{message.s}-{last}"
        content = self.claims(claims) or ("" if claims else "nothing any more")
        return f"sends {other} {numbers}: {content}" if content else ""

    def _claim(self, item: hop.HopItem, frames: list[bytes]) -> Claim | None:
        try:
            return self.fabric.recorder.claim_of(to_record(item, frames, 0), "") if item.n else None
        except PeerError:
            return None

    def acknowledges(self, other: str, message: hop.Hack) -> str:
        """What is held, what is safe, and what else a hack asks for."""
        back = ", and asks for what follows" if message.back else ""
        full = ", and has no room" if not message.win else ""
        return f"tells {other}: held up to {message.upto}, safe up to {message.safe or 0}{back}{full}"

    def knocks(self, other: str, message: hop.Hello) -> str:
        """A hello, and the first message that is not safe yet."""
        first = f", its messages before {message.first} are safe" if message.first > 1 else ""
        return f"knocks at {other}{first}"

    def welcomes(self, other: str, message: hop.Welcome) -> str:
        """A welcome, and up to where the parent has the stream."""
        return f"welcomes {other}, has its messages up to {message.upto}"

    def refuses(self, other: str, message: hop.Refuse) -> str:
        """A refusal."""
        return f"refuses {other}: {message.why}"

    def leaves(self, other: str, message: hop.Bye) -> str:
        """A goodbye."""
        return f"says goodbye to {other}: {message.why}"


def clock(at: int) -> str:
    """Seconds and milliseconds since the beginning."""
    return f"{at // SECOND}.{at % SECOND // MILLISECOND:03}"


def span(ns: int) -> str:
    """A span as people say it: `3.5 s`, `20 ms`."""
    return f"{ns / SECOND:g} s" if abs(ns) >= SECOND else f"{ns / MILLISECOND:g} ms"


_TELL: Final[dict[str, str | Callable[[Prose, str, Any], str]]] = {
    "started": Prose.started,
    "crashed": Prose.crashed,
    "durable": Prose.durable,
    "published": Prose.published,
    "acted": Prose.acted,
    "spoke": Prose.spoke,
    "paused": "stands still",
    "resumed": "goes on",
    "healed": "all faults are over",
    "store": lambda _, __, text: text,
    "host": lambda _, __, text: text,
    "catalog": lambda _, __, text: text,
}

_SAID: Final[dict[type, Callable[[Prose, str, Any], str]]] = {
    hop.Hop: Prose.sends,
    hop.Hack: Prose.acknowledges,
    hop.Hello: Prose.knocks,
    hop.Welcome: Prose.welcomes,
    hop.Refuse: Prose.refuses,
    hop.Bye: Prose.leaves,
}

_EVENTS: Final[dict[type | None, str]] = {
    carrier.ParentJoined: "has {event.name} as its parent",
    carrier.ParentLost: "has lost its parent: {event.why}",
    carrier.ParentRefused: "is not taken by its parent: {event.why}",
    carrier.ChildJoined: "has {event.name} as its child",
    carrier.ChildLost: "has lost its child {event.name}: {event.why}",
    carrier.ChildRefused: "does not take {event.name}: {event.why}",
    carrier.RolledBack: "sees that its own disk went back: {event.behind} messages of {event.name}",
    carrier.SpoolDropped: "gives up {event.records} of its records",
    carrier.SpoolHigh: "has {event.records} records that wait: {event.bytes} of {event.bytes_max} bytes",
    carrier.LakeUnknown: "goes on, and does not know what its lake holds: {event.is_unknown}",
    drain.LakeFull: "finds the lake full",
    drain.LakeFailed: "finds the lake broken",
    drain.LakeBack: "can write the lake again",
    measurement.ClockStepped: "sees that its clock was set",
    measurement.MetricFailed: "cannot measure {event.name}: {event.why}",
    topology.TwinSuspected: "hears that {event.endpoint} has its name, and does not believe it",
    topology.NameTaken: "finds its name {event.name} taken, and ends",
    events.InputRefused: "refuses bytes on `{event.channel}`: {event.code}",
    events.JournalChanged: "finds its journal {event.state}",
}


def _cut(action: Action) -> str:
    way = "->" if action.how == "one" else "and"
    return f"{action.node} {way} {action.other}: the cable is {'cut' if action.do == 'cut' else 'whole again'}"


def _slow(action: Action) -> str:
    if not action.number and not action.second:
        return f"{action.node} and {action.other}: the cable is fast again"
    return f"{action.node} and {action.other}: it takes {span(action.number)} and up to {span(action.second)} more"


def _fill(action: Action) -> str:
    return f"its journal may use {action.number} bytes" if action.number else "its journal has room again"


def _flip(action: Action) -> str:
    if not action.number:
        return f"{action.node} and {action.other}: the cable flips no bits any more"
    return f"{action.node} and {action.other}: the cable flips a bit of one message in {action.number}"


_ACTED: Final[dict[str, str | Callable[[Action], str]]] = {
    "cut": _cut,
    "mend": _cut,
    "slow": _slow,
    "flip": _flip,
    "give-up": lambda action: f"TCP gives up; the other side will notice after {span(action.number)}",
    "step": lambda action: f"someone sets its clock by {span(action.number)}",
    "drift": lambda action: f"its quartz runs {action.number} ppm fast",
    "stop": "is told to stop",
    "image": "its disk is copied",
    "fill": _fill,
    "garbage": lambda action: f"is handed bytes: {action.how}",
    "end-program": lambda action: f"its program {action.how} dies",
    "run-program": lambda action: f"its program {action.how} is started again",
    "hang-program": lambda action: f"its program {action.how} stands still",
    "change-service": lambda action: f"is told to say {action.number} of itself",
    "write-clone": lambda action: f"writes pair {action.number}: {action.second or 'deleted'}",
    "meddle": lambda action: f"tries to change {action.other}",
    "deregister": lambda action: f"an administrator removes {action.other}",
    "forge": lambda action: f"is sent a forged datagram in the name of {action.other}: {action.how}",
    "edit": lambda action: f"somebody enters {action.how} {action.number}: {action.second}",
    "wake-program": lambda action: f"its program {action.how} goes on",
}
