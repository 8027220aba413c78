"""Bugs planted into whole sessions: for each there is a check that turns red by it, and green without.

Those of the fold alone are in `fold/test_canaries.py`.
"""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest

from tests.document import test_scale as scale
from tests.document.fold.test_canaries import (
    fold_in_arrival_order,
    key_without_effective_time,
    released_in_order_of_arrival,
)
from tests.document.net import CALM, Net, Weather
from tests.document.villain import Villain, strange_frames
from tests.document.witness import assert_all_is_the_same, assert_rest
from weft.base.effects import Persist, Send
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, SECOND
from weft.cores.document import log as logs
from weft.cores.document.answering import Answering
from weft.cores.document.asking import Asking
from weft.cores.document.context import Context
from weft.cores.document.gossip import HEARD, Gossip
from weft.cores.document.introductions import Introductions
from weft.cores.document.knowing import Knowing
from weft.cores.document.limits import DURABLE_NS
from weft.cores.document.log import Log
from weft.cores.document.memory import HeldKept, memory_of
from weft.cores.document.peers import Saying
from weft.cores.document.session import Session
from weft.cores.document.times import Times
from weft.wire.document import operations
from weft.wire.document.messages import Gsip, Progress, Xmsg

Patch = pytest.MonkeyPatch
UUID_OF: Final = operations.uuid_of

# Checks


def trio() -> Net:
    net = Net("canaries")
    first = net.machine()
    for number in (1, 2):
        net.machine(peers=[first], skew_ns=number * 600 * SECOND)
    net.until(net.is_mesh, 20 * SECOND)
    return net


def settle(net: Net) -> None:
    """At rest, all the same, nothing said too early or too often."""
    net.heal()
    net.weather = CALM
    net.until(lambda: net.is_mesh() and net.is_equal(), 120 * SECOND)
    net.judge()
    assert_all_is_the_same(net)
    assert_rest(net)


def two_write_while_the_cable_is_out() -> None:
    net = trio()
    one, *others = net.machines
    net.part([one], others)
    for number in range(6):
        net.edit(net.machines[number % 2], "set", {"path": "note"}, attributes={"value": str(number)}, force=True)
        net.pass_time(SECOND)
    settle(net)


def entries_under_loss() -> None:
    net = trio()
    net.weather = Weather(0.3, 0.1, MILLISECOND, 300 * MILLISECOND, in_order=False)
    for number in range(30):
        net.edit(net.machines[number % 3], "add", {"path": "note"}, text=f"{number} ", force=True)
        net.pass_time(100 * MILLISECOND)
    settle(net)


def a_villain_speaks() -> None:
    """What it has poured into one of three is in all of them, byte for byte; what it may not say is nowhere."""
    net = trio()
    for seed in range(4):
        villain = Villain(net, seed)
        target = net.machines[seed % 3]
        villain.join(target)
        villain.drop_some(target)
        villain.block(target)
        net.pass_time(SECOND)
        assert villain.sequence == target.up.log.latest(villain.uuid)
        villain.pour(target)
        villain.lie(target)
        net.pass_time(2 * SECOND)
        strange_frames(net, target)
        villain.leave(target)
        del net.ears[villain.endpoint]
    settle(net)


def villains_pour_much() -> None:
    """Whatever the fold can meet: three in turn, in each of many sessions."""
    for seed in range(25):
        net = Net(seed)
        node = net.machine()
        net.pass_time(MILLISECOND)
        villain = Villain(net, seed)
        villain.join(node)
        for _ in range(3):
            villain.pour(node, 15)
            net.pass_time(10 * MILLISECOND)
        assert_all_is_the_same(net)


def snapshots_of_what_has_holes() -> None:
    net = Net("holes")
    node = net.machine()
    net.pass_time(MILLISECOND)
    villain = Villain(net, 1)
    villain.join(node)
    for number in (1, 2, 4, 6):
        villain.say_operation(node, scale.body_of("a", number))
    net.pass_time(SECOND)
    net.condense(node)
    assert_all_is_the_same(net)


def many_join() -> None:
    net = scale.mesh_of(16)
    net.pass_time(10 * SECOND)
    assert (240, 240) == (net.said["Helo"], net.said["Bout"])
    assert net.said["PeerAt"] <= 240


def two_meet_over_a_slow_way() -> None:
    """Each answers what it takes for a question, and answers cross: they must die out."""
    net = Net("slow", weather=Weather(0.0, 0.3, 300 * MILLISECOND, SECOND))
    net.machine(peers=[net.machine()])
    net.pass_time(20 * SECOND)
    assert net.said["Helo"] + net.said["Bout"] <= 20


