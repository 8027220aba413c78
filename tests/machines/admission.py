"""The story of those who want in (SEC-022 to SEC-025)."""

from typing import Any

from tests.enrolment import net as enrolment
from tests.machines.bag import Bag, Bagged
from weft.base.now import MILLISECOND, SECOND
from weft.cores.enrolment import messages as told
from weft.cores.enrolment.core import Enrolment

MINUTE = 60 * SECOND
HALF_S = 46 * 24 * 3_600
"""Of what a binding lasts, and a day."""
DEATHS = ("", "before", "behind")


class EnrolmentStory(Bagged):
    """A root, two machines with tokens and a thief: who is let in is known, by one key, and who was revoked is not (SEC-022, SEC-025)."""

    names = ("root", "a", "b", "thief")

    def __init__(self, seed: int) -> None:
        self.net = enrolment.Net(seed, (2, 300, 2_000)[seed % 3] * MILLISECOND)
        self.bag = Bag(
            self.net.heap,
            enrolment.line_of,
            lambda entry: entry[2](),
            lambda entry, after_ns: self.net.at(self.net.mono + after_ns, entry[2]),
        )
        self._invite_two(None)
        self.net.run(1)
        self.net.newcomers[0].come()
        self.net.run(5)

    def order(self, order: Any) -> None:
        self.net.root.order(order)

    def advance(self, span_s: float) -> None:
        self.net.run(span_s)

    def write(self, name: str, number: int) -> None:
        """At the root somebody invites or revokes; at another machine somebody joins, or changes its key."""
        if name != "root":
            newcomer = self.net.newcomers[self.names.index(name) - 1]
            newcomer.wipe() if number == 9 else newcomer.come()
        elif self.net.root.core is not None:
            _AT_ROOT[number](self, self.net.root.core)

    def _invite(self, _: Any) -> None:
        self.order(told.Invite(1, "sensor", 1, 15 * MINUTE, "*"))

    def _invite_shortly(self, _: Any) -> None:
        self.order(told.Invite(1, "sensor", 1, MINUTE, "*"))

    def _invite_two(self, _: Any) -> None:
        self.order(told.Invite(1, "collector", 2, 15 * MINUTE, "*"))

    def _withdraw(self, core: Enrolment) -> None:
        self.order(told.Withdraw(1, next(reversed(core.invitations.kept), b"").hex()))

    def _revoke(self, core: Enrolment) -> None:
        self.order(told.RevokeKey(1, "b"))

    def _revoke_late(self, core: Enrolment) -> None:
        """All stands still for half of the time of the bindings, and this is heard first."""
        if core.bindings.named("a"):
            self.net.mono += HALF_S * SECOND
            self.order(told.RevokeKey(1, "a"))

    def _rotate(self, core: Enrolment) -> None:
        self.order(told.RotateKey(1, "a"))

    def _refuse(self, core: Enrolment) -> None:
        """The configuration cannot be written, or can again."""
        self.net.root.writes_are = enrolment.BUSY - self.net.root.writes_are

    def cut(self, name: str) -> None:
        self.net.cut.add(name)

    def heal(self) -> None:
        self.net.cut.clear()

    def crash(self, name: str, how: int) -> None:
        machine = self.net.machines[name]
        if machine is self.net.root and how and machine.core is not None:
            self.net.root.dies = DEATHS[how]
        elif machine.core is not None:
            machine.crash()

    def start(self, name: str) -> None:
        machine = self.net.machines[name]
        if machine.core is None and (machine is self.net.root or getattr(machine, "is_in", False)):
            machine.start()

    def check(self) -> None:
        wrong = self.net.check()
        assert [] == wrong, wrong

    def rest(self) -> None:
        """Who was let in is known by one key, and knows all others, unless it was revoked."""
        self.heal()
        self.net.root.dies, self.net.root.writes_are = "", 0
        for name in self.names:
            self.start(name)
        self.net.run(400)
        self.check()
        wrong = self.net.unsettled()
        assert [] == wrong, wrong


_AT_ROOT = (
    EnrolmentStory._invite,
    EnrolmentStory._invite,
    EnrolmentStory._invite_shortly,
    EnrolmentStory._invite_two,
    EnrolmentStory._withdraw,
    EnrolmentStory._revoke,
    EnrolmentStory._revoke,
    EnrolmentStory._revoke_late,
    EnrolmentStory._rotate,
    EnrolmentStory._refuse,
)
"""By number."""
