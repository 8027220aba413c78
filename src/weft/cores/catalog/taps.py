"""Copies of a service's messages, which show who talks to whom, how often, how fast (MON-001 to MON-007).

    dbp.tap {"service", "instance", "sockets", "dir", "sample", "max_frame", "rate", "seconds", "id"}   {"tap", "endpoint"}
    dbp.tap {"stop": TAP}                                                                              {"tap", "stopped"}
    dbp.tap {"list": true}                                                                             {"taps": […]}

The service's library makes the copies, without a change of the service. It is asked over the connection by which the
service is registered, and sends the copies to the monitor port. Each copy is published on `tap/ID` as it came: header,
frames. The last publication of a tap has its counts as header and an empty frame. The broker itself is `dbp.broker`;
messages that belong to taps are never copied.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from weft.base.effects import Source
from weft.base.endpoints import is_loopback
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.catalog import limits
from weft.cores.catalog.arguments import read_argument
from weft.cores.catalog.book import Book, Key
from weft.cores.catalog.context import EVENTS, MONITOR, Asker, Context
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.messages import TapEnded, TapStarted
from weft.cores.catalog.queries import Queries
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.serving import Serving
from weft.cores.kit.tapping import Sampler, cut
from weft.cores.kit.timers import earliest
from weft.wire.catalog import commands, taps
from weft.wire.catalog.messages import REQUEST, TAP, Message, Publication

TOPIC: Final = b"tap/"
OWN: Final = "dbp.broker"
QUERY: Final = b"dbp.tap"
CAP: Final = "tap"


class Asked(taps.Wanted, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The argument of `dbp.tap`."""

    service: taps.Name = ""
    instance: taps.Name = ""
    id: Annotated[str, Meta(pattern="^[0-9a-f]{0,32}$")] = ""
    """The id for the tap; with it a client can subscribe first and miss nothing."""
    stop: taps.Name = ""
    list: bool = False


_ASKED: Final = msgspec.json.Decoder(Asked)


@dataclass(slots=True)
class Member:
    """One instance that is tapped."""

    key: Key
    address: str
    """The address it registered from; only copies from there are accepted."""
    heard_at: int
    proof: str = ""
    """A secret sent only to it, over its connection; reports without it are refused."""
    peer: bytes = b""
    """Its peer id at the monitor port."""
    report: taps.Report | None = None
    ended: str = ""


@dataclass(slots=True)
class Tap:
    """One running tap."""

    id: str
    service: str
    asked: Asked
    ends_at: int
    members: dict[Key, Member] = field(default_factory=dict)
    closing_at: int | None = None
    """It is over; monotonic ns until which last reports are accepted."""
    why: str = ""

    @property
    def topic(self) -> bytes:
        return TOPIC + self.id.encode()

    def accounts(self) -> dict[str, int]:
        """The sums over all members."""
        reports = [member.report for member in self.members.values() if member.report is not None]
        names = ("seen", "copied", "dropped", "sampled")
        return {name: sum(getattr(report, name) for report in reports) for name in names}


class OwnTap:
    """The broker's own messages, sampled like those of a service (MON-007)."""

    def __init__(self, tap: Tap) -> None:
        asked = tap.asked
        self.tap = tap
        self.sampler = Sampler(asked.sockets, asked.dir, asked.sample, asked.rate)
        self.sequence = 0