def one_enters_much_over_a_long_way_with_loss() -> None:
    """While an answer is on its way everything else comes beyond the same gap."""
    net = trio()
    net.weather = Weather(0.1, 0.0, 100 * MILLISECOND, 150 * MILLISECOND)
    net.said.clear()
    for number in range(200):
        net.edit(net.machines[0], "add", {"path": "note"}, text=f"{number} ")
        net.pass_time(10 * MILLISECOND)
    net.until(net.is_equal, 10 * SECOND)
    net.judge()
    assert net.said["Gsip"] <= 150


def sixteen_enter() -> None:
    load = scale.QUICK[1]
    net = scale.mesh_of(load.nodes)
    scale.enter(net, load)
    net.judge()


def somebody_comes_late() -> None:
    net, _ = scale.late_for(4_000)
    net.until(lambda: net.is_mesh() and net.is_equal(), 60 * SECOND)
    net.judge()


def an_old_disk_is_put_back() -> None:
    net = trio()
    first = net.machines[0]
    net.edit(first, "add", {"path": "note"}, text="before")
    net.pass_time(SECOND)
    uuid, disk = first.up.context.uuid, list(first.disk)
    net.edit(first, "add", {"path": "note"}, text="lost here")
    net.pass_time(SECOND)
    net.crash(first)
    first.disk, first.acked = disk, []
    net.start(first, net.machines[1:], uuid)
    net.until(net.is_mesh, 60 * SECOND)
    net.pass_time(SECOND)
    net.edit(first, "add", {"path": "note"}, text="after")
    net.pass_time(SECOND)
    assert uuid != first.up.context.uuid
    settle(net)


def grown_groups_merge() -> None:
    """Each group has a time of its own, and keeps it."""
    net = Net("times")
    one = net.machine()
    other = net.machine(skew_ns=600 * SECOND)
    for machine in (one, other):
        net.edit(machine, "add", {"path": "note"}, text=machine.name)
    net.machine(peers=[one, other], skew_ns=-600 * SECOND)
    settle(net)


# Bugs


def source_as_it_is_spelled(patch: Patch) -> None:
    plain = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

    def uuid_of(text: str) -> bytes | None:
        uuid = UUID_OF(text)
        return uuid if uuid is None or plain.fullmatch(text) else bytes(reversed(uuid))

    patch.setattr(operations, "uuid_of", uuid_of)


def gossip_of_the_highest(patch: Patch) -> None:
    effects = Session.effects

    def boasting(session: Session) -> list[Any]:
        return [
            Send(
                effect.channel,
                effect.peer,
                Gsip(tuple(Progress(one, session.log.highest(one)) for one, _ in said.entries)),
            )
            if isinstance(effect, Send) and isinstance(said := effect.message, Gsip)
            else effect
            for effect in effects(session)
        ]

    patch.setattr(Session, "effects", boasting)


def said_before_it_is_durable(patch: Patch) -> None:
    take = Context.take

    def late(context: Context) -> list[Any]:
        done = take(context)
        return sorted(done, key=lambda effect: isinstance(effect, Persist))

    patch.setattr(Context, "take", late)


def malformed_is_dropped(patch: Patch) -> None:
    def strict(body: bytes) -> operations.Operation:
        operation = operations.parse(body)
        if operation.inert == "malformed":
            raise PeerError("no-header", "malformed", body)
        return operation

    patch.setattr(logs, "parse", strict)


def doctype_is_accepted(patch: Patch) -> None:
    patch.setattr(logs, "parse", lambda body: operations.parse(re.sub(rb"^<!DOCTYPE.*?\]>", b"", body)))


def answers_are_not_paced(patch: Patch) -> None:
    answer = Answering.answer
    patch.setattr(Knowing, "has_room", lambda *_: True)
    patch.setattr(Answering, "answer", lambda self, knowing, source, upto: answer(self, knowing, source, upto, 1 << 30))
    patch.setattr("weft.cores.document.answering.ANSWER_MAX", 1 << 30)
    patch.setattr("weft.cores.document.answering.PACKED_ABOVE", 1 << 30)  # packs of this much still fit into a link


def asks_without_holding_off(patch: Patch) -> None:
    def ask(asking: Asking, source: bytes, via: Knowing, target: int) -> None:
        asking._say(source, asking._of(source, target), via)

    patch.setattr(Asking, "hearsay", ask)
    patch.setattr(Asking, "gap", ask)


