"""Orders, work, answers and events of the enrolment core."""

import msgspec

from weft.wire.enrolment import Join, Refused, Welcome

__all__ = ["Join", "Refused", "Welcome"]


class EnrolmentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a node's file that concerns enrolment."""

    fabric: str
    name: str
    endpoint: str
    """`host:port` of the node's port block, where joining machines connect."""
    starts_as_root: bool = False
    """Whether it becomes root again at the start, unless another node is."""


# Orders of people


class Invite(msgspec.Struct, frozen=True, gc=False):
    """Order: invite a machine. Answered by `Invited` when the door is open, or by `EnrolmentRefused`."""

    ticket: int
    role: str
    uses: int
    for_ns: int
    names: str
    """A pattern for the names of machines that may join; `*`: any."""


class ShowInvitations(msgspec.Struct, frozen=True, gc=False):
    """Order: list the invitations. Answered by `InvitationsShown`."""

    ticket: int


class Withdraw(msgspec.Struct, frozen=True, gc=False):
    """Order: withdraw an invitation. Answered by `Withdrawn`."""

    ticket: int
    ident: str
    """In hex."""


class ShowKeys(msgspec.Struct, frozen=True, gc=False):
    """Order: list the keys known here. Answered by `KeysShown`."""

    ticket: int


class RevokeKey(msgspec.Struct, frozen=True, gc=False):
    """Order: revoke a node's keys. Answered by `KeysRevoked` when that is durable."""

    ticket: int
    node: str
    """Its name, or its UUID in hex."""


class RotateKey(msgspec.Struct, frozen=True, gc=False):
    """Order: give a node a new key. Answered by `RotationBegun`."""

    ticket: int
    node: str = ""
    """Its name; empty: this node. Only the root can ask other nodes."""
    at_once: bool = False
    """For this node: switch to the next key although some nodes do not know it yet."""


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
    """The public key of the pair that is on disk as the next one."""

    def __repr__(self) -> str:
        return f"Equip(curve={self.curve!r}, beacon_key=...)"


class DoorIs(msgspec.Struct, frozen=True, gc=False):
    """Order, answers `OpenDoor`: the port of the door; 0: it could not be opened."""

    port: int
    why: str = ""


class AddressIs(msgspec.Struct, frozen=True, gc=False):
    """Order, answers `ChangeAddress`; `why`: the reason if it failed."""

    ticket: int
    host: str
    starts: bool
    """Whether the node restarts at once to listen there."""
    why: str = ""


class TakeRoot(msgspec.Struct, frozen=True, gc=False):
    """Order: this node is the root; only a root writes bindings."""

    is_acting: bool = False
    """A substitute for a root: it writes nothing."""


class StepDown(msgspec.Struct, frozen=True, gc=False):
    """Order: this node is no longer root."""


class LearnPairs(msgspec.Struct, frozen=True, gc=False):
    """Order: changed pairs of the configuration; None: the key is absent."""

    pairs: tuple[tuple[str, bytes | None], ...]
    number: int = 0
    """Number of the configuration."""


class NoteApplied(msgspec.Struct, frozen=True, gc=False):
    """Order: a node has reported that it has the configuration up to a number."""

    node: bytes
    number: int


class HearKey(msgspec.Struct, frozen=True, gc=False):
    """Order: a node has announced its next key, or that it has switched to it."""

    node: bytes
    curve: str
    is_taken: bool
    by: str = ""
    """The key that it had when it offered the next one; empty: an older node, which does not say."""


class KeyMade(msgspec.Struct, frozen=True, gc=False):
    """Order, answers `MakeKey`: the pair is on disk; without a public key: why it is not."""

    curve: str
    why: str = ""


class BindingWritten(msgspec.Struct, frozen=True, gc=False):
    """Order, answers `BindingWanted`: the write is durable, or `code` is the reason of the refusal."""

    ticket: int
    code: int


# Work of the shell


class OpenDoor(msgspec.Struct, frozen=True, gc=False):
    """Work: bind the door; answered by `DoorIs`."""


class ChangeAddress(msgspec.Struct, frozen=True, gc=False):
    """Work: make keys if there are none, and listen at this address after a restart, which follows at once."""

    ticket: int
    host: str


class MakeKey(msgspec.Struct, frozen=True, gc=False):
    """Work: make the next pair, if there is none; answered by `KeyMade`."""


class SwitchKey(msgspec.Struct, frozen=True, gc=False):
    """Work: make the next pair the node's own, with a restart that follows at once."""


class CloseDoor(msgspec.Struct, frozen=True, gc=False):
    """Work: close the door."""


# Answers


class Invited(msgspec.Struct, frozen=True, gc=False):
    """Answer: a machine may join. The shell builds the token: this core gives out no secret."""

    ident: str
    role: str
    uses: int
    names: str
    expires_minutes: int
    """Minutes since 1970, as in the token."""
    port: int
    """Of the door."""


class EnrolmentRefused(msgspec.Struct, frozen=True, gc=False):
    """Answer: the order was refused."""

    code: str
    text: str


class Shown(msgspec.Struct, frozen=True, gc=False):
    """One invitation."""

    ident: str
    state: str
    role: str
    uses: int
    joined: tuple[str, ...]
    """Names of the machines that joined with it."""
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
    """Names of the nodes that do not know its next key yet, while the root waits for them."""


class KeysShown(msgspec.Struct, frozen=True, gc=False):
    """Answer to `ShowKeys`, by name."""

    keys: tuple[KeyShown, ...]


class KeysRevoked(msgspec.Struct, frozen=True, gc=False):
    """Answer to `RevokeKey`."""

    uuid: str
    name: str


class RotationBegun(msgspec.Struct, frozen=True, gc=False):
    """Answer to `RotateKey`: the rotation continues by itself; `ShowKeys` shows when it is done."""

    uuid: str
    name: str
    curve: str
    """The key in force until now."""


class Listening(msgspec.Struct, frozen=True, gc=False):
    """Answer to `Listen`."""

    host: str
    starts: bool
    """Whether the node restarts at once to listen there."""


Reply = RotationBegun | Listening | Invited | EnrolmentRefused | InvitationsShown | Withdrawn | KeysShown | KeysRevoked


# Events


class BindingWanted(msgspec.Struct, frozen=True, gc=False):
    """Event: write this pair into the configuration; an empty value deletes it."""

    ticket: int
    key: str
    value: bytes


class InvitationOpened(msgspec.Struct, frozen=True, gc=False):
    """Event: an invitation was opened."""

    ident: str
    role: str
    uses: int
    names: str
    expires_at: int


class InvitationEnded(msgspec.Struct, frozen=True, gc=False):
    """Event: an invitation has ended: it is used up, expired or revoked."""

    ident: str
    why: str


class InvitationLocked(msgspec.Struct, frozen=True, gc=False):
    """Event: five JOINs had the id of an invitation but not its secret; it is locked."""

    ident: str


class MachineJoined(msgspec.Struct, frozen=True, gc=False):
    """Event: the fleet knows a machine's key. Told once per machine and invitation."""

    node: str
    name: str
    role: str
    ident: str
    host: str
    """The host as the machine states it."""


class KeyRevoked(msgspec.Struct, frozen=True, gc=False):
    """Event: a node's keys were revoked."""

    node: str
    name: str


class KeyOffered(msgspec.Struct, frozen=True, gc=False):
    """Event: this node has made its next key, and offers it to the root."""

    curve: str
    by: str = ""
    """The key that it has now."""


class KeyTaken(msgspec.Struct, frozen=True, gc=False):
    """Event: this node uses its next key; the old one may be removed from its binding."""

    curve: str
