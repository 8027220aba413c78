"""Enrolment on one node: the root admits machines, and maintains the list of keys (SEC-020 to SEC-025)."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from weft.base.chance import Chance
from weft.base.effects import Effect, SendFailed, Source
from weft.base.errors import OurFault
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry
from weft.cores.enrolment import messages
from weft.cores.enrolment.bindings import Bindings
from weft.cores.enrolment.context import Context
from weft.cores.enrolment.invitations import Invitations
from weft.cores.enrolment.memory import Invitation, from_record
from weft.cores.enrolment.messages import CloseDoor, EnrolmentSettings, Invited, OpenDoor
from weft.cores.enrolment.rotation import Rotation
from weft.cores.kit.timers import earliest
from weft.wire.token import MINUTE_NS


class Enrolment:
    """The enrolment core: admission, and known keys."""

    name = "enrolment"

    def __init__(self, settings: EnrolmentSettings, node: bytes, secret: bytes, chance: Chance) -> None:
        self.context = Context(settings, node, secret)
        self.budget = self.context.budget
        self.counters = self.context.counters
        self.bindings = Bindings(self.context)
        self.invitations = Invitations(self.context, self.bindings, chance)
        self.rotation = Rotation(self.context, self.bindings)
        self.port = 0
        """Port of the open door (the socket for JOINs); 0: it is closed."""
        self._is_door_asked = False
        self._waiting: list[tuple[int, Invitation]] = []
        """Invite orders that are answered when the door is open."""
        self._due: int | None = None

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Restore the invitations; bindings come with the configuration."""
        for _, record in entries:
            if isinstance(record, CoreRecord) and record.core == self.name:
                self.invitations.restore(from_record(record), now)

    def condense(self) -> Iterable[CoreRecord]:
        return self.invitations.condense()

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """A message of a machine that wants to join; PeerError `no-key`."""
        self.invitations.hear(message, source, now)
        self._look(now)

    def command(self, order: Any, now: Now) -> None:
        """Obey an order of `messages`; OurFault for any other."""
        obey = _OBEY.get(type(order))
        if obey is None:
            raise OurFault(f"enrolment knows no order {type(order).__name__}")
        obey(self, order, now)
        self._look(now)

    def wake(self, now: Now) -> None:
        self._look(now)

    def deadline(self) -> int | None:
        return self._due

    def effects(self) -> list[Effect]:
        return self.context.take()

    def _look(self, now: Now) -> None:
        """Do what is due, and open or close the door as needed."""
        self.invitations.expire(now)
        if self.bindings.look_at is not None and now.mono >= self.bindings.look_at:
            self.bindings.look(now)
        if self.rotation.look_at is not None and now.mono >= self.rotation.look_at:
            self.rotation.look(now)
        is_wanted = self.context.can_invite and self.invitations.wants_door()
        if is_wanted and not self._is_door_asked:
            self.context.perform(OpenDoor())
        elif self._is_door_asked and not is_wanted:
            self.port = 0
            self.context.perform(CloseDoor())
        self._is_door_asked = is_wanted
        self._due = earliest(self.invitations.deadline(now), self.bindings.look_at, self.rotation.look_at)

    def _equip(self, order: messages.Equip, now: Now) -> None:
        self.context.curve, self.context.beacon_key = order.curve, order.beacon_key
        self.rotation.following = order.following
        self.bindings.look_at = self.rotation.look_at = now.mono

    def _take_root(self, order: messages.TakeRoot, now: Now) -> None:
        self.context.is_root = not order.is_acting
        self.bindings.look_at = self.rotation.look_at = now.mono

    def _step_down(self, order: messages.StepDown, now: Now) -> None:
        self.context.is_root = False

    def _learn(self, order: messages.LearnPairs, now: Now) -> None:
        self.bindings.learn(order.pairs, now)
        self.rotation.learn(order.number, now)

    def _written(self, order: messages.BindingWritten, now: Now) -> None:
        self.context.written(order.ticket, order.code, now)

    def _invite(self, order: messages.Invite, now: Now) -> None:
        made = self.invitations.invite(order, now)
        if made is None:
            return
        self.bindings.write_own(now)
        if self.port:
            self._tell_invited(order.ticket, made)
        else:
            self._waiting.append((order.ticket, made))

    def _door_is(self, order: messages.DoorIs, now: Now) -> None:
        """A token is given out only once the door is open.

        If it cannot be opened, the waiting invitations are withdrawn.
        """
        self.port = order.port
        waiting, self._waiting = self._waiting, []
        for ticket, made in waiting:
            if order.port:
                self._tell_invited(ticket, made)
            else:
                self.invitations.cancel(made.ident, now)
                self.context.refuse(ticket, "no-door", f"the door cannot be opened: {order.why}")

    def _tell_invited(self, ticket: int, made: Invitation) -> None:
        minutes = made.expires_at // MINUTE_NS
        self.context.reply(ticket, Invited(made.ident.hex(), made.role, made.uses, made.names, minutes, self.port))

    def _listen(self, order: messages.Listen, now: Now) -> None:
        self.context.perform(messages.ChangeAddress(order.ticket, order.host))

    def _address_is(self, order: messages.AddressIs, now: Now) -> None:
        if order.why:
            self.context.refuse(order.ticket, "bad-address", order.why)
        else:
            self.context.reply(order.ticket, messages.Listening(order.host, order.starts))

    def _withdraw(self, order: messages.Withdraw, now: Now) -> None:
        self.invitations.withdraw(order, now)

    def _show_invitations(self, order: messages.ShowInvitations, now: Now) -> None:
        self.invitations.show(order)

    def _show_keys(self, order: messages.ShowKeys, now: Now) -> None:
        self.bindings.show(order, self.rotation.missing)

    def _revoke_key(self, order: messages.RevokeKey, now: Now) -> None:
        self.bindings.revoke(order, now)

    def _rotate_key(self, order: messages.RotateKey, now: Now) -> None:
        self.rotation.rotate(order, now)

    def _key_made(self, order: messages.KeyMade, now: Now) -> None:
        self.rotation.made(order, now)

    def _note_applied(self, order: messages.NoteApplied, now: Now) -> None:
        self.rotation.note_applied(order, now)

    def _hear_key(self, order: messages.HearKey, now: Now) -> None:
        self.rotation.hear(order, now)

    def _failed(self, order: SendFailed, now: Now) -> None:
        """Nothing to do: a machine that has gone asks again."""


_OBEY: Final[dict[type, Callable[[Enrolment, Any, Now], None]]] = {
    messages.Equip: Enrolment._equip,
    messages.TakeRoot: Enrolment._take_root,
    messages.StepDown: Enrolment._step_down,
    messages.LearnPairs: Enrolment._learn,
    messages.BindingWritten: Enrolment._written,
    messages.DoorIs: Enrolment._door_is,
    messages.Listen: Enrolment._listen,
    messages.AddressIs: Enrolment._address_is,
    messages.Invite: Enrolment._invite,
    messages.Withdraw: Enrolment._withdraw,
    messages.ShowInvitations: Enrolment._show_invitations,
    messages.ShowKeys: Enrolment._show_keys,
    messages.RevokeKey: Enrolment._revoke_key,
    messages.RotateKey: Enrolment._rotate_key,
    messages.KeyMade: Enrolment._key_made,
    messages.NoteApplied: Enrolment._note_applied,
    messages.HearKey: Enrolment._hear_key,
    SendFailed: Enrolment._failed,
}
