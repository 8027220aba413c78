"""Two bodies under one number: everybody ends with the same one, both are kept, and people are told."""

from hashlib import sha256
from itertools import permutations

import pytest

from tests.document.logs import Desk, Node, bodies, body, pushed, same
from tests.document.net import Machine, Net
from tests.document.rig import EB, EC, EPOCH, A, B, C
from weft.base.now import SECOND
from weft.base.records import CoreRecord, StreamRecord
from weft.cores.document import forks as module
from weft.cores.document.forks import next_uuid
from weft.cores.document.memory import LoserKept, memory_of
from weft.cores.document.messages import LogDiverged, LogFork
from weft.wire.document.messages import Beat, Xmsg
from weft.wire.document.operations import parse
from weft.wire.document.sums import with_sum

ONE, OTHER = sorted((body(B, 2, "one"), body(B, 2, "other")), key=lambda one: sha256(one).digest())
"""What wins, and what loses."""
THIRD = body(B, 2, "third")


@pytest.mark.proves("GSP-011")
@pytest.mark.parametrize("order", list(permutations((body(B, 1), ONE, OTHER, THIRD))))
def test_in_any_order_the_smaller_hash_counts(order: tuple[bytes, ...]) -> None:
    desk = Desk()
    desk.take(C, *order)
    best = min(ONE, OTHER, THIRD, key=lambda one: sha256(one).digest())
    assert best == desk.log.body(B, 2)
    plain = Desk()
    plain.take(C, body(B, 1), best)
    assert plain.log.check == desk.log.check
    assert [best] == [one_body(desk, one.sequence) for one in desk.log.fresh() if one.sequence == 2]


def one_body(desk: Desk, sequence: int) -> bytes:
    return desk.log.body(B, sequence)


@pytest.mark.proves("GSP-011")
@pytest.mark.parametrize("order", [(ONE, OTHER), (OTHER, ONE)])
@pytest.mark.parametrize("is_held", [False, True])
def test_both_are_kept_and_told_of_once(order: tuple[bytes, bytes], is_held: bool) -> None:
    desk = Desk()
    if not is_held:
        desk.take(B, body(B, 1))
    desk.take(C, *order, *order)
    effects = desk.effects()
    told = [effect.event for effect in effects if hasattr(effect, "event")]
    assert [LogFork("", B, 2, C, sha256(ONE).digest(), sha256(OTHER).digest())] == told
    records = [record for effect in effects for record in getattr(effect, "records", ())]
    losers = [
        memory for one in records if isinstance(one, CoreRecord) and isinstance(memory := memory_of(one), LoserKept)
    ]
    assert [OTHER] == [one.body for one in losers]
    again = desk.again(records)
    if is_held:
        again.take(B, body(B, 1))
    assert ONE == again.log.body(B, 2)
    assert same(again.log, again.again(list(again.log.condense())).log)


@pytest.mark.proves("GSP-011", part="what lost while the disk was full is kept as soon as there is room")
def test_what_lost_while_there_was_no_room_is_kept_later() -> None:
    desk = Desk()
    desk.take(B, body(B, 1))
    desk.records()
    desk.context.is_full = True
    desk.take(C, ONE, OTHER)
    assert ([], None) == (desk.records(), desk.log.deadline())
    desk.context.is_full = False
    assert desk.context.now.mono == desk.log.deadline()
    desk.log.wake(desk.context.now)
    records = desk.records()
    assert [OTHER] == [
        memory.body
        for one in records
        if isinstance(one, CoreRecord) and isinstance(memory := memory_of(one), LoserKept)
    ]
    assert [2] == [one.sequence for one in records if isinstance(one, StreamRecord)]
    assert desk.log.deadline() is None


def lost_its_sum(said: bytes, value: bytes) -> bytes:
    """The same operation with another value and without its checksum, of the smallest hash that a few tries give."""
    made = [said.replace(b"crc32", b"crc3%d" % n).replace(b">true<", b">" + value + b"<") for n in range(3, 10)]
    return min(made, key=lambda one: sha256(one).digest())


@pytest.mark.proves("GSP-011", part="what its checksum proves counts before what has none")
@pytest.mark.parametrize("is_first", [False, True])
def test_bytes_that_lost_their_checksum_on_the_way_do_not_win(is_first: bool) -> None:
    true = with_sum(body(B, 2, "true"))
    false = lost_its_sum(true, b"false")
    assert sha256(false).digest() < sha256(true).digest(), "the hash alone would decide for the altered one"
    desk = Desk()
    assert ["new", "new", "fork"] == desk.take(C, body(B, 1), *((false, true) if is_first else (true, false)))
    assert true == desk.log.body(B, 2)


@pytest.mark.proves("FLD-030", part="operations of documents on links that have no sum")
def test_what_was_altered_on_the_way_is_not_taken_and_comes_again() -> None:
    desk = Desk()
    true = with_sum(body(B, 1, "true"))
    assert ["altered", "new"] == desk.take(C, true.replace(b"true", b"tree"), true)
    assert (true, 1) == (desk.log.body(B, 1), desk.context.counters["log.altered"])


@pytest.mark.proves("GSP-011", "GSP-015")
def test_an_author_tells_who_holds_its_operation_without_the_checksum_and_stays_itself() -> None:
    rig = Node()
    rig.befriend(B, EB)
    true = with_sum(body(A, 1, "true"))
    rig.log.append(true, parse(true))
    false = true.replace(b"crc32", b"crc33")
    assert [(EB, rig.log.body(A, 1))] == pushed(rig.hear(B, Xmsg(false)))
    assert A == rig.session.context.uuid
    rig.hear(B, Xmsg(with_sum(body(A, 1, "another"))))
    assert A != rig.session.context.uuid, "another operation of ours that is whole is somebody else's"


