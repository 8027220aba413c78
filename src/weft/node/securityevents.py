"""How an event is journaled, and the rows of those about keys: `weft.node.events` has all others."""

from typing import Final, NamedTuple

import msgspec

from weft.cores.enrolment import messages as enrolment


class AddressChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: this node listens elsewhere from its next start on; that start comes at once."""

    host: str


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
