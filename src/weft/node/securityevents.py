"""How an event is journaled, and the events about keys; `weft.node.events` has all others."""

from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from weft.base.errors import UNREADABLE
from weft.base.keys import Z85
from weft.cores.enrolment import messages as enrolment


class AddressChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: this node listens at another address from its next start on; that start follows at once."""

    host: str


class FabricOpen(msgspec.Struct, frozen=True, gc=False):
    """Event: this node has no keys, and other machines can reach it.

    Reported at each start and once a day (SEC-003).
    """

    hosts: tuple[str, ...]
    """The addresses at which other machines can reach it."""


class DoorShut(msgspec.Struct, frozen=True, gc=False):
    """Event: a peer that this node has dialled refuses its key; the node retries less and less often (SEC-052)."""

    endpoint: str
    why: str
    """`key-refused`: ours is not known there, or may not come in; `other-key`: nobody there has the key that we expect."""


class DoorOpened(msgspec.Struct, frozen=True, gc=False):
    """Event: a peer that refused this node accepts it."""

    endpoint: str


class KeySwitched(msgspec.Struct, frozen=True, gc=False):
    """Event: this node uses another key from its next start on; that start follows at once."""

    curve: str
    """The new public key in Z85."""


class KeyReported(msgspec.Struct, frozen=True, gc=False):
    """Event, at the root: a node has reported its next key, or that it uses it now.

    The record is already in the journal.
    """

    origin: bytes
    is_taken: bool
    curve: str
    by: str = ""
    """The key that it had then; empty: it does not say."""


class _Said(msgspec.Struct):
    curve: Z85
    by: Annotated[str, Meta(max_length=40)] = ""


class Event(NamedTuple):
    """How an event is journaled."""

    name: str
    level: str
    meaning: str
    mend: str


SECURITY: Final[dict[type, Event]] = {
    AddressChanged: Event(
        "node.address-changed", "info", "The node starts again at the address that an invitation named.", "Nothing."
    ),
    DoorShut: Event(
        "security.shut-out",
        "warning",
        "A door of another node refuses this node's key, or nobody there has the key that is known of it.",
        "weft key ls at the root; weft join with another token, if this node's key is nobody's any more.",
    ),
    DoorOpened: Event("security.let-in", "info", "A door that refused this node lets it in again.", "Nothing."),
    FabricOpen: Event(
        "security.open",
        "warning",
        "The node has no keys and listens beyond this machine: whoever reaches a port can pose as any node.",
        "weft invite at the root makes a closed fabric, once --open is taken away; or trust the network.",
    ),
    KeySwitched: Event("security.key-switched", "info", "The node starts again with another key.", "Nothing."),
    enrolment.KeyOffered: Event(
        "security.key-offered",
        "info",
        "The node has made another key, and offers it to the root.",
        "weft key revoke, if nobody asked it to.",
    ),
    enrolment.KeyTaken: Event(
        "security.key-taken", "info", "The node has another key; the one before is nobody's any more.", "Nothing."
    ),
    enrolment.InvitationOpened: Event(
        "security.invited", "info", "Somebody may join by a token, until `expires_at`.", "Nothing."
    ),
    enrolment.InvitationEnded: Event(
        "security.invitation-ended",
        "info",
        "Nobody else joins by that token; `why`: used, expired, revoked.",
        "Nothing.",
    ),
    enrolment.InvitationLocked: Event(
        "security.invitation-locked",
        "warning",
        "Somebody knew the id of a token and not its secret, and tried five times: nobody joins by it any more.",
        "weft invite prints another token; give it to nobody but the machine that joins.",
    ),
    enrolment.MachineJoined: Event(
        "security.joined",
        "info",
        "A machine has joined: the fleet knows its key.",
        "weft key revoke, if it is none of yours.",
    ),
    enrolment.KeyRevoked: Event(
        "security.key-revoked", "info", "The keys of a node are nobody's any more.", "weft invite lets it in again."
    ),
}

KEYS: Final = {SECURITY[kind].name: kind is enrolment.KeyTaken for kind in (enrolment.KeyOffered, enrolment.KeyTaken)}
"""Names of events that report another key of a node, and whether the key is in use."""


def report_of(origin: bytes, name: str, payload: bytes) -> KeyReported | None:
    """The report in an event of `KEYS` of any node; None if it has no key."""
    try:
        said = msgspec.json.decode(payload, type=_Said)
    except UNREADABLE:
        return None
    return KeyReported(origin, KEYS[name], said.curve, said.by)
