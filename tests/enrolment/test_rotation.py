"""How a node comes to another key: what it does by what its binding says, whom it waits for, and what a root refuses to write."""

from typing import Any

import pytest

from tests.enrolment.test_enrolment import (
    CLIENT_KEY,
    MACHINE,
    MACHINE_SECRET,
    OTHER,
    OTHER_KEY,
    ROOT,
    SERVER_KEY,
    SETTINGS,
    START,
    Root,
    code_of,
)
from weft.base.chance import Chance
from weft.base.effects import Perform, Reply, Tell
from weft.base.keys import Binding, binding_key, decode_binding, encode_binding
from weft.base.now import SECOND, Now
from weft.cores.enrolment import messages as told
from weft.cores.enrolment.core import Enrolment
from weft.wire.z85 import to_z85

OLD, NEXT = to_z85(CLIENT_KEY), to_z85(bytes(range(96, 128)))
OWN = to_z85(SERVER_KEY)


class Machine:
    """A node that is no root: it hears its binding, and does what it wants done."""

    def __init__(self, curve: str = OLD, following: str = "") -> None:
        self.now = START
        self.core = Enrolment(SETTINGS, MACHINE, MACHINE_SECRET, Chance("machine"))
        self.done: list[Any] = []
        self.order(told.Equip(curve, "", following))

    def order(self, order: Any) -> list[Any]:
        self.core.command(order, self.now)
        return self.take()

    def take(self) -> list[Any]:
        kinds = {Perform: "work", Tell: "event", Reply: "answer"}
        effects = self.core.effects()
        return [getattr(each, kinds[type(each)]) for each in effects if type(each) in kinds]

    def hear(self, *curve: str, renew: bool = False) -> list[Any]:
        binding = Binding(curve=curve, name="pi7", roles=("sensor",), renew=renew)
        return self.order(told.LearnPairs(((binding_key(MACHINE), encode_binding(binding)),), 7))

    def advance(self, seconds: float) -> list[Any]:
        self.now = Now(self.now.mono + int(seconds * SECOND), self.now.wall + int(seconds * SECOND))
        self.core.wake(self.now)
        return self.take()


@pytest.mark.proves(
    "SEC-024", part="a node makes another key where its binding asks for one, offers it, takes it and says so"
)
def test_a_node_that_is_asked_to_makes_a_key_offers_it_and_takes_it_when_its_binding_has_it() -> None:
    machine = Machine()
    assert [] == machine.hear(OLD)
    assert [told.MakeKey()] == machine.hear(OLD, renew=True)
    assert [told.KeyOffered(NEXT, OLD)] == machine.order(told.KeyMade(NEXT))
    assert [] == machine.advance(59)
    assert [told.KeyOffered(NEXT, OLD)] == machine.advance(
        1
    )  # it may have come to a root that only acts in another's stead
    assert [] == machine.hear(OLD, NEXT)
    assert [] == machine.advance(2)
    assert [told.SwitchKey()] == machine.advance(1)
    assert [] == machine.hear(OLD, NEXT)
    again = Machine(NEXT)
    assert [told.KeyTaken(NEXT)] == again.hear(OLD, NEXT)
    assert [] == again.hear(NEXT)
    assert [] == again.advance(3_600)


def test_a_node_that_crashed_goes_on_where_it_was() -> None:
    assert [told.KeyOffered(NEXT, OLD)] == Machine(OLD, NEXT).hear(OLD)
    assert [told.KeyOffered(NEXT, OLD)] == Machine(OLD, NEXT).hear(OLD, renew=True)
    crashed = Machine(OLD, NEXT)
    assert [] == crashed.hear(OLD, NEXT)
    assert [told.SwitchKey()] == crashed.advance(3)


def test_a_node_is_asked_by_its_own_people_and_says_what_it_could_not_do() -> None:
    machine = Machine()
    assert ["not-found"] == [each.code for each in machine.order(told.RotateKey(3))]
    machine.hear(OLD)
    assert [told.MakeKey()] == machine.order(told.RotateKey(3))
    assert [told.EnrolmentRefused("storage-failed", "no room")] == machine.order(told.KeyMade("", "no room"))
    machine.order(told.RotateKey(4))
    begun = told.RotationBegun(MACHINE.hex(), "pi7", OLD)
    assert [begun, told.KeyOffered(NEXT, OLD)] == machine.order(told.KeyMade(NEXT))
    root = Binding(curve=(OWN,), name="root2", roles=("collector",))
    machine.order(told.LearnPairs(((binding_key(ROOT), encode_binding(root)),)))
    assert ["not-root"] == [e.code for e in machine.order(told.RotateKey(5, "root2")) if hasattr(e, "code")]


def binding_of(root: Root, node: bytes) -> Binding:
    return decode_binding(root.pairs[binding_key(node)])


def test_a_root_writes_what_its_nodes_offer_and_takes_the_old_key_out() -> None:
    root = Root()
    root.join(root.invite())
    root.order(told.RotateKey(9, "pi7"))
    assert binding_of(root, MACHINE).renew
    root.order(told.HearKey(MACHINE, NEXT, is_taken=False))
    assert ((OLD, NEXT), False) == (binding_of(root, MACHINE).curve, binding_of(root, MACHINE).renew)
    root.order(told.HearKey(MACHINE, OLD, is_taken=True))
    assert (OLD, NEXT) == binding_of(root, MACHINE).curve
    root.order(told.HearKey(MACHINE, NEXT, is_taken=True))
    assert (NEXT,) == binding_of(root, MACHINE).curve


