"""Mail without a promise: up and down, waiting ten seconds at most, and one event for every order."""

from typing import Any

import pytest

from tests.carrier.rig import Machine, World
from tests.carrier.test_frames import LINES, frames_of
from tests.carrier.test_screen import sequences
from weft.base.effects import Persist, Source
from weft.base.errors import PeerError
from weft.base.mail import INBOX, OUTBOX, Mail, of_record, to_record
from weft.base.now import SECOND
from weft.base.records import CoreRecord, Stream, StreamRecord
from weft.cores.carrier import limits
from weft.cores.carrier.messages import (
    AssignParent,
    DismissParent,
    Hack,
    HoldBack,
    Hop,
    MailFailed,
    MailReached,
    MessageRefused,
    PostMail,
    Stop,
    Welcome,
)
from weft.cores.carrier.volatile import Heard, Letter
from weft.cores.carrier.volatile import Stream as Volatile
from weft.wire import hop
from weft.wire.carried import mail_item
from weft.wire.hop import HopItem

A = b"\x0a" * 16


def family() -> tuple[World, Machine, Machine, Machine]:
    """Root `r` above `a` and `b`."""
    world = World()
    root = world.root("r")
    a, b = world.sensor("a", "r"), world.sensor("b", "r")
    world.settle()
    for machine in (root, a, b):
        machine.said.clear()
    return world, root, a, b


def answers(machine: Machine) -> list[Any]:
    """What became of its orders."""
    return [event for event in machine.told if isinstance(event, MailReached | MailFailed)]


@pytest.mark.proves("CLI-003", "CHN-032")
def test_a_directive_leaves_in_the_bytes_of_the_vector() -> None:
    era, start = 115592396813959329, 115592396808061089
    at = 1763800002000000000
    sent = Mail(
        origin=A, era=start, sequence=8, type="demo.directive", frames=(b"hello",), to=("PARENTSOF",), depth=1, at=at
    )
    stream = Volatile(era)
    letter = Letter(*mail_item(sent, A), None)
    letter.number = 4
    stream.add(letter)
    taken = stream.take(b"p")
    assert taken is not None
    assert frames_of(LINES["h-hop-mem"]) == hop.encode(taken)


@pytest.mark.proves("CHN-030", "CHN-031", "CHN-032")
def test_mail_to_the_parent_is_acknowledged_without_a_disk() -> None:
    world, root, a, _ = family()
    disk = list(root.disk)
    sent = [a.send(frames=(b"one", b"two")), a.send(fmt="json")]
    world.settle()
    assert [MailReached(1, 1), MailReached(2, 1)] == answers(a)
    assert [True, True] == [record.attributes.pop("mem") for record in root.screened]
    assert sent == [
        Mail(**{name: getattr(mail, name) for name in mail.__struct_fields__} | {"via": ()})
        for mail in map(of_record, root.screened)
    ]
    assert disk == root.disk, "an inbox keeps nothing of it"
    hacks = root.heard_to_say(Hack)
    assert {a.era + 1} == {hack.era for hack in hacks} == {sent.era for sent in a.heard_to_say(Hop)}
    assert [] == a.outbox()


@pytest.mark.proves("CHN-030", "CHN-031", "CHN-032")
def test_mail_to_all_children_is_counted_when_the_last_one_has_answered() -> None:
    world, root, a, b = family()
    root.send(a.node, b.node, to=("CHILDRENOF",))
    root.send(b.node, to=("CHILDRENOF",))
    world.cut("b")
    world.advance(1)
    assert [] == answers(root)
    world.heal("b")
    world.advance(12)
    assert [MailReached(2, 1), MailReached(1, 2)] == sorted(answers(root), key=lambda event: event.count)
    assert ([1], [1, 2]) == (sequences(a.screened), sequences(b.screened))
    assert [(root.node,)] == [of_record(record).via for record in a.screened]


