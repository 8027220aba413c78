"""Invitations, and machines that join with their tokens (SEC-022, SEC-023).

A valid JOIN first requests the write of its binding. When that is durable, the use of the invitation is persisted, and
behind that wall the WELCOME is sent. So after a crash, no machine was welcomed that the fleet does not know.
"""

import hashlib
from collections import deque
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

import msgspec

from weft.base.chance import Chance
from weft.base.effects import Source
from weft.base.errors import PeerError
from weft.base.keys import ROLES, Binding, binding_key, encode_binding
from weft.base.now import SECOND, Now
from weft.base.records import CoreRecord
from weft.base.settings import is_plain_name
from weft.cores.enrolment import limits
from weft.cores.enrolment.bindings import Bindings
from weft.cores.enrolment.context import Context, until_of
from weft.cores.enrolment.memory import Invitation, Joined, to_record
from weft.cores.enrolment.messages import (
    InvitationEnded,
    InvitationLocked,
    InvitationOpened,
    InvitationsShown,
    Invite,
    Join,
    MachineJoined,
    Refused,
    ShowInvitations,
    Shown,
    Welcome,
    Withdraw,
    Withdrawn,
)
from weft.cores.enrolment.states import TABLE, On, State
from weft.cores.kit.timers import earliest
from weft.wire.enrolment import is_same, proof_of
from weft.wire.token import ID_BYTES, MINUTE_NS
from weft.wire.z85 import from_z85

_ENDED: Final = {
    State.USED: ("used", "as many machines have joined by this token as may"),
    State.LOCKED: ("revoked", "the token is locked: somebody tried it with a wrong secret"),
    State.EXPIRED: ("expired", "the time of this token is over"),
    State.REVOKED: ("revoked", "the token was taken back"),
}
"""Answers to machines that come too late."""


NO_KEYS: Final = "this node has no keys yet: weft invite --listen ADDRESS, the one at which other machines reach it"


class Knock(NamedTuple):
    """A JOIN with its sender."""

    join: Join
    source: Source
    curve: str
    """The key in Z85 that the connection has proved."""
    address: str = ""
    """The sender's address, by the kernel's information; empty: unknown."""

    @property
    def joined(self) -> Joined:
        return Joined(self.join.node, self.curve, self.join.about.name)