class Taps:
    """All taps of this broker."""

    def __init__(self, context: Context, book: Book, serving: Serving, queries: Queries) -> None:
        self.context, self.book, self.serving = context, book, serving
        self._taps: dict[str, Tap] = {}
        self._own: dict[str, OwnTap] = {}
        self._hidden = (b"", 0)
        """The peer whose messages at this instant belong to a tap."""
        queries.add("dbp.tap", self.ask)
        queries.gauges["tap_running"] = lambda: {"": len(self._taps)}

    # Queries

    def ask(self, args: tuple[bytes, ...], asker: Asker) -> tuple[bytes, ...]:
        """`dbp.tap`: start, stop, or list."""
        if not (asker.is_admin or asker.is_proved or is_loopback(asker.address)):
            raise Refusal("not-authorised", "messages are copied for who is on the broker's machine, or has a key")
        self._hidden = (asker.peer, self.context.now.mono)
        asked = read_argument(args, 0, _ASKED)
        if asked.list:
            return (msgspec.json.encode({"taps": [self._shown(tap) for tap in self._taps.values()]}),)
        if asked.stop:
            return (msgspec.json.encode(self._stop(asked.stop)),)
        return (msgspec.json.encode(self._begin(asked, asker)),)

    def _stop(self, tap_id: str) -> dict[str, Any]:
        tap = self._taps.get(tap_id)
        if tap is None:
            raise Refusal("bad-argument", f"there is no tap {tap_id[: limits.NAME_BYTES_MAX]}")
        self._end(tap, "stopped")
        return {"tap": tap.id, "stopped": True}

    def _begin(self, asked: Asked, asker: Asker) -> dict[str, Any]:
        if not asked.service:
            raise Refusal("bad-argument", "the messages of which service?")
        if len(self._taps) >= limits.TAPS_MAX:
            raise Refusal("limit", f"{limits.TAPS_MAX} taps run already", service=asked.service)
        if asked.id in self._taps:
            raise Refusal("bad-argument", "a tap of that id runs already", service=asked.service)
        context = self.context
        tap_id = asked.id or f"{context.chance.getrandbits(64):016x}"
        tap = Tap(tap_id, asked.service, asked, context.now.mono + round(asked.seconds * SECOND))
        if asked.service == OWN:
            self._tap_own(tap)
        else:
            self._tap_instances(tap)
        self._taps[tap.id] = tap
        context.tell(TapStarted(tap.id, tap.service, len(tap.members), asker.owner))
        endpoint = f"{context.settings.host}:{context.events_port}"
        instances = [instance for _, instance in tap.members]
        return {"tap": tap.id, "endpoint": endpoint, "topic": tap.topic.decode(), "instances": instances}

    def _tap_own(self, tap: Tap) -> None:
        key = (OWN, self.context.epoch)
        tap.members[key] = Member(key, "", self.context.now.mono)
        self._own[tap.id] = OwnTap(tap)
        self.context.tap = self

    def _tap_instances(self, tap: Tap) -> None:
        name, asked = tap.service, tap.asked
        known = [one for one in self.book.of_name(name) if one.is_live and asked.instance in ("", one.id)]
        if not known:
            raise Refusal("not-registered", "service is not registered", service=name)
        wanted = {field: getattr(asked, field) for field in taps.Wanted.__struct_fields__}
        port = self.context.monitor_port
        for instance in [one for one in known if can_be_tapped(one)][: limits.TAP_MEMBERS_MAX]:
            proof = f"{self.context.chance.getrandbits(128):032x}"
            if port and self.serving.push(
                instance, taps.message_of(taps.Start(tap=tap.id, port=port, proof=proof, **wanted))
            ):
                tap.members[instance.key] = Member(instance.key, instance.observed_ip, self.context.now.mono, proof)
        if not tap.members:
            raise Refusal("unsupported", "it has no connection by which it could be asked to copy", service=name)

    def _shown(self, tap: Tap) -> dict[str, Any]:
        left = max(0, tap.ends_at - self.context.now.mono) / SECOND
        return {
            "tap": tap.id,
            "service": tap.service,
            "instances": [instance for _, instance in tap.members],
            "left_s": round(left, 3),
            **tap.accounts(),
        }

    # Services

    def hear(self, message: Message, source: Source, now: Now) -> None:
        """A copy or report of a service at the monitor port; those that belong to no tap are counted."""
        try:
            header = taps.read_from_service(message)
        except PeerError:
            self.context.count("malformed")
            return
        tap = self._taps.get(header.tap)
        member = tap.members.get((header.service, header.instance)) if tap is not None else None
        if tap is None or member is None or member.ended or not self._is_of(member, header, source):
            self.context.count("tap_dropped", "foreign")
            return
        member.heard_at = now.mono
        if isinstance(header, taps.Copy):
            self.context.count("tap_copies")
            self._publish(tap, *message.body)
            return
        member.report = header
        self._publish(tap, taps.encode_header(msgspec.structs.replace(header, proof="")))
        if header.ended:
            member.ended = header.ended
            self._close_if_over(tap)
        else:
            self.context.send(MONITOR, source.peer, taps.message_of(taps.Beat(tap.id), message.time))

    def _is_of(self, member: Member, message: taps.FromService, source: Source) -> bool:
        """Whether the message is the member's: with its proof, and from the address it registered from.

        Its copies follow then.
        """
        address = source.kind.partition(" ")[2] or "127.0.0.1"
        if isinstance(message, taps.Report) and message.proof == member.proof and address == member.address:
            member.peer = source.peer
        return bool(member.peer) and member.peer == source.peer

    # The broker's own messages

    def heard(self, message: Message, asker: Asker) -> None:
        """A message on the ROUTER; messages that belong to taps are not copied."""
        if message.command == REQUEST and message.body[:1] == (QUERY,):
            return
        if message.command != TAP:
            self._passed("in", "router", f"{asker.address}/{asker.peer.hex()}", commands.encode(message))

    def answered(self, peer: bytes, message: Message) -> None:
        """A message to a peer of the ROUTER."""
        if message.command != TAP and self._hidden != (peer, self.context.now.mono):
            self._passed("out", "router", f"/{peer.hex()}", commands.encode(message))

    def published(self, publication: Publication) -> None:
        """A publication."""
        if not publication.topic.startswith(TOPIC):
            self._passed("out", "pub", "", [publication.topic, *publication.body])

    def _passed(self, way: str, socket: str, peer: str, frames: list[bytes]) -> None:
        for own in self._own.values():
            if own.sampler.takes(way, socket, self.context.now.mono):
                self._copy(own, way, socket, peer, frames)

    def _copy(self, own: OwnTap, way: Any, socket: str, peer: str, frames: list[bytes]) -> None:
        part, tap = cut(frames, own.tap.asked.max_frame), own.tap
        own.sequence += 1
        header = taps.Copy(
            tap=tap.id,
            service=OWN,
            instance=self.context.epoch,
            seq=own.sequence,
            dir=way,
            socket=socket,
            peer=peer,
            ts=self.context.wall,
            frames=len(frames),
            bytes=part.bytes,
            cut=part.is_cut,
            sizes=part.sizes,
        )
        self._publish(tap, taps.encode_header(header), *part.frames)

    def _report_own(self, own: OwnTap, ended: str = "") -> None:
        sampler = own.sampler
        counts = {name: getattr(sampler, name) for name in ("seen", "copied", "dropped", "sampled")}
        report = taps.Report(tap=own.tap.id, service=OWN, instance=self.context.epoch, ended=ended, **counts)
        member = own.tap.members[OWN, self.context.epoch]
        member.report, member.ended, member.heard_at = report, ended, self.context.now.mono
        self._publish(own.tap, taps.encode_header(report))

    # Ends

    def _end(self, tap: Tap, why: str) -> None:
        """Ask all members to stop, and wait a moment for their last reports."""
        if tap.closing_at is not None:
            return
        tap.closing_at, tap.why = self.context.now.mono + limits.TAP_CLOSING_NS, why
        for instance in self._instances(tap):
            self.serving.push(instance, taps.message_of(taps.Stop(tap.id)))
        own = self._own.pop(tap.id, None)
        if own is not None:
            self._report_own(own, why)
            if not self._own:
                self.context.tap = None
            self._close_if_over(tap)

    def _instances(self, tap: Tap) -> Iterator[Instance]:
        found = (self.book.get(*key) for key, member in tap.members.items() if not member.ended)
        return (instance for instance in found if instance is not None)

    def _close_if_over(self, tap: Tap) -> None:
        if all(member.ended for member in tap.members.values()):
            self._close(tap)

    def _close(self, tap: Tap) -> None:
        """Publish its counts, and forget it."""
        del self._taps[tap.id]
        ends = {member.ended for member in tap.members.values()} - {""}
        why = tap.why or ", ".join(sorted(ends)) or "silent"
        accounts = tap.accounts()
        self._publish(tap, msgspec.json.encode({"type": "end", "tap": tap.id, "why": why, **accounts}), b"")
        self.context.tell(TapEnded(tap.id, tap.service, why, **accounts))

    def _publish(self, tap: Tap, *frames: bytes) -> None:
        self.context.send(EVENTS, b"", Publication(tap.topic, frames))

    # Time

    def wake(self, now: Now) -> None:
        """End taps whose time is over, and give up silent members."""
        for tap in list(self._taps.values()):
            self._look_after(tap, now.mono)

    def _look_after(self, tap: Tap, mono: int) -> None:
        own = self._own.get(tap.id)
        if own is not None and mono >= self._due_of(own.tap):
            self._report_own(own)
        for member in tap.members.values():
            if not member.ended and mono - member.heard_at >= limits.TAP_SILENCE_NS:
                member.ended = "silent"
        if tap.closing_at is not None and mono >= tap.closing_at:
            self._close(tap)
        elif tap.closing_at is None and mono >= tap.ends_at:
            self._end(tap, "time")
        else:
            self._close_if_over(tap)

    def _due_of(self, tap: Tap) -> int:
        """When the tap needs attention."""
        if tap.closing_at is not None:
            return tap.closing_at
        span = limits.TAP_REPORT_NS if tap.id in self._own else limits.TAP_SILENCE_NS
        dues = [member.heard_at + span for member in tap.members.values() if not member.ended]
        return min([tap.ends_at, *dues])

    def deadline(self) -> int | None:
        return earliest(*map(self._due_of, self._taps.values())) if self._taps else None


def can_be_tapped(instance: Instance) -> bool:
    """Whether its program can make copies (MON-002)."""
    caps = instance.record.get("caps")
    return isinstance(caps, list) and CAP in caps
