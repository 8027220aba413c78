"""What the enrolment core hears and says."""

import msgspec

from weft.wire.enrolment import Join, Refused, Welcome

__all__ = ["Join", "Refused", "Welcome"]


class EnrolmentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a node's file says of it."""

    fabric: str
    name: str
    endpoint: str
    """`host:port` of the node's port block: where who joins calls in."""
    starts_as_root: bool = False
    """Whether it is the root again as soon as nobody else turns out to be."""


# Orders of people


class Invite(msgspec.Struct, frozen=True, gc=False):
    """Order: let somebody in. Answered by `Invited` when the door is open, or by `EnrolmentRefused`."""

    ticket: int
    role: str
    uses: int
    for_ns: int
    names: str
    """A glob of the names that may join by it; `*`: any."""


class ShowInvitations(msgspec.Struct, frozen=True, gc=False):
    """Order: tell of the invitations. Answered by `InvitationsShown`."""

    ticket: int


class Withdraw(msgspec.Struct, frozen=True, gc=False):
    """Order: take an invitation back. Answered by `Withdrawn`."""

    ticket: int
    ident: str
    """In hex."""


class ShowKeys(msgspec.Struct, frozen=True, gc=False):
    """Order: whose key is known here. Answered by `KeysShown`."""

    ticket: int


class RevokeKey(msgspec.Struct, frozen=True, gc=False):
    """Order: let a node's keys be nobody's. Answered by `KeysRevoked` when that is durable."""

    ticket: int
    node: str
    """Its name, or its UUID in hex."""


class RotateKey(msgspec.Struct, frozen=True, gc=False):
    """Order: let a node have another key. Answered by `RotationBegun`."""

    ticket: int
    node: str = ""
    """Its name; empty: this node. Only the root asks others."""
    at_once: bool = False
    """Of this node: take the next key although somebody has not heard of it."""


class Listen(msgspec.Struct, frozen=True, gc=False):
    """Order: listen at an address that other machines reach, with keys. Answered by `Listening`."""

    ticket: int
    host: str


# Orders of the shell and of other cores


class Equip(msgspec.Struct, frozen=True, gc=False):
    """Order: this node has keys. Without it, it invites nobody."""

    curve: str
    """The public key in Z85."""
    beacon_key: str = ""
    """The fabric's secret for datagrams, in hex."""
    following: str = ""
    """The public key of the pair that waits on the disk to be the next."""

    def __repr__(self) -> str:
        return f"Equip(curve={self.curve!r}, beacon_key=...)"


class DoorIs(msgspec.Struct, frozen=True, gc=False):
    """Order, the answer to `OpenDoor`: on which port it stands; 0: it could not be opened."""

    port: int
    why: str = ""


class AddressIs(msgspec.Struct, frozen=True, gc=False):
    """Order, the answer to `ChangeAddress`; `why`: it cannot be."""

    ticket: int
    host: str
    starts: bool
    """Whether the node starts again, at once, to listen there."""
    why: str = ""


class TakeRoot(msgspec.Struct, frozen=True, gc=False):
    """Order: this node is the root; only a root writes bindings."""

    is_acting: bool = False
    """In the stead of a root: it writes nothing."""


class StepDown(msgspec.Struct, frozen=True, gc=False):
    """Order: this node is the root no longer."""


class LearnPairs(msgspec.Struct, frozen=True, gc=False):
    """Order: what has changed of the configuration; None: the key is absent."""

    pairs: tuple[tuple[str, bytes | None], ...]
    number: int = 0
    """Of the configuration that says so."""


class NoteApplied(msgspec.Struct, frozen=True, gc=False):
    """Order: a node has said that it has the configuration up to a number."""

    node: bytes
    number: int


class HearKey(msgspec.Struct, frozen=True, gc=False):
    """Order: a node has said of itself what is its next key, or that it has taken it."""

    node: bytes
    curve: str
    is_taken: bool


class KeyMade(msgspec.Struct, frozen=True, gc=False):
    """Order, the answer to `MakeKey`: the pair is on the disk; without its public half: why it is not."""

    curve: str
    why: str = ""


class BindingWritten(msgspec.Struct, frozen=True, gc=False):
    """Order, the answer to `BindingWanted`: it is durable, unless `code` says why not."""

    ticket: int
    code: int


# Work of the shell


class OpenDoor(msgspec.Struct, frozen=True, gc=False):
    """Work: bind the door; the outcome is the order `DoorIs`."""