@pytest.mark.proves("CHN-031")
def test_what_has_no_link_waits_ten_seconds() -> None:
    world, root, a, b = family()
    world.cut("a", "b")
    world.advance(6)
    a.send()
    root.send(b.node, b"nobody".ljust(16))
    world.advance(9.9)
    assert [] == answers(a) + answers(root)
    world.advance(0.2)
    assert [MailFailed(1, "unreachable")] == answers(a) == answers(root)
    world.heal("a", "b")
    world.advance(10)
    assert [] == root.screened + b.screened
    assert {} == root.core.intake.dispatch.down


@pytest.mark.proves("CHN-031")
def test_what_waits_for_a_link_leaves_when_it_is_back_and_holes_are_taken() -> None:
    world, root, a, _ = family()
    world.cut("a")
    world.advance(6)
    a.send()
    world.advance(9)
    a.send()
    world.advance(3)
    world.heal("a")
    world.advance(6)
    assert [MailFailed(1, "unreachable"), MailReached(2, 1)] == answers(a)
    assert [2] == sequences(root.screened)


@pytest.mark.proves("CHN-030")
def test_some_children_have_it_and_some_have_not() -> None:
    world, root, a, b = family()
    world.cut("b")
    root.send(a.node, b.node)
    world.advance(11)
    assert [MailReached(1, 1, 1)] == answers(root)
    assert ([1], []) == (sequences(a.screened), sequences(b.screened))


@pytest.mark.proves("CHN-030")
def test_what_can_go_nowhere_says_so_at_once() -> None:
    world, root, a, _ = family()
    a.order(DismissParent())
    a.send()
    root.send()
    root.send(to=("DIRECT", "stranger"))
    root.send(a.node, exp=1)
    root.send(a.node, to=("CHILDRENOF", None, 0))
    root.send(a.node, frames=(bytes((1 << 20) + 1),))
    assert [MailFailed(1, "no-parent")] == answers(a)
    whys = ["no-parent", "no-route", "expired", "ttl", "too-big"]
    assert whys == [event.why for event in answers(root)]
    assert list(range(1, 6)) == [event.ticket for event in answers(root)]
    world.settle()
    assert [] == a.screened


def test_mail_that_expires_while_it_waits_says_so() -> None:
    world, root, a, _ = family()
    world.cut("a")
    root.send(a.node, exp=world.now.wall + 3 * SECOND)
    world.advance(4)
    assert [MailFailed(1, "expired")] == answers(root)


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VOLATILE_MAX", 3)
    world, _, a, _ = family()
    world.cut("a")
    for _ in range(5):
        a.send()
    assert [MailFailed(4, "overload"), MailFailed(5, "overload")] == answers(a)
    monkeypatch.setattr(limits, "VOLATILE_MAX", 10)
    monkeypatch.setattr(limits, "VOLATILE_BYTES_MAX", 1_000)
    a.send(frames=(bytes(1_000),))
    assert MailFailed(6, "overload") == answers(a)[-1]


@pytest.mark.proves("CHN-032")
def test_a_window_bounds_what_is_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HOP_WINDOW", 10)
    world, root, a, b = family()
    a.crash()
    world.advance(6)
    a.start()
    world.advance(3)
    for machine in (root, a):
        machine.said.clear()
    for _ in range(25):
        a.send()
        root.send(a.node, b.node)
    for machine, children in ((a, 1), (root, 2)):
        assert 10 * children == sum(len(sent.m) for sent in machine.heard_to_say(Hop))
    world.settle()
    for receiver in (a, b):
        assert list(range(1, 26)) == sequences(receiver.screened)
    assert list(range(1, 26)) == sequences(root.screened)
    assert 25 == len(answers(a)) == len(answers(root))


@pytest.mark.proves("CLI-004")
def test_long_words_and_many_frames_do_not_burst_a_multipart() -> None:
    world, root, a, _ = family()
    world.cut("a")
    via = tuple(bytes([n]) * 16 for n in range(60))
    for _ in range(90):
        a.send(frames=(b"x",) * 16, type="t" * 64, fmt="f" * 256, to=("K" * 32, "n" * 64, 255), via=via)
        root.send(a.node, frames=(bytes(90_000),), via=via, fmt="\u00fc" * 256)
    world.heal("a")
    world.advance(9)
    assert (90, 90) == (len(root.screened), len(a.screened))


