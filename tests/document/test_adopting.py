"""What was stranded with a dead laptop is taken on by another one, once; no missing number is ever filled (GSP-040, GSP-041)."""

import pytest

from tests.document.logs import body
from tests.document.net import Machine, Net
from weft.base.now import MILLISECOND, SECOND
from weft.cores.document.messages import LogStranded
from weft.wire.document.operations import adopted, parse, uuid_of, uuid_text

DEAD = bytes.fromhex("c0000000000040008000000000000003")


def stranded(*, alone: bool = False) -> tuple[Net, Machine, Machine, Machine]:
    """Carol's second entry reached nobody, her third one alice alone; then she died."""
    net = Net(3)
    alice = net.machine("alice")
    bob = net.machine("bob", peers=[alice])
    carol = net.machine("carol", peers=[alice, bob])
    net.until(net.is_mesh, 10 * SECOND)
    enter(net, carol, 1)
    net.until(net.is_equal, 5 * SECOND)
    net.part([carol], [alice, bob], one_way=True)
    enter(net, carol, 2)
    net.pass_time(20 * MILLISECOND)
    net.heal()
    net.part([carol], [bob])
    enter(net, carol, 3)
    net.until(lambda: alice.up.log.has_held, SECOND)
    net.crash(carol)
    net.heal()
    if alone:
        net.crash(bob)
    return net, alice, bob, carol


def enter(net: Net, machine: Machine, number: int) -> None:
    answer = net.edit(
        machine, "add", {"period": "1", "jam": str(number)}, xml=f'<pass team="home" points="{number}"/>', by="Carol"
    )
    assert not answer.code


def adopted_by(*machines: Machine) -> list[int]:
    return [machine.up.context.counters["log.adopted"] for machine in machines]


@pytest.mark.proves("GSP-040", "GSP-041")
def test_what_was_stranded_is_adopted_once_and_no_number_is_filled() -> None:
    net, alice, bob, carol = stranded()
    net.pass_time(55 * SECOND)
    assert [0, 0] == adopted_by(alice, bob)
    net.pass_time(60 * SECOND)
    assert [1, 0] == adopted_by(alice, bob), "bob has never heard of it"
    net.until(net.is_equal, 5 * SECOND)
    latest = alice.up.log.latest(alice.uuid)
    copy = parse(alice.up.log.body(alice.uuid, latest))
    assert (carol.uuid, 3) == copy.origin
    assert ("Carol", {"period": "1", "jam": "3"}) == (copy.by, copy.reference)
    assert [1, 1] == [machine.up.log.latest(carol.uuid) for machine in (alice, bob)]
    for machine in (alice, bob):
        assert machine.up.engine.has_copy((carol.uuid, 3))
    before = alice.up.log.count
    net.pass_time(120 * SECOND)
    assert before == alice.up.log.count, "once"
    assert [] == net.faults


@pytest.mark.proves("GSP-040", "GSP-041")
def test_who_comes_back_has_the_originals_and_everything_counts_once() -> None:
    net, alice, bob, carol = stranded()
    net.pass_time(120 * SECOND)
    assert [1, 0] == adopted_by(alice, bob)
    net.start(carol, peers=[alice, bob])
    net.until(lambda: net.is_mesh() and net.is_equal(), 30 * SECOND)
    text = str(net.ask(bob, "show").body)
    assert [1, 1, 1] == [text.count(f'points="{number}"') for number in (1, 2, 3)]
    net.judge()


@pytest.mark.proves("GSP-040")
def test_who_is_there_or_known_to_others_is_not_adopted_and_who_is_alone_does_it_himself() -> None:
    net, alice, _, _ = stranded(alone=True)
    net.pass_time(120 * SECOND)
    assert [1] == adopted_by(alice)


@pytest.mark.proves("GSP-040")
def test_of_two_who_hold_it_the_first_adopts_it() -> None:
    net = Net(5)
    alice = net.machine("alice")
    bob = net.machine("bob", peers=[alice])
    net.until(net.is_mesh, 10 * SECOND)
    for machine in (alice, bob):
        machine.up.context.begin(net.at(machine))
        machine.up.log.take(body(DEAD, 2), DEAD)
        machine.up.log.take(b"<set path='b' source='%s' timestamp='1' sequence='3'>" % uuid_text(DEAD).encode(), DEAD)
        net._take(machine)
    net.pass_time(120 * SECOND)
    first, second = sorted((alice, bob), key=lambda machine: machine.uuid)
    assert [1, 0] == adopted_by(first, second)
    net.until(net.is_equal, 5 * SECOND)
    told = [(event.source, event.sequence, event.why) for event in first.told if isinstance(event, LogStranded)]
    assert [(DEAD, 3, "malformed")] == told


@pytest.mark.proves("GSP-040")
@pytest.mark.parametrize(
    ("original", "copy"),
    [
        (
            (
                '<?xml version="1.0"?><!-- > --><add period="1" jam=\'3\' x="a&gt;b" source="{dead}" timestamp=" 5.50" sequence="6"'
                ' crc32="00000000" by="Ann"><pass points="4"/></add>'
            ),
            (
                '<add period="1" jam="3" x="a&gt;b" source="{own}" timestamp=" 5.50" sequence="9" by="Ann" origsource="{dead}"'
                ' origsequence="6"><pass points="4"/></add>'
            ),
        ),
        (
            '<remove eid="q" source="{dead}" timestamp="1" sequence="6"/>',
            '<remove eid="q" source="{own}" timestamp="1" sequence="9" origsource="{dead}" origsequence="6"/>',
        ),
        (
            '<set path="b" source="{dead}" timestamp="1" sequence="6" origsource="{other}" origsequence="2">x</set>',
            '<set path="b" source="{own}" timestamp="1" sequence="9" origsource="{other}" origsequence="2">x</set>',
        ),
    ],
)
def test_a_copy_says_what_the_original_said_and_whose_it_was(original: str, copy: str) -> None:
    own, other = "a0000000-0000-4000-8000-000000000001", "b0000000-0000-4000-8000-000000000002"
    names = {"own": own, "other": other, "dead": uuid_text(DEAD)}
    source = uuid_of(own)
    assert source is not None
    assert copy.format(**names) == adopted(original.format(**names).encode(), source, 9).decode()
