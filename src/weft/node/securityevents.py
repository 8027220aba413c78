"""The type of a row in the table of events, and the rows about keys; `weft.node.events` has all others."""

from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from weft.base.errors import UNREADABLE
from weft.base.keys import Z85
from weft.cores.enrolment import messages as enrolment


class AddressChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: this node restarts at once, and listens at another address then."""

    host: str


class FabricOpen(msgspec.Struct, frozen=True, gc=False):
    """Event: this node has no keys, and other machines can reach it. Reported at each start and daily (SEC-003)."""

    hosts: tuple[str, ...]
    """The addresses at which other machines can reach it."""


class DoorShut(msgspec.Struct, frozen=True, gc=False):
    """Event: a connection to a peer fails because of keys; the node retries less and less often (SEC-052)."""

    endpoint: str
    why: str
    """`key-refused`: the peer refuses this node's key. `other-key`: the peer does not have the key that is expected."""


class DoorOpened(msgspec.Struct, frozen=True, gc=False):
    """Event: the connection to such a peer succeeds again."""

    endpoint: str


class KeySwitched(msgspec.Struct, frozen=True, gc=False):
    """Event: this node restarts at once, and uses another key then."""

    curve: str
    """The new public key in Z85."""


class KeyReported(msgspec.Struct, frozen=True, gc=False):
    """Event, at the root: a node has reported its next key, or that it uses it now.

    The record is already in the journal.
    """

    origin: bytes
    is_taken: bool
    """Whether the key is in use."""
    curve: str
    by: str = ""
    """The key that the node used when it reported this; empty: unknown."""


class _Report(msgspec.Struct):
    curve: Z85
    by: Annotated[str, Meta(max_length=40)] = ""


class Event(NamedTuple):
    """How an event is journaled, and what docs/events.md says of it."""

    name: str
    level: str
    """`info`, `warning` or `error`."""
    meaning: str
    """What has happened."""
    mend: str
    """What a person should do about it."""


SECURITY: Final[dict[type, Event]] = {
    AddressChanged: Event(
        "node.address-changed", "info", "The node starts again at the address that an invitation named.", "Nothing."
    ),
    DoorShut: Event(
        "security.shut-out",
        "warning",
        "Another node refuses this node's key, or does not have the key that is expected.",
        "See weft key ls at the root. If this node's key is not bound any more: weft join with another token.",
    ),
    DoorOpened: Event("security.let-in", "info", "A node that refused this node's key accepts it again.", "Nothing."),
    FabricOpen: Event(
        "security.open",
        "warning",
        "The node has no keys and is open to other machines: whoever reaches a port can pose as any node.",
        "weft invite at the root makes a closed fabric, after --open is removed; or trust the network.",
    ),
    KeySwitched: Event("security.key-switched", "info", "The node starts again with another key.", "Nothing."),
    enrolment.KeyOffered: Event(
        "security.key-offered",
        "info",
        "The node has made another key, and reports it to the root.",
        "weft key revoke, if nobody ordered this.",
    ),
    enrolment.KeyTaken: Event(
        "security.key-taken", "info", "The node uses its new key; the former one is not valid any more.", "Nothing."
    ),
    enrolment.InvitationOpened: Event(
        "security.invited", "info", "A machine may join with a token until `expires_at`.", "Nothing."
    ),
    enrolment.InvitationEnded: Event(
        "security.invitation-ended",
        "info",
        "A token is not valid any more; `why`: used, expired, revoked.",
        "Nothing.",
    ),
    enrolment.InvitationLocked: Event(
        "security.invitation-locked",
        "warning",
        "Somebody tried five times to join with a token's id and a wrong secret: the token is not valid any more.",
        "weft invite prints another token; give it only to the machine that joins.",
    ),
    enrolment.MachineJoined: Event(
        "security.joined",
        "info",
        "A machine has joined: the fleet knows its key.",
        "weft key revoke, if it is not one of yours.",
    ),
    enrolment.KeyRevoked: Event(
        "security.key-revoked", "info", "The keys of a node are not valid any more.", "weft invite lets it in again."
    ),
}

KEYS: Final = {SECURITY[kind].name: kind is enrolment.KeyTaken for kind in (enrolment.KeyOffered, enrolment.KeyTaken)}
"""Names of events that report another key of a node, and whether the key is in use."""


def report_of(origin: bytes, name: str, payload: bytes) -> KeyReported | None:
    """The report in an event of `KEYS` of any node; None if it has no key."""
    try:
        report = msgspec.json.decode(payload, type=_Report)
    except UNREADABLE:
        return None
    return KeyReported(origin, KEYS[name], report.curve, report.by)