@pytest.mark.proves("CHN-032")
def test_what_was_in_flight_goes_again_and_is_taken_once() -> None:
    world, root, a, _ = family()
    a.send()
    root.send(a.node)
    world.deliver()
    world.deliver()
    assert ([1], [1]) == (sequences(root.screened), sequences(a.screened))
    assert 2 == len(world.lose(0, 1))
    world.cut("a")
    world.heal("a")
    world.advance(9)
    assert [MailReached(1, 1)] == answers(a) == answers(root)
    assert ([1], [1]) == (sequences(root.screened), sequences(a.screened))


@pytest.mark.proves("CHN-038")
def test_a_welcome_says_where_the_stream_downward_goes_on() -> None:
    world, root, a, b = family()
    root.send(b.node)
    world.settle()
    world.cut("a")
    world.advance(6)
    root.send(a.node)
    root.send(b.node)
    world.advance(3)
    world.heal("a")
    world.advance(3)
    welcome = [message for message in root.said if isinstance(message, Welcome)][-1]
    assert (root.era, 2, 4) == (welcome.era, welcome.first, welcome.next)


@pytest.mark.proves("CHN-032")
def test_mail_in_flight_to_one_parent_is_not_given_to_another() -> None:
    world = World()
    p, q = world.root("p"), world.root("q")
    a = world.sensor("a", "p")
    world.settle()
    a.send()
    world.cut("a")
    a.send()
    world.heal("a")
    a.order(AssignParent("q", "q"))
    a.send()
    world.settle()
    assert [MailFailed(1, "unreachable"), MailFailed(2, "unreachable"), MailReached(3, 1)] == answers(a)
    assert ([], [3]) == (p.screened, sequences(q.screened))


def test_a_node_that_stops_answers_all_orders() -> None:
    _, root, a, _ = family()
    a.send()
    root.send(a.node, b"nobody".ljust(16))
    for machine in (a, root):
        machine.order(Stop())
        assert [MailFailed(1, "unreachable")] == answers(machine)
        assert machine.core.intake.dispatch.deadline() is None


@pytest.mark.proves("CHN-040")
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_full_node_takes_no_mail_and_goes_on_when_it_has_room(direction: str) -> None:
    world, root, a, _ = family()
    sender, receiver = (a, root) if direction == "up" else (root, a)
    nodes = () if direction == "up" else (a.node,)
    receiver.order(HoldBack(is_full=True))
    sender.send(*nodes)
    world.advance(1)
    sender.send(*nodes)
    world.advance(1)
    assert ([], []) == (receiver.screened, answers(sender))
    receiver.order(HoldBack(is_full=False))
    world.advance(1)
    assert [1, 2] == sequences(receiver.screened)
    assert [MailReached(1, 1), MailReached(2, 1)] == answers(sender)
    c = receiver.core.counters
    assert c.received == c.accepted + c.repeated + c.held_back


@pytest.mark.proves("CHN-033")
@pytest.mark.parametrize("direction", ["up", "down"])
def test_of_such_mail_an_inbox_keeps_nothing_and_everything_else_stands_above_the_answer(direction: str) -> None:
    world, root, a, _ = family()
    sender, receiver = (a, root) if direction == "up" else (root, a)
    memory = CoreRecord("chains", 1, b"")

    def judge(record: StreamRecord) -> list[Any]:
        assert record.attributes.pop("mem")
        mail = of_record(record)
        return [record, to_record(mail, int(Stream.MESSAGES), 0), to_record(mail, OUTBOX, 0), memory]

    receiver.judge = judge
    persisted = len(receiver.disk)
    receiver.dies_before = lambda effect: isinstance(effect, Persist)
    sender.send(*(() if direction == "up" else (a.node,)))
    world.settle()
    assert (False, [], persisted) == (receiver.is_up, answers(sender), len(receiver.disk))
    receiver.start()
    world.advance(3)
    assert [MailReached(1, 1)] == answers(sender)
    kept = [record for _, record in receiver.disk if isinstance(record, StreamRecord) or record == memory]
    streams = [getattr(record, "stream", 0) for record in kept]
    assert INBOX not in streams
    assert [Stream.MESSAGES, OUTBOX, 0] == streams or direction == "down", "below, it has gone up already"