class Invitations:
    """The invitations of one root."""

    def __init__(self, context: Context, bindings: Bindings, chance: Chance) -> None:
        self.context, self.bindings = context, bindings
        self.kept: dict[bytes, Invitation] = {}
        """By id, oldest first."""
        self.grace_until: int | None = None
        """Until then the machines that joined last may ask again; monotonic ns."""
        self._chance = chance
        self._joins_at: deque[int] = deque(maxlen=limits.JOINS_PER_SECOND)
        self._wrong_at: deque[tuple[int, str]] = deque(maxlen=limits.WRONG_PER_MINUTE)
        """When wrong proofs came, and from which address."""
        self._pending: dict[bytes, bytes] = {}
        """By node: the invitation for which its binding is being written."""

    def restore(self, invitation: Invitation, now: Now) -> None:
        """Restore a record; the last one of an invitation counts. A crash may have lost the WELCOME of the last machine."""
        self._put(invitation)
        if invitation.state == State.USED.name and now.wall < invitation.expires_at:
            self.grace_until = now.mono + limits.GRACE_NS

    def condense(self) -> Iterable[CoreRecord]:
        return [to_record(each) for each in self.kept.values()]

    # Orders

    def invite(self, order: Invite, now: Now) -> Invitation | None:
        """A new invitation; None: it was refused."""
        if fault := self._fault(order):
            self.context.refuse(order.ticket, *fault)
            return None
        ident = self._chance.randbytes(ID_BYTES)
        expires_at = (now.wall + order.for_ns + MINUTE_NS - 1) // MINUTE_NS * MINUTE_NS
        digest = hashlib.sha256(self.context.secret_of(ident)).digest()
        made = Invitation(ident, order.role, order.uses, order.names, expires_at, digest)
        self._keep(made)
        self.context.tell(InvitationOpened(ident.hex(), made.role, made.uses, made.names, expires_at))
        return made

    def _fault(self, order: Invite) -> tuple[str, str] | None:
        rules = (
            (self.context.curve, "no-keys", NO_KEYS),
            (self.context.is_root, "not-root", "only the root invites"),
            (order.role in ROLES, "bad-role", f"a role is one of {', '.join(ROLES)}"),
            (1 <= order.uses <= limits.USES_MAX, "bad-uses", f"from 1 to {limits.USES_MAX} uses"),
            (MINUTE_NS <= order.for_ns <= limits.FOR_MAX_NS, "bad-for", "from 1m to 30 days"),
            (1 <= len(order.names) <= limits.GLOB_MAX, "bad-names", f"a pattern of up to {limits.GLOB_MAX} characters"),
            (self._has_place(), "too-many", f"{limits.INVITATIONS_MAX} invitations are open"),
        )
        return next(((code, text) for holds, code, text in rules if not holds), None)

    def _has_place(self) -> bool:
        return len(self.kept) < limits.INVITATIONS_MAX or self._oldest_ended() is not None

    def _oldest_ended(self) -> bytes | None:
        return next((ident for ident, each in self.kept.items() if not each.is_open), None)

    def show(self, order: ShowInvitations) -> None:
        """List all kept invitations."""
        self.context.reply(order.ticket, InvitationsShown(tuple(map(_shown, self.kept.values()))))

    def withdraw(self, order: Withdraw, now: Now) -> None:
        """Withdraw an invitation; one that has ended stays as it is."""
        found = next((each for each in self.kept.values() if each.ident.hex() == order.ident), None)
        if found is None:
            self.context.refuse(order.ticket, "not-found", f"there is no invitation {order.ident[:64]!r}")
            return
        self.cancel(found.ident, now)
        self.context.reply(order.ticket, Withdrawn(order.ident))

    def cancel(self, ident: bytes, now: Now) -> None:
        """End an invitation: no machine can join with it any more."""
        self._turn(self.kept[ident], On.REVOKED, None, now)

    # Time

    def expire(self, now: Now) -> None:
        """End the invitations whose time is over."""
        for each in [each for each in self.kept.values() if each.is_open and now.wall >= each.expires_at]:
            self._turn(each, On.TIME, None, now)
        if self.grace_until is not None and now.mono >= self.grace_until:
            self.grace_until = None

    def wants_door(self) -> bool:
        """Whether any invitation is open."""
        return self.grace_until is not None or any(each.is_open for each in self.kept.values())

    def deadline(self, now: Now) -> int | None:
        """When the next invitation ends, in monotonic ns."""
        spans = [each.expires_at - now.wall for each in self.kept.values() if each.is_open]
        return earliest(self.grace_until, *[now.mono + max(span, 0) for span in spans])

    # Who comes

    def hear(self, join: Join, source: Source, now: Now) -> None:
        """Answer a JOIN; PeerError `no-key` if the connection has proved no key."""
        curve, _, address = source.kind.partition(" ")
        client_key = from_z85(curve)
        if client_key is None:
            raise PeerError("no-key", "a JOIN over a connection without a key")
        knock = Knock(join, source, curve, address)
        if self._is_busy(now, address):
            self.refuse_as(knock, "busy", "too many machines try to join; try again in a minute")
            return
        self._joins_at.append(now.mono)
        self.expire(now)
        invitation = self.kept.get(join.ident)
        if invitation is None:
            self.refuse_as(knock, "unknown-token", "this root has made no such token")
        elif not self._is_right(knock, invitation, client_key):
            self._note_wrong(invitation, knock, now)
        elif knock.joined in invitation.joined:
            self._turn(invitation, On.AGAIN, knock, now)
        elif not invitation.is_open:
            self._turn(invitation, On.RIGHT, knock, now)
        elif fault := self._objection(knock, invitation):
            self.refuse_as(knock, *fault)
        else:
            self._bind(knock, invitation, now)

    def _is_busy(self, now: Now, address: str) -> bool:
        """Whether too many JOINs (per second) or wrong proofs (per minute) came, in all or of one address (SEC-023)."""
        joins = self._joins_at
        wrong = [whose for at, whose in self._wrong_at if now.mono - at < limits.MINUTE_NS]
        is_fast = len(joins) == joins.maxlen and now.mono - joins[0] < SECOND
        is_known_wrong = bool(address) and wrong.count(address) >= limits.WRONG_PER_ADDRESS
        return is_fast or is_known_wrong or len(wrong) == limits.WRONG_PER_MINUTE

    def _is_right(self, knock: Knock, invitation: Invitation, client_key: bytes) -> bool:
        """Whether the proof was made with the secret, over both keys of this connection."""
        secret, server_key = self.context.secret_of(invitation.ident), from_z85(self.context.curve)
        if server_key is None or not is_same(hashlib.sha256(secret).digest(), invitation.digest):
            return False  # issued by another machine, or with a secret that is lost
        expected = proof_of(secret, invitation.ident, knock.join.node, client_key, server_key)
        return is_same(expected, knock.join.proof)

    def _note_wrong(self, invitation: Invitation, knock: Knock, now: Now) -> None:
        self._wrong_at.append((now.mono, knock.address))
        is_fifth = invitation.is_open and invitation.wrong + 1 >= limits.WRONG_MAX
        self._turn(invitation, On.FIFTH if is_fifth else On.WRONG, knock, now)

    def _objection(self, knock: Knock, invitation: Invitation) -> tuple[str, str] | None:
        """Why a valid JOIN is refused nevertheless; empty: it is accepted."""
        name, node = knock.join.about.name, knock.join.node
        same_name, same_node = self.bindings.named(name), self.bindings.known.get(node)
        uses = len(invitation.joined) + sum(ident == invitation.ident for ident in self._pending.values())
        rules = (
            (is_plain_name(name), "bad-name", f"{name!r}: letters, digits, `_`, `.`, `-` only, 63 at most"),
            (fnmatchcase(name, invitation.names), "bad-name", f"the token is for names like {invitation.names}"),
            (same_name in (None, node), "name-taken", f"another machine is called {name}"),
            (same_node is None or knock.curve in same_node.curve, "uuid-taken", "this machine has joined with another key"),
            (self.context.can_invite, "busy", "this node is not the root"),
            (node not in self._pending and uses < invitation.uses, "busy", "another machine is joining by this token"),
            (len(self._pending) < limits.PENDING_MAX, "busy", "too many machines are joining"),
        )  # fmt: skip
        return next(((code, text) for holds, code, text in rules if not holds), None)

    def _bind(self, knock: Knock, invitation: Invitation, now: Now) -> None:
        """Request the write of the binding; `_bound` gets the result."""
        self._pending[knock.join.node] = invitation.ident
        binding = binding_of(invitation, knock, self.bindings.known.get(knock.join.node), now)

        def bound(code: int, now: Now) -> None:
            self._bound(knock, invitation.ident, code, now)

        self.context.want(binding_key(knock.join.node), encode_binding(binding), bound)

    def _bound(self, knock: Knock, ident: bytes, code: int, now: Now) -> None:
        self._pending.pop(knock.join.node, None)
        invitation = self.kept.get(ident)
        if code or invitation is None:
            self.refuse_as(knock, "busy", "the root cannot write the configuration now; try again")
            return
        is_last = len(invitation.joined) + 1 >= invitation.uses
        self._turn(invitation, On.LAST if is_last else On.RIGHT, knock, now)

    # Rows of the table

    def _turn(self, invitation: Invitation, on: On, knock: Knock | None, now: Now) -> None:
        cell = TABLE.get((State[invitation.state], on))
        if cell is not None:
            getattr(self, cell.do)(invitation, cell.then, knock, now)

    def admit(self, invitation: Invitation, then: State, knock: Knock, now: Now) -> None:
        """A machine has joined: make that durable, then welcome it."""
        self.context.counters.joined += 1
        joined = (*invitation.joined, knock.joined)
        self._keep(msgspec.structs.replace(invitation, state=then.name, joined=joined))
        about, ident = knock.join.about, invitation.ident.hex()
        self._welcome(invitation, knock, now)
        self.context.tell(MachineJoined(knock.join.node.hex(), about.name, invitation.role, ident, about.host))
        if then is State.USED:
            self.grace_until = now.mono + limits.GRACE_NS
            self.context.tell(InvitationEnded(ident, "used"))

    def admit_again(self, invitation: Invitation, then: State, knock: Knock, now: Now) -> None:
        """Its WELCOME was lost: send it again, unless the key was revoked since then."""
        bound = self.bindings.known.get(knock.join.node)
        if bound is not None and knock.curve in bound.curve:
            self._welcome(invitation, knock, now)
        else:
            self.refuse_as(knock, "revoked", "the key of this machine was revoked after it joined by this token")

    def count_wrong(self, invitation: Invitation, then: State, knock: Knock, now: Now) -> None:
        """Count a wrong proof, durably, so that a crash gives no further tries."""
        self._keep(msgspec.structs.replace(invitation, wrong=invitation.wrong + 1))
        self.refuse_proof(invitation, then, knock, now)

    def lock(self, invitation: Invitation, then: State, knock: Knock, now: Now) -> None:
        """Lock the invitation, and tell the operator."""
        self._keep(msgspec.structs.replace(invitation, wrong=invitation.wrong + 1, state=then.name))
        self.refuse_proof(invitation, then, knock, now)
        self.context.tell(InvitationLocked(invitation.ident.hex()))

    def end(self, invitation: Invitation, then: State, knock: None, now: Now) -> None:
        """Its time is over, or it was withdrawn."""
        self._keep(msgspec.structs.replace(invitation, state=then.name))
        self.context.tell(InvitationEnded(invitation.ident.hex(), then.name.lower()))

    def refuse(self, invitation: Invitation, then: State, knock: Knock, now: Now) -> None:
        """It has ended."""
        self.refuse_as(knock, *_ENDED[then])

    def refuse_proof(self, invitation: Invitation, then: State, knock: Knock, now: Now) -> None:
        """The sender of the proof does not have the secret, or has another key than it states."""
        self.refuse_as(knock, "bad-proof", "the proof is not that of this token")

    def refuse_as(self, knock: Knock, code: str, text: str) -> None:
        """Answer a JOIN with the reason of the refusal."""
        self.context.counters.refused += 1
        self.context.answer(knock.source, Refused(code, text))

    def _welcome(self, invitation: Invitation, knock: Knock, now: Now) -> None:
        """The WELCOME names the first nodes to know; the configuration brings the rest."""
        context = self.context
        own = binding_of(invitation, knock, self.bindings.known.get(knock.join.node), now)
        keys = {knock.join.node.hex(): own} | self.bindings.leaders()
        welcome = Welcome(
            fabric=context.settings.fabric,
            roles=(invitation.role,),
            name=knock.join.about.name,
            parents=(context.settings.endpoint,),
            keys=keys,
            root=context.node.hex(),
            beacon_key=context.beacon_key,
        )
        context.answer(knock.source, welcome)

    def _keep(self, invitation: Invitation) -> None:
        self._put(invitation)
        self.context.keep(to_record(invitation))

    def _put(self, invitation: Invitation) -> None:
        """Keep it; a new one replaces the oldest that has ended."""
        if invitation.ident not in self.kept and len(self.kept) >= limits.INVITATIONS_MAX:
            ended = self._oldest_ended()
            if ended is not None:
                del self.kept[ended]
        self.kept[invitation.ident] = invitation


def binding_of(invitation: Invitation, knock: Knock, before: Binding | None, now: Now) -> Binding:
    """The binding of a machine; a service may register what its invitation was for.

    A machine that was known before keeps its keys, since it may be changing from one to the other.
    """
    names = (invitation.names,) if invitation.role in ("service", "reader") and invitation.names != "*" else ()
    return Binding(
        curve=(knock.curve,) if before is None else before.curve,
        name=knock.join.about.name,
        roles=(invitation.role,),
        names=names,
        host=knock.join.about.host,
        until=until_of(now, before),
        renew=before is not None and before.renew,
    )


def _shown(each: Invitation) -> Shown:
    return Shown(
        ident=each.ident.hex(),
        state=each.state,
        role=each.role,
        uses=each.uses,
        joined=tuple(one.name for one in each.joined),
        names=each.names,
        expires_at=each.expires_at,
        wrong=each.wrong,
    )