def set_clock(root: Root, seconds: int) -> None:
    root.now = root.now._replace(wall=root.now.wall + seconds * SECOND)


@pytest.mark.proves("SEC-025", part="what a root writes of a node counts everywhere, also where its clock was set back")
def test_of_a_root_whose_clock_was_set_back_every_binding_still_counts_for_later_than_the_one_before() -> None:
    """Whoever had joined before, believed what it was told then: the next key of a node or of the root opened no door of theirs."""
    root = Root()
    root.join(root.invite())
    ends = [binding_of(root, MACHINE).until]
    set_clock(root, -3_600)
    root.order(told.HearKey(MACHINE, NEXT, is_taken=False))
    ends.append(binding_of(root, MACHINE).until)
    root.order(told.HearKey(MACHINE, NEXT, is_taken=True))
    ends.append(binding_of(root, MACHINE).until)
    assert sorted(set(ends)) == ends
    before = binding_of(root, ROOT).until
    root.order(told.RotateKey(9))
    root.order(told.KeyMade(to_z85(OTHER_KEY)))
    assert binding_of(root, ROOT).until > before
    before = binding_of(root, ROOT).until
    root.order(told.Equip(to_z85(bytes(range(1, 33))), "5e" * 32))
    assert binding_of(root, ROOT).until > before


@pytest.mark.proves("SEC-024", part="a key that another has is refused, counted, and changes nothing")
def test_a_node_cannot_offer_the_key_of_another() -> None:
    root = Root()
    root.join(root.invite())
    before = dict(root.pairs)
    root.order(told.HearKey(MACHINE, OWN, is_taken=False))
    assert (before, 1) == (root.pairs, root.core.counters.offers_refused)


def test_keys_of_who_was_revoked_or_never_known_are_not_written_and_offers_have_a_rate() -> None:
    root = Root()
    root.join(root.invite())
    root.order(told.RevokeKey(9, "pi7"))
    before = dict(root.pairs)
    for node in (MACHINE, OTHER):
        root.order(told.HearKey(node, NEXT, is_taken=False))
    assert before == root.pairs
    ident = root.invite()
    root.join(ident)
    root.order(told.HearKey(MACHINE, NEXT, is_taken=False))
    root.order(told.HearKey(MACHINE, to_z85(OTHER_KEY), is_taken=False))
    assert (OLD, NEXT) == binding_of(root, MACHINE).curve


def _rotating() -> Root:
    """A root whose own next key is in its binding, with one machine that follows it."""
    root = Root()
    root.join(root.invite())
    done = root.order(told.RotateKey(9))
    assert [told.MakeKey()] == [each.work for each in done if isinstance(each, Perform)]
    root.order(told.KeyMade(NEXT))
    assert (OWN, NEXT) == binding_of(root, ROOT).curve
    root.done.clear()
    return root


def works(root: Root) -> list[Any]:
    return [each.work for each in root.done if isinstance(each, Perform) and isinstance(each.work, told.SwitchKey)]


def keys_shown(root: Root) -> dict[str, tuple[str, ...]]:
    shown = next(each.answer for each in root.order(told.ShowKeys(3)) if isinstance(each, Reply))
    return {each.name: each.waits_for for each in shown.keys}


@pytest.mark.proves("SEC-054", part="a root waits with its own key for every node that has not heard of the next one")
def test_a_root_takes_its_next_key_when_every_node_has_it() -> None:
    root = _rotating()
    root.advance(60 * SECOND)
    assert ([], {"root": ("pi7",), "pi7": ()}) == (works(root), keys_shown(root))
    root.order(told.NoteApplied(MACHINE, root.number - 1))
    assert [] == works(root)
    root.order(told.NoteApplied(MACHINE, root.number))
    assert [told.SwitchKey()] == works(root)


def test_a_root_that_is_told_to_waits_for_nobody() -> None:
    root = _rotating()
    root.order(told.RotateKey(10, "", at_once=True))
    assert [told.SwitchKey()] == works(root)


def test_a_root_that_crashed_while_it_waited_asks_everybody_anew() -> None:
    root = _rotating()
    root.order(told.NoteApplied(MACHINE, root.number - 1))
    root.start()
    root.order(told.Equip(OWN, "5e" * 32, NEXT))
    assert [binding_key(ROOT)] == [each.key for each in root.told(told.BindingWanted)]
    root.advance(60 * SECOND)
    assert [] == works(root)
    root.order(told.NoteApplied(MACHINE, root.number))
    assert [told.SwitchKey()] == works(root)


def test_a_machine_that_was_revoked_joins_with_another_key_by_another_token() -> None:
    root = Root()
    root.join(root.invite())
    root.order(told.RevokeKey(9, MACHINE.hex()))
    assert "Welcome" == code_of(root.join(root.invite(), MACHINE, OTHER_KEY))
