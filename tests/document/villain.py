"""Somebody who takes part and means no good, or is only badly written: what it says is in no case worse than a nuisance."""

from typing import Final
from uuid import UUID

from tests.document.fold.mixes import Mix
from tests.document.net import Machine, Net
from tests.document.witness import OPERATION_BYTES_MAX, pair_of
from weft.base.now import MILLISECOND
from weft.wire.document.messages import Beat, Bout, Chat, Envelope, Gbye, Gsip, Helo, PeerAt, Progress, Time, Xmsg

DROPPED: Final = (
    b"",
    b"<",
    b"\xff\xfe",
    b'<!DOCTYPE add [<!ENTITY e "x">]><add path="note" SOURCE timestamp="1" sequence="N">&e;</add>',
    b'<add path="note" timestamp="1" sequence="9">x</add>',
    b'<add path="note" SOURCE timestamp="1" sequence="0">x</add>',
    b'<add path="note" SOURCE timestamp="1" sequence="99999999999999999">x</add>',
    b'<add path="note" SOURCE timestamp="1" sequence="N">' + b"x" * OPERATION_BYTES_MAX + b"</add>",
)
"""Without a header that can be used: no log has any of them (GSP-012)."""
INERT: Final = (
    b'<add path="note" SOURCE timestamp="1763800001" sequence="N"><note>',
    b'<add path="note" SOURCE timestamp="nan" sequence="N">&nothing;</add>',
    b'<move path="note" SOURCE timestamp="1763800001" sequence="N"/>',
    b'<set path="note" SOURCE timestamp="1e999" sequence="N">x\xff</set>',
    b'<add path="note" SOURCE timestamp="1763800001" sequence="N"><a:b xmlns:a="c"/></add>',
    b'<add SOURCE timestamp="1763800001" sequence="N"><note/></add>',
    b'<add path="note" SOURCE timestamp="1763800001" sequence="N"><note>' + b"y" * 200_000 + b"</note></add>",
)
"""With one: they keep their number, and do nothing (or little)."""
SOUND: Final = b'<set path="note" SOURCE timestamp="1763800002" sequence="N">sound</set>'


class Villain:
    """It knows whom it calls, and answers just so much that it is ACTIVE there."""

    def __init__(self, net: Net, seed: int) -> None:
        self.net, self.mix = net, Mix(seed, skew=120.0)
        self.uuid = net.fresh_uuid()
        self.endpoint = f"10.9.{len(net.ears) // 250}.{1 + len(net.ears) % 250}:50000"
        self.sequence = 0
        self.said: dict[tuple[bytes, int], bytes] = {}
        """What is an operation of those it has said."""
        net.ears[self.endpoint] = self._hear

    def _hear(self, said: Envelope) -> None:
        """It has no manners, and answers nothing."""

    def _say(self, target: Machine, *messages: object) -> None:
        for message in messages:
            self.net.say(self.uuid, self.endpoint, target.endpoint, message)

    def join(self, target: Machine) -> None:
        """Be ACTIVE there."""
        self._say(target, Helo(self.endpoint), Bout(target.up.context.settings.text))
        self.net.pass_time(20 * MILLISECOND)

    def _named(self, body: bytes) -> bytes:
        source = f'source="{UUID(bytes=self.uuid)}"'.encode()
        return body.replace(b"SOURCE", source).replace(b'"N"', f'"{self.sequence}"'.encode())

    def drop_some(self, target: Machine) -> None:
        """What nobody may keep, and what has that number in truth."""
        self.sequence += 1
        self._say(target, *(Xmsg(self._named(body)) for body in DROPPED))
        self.say_operation(target, self._named(SOUND))

    def block(self, target: Machine) -> None:
        """Operations of its own that are broken, with a sound one behind them."""
        for body in (*INERT, SOUND):
            self.sequence += 1
            self.say_operation(target, self._named(body))

    def pour(self, target: Machine, count: int = 20) -> None:
        """Operations of sources that are nowhere, in any order and some not at all: whatever the fold can meet."""
        bodies = [*self.mix.bodies(count), *self.mix.adopted()]
        self.net.chance.shuffle(bodies)
        for body in bodies:
            self.say_operation(target, body)

    def say_operation(self, target: Machine, body: bytes) -> None:
        """Say it, and remember that it was said."""
        pair = pair_of(body)
        assert pair is not None
        self.said[pair] = body
        self._say(target, Xmsg(body))

    def lie(self, target: Machine) -> None:
        """It claims to hold what nobody has, to be elsewhere, to know others, and what time it is."""
        others = [source for source, _ in target.up.log.sources() if source != target.up.context.uuid]
        claims = [Progress(source, 1 << 52) for source in (*others, self.net.fresh_uuid())]
        self._say(
            target, *(Gsip((claim,)) for claim in claims), Beat(1 << 52, 1, 2), Time(1.0), Time(), Chat("hear me")
        )
        self._say(target, PeerAt("10.9.9.9:1"), PeerAt(target.endpoint), PeerAt("0.0.0.0:5"))

    def claim(self, target: Machine, source: bytes, upto: int) -> None:
        """It says that it holds so much of a source."""
        self._say(target, Gsip((Progress(source, upto),)))

    def agree(self, target: Machine) -> None:
        """It says that it has the very log of whom it speaks to."""
        self._say(target, Beat(0, 1, target.up.log.check))

    def steal(self, target: Machine) -> None:
        """It says that it is where others are, and that others are where it is."""
        for machine in self.net.alive:
            if machine is not target:
                self._say(target, Helo(machine.endpoint))
                self.net.say(machine.uuid, self.endpoint, target.endpoint, Helo(self.endpoint))

    def leave(self, target: Machine) -> None:
        self._say(target, Gbye("so long"))


def strange_frames(net: Net, target: Machine) -> None:
    """A stranger says everything but HELO: nothing of it counts (PEE-006)."""
    sender = net.fresh_uuid()
    before = target.up.log.count, target.up.log.check
    body = b'<set path="note" source="a0000000-0000-4000-8000-000000000001" timestamp="1" sequence="1">x</set>'
    for message in (Xmsg(body), Gsip((Progress(sender, 5),)), Beat(3), Time(5.0), Chat("x"), Bout("friday"), Gbye()):
        net.say(sender, "10.9.1.1:7", target.endpoint, message)
    net.pass_time(10 * MILLISECOND)
    assert before[0] <= target.up.log.count
