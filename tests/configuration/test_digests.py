"""Count and digest: of a store, at the end of a snapshot, in a tip, in what nodes report (FLD-002, FLD-003)."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.configuration.rig import FULL, World
from tests.configuration.test_states import Child
from weft.base.effects import Send, Tell
from weft.cores.configuration.messages import (
    ConfigurationApplied,
    ConfigurationDiverged,
    FollowParent,
    NoteApplied,
    NotePromises,
    NoteVoters,
    ReplicaResynced,
    SnapshotDiffers,
    Written,
)
from weft.cores.configuration.states import State
from weft.cores.configuration.store import Room, Store
from weft.wire.replication import ICanHaz, KThxBai, KvSync

A, B = "/CONFIG/web/a", "/CONFIG/web/b"
OF_NONE = bytes(16)
OF_A = bytes.fromhex("534a7a0d3ad05d68e9d3e62fd07c6d80")  # BLAKE2b-128 of number, length of the key, key, value
OF_BOTH = bytes.fromhex("e806f261b74eea7254d580bb38ab6dc8")  # the sum of both, modulo 2**128
CHAINS = KThxBai("/.chains/", 2, 0, OF_NONE)


def events(effects: Sequence[Any], kind: type) -> list[Any]:
    return [effect.event for effect in effects if isinstance(effect, Tell) and isinstance(effect.event, kind)]


def follower() -> Child:
    child = Child()
    child.order(FollowParent("p:27500", ("/",), True))
    child.hear(CHAINS)
    return child


def current() -> Child:
    child = follower()
    child.hear(KvSync(A, 1, b"1"))
    child.hear(KvSync(B, 2, b"2"))
    child.hear(KThxBai("/", 2, 2, OF_BOTH))
    assert State.RUN is child.core.state
    return child


def test_a_digest_knows_no_order_and_goes_back_when_pairs_go() -> None:
    one, other = Store(Room(9, 999)), Store(Room(9, 999))
    one.apply(A, 1, b"1", None)
    assert (1, OF_A) == (one.tally.count, one.tally.digest)
    one.apply(B, 2, b"2", None)
    other.apply(B, 2, b"2", None)
    other.apply(A, 5, b"x", None)
    other.apply(A, 1, b"1", None)
    assert (2, OF_BOTH) == (one.tally.count, one.tally.digest) == (other.tally.count, other.tally.digest)
    one.apply(B, 3, b"", 2)
    assert (1, OF_A) == (one.tally.count, one.tally.digest)
    assert (1, OF_A) == (one.tally_of("/CONFIG/web/").count, one.tally_of("/CONFIG/web/").digest)
    one.wipe()
    assert (0, OF_NONE) == (one.tally.count, one.tally.digest)


@pytest.mark.proves("FLD-002")
def test_a_snapshot_with_fewer_pairs_than_its_end_says_is_refused_and_asked_for_again() -> None:
    child = follower()
    child.hear(KvSync(A, 1, b"1"))
    effects = child.hear(KThxBai("/", 2, 2, OF_BOTH))
    assert State.SYNC is child.core.state
    assert [SnapshotDiffers(2, 1, 1)] == events(effects, SnapshotDiffers)
    assert (1, 0, 0) == (child.core.counters.differed, child.core.counters.snapshots, child.core.store.number)
    asked = [e.message for e in child.wake(1) if isinstance(e, Send)]
    assert ICanHaz("/", wants_digest=True, takes_packs=True) in asked
    child.hear(CHAINS)
    child.hear(KvSync(B, 2, b"2"))
    child.hear(KvSync(A, 1, b"1"))
    child.hear(KThxBai("/", 2, 2, OF_BOTH))
    assert (State.RUN, 2) == (child.core.state, child.core.store.number)


@pytest.mark.proves("FLD-002")
def test_a_snapshot_with_as_many_pairs_but_others_is_refused() -> None:
    child = follower()
    child.hear(KvSync(A, 1, b"1"))
    child.hear(KvSync(B, 2, b"another value"))
    assert [SnapshotDiffers(2, 0, 1)] == events(child.hear(KThxBai("/", 2, 2, OF_BOTH)), SnapshotDiffers)
    assert State.SYNC is child.core.state


def test_a_parent_of_another_make_says_no_digest_and_is_followed_and_counted() -> None:
    child = Child()
    child.order(FollowParent("p:27500", ("/",), True))
    child.hear(KThxBai("/.chains/", 1))
    child.hear(KvSync(A, 1, b"1"))
    child.hear(KThxBai("/", 1))
    assert (State.RUN, 1) == (child.core.state, child.core.counters.unproved)
    assert OF_A == child.core.shown_digest, "what it shows is of what it holds"


@pytest.mark.proves("FLD-002")
def test_a_parent_with_other_pairs_at_the_same_number_is_told_of_and_asked_for_everything() -> None:
    child = current()
    assert OF_BOTH == child.core.shown_digest
    child.wake(1)
    effects = child.hear(KThxBai("/.tip/", 2, 1, OF_A))
    told = ConfigurationDiverged("p:27500", 2, 2, OF_BOTH.hex(), 1, OF_A.hex())
    assert [told] == events(effects, ConfigurationDiverged)
    assert (State.SYNC, b"") == (child.core.state, child.core.shown_digest)
    child.hear(CHAINS)
    child.hear(KvSync(A, 1, b"1"))
    assert ["tip"] == [e.why for e in events(child.hear(KThxBai("/", 2, 1, OF_A)), ReplicaResynced)]
    assert (State.RUN, OF_A) == (child.core.state, child.core.shown_digest)


def test_a_tip_with_the_same_digest_changes_nothing() -> None:
    child = current()
    child.wake(1)
    assert [] == events(child.hear(KThxBai("/.tip/", 2, 2, OF_BOTH)), ConfigurationDiverged)
    assert State.RUN is child.core.state


def test_a_store_that_is_read_back_has_the_digest_that_it_had() -> None:
    world = World()
    world.root()
    replica = world.collector("c")
    world.settle()
    world.write((A, "1"), (B, "2"))
    world.write((B, ""))
    world.settle()
    digest = replica.core.store.tally.digest
    replica.condense()
    replica.crash()
    assert digest == replica.start().core.store.tally.digest != OF_NONE


@pytest.mark.proves("FLD-003")
def test_a_majority_is_of_those_that_have_shown_the_right_digest() -> None:
    world = World()
    root = world.root()
    world.voters = ("c", "d")
    world.settle()
    root.order(NoteApplied(b"c" * 16, 0, True, 3))
    assert None is world.write((A, "1"), ack="quorum")
    ticket = max(root.core.root._pending, key=lambda each: each.ticket).ticket
    right = root.core.store.tally.digest.hex()
    root.order(NoteApplied(b"c" * 16, 1, True, 3))
    root.order(NoteApplied(b"c" * 16, 1, True, 3, 1, OF_BOTH.hex()))
    root.order(NoteApplied(b"c" * 16, 1, True, 3, 2, right))
    assert ticket not in root.replies
    shown = [(each.other, each.other_count, each.is_here) for each in root.events(ConfigurationDiverged)]
    assert [((b"c" * 16).hex(), 1, False), ((b"c" * 16).hex(), 2, False)] == shown
    root.order(NoteApplied(b"c" * 16, 1, True, 3, 1, right))
    assert Written(1, 1, True) == root.replies[ticket]


@pytest.mark.proves("REC-012")
def test_who_has_promised_its_vote_confirms_only_what_its_candidates_have_too() -> None:
    world = World()
    root = world.root()
    world.voters = ("c", "d")
    c, d = world.collector("c"), world.collector("d")
    world.settle()
    world.cut_off["d"] = None
    c.order(NotePromises(((3, d.node),)))
    assert None is world.write((A, "1"), ack="quorum")
    ticket = max(root.core.root._pending, key=lambda each: each.ticket).ticket
    world.advance(0.2)
    assert [(1, (d.node.hex(),))] == [(each.number, each.candidates) for each in c.events(ConfigurationApplied)][-1:]
    assert ticket not in root.replies  # d may be the root of epoch 3 by now, without this write
    del world.cut_off["d"]
    world.advance(2.0)
    assert Written(1, 1, True) == root.replies[ticket]  # d holds it: whoever becomes the root holds it


def test_a_report_of_a_later_epoch_names_no_candidate_of_an_earlier_one() -> None:
    world = World()
    world.root()
    world.take("root", 3)
    c = world.collector("c")
    c.order(NotePromises(((3, b"d" * 16), (4, b"e" * 16))))
    world.settle()
    world.write((A, "1"))
    world.advance(0.2)
    assert ((b"e" * 16).hex(),) == c.events(ConfigurationApplied)[-1].candidates


@pytest.mark.parametrize("topics", [FULL, ("/CONFIG/web/",)])
def test_only_who_follows_everything_shows_a_digest(topics: tuple[str, ...]) -> None:
    child = Child()
    child.order(FollowParent("p:27500", topics, False))
    child.hear(KvSync(A, 1, b"1"))
    child.hear(KThxBai(topics[0], 1, 1, OF_A))
    assert State.RUN is child.core.state
    assert (OF_A if topics == FULL else b"") == child.core.shown_digest


@pytest.mark.proves("REC-012", "CFG-024")
def test_a_write_is_confirmed_when_an_earlier_set_of_voters_can_elect_no_root_without_it() -> None:
    world = World()
    root = world.root()
    world.voters = ("d", "e")
    c, _, _ = world.collector("c"), world.collector("d"), world.collector("e")
    world.settle()
    world.cut_off["c"] = None
    root.order(NoteVoters(3, 3, ((c.node, b"x" * 16), (b"y" * 16,))))
    assert None is world.write((A, "1"), ack="quorum")
    ticket = max(root.core.root._pending, key=lambda each: each.ticket).ticket
    world.advance(0.2)
    assert ticket not in root.replies  # d and e have it, and c and x could still elect a root without it
    root.order(NoteVoters(3, 3))
    world.write((B, "2"), ack="quorum")
    world.advance(0.2)
    assert Written(1, 1, True) == root.replies[ticket]