def test_a_winner_takes_the_place_of_what_was_folded() -> None:
    rig = Node()
    rig.befriend(B, EB)
    rig.hear(B, Xmsg(body(B, 1)), Xmsg(OTHER), Xmsg(body(B, 3, "end")))
    before = rig.session.engine.digest()
    rig.hear(B, Xmsg(ONE))
    plain = Node()
    plain.befriend(B, EB)
    plain.hear(B, Xmsg(body(B, 1)), Xmsg(ONE), Xmsg(body(B, 3, "end")))
    assert before == rig.session.engine.digest(), "the last write stands in both"
    assert plain.session.engine.digest() == rig.session.engine.digest()
    assert plain.log.check == rig.log.check


def test_effective_times_behind_a_fork_are_those_of_the_winner() -> None:
    late, early = body(B, 1, "a", at=EPOCH + 50.0), body(B, 1, "b", at=EPOCH + 1.0)
    winner = min(late, early, key=lambda one: sha256(one).digest())
    desk = Desk()
    desk.take(B, late, body(B, 2, at=EPOCH + 2.0), early)
    assert [EPOCH + (50.0 if winner == late else n) for n in (1, 2)] == [desk.log.eff(B, n) for n in (1, 2)]


@pytest.mark.proves("GSP-011")
def test_a_changed_winner_goes_to_everybody_and_whoever_says_the_loser_hears_it() -> None:
    rig = Node()
    rig.befriend(B, EB)
    rig.befriend(C, EC)
    rig.hear(B, Xmsg(body(B, 1)), Xmsg(OTHER))
    won = rig.hear(C, Xmsg(ONE))
    assert [(EB, ONE), (EC, ONE)] == pushed(won)
    assert [(EC, ONE)] == pushed(rig.hear(C, Xmsg(OTHER)))
    assert [] == bodies(rig.hear(B, Xmsg(ONE)))


def test_what_is_beyond_a_gap_is_not_sent_even_if_it_wins() -> None:
    rig = Node()
    rig.befriend(B, EB)
    rig.befriend(C, EC)
    rig.hear(B, Xmsg(OTHER))
    assert [] == bodies(rig.hear(C, Xmsg(ONE), Xmsg(OTHER)))
    assert ONE == rig.log.known(B, 2)


@pytest.mark.parametrize("others", [False, True])
def test_two_that_told_each_other_half_of_it_find_where_they_differ(others: bool) -> None:
    """Each heard of half the sources from the other, and neither heard back that its own half was there already."""
    net = Net("halves", schema="plain")
    alice, bob = split(net)
    for machine in (alice, bob):
        machine.up.log.take(body(C, 1), C)
        net._take(machine)
    if others:
        net.edit(alice, "add", {"path": "/"}, xml="<a/>")
        net.edit(bob, "add", {"path": "/"}, xml="<a/>")
    net.until(net.is_equal, 60 * SECOND)


def split(net: Net) -> tuple[Machine, Machine]:
    """Two nodes that heard different bodies of one source, which is gone."""
    alice = net.machine("alice")
    bob = net.machine("bob", peers=[alice])
    net.until(net.is_mesh, 5 * SECOND)
    for machine, other in ((alice, ONE), (bob, OTHER)):
        machine.up.log.take(body(B, 1), B)
        machine.up.log.take(other, B)
        net._take(machine)
    return alice, bob


@pytest.mark.proves("GSP-011")
def test_equal_numbers_with_different_bytes_are_found_and_end_equal() -> None:
    net = Net("fork", schema="plain")
    alice, bob = split(net)
    assert alice.up.log.check != bob.up.log.check
    net.until(net.is_equal, 60 * SECOND)
    assert [ONE, ONE] == [machine.up.log.body(B, 2) for machine in (alice, bob)]
    assert 1 <= sum(isinstance(event, LogFork) for machine in (alice, bob) for event in machine.told)


@pytest.mark.proves("GSP-011")
def test_equal_numbers_and_another_check_for_a_minute_are_told_of_once() -> None:
    rig = Node()
    rig.befriend(B, EB)
    rig.hear(B, Xmsg(body(B, 1)))

    def beat() -> None:
        rig.hear(B, Beat(1, 0, 0x12345678))

    for _ in range(31):
        beat()
        rig.pass_seconds(2)
    assert [LogDiverged("", B)] == rig.events(LogDiverged)
    for _ in range(31):
        beat()
        rig.pass_seconds(2)
    assert 1 == len(rig.events(LogDiverged))
    rig.hear(B, Beat(1, 0, rig.log.check))
    for _ in range(32):
        beat()
        rig.pass_seconds(2)
    assert 2 == len(rig.events(LogDiverged))


def test_a_liar_can_fill_neither_memory_nor_journal_with_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FORKS_MAX", 2)
    desk = Desk()
    desk.take(B, *(body(B, n) for n in range(1, 5)))
    desk.effects()
    worse = [
        other
        for n in range(1, 5)
        for k in range(20)
        if not module.wins(other := body(B, n, f"{k}"), desk.log.body(B, n))
    ]
    desk.take(B, *worse)
    assert 2 == len(list(desk.log._forks.items()))
    assert 2 == len(desk.records())
    assert len(worse) == desk.context.counters["log.fork"]


@pytest.mark.proves("GSP-015")
def test_another_identity_is_a_uuid_that_may_be_one() -> None:
    made = {next_uuid(A, wall) for wall in range(600)}
    assert 600 == len(made)
    assert {(4, 2)} == {(uuid[6] >> 4, uuid[8] >> 6) for uuid in made}
    assert all(uuid[0] for uuid in made), "the first byte is never zero: libzmq keeps such identities for itself"
    assert next_uuid(A, 7) == next_uuid(A, 7)