@pytest.mark.proves("RTE-004", "RTE-005")
def test_what_is_refused_for_good_comes_back_with_its_reason() -> None:
    world, root, a, b = family()
    a.send(via=(root.node,))
    root.send(b.node, via=(b.node,))
    a.send(depth=17)
    a.send(origin=root.node)
    a.send(type="weft.metric")
    a.send()
    world.settle()
    assert ["loop", "loop", "loop", "bad-type"] == [event.why for event in answers(a)[:-1]]
    assert MailReached(5, 1) == answers(a)[-1]
    assert [MailFailed(1, "loop")] == answers(root)
    assert [("a", "loop"), ("a", "bad-type")] == [(event.name, event.why) for event in root.events(MessageRefused)]
    c = root.core.counters
    assert c.received == c.accepted + c.turned_away == 5


def test_a_reason_that_nobody_knows_is_not_remembered_by_its_words() -> None:
    world, root, a, _ = family()
    root.crash()
    a.send()
    a.post()
    for number in range(2):
        hack = Hack(era=a.era + 1 - number, upto=1, win=1, winb=1, no=[(1, f"made up {number}")])
        a.core.receive(hack, Source("up", b""), world.now)
    a.do()
    assert [MailFailed(1, "refused")] == answers(a)
    assert {"mail-refused": 1} == a.core.counters.refused


def test_answers_that_cannot_be_are_refused() -> None:
    world, root, a, _ = family()
    cases = [
        (root, "down", a.peer, Hack(era=7, upto=0, win=1, winb=1), "bad-era"),
        (root, "down", a.peer, Hack(era=root.era, upto=1, win=1, winb=1), "bad-upto"),
        (a, "up", b"", Hack(era=a.era + 1, upto=1, win=1, winb=1), "bad-upto"),
        (a, "up", b"", Hop(7, 1, [item()], [b""], mem=True), "bad-era"),
        (a, "up", b"", Hop(root.era, 1, [item()], [b""]), "unimplemented"),
    ]
    for machine, channel, peer, message, code in cases:
        with pytest.raises(PeerError) as caught:
            machine.core.receive(message, Source(channel, peer), world.now)
        assert code == caught.value.code
    world.advance(1)
    assert [] == root.screened + a.screened


def item() -> HopItem:
    return HopItem(mid=(A, 7, 1), type="x", via=(A,), depth=0, ts=0)


def test_mail_before_the_welcome_is_not_heard() -> None:
    world = World()
    a = world.sensor("a", "nobody")
    with pytest.raises(PeerError) as caught:
        a.core.receive(Hop(7, 1, [item()], [b""], mem=True), Source("up", b""), world.now)
    assert "not-now" == caught.value.code


def test_how_far_a_stream_was_heard_is_kept_for_the_last_start_of_so_many_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "CHILDREN_KNOWN_MAX", 2)
    heard = Heard()
    for node in (b"1", b"2", b"3"):
        heard.note(node, 7, 5, is_child=True)
    assert [0, 5, 5] == [heard.upto(node, 7, is_child=True) for node in (b"1", b"2", b"3")]
    assert [0, 0] == [heard.upto(b"3", 8, is_child=True), heard.upto(b"3", 7, is_child=False)]


def test_an_order_for_nobody_is_one_for_the_parent() -> None:
    world, root, a, _ = family()
    a.order(PostMail(9, a.mail(to=("NEARESTCOORD",))))
    world.settle()
    assert [MailReached(9, 1)] == answers(a)
    assert [1] == sequences(root.screened)
