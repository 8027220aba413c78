"""Filters that make records of messages: `forward`, `journal` (at the root), `absorb`, `route` (CHN-068, CHN-036).

A message taken by one of them still goes on down the chain, so that readers behind it see it. The records stand in one
Persist with the end of the message in the inbox (CHN-033c). Batches of samples travel as records anyway: these filters
let them pass.
"""

from typing import Any, Final

from weft.base.mail import INBOX, OUTBOX, WAY, Mail, to_record
from weft.base.now import Now
from weft.base.records import Stream, StreamRecord
from weft.cores.chains import limits
from weft.cores.chains.context import Context
from weft.cores.chains.links import FilterLink
from weft.cores.chains.messages import ShowLine
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.options import RouteOptions
from weft.cores.chains.parcel import IN, Parcel
from weft.cores.chains.routing import is_spent, way
from weft.cores.chains.settings import FilterSpec
from weft.cores.chains.where import Where


class RelayLink(FilterLink):
    """A built-in filter that makes a record of a message."""

    def __init__(self, spec: FilterSpec, context: Context) -> None:
        super().__init__(spec)
        self.context = context
        self.sees_all = not spec.where and not spec.when
        """It takes every message, so it need not decode any."""

    def take(self, parcel: Parcel, now: Now) -> StreamRecord | None:
        """The record that a message becomes; None if the direction or node is wrong, or a record was made before."""
        if self.sees_all:  # otherwise `takes` has counted it
            self.counters.offered += 1
            self.counters.passed += 1
        if parcel.direction != IN or parcel.is_handed:
            return None
        made = self._made(parcel, now)
        parcel.is_handed = made is not None
        return made

    def _made(self, parcel: Parcel, now: Now) -> StreamRecord | None:
        raise AssertionError(self)

    def count_obstacle(self, why: str) -> None:
        """Count a message that could not be sent on."""
        self.counters.failed += 1
        not_forwarded = self.context.counters.not_forwarded
        not_forwarded[why] = not_forwarded.get(why, 0) + 1

    ends = False
    """Whether a message ends here when it is taken."""


class ForwardLink(RelayLink):
    """Sends an arrived message to the parent: the same message, one deeper."""

    def _made(self, parcel: Parcel, now: Now) -> StreamRecord | None:
        context = self.context
        why = _obstacle(parcel, now)
        if why:
            self.count_obstacle(why)
        if context.is_root or why:
            return None
        context.counters.forwarded += 1
        return to_record(_deeper(parcel, _upwards(parcel)), OUTBOX, now.wall)


def _obstacle(parcel: Parcel, now: Now) -> str:
    """Why an arrived message is not sent on; empty: it is."""
    if parcel.depth >= limits.DEPTH_MAX:
        return "loop"
    if parcel.exp and parcel.exp <= now.wall:
        return "expired"
    return "ttl" if is_spent(parcel.to, parcel.via) else ""


def _upwards(parcel: Parcel) -> tuple[Any, ...]:
    ttl = parcel.to[2:]
    return ("PARENTSOF", None, *ttl) if ttl else ("PARENTSOF",)


def _deeper(parcel: Parcel, to: tuple[Any, ...]) -> Mail:
    return Mail(
        origin=parcel.origin,
        era=parcel.era,
        sequence=parcel.sequence,
        type=parcel.type,
        frames=parcel.frames,
        to=to,
        via=parcel.via,
        depth=parcel.depth + 1,
        at=parcel.at,
        fmt=parcel.fmt,
        exp=parcel.exp,
    )


class JournalLink(RelayLink):
    """Writes an arrived message into the root's journal, for the lake."""

    def _made(self, parcel: Parcel, now: Now) -> StreamRecord | None:
        if not self.context.is_root:
            return None
        return self.straight(to_record(parcel.mail(), INBOX, now.wall), now)

    def straight(self, record: StreamRecord, now: Now) -> StreamRecord:
        """The record that the root journals for the record of an arrived message."""
        self.context.counters.journaled += 1
        fields = record.attributes
        attributes: dict[str, Any] = {
            "fmt": fields.get("fmt", "raw"),
            WAY: list(fields.get("via", ())),
            "depth": fields.get("depth", 0),
        }
        if "frames" in fields:
            attributes["frames"] = fields["frames"]
        origin, era, sequence, at = record.origin, record.era, record.sequence, record.at
        return StreamRecord(
            Stream.MESSAGES, origin, era, sequence, at, now.wall, record.key, record.payload, attributes
        )


class AbsorbLink(JournalLink):
    """Ends a message at this node and journals it: it becomes a row of the lake that no other node's chains see."""

    def take(self, parcel: Parcel, now: Now) -> StreamRecord | None:
        """On `out` the record is durable before the sender hears `deleted` (CHN-033d)."""
        if parcel.direction == IN:
            return super().take(parcel, now)
        if self.sees_all:
            self.counters.offered += 1
            self.counters.passed += 1
        self.context.keep(self._made(parcel, now))
        return None

    def _made(self, parcel: Parcel, now: Now) -> StreamRecord:
        return self.straight(to_record(parcel.mail(), INBOX, now.wall), now)

    ends = True


class RouteLink(RelayLink):
    """On `out`: sets the destination. On `in`: also sends the arrived message on, one deeper."""

    def __init__(self, spec: FilterSpec, context: Context) -> None:
        super().__init__(spec, context)
        assert isinstance(spec.options, RouteOptions), spec
        self._to = spec.options.to
        self._rules = [(Where(rule.where), rule.to) for rule in spec.options.rules]

    def take(self, parcel: Parcel, now: Now) -> StreamRecord | None:
        """On `out`: changes only the destination.

        On `in`: this node itself is no valid destination, since the message is here.
        """
        if self.sees_all:
            self.counters.offered += 1
            self.counters.passed += 1
        to = self._destination(parcel)
        if not to:
            return None
        if parcel.direction != IN:
            parcel.to = to
        elif way(to, self.context).how != "local":
            why = _obstacle(parcel, now)
            if why:
                self.count_obstacle(why)
            else:
                self.context.dispatch(_deeper(parcel, to), now)
        return None

    def _destination(self, parcel: Parcel) -> tuple[Any, ...]:
        """By the first rule that fits one of the message's records; empty: it is not routed here."""
        if self._rules:
            view = MessageView(parcel)
            for where, to in self._rules:
                if view.matching(where):
                    return to
        return self._to


class StdoutLink(RelayLink):
    """Shows messages on the node's standard output."""

    def take(self, parcel: Parcel, now: Now) -> StreamRecord | None:
        """Makes no record."""
        if self.sees_all:
            self.counters.offered += 1
            self.counters.passed += 1
        self.context.perform(ShowLine(self.name, parcel.direction, parcel.type, parcel.origin, parcel.frames[0]))
        return None


RELAYS: Final[dict[str, type[RelayLink]]] = {
    "forward": ForwardLink,
    "journal": JournalLink,
    "absorb": AbsorbLink,
    "route": RouteLink,
    "stdout": StdoutLink,
}
