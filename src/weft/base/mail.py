"""A message under way from node to node, and the two journal streams that hold it (docs/chains.md).

A message with a destination is mail. Mail is never in the lake: the lake has, in the stream of messages, what the
root's `journal` filter has taken.

    OUTBOX   mail that goes up: the carrier sends it as it sends everything in the journal
    INBOX    mail that has arrived at this node and waits in its `in` chain

    RCPT     attribute of mail whose origin wants a receipt, over however many hops
    TICKET   attribute of mail in the outbox whose sender waits until the node above has it: a number of this start

A record of either has the message's identity as its own, its type as key, its payload frames one behind the other, and
everything else in its attributes.
"""

from typing import Any, Final

import msgspec

from weft.base.records import StreamRecord

OUTBOX: Final = 17
INBOX: Final = 18
"""Greater than all numbers of `records.Stream`: no table of the lake has them."""
WAY: Final = "way"
"""Attribute of a message in the stream of messages: the nodes that had sent it on when it came to the root. It is not
`via`, which is the way of the record itself, if a later root is another node."""
TICKET: Final = "ticket"
RCPT: Final = "rcpt"


class Mail(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One message with everything that travels with it."""

    origin: bytes
    era: int
    sequence: int
    type: str
    frames: tuple[bytes, ...]
    to: tuple[Any, ...]
    """`(kind, node or None, ttl)`, as sent; absent parts are left out."""
    via: tuple[bytes, ...] = ()
    """The nodes that have sent it on, the origin first (RTE-004)."""
    depth: int = 0
    at: int = 0
    """The origin's wall clock at acceptance, nanoseconds."""
    fmt: str = "raw"
    exp: int = 0
    rcpt: bool = False
    """Whether its origin wants a receipt (RTE-006)."""

    @property
    def mid(self) -> tuple[bytes, int, int]:
        """Its identity (CHN-004)."""
        return self.origin, self.era, self.sequence


def to_record(mail: Mail, stream: int, received: int) -> StreamRecord:
    """The journal record of mail; `of_record` gives it back."""
    attributes: dict[str, Any] = {"to": list(mail.to)}
    if mail.via:
        attributes["via"] = list(mail.via)
    if mail.depth:
        attributes["depth"] = mail.depth
    if mail.fmt != "raw":
        attributes["fmt"] = mail.fmt
    if mail.exp:
        attributes["exp"] = mail.exp
    if mail.rcpt:
        attributes[RCPT] = True
    payload = mail.frames[0]
    if len(mail.frames) > 1:
        attributes["frames"] = [len(frame) for frame in mail.frames]
        payload = b"".join(mail.frames)
    return StreamRecord(stream, mail.origin, mail.era, mail.sequence, mail.at, received, mail.type, payload, attributes)


def of_record(record: StreamRecord) -> Mail:
    """The mail of a record that `to_record` made."""
    attributes = record.attributes
    return Mail(
        origin=record.origin,
        era=record.era or 0,
        sequence=record.sequence,
        type=record.key,
        frames=split(record.payload, attributes.get("frames")),
        to=tuple(attributes["to"]),
        via=tuple(attributes.get("via", ())),
        depth=attributes.get("depth", 0),
        at=record.at,
        fmt=attributes.get("fmt", "raw"),
        exp=attributes.get("exp", 0),
        rcpt=attributes.get(RCPT, False),
    )


def split(payload: bytes, lengths: list[int] | None) -> tuple[bytes, ...]:
    """The frames of a payload by their lengths; without them it is one.

    >>> split(b"onetwo", [3, 3]), split(b"one", None)
    ((b'one', b'two'), (b'one',))
    """
    if lengths is None:
        return (payload,)
    frames, at = [], 0
    for length in lengths:
        frames.append(payload[at : at + length])
        at += length
    return tuple(frames)