class ChangeAddress(msgspec.Struct, frozen=True, gc=False):
    """Work: make keys if there are none, and listen at this address from the next start on, which comes at once."""

    ticket: int
    host: str


class MakeKey(msgspec.Struct, frozen=True, gc=False):
    """Work: make the pair that is to be the next, if there is none; the outcome is the order `KeyMade`."""


class SwitchKey(msgspec.Struct, frozen=True, gc=False):
    """Work: let the next pair be the node's own from its next start on, which comes at once."""


class CloseDoor(msgspec.Struct, frozen=True, gc=False):
    """Work: close the door."""


# Answers


class Invited(msgspec.Struct, frozen=True, gc=False):
    """Answer: somebody may join. The shell makes the token of it: this core says no secret."""

    ident: str
    role: str
    uses: int
    names: str
    expires_minutes: int
    """Since 1970, as the token says it."""
    port: int
    """Of the door."""


class EnrolmentRefused(msgspec.Struct, frozen=True, gc=False):
    """Answer: not so."""

    code: str
    text: str


class Shown(msgspec.Struct, frozen=True, gc=False):
    """One invitation."""

    ident: str
    state: str
    role: str
    uses: int
    joined: tuple[str, ...]
    """Names of those who have joined by it."""
    names: str
    expires_at: int
    """Wall-clock nanoseconds."""
    wrong: int


class InvitationsShown(msgspec.Struct, frozen=True, gc=False):
    """Answer to `ShowInvitations`, oldest first."""

    invitations: tuple[Shown, ...]


class Withdrawn(msgspec.Struct, frozen=True, gc=False):
    """Answer to `Withdraw`."""

    ident: str


class KeyShown(msgspec.Struct, frozen=True, gc=False):
    """One node and its keys."""

    uuid: str
    name: str
    roles: tuple[str, ...]
    names: tuple[str, ...]
    curve: tuple[str, ...]
    until: int
    """Seconds since 1970; 0: no end."""
    waits_for: tuple[str, ...] = ()
    """Names of nodes that have not heard of its next key, while the root waits for them."""


class KeysShown(msgspec.Struct, frozen=True, gc=False):
    """Answer to `ShowKeys`, by name."""

    keys: tuple[KeyShown, ...]


class KeysRevoked(msgspec.Struct, frozen=True, gc=False):
    """Answer to `RevokeKey`."""

    uuid: str
    name: str


class RotationBegun(msgspec.Struct, frozen=True, gc=False):
    """Answer to `RotateKey`: it goes on by itself; `ShowKeys` tells when it is done."""

    uuid: str
    name: str
    curve: str
    """The key that was in force then."""


class Listening(msgspec.Struct, frozen=True, gc=False):
    """Answer to `Listen`."""

    host: str
    starts: bool
    """Whether the node starts again, at once, to listen there."""


Reply = RotationBegun | Listening | Invited | EnrolmentRefused | InvitationsShown | Withdrawn | KeysShown | KeysRevoked


# Events


class BindingWanted(msgspec.Struct, frozen=True, gc=False):
    """Event: this pair is to be written into the configuration; an empty value deletes it."""

    ticket: int
    key: str
    value: bytes


class InvitationOpened(msgspec.Struct, frozen=True, gc=False):
    """Event: somebody may join."""

    ident: str
    role: str
    uses: int
    names: str
    expires_at: int


class InvitationEnded(msgspec.Struct, frozen=True, gc=False):
    """Event: nobody else may join by it: it is used up, expired or revoked."""

    ident: str
    why: str


class InvitationLocked(msgspec.Struct, frozen=True, gc=False):
    """Event: somebody knew the id of an invitation, and not its secret, and has tried five times."""

    ident: str


class MachineJoined(msgspec.Struct, frozen=True, gc=False):
    """Event: a machine has a key that the fleet knows. Told once per machine and invitation."""

    node: str
    name: str
    role: str
    ident: str
    host: str
    """As the machine says it."""


class KeyRevoked(msgspec.Struct, frozen=True, gc=False):
    """Event: the keys of a node are nobody's any more."""

    node: str
    name: str


class KeyOffered(msgspec.Struct, frozen=True, gc=False):
    """Event: this node has made another key, and offers it to the root."""

    curve: str


class KeyTaken(msgspec.Struct, frozen=True, gc=False):
    """Event: this node has its next key, and the one before may be taken out of its binding."""

    curve: str