def who_is_no_virgin_adopts(patch: Patch) -> None:
    compare = Times._compare

    def adopt(times: Times, *said: Any) -> None:
        times.is_virgin = True
        compare(times, *said)

    patch.setattr(Times, "_compare", adopt)


def who_was_introduced_is_introduced_again(patch: Patch) -> None:
    def introduce(introductions: Introductions, peer: Any) -> None:
        introductions._named.clear()
        introductions._introduce(peer)

    patch.setattr(Introductions, "introduce", introduce)


def bout_is_answered_always(patch: Patch) -> None:
    patch.setattr(Saying, "may_answer", lambda *_: True)


def an_old_identity_is_kept(patch: Patch) -> None:
    patch.setattr(Log, "_change_identity", lambda *_: None)


def gossip_never_ends(patch: Patch) -> None:
    patch.setattr(Gossip, "_is_news", lambda *_: True)


def what_others_said_is_not_kept(patch: Patch) -> None:
    patch.setattr(Context, "keep", lambda *_: None)


def others_are_kept_late(patch: Patch) -> None:
    take = Context.take

    def slow(context: Context) -> list[Any]:
        return [
            Persist(effect.records, 10 * DURABLE_NS) if isinstance(effect, Persist) and effect.within_ns else effect
            for effect in take(context)
        ]

    patch.setattr(Context, "take", slow)


def what_others_just_said_is_said_again(patch: Patch) -> None:
    patch.setattr(Answering, "_last", lambda answering, _, source: answering._log.latest(source))


def snapshots_without_what_is_held(patch: Patch) -> None:
    condense = Log.condense

    def bare(log: Log) -> Any:
        return (record for record in condense(log) if not isinstance(memory_of(record), HeldKept))

    patch.setattr(Log, "condense", bare)


def forwarded_beyond_a_gap(patch: Patch) -> None:
    """Whatever is heard goes on to all, at once."""
    hear = Gossip._hear_xmsg

    def flood(gossip: Gossip, knowing: Knowing, xmsg: Any) -> None:
        hear(gossip, knowing, xmsg)
        if gossip.log.held():
            gossip._answering.spread(xmsg.body)

    patch.setitem(HEARD, Xmsg, flood)


class Canary(NamedTuple):
    plant: Callable[[Patch], None]
    check: Callable[[], None]


CANARIES: Final = (
    Canary(fold_in_arrival_order, two_write_while_the_cable_is_out),
    Canary(key_without_effective_time, villains_pour_much),
    Canary(source_as_it_is_spelled, a_villain_speaks),
    Canary(released_in_order_of_arrival, villains_pour_much),
    Canary(gossip_of_the_highest, entries_under_loss),
    Canary(said_before_it_is_durable, two_write_while_the_cable_is_out),
    Canary(malformed_is_dropped, a_villain_speaks),
    Canary(doctype_is_accepted, a_villain_speaks),
    Canary(answers_are_not_paced, somebody_comes_late),
    Canary(asks_without_holding_off, one_enters_much_over_a_long_way_with_loss),
    Canary(who_is_no_virgin_adopts, grown_groups_merge),
    Canary(who_was_introduced_is_introduced_again, many_join),
    Canary(bout_is_answered_always, two_meet_over_a_slow_way),
    Canary(an_old_identity_is_kept, an_old_disk_is_put_back),
    Canary(gossip_never_ends, two_write_while_the_cable_is_out),
    Canary(what_others_said_is_not_kept, two_write_while_the_cable_is_out),
    Canary(others_are_kept_late, two_write_while_the_cable_is_out),
    Canary(forwarded_beyond_a_gap, entries_under_loss),
    Canary(what_others_just_said_is_said_again, sixteen_enter),
    Canary(snapshots_without_what_is_held, snapshots_of_what_has_holes),
)
CHECKS: Final = tuple(dict.fromkeys(canary.check for canary in CANARIES))


LONG = (answers_are_not_paced, what_others_just_said_is_said_again)
"""Their lives are long."""


@pytest.mark.prove("the same lives as with each bug")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_without_a_bug_each_check_is_green(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize(
    "canary",
    [pytest.param(one, marks=[pytest.mark.prove("a long life")] if one.plant in LONG else []) for one in CANARIES],
    ids=lambda canary: canary.plant.__name__,
)
def test_a_planted_bug_turns_its_check_red(canary: Canary, monkeypatch: Patch) -> None:
    canary.plant(monkeypatch)
    with pytest.raises(AssertionError):
        canary.check()
