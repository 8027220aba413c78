"""What the machine of enrolment has found (tests/machines/admission.py): each stays as a test."""

import pytest

from tests.enrolment.test_enrolment import MACHINE, MINUTE, OTHER_KEY, Root, code_of, works
from tests.enrolment.test_rotation import NEXT, OLD, binding_of
from weft.base.effects import Reply
from weft.base.keys import binding_key
from weft.base.now import SECOND
from weft.cores.enrolment import messages as told
from weft.wire.z85 import to_z85


@pytest.mark.proves("SEC-025", part="a root renews what has half of its 90 days left, and nothing that was revoked")
def test_a_key_that_was_revoked_in_the_turn_in_which_it_was_due_came_back_by_its_renewal() -> None:
    root = Root()
    root.join(root.invite())
    root._pass_to(root.now.mono + 46 * 24 * 60 * MINUTE)
    root.is_holding = True
    root.order(told.RevokeKey(9, "pi7"))
    root.write()
    root.advance(MINUTE)
    assert b"" == root.pairs[binding_key(MACHINE)]


def test_a_revocation_that_cannot_be_written_leaves_the_key_known() -> None:
    root = Root()
    root.join(root.invite())
    root.writes_are = 5
    assert ["busy"] == [each.answer.code for each in root.order(told.RevokeKey(9, "pi7")) if isinstance(each, Reply)]
    root.writes_are = 0
    done = root.order(told.RevokeKey(10, "pi7"))
    assert [told.KeysRevoked(MACHINE.hex(), "pi7")] == [each.answer for each in done if isinstance(each, Reply)]


def test_a_machine_that_was_revoked_was_welcomed_again_by_the_token_of_its_first_time() -> None:
    root = Root()
    ident = root.invite()
    root.join(ident)
    root.order(told.RevokeKey(9, "pi7"))
    assert "revoked" == code_of(root.join(ident))
    assert "Welcome" == code_of(root.join(root.invite()))


def test_whoever_lost_its_welcome_by_a_crash_of_the_root_found_no_door() -> None:
    root = Root()
    ident = root.invite()
    root.join(ident)
    root.start()
    assert ["OpenDoor"] == works(root.done)
    assert "Welcome" == code_of(root.join(ident))
    root.advance(30 * SECOND)
    assert ["OpenDoor", "CloseDoor"] == works(root.done)
    root.advance(15 * MINUTE)
    root.start()
    assert [] == works(root.done)


@pytest.mark.parametrize("is_asked", [False, True])
def test_who_joined_again_with_its_old_key_before_it_had_said_that_it_took_the_next_one_lost_both(
    is_asked: bool,
) -> None:
    root = Root()
    root.join(root.invite())
    root.order(told.HearKey(MACHINE, NEXT, is_taken=False))
    if is_asked:
        root.order(told.RotateKey(9, "pi7"))
    welcome = root.join(root.invite(role="collector"), name="pi8")
    bound = binding_of(root, MACHINE)
    assert ((OLD, NEXT), "pi8", ("collector",), is_asked) == (bound.curve, bound.name, bound.roles, bound.renew)
    assert bound == welcome.keys[MACHINE.hex()]
    root.order(told.HearKey(MACHINE, NEXT, is_taken=True))
    assert (NEXT,) == binding_of(root, MACHINE).curve


@pytest.mark.proves("SEC-025", part="a key that was offered before a revocation is not let in after it")
def test_a_key_that_a_machine_had_offered_before_it_was_revoked_came_in_after_it_had_joined_again() -> None:
    root = Root()
    root.join(root.invite())
    root.order(told.RevokeKey(9, "pi7"))
    root.join(root.invite(), key=OTHER_KEY)
    root.order(told.HearKey(MACHINE, NEXT, is_taken=False, by=OLD))
    assert ((to_z85(OTHER_KEY),), 1) == (binding_of(root, MACHINE).curve, root.core.counters.offers_refused)
    root.order(told.HearKey(MACHINE, NEXT, is_taken=False, by=to_z85(OTHER_KEY)))
    assert (to_z85(OTHER_KEY), NEXT) == binding_of(root, MACHINE).curve
