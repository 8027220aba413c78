"""Mail that did not leave before its node became the root: the parent it was for is this node itself."""

from typing import Any, Final

import msgspec
import pytest

from tests.carrier.rig import Machine, World
from tests.carrier.test_roles import Heir, become
from tests.carrier.test_screen import sequences
from weft.base.effects import Persist
from weft.base.mail import INBOX, OUTBOX, of_record, to_record
from weft.base.records import Stream, StreamRecord
from weft.base.spool import Released
from weft.base.vectors import VersionVector
from weft.cores.carrier import limits
from weft.cores.carrier.messages import Drained, FiltersKnown, HoldBack, InLake, LakeUnread, ParentLost
from weft.cores.carrier.states import State


def heir_with_mail() -> tuple[World, Machine, Machine]:
    """A collector whose root has died, with two messages of its own and one that it forwards."""
    world = World()
    root = world.root()
    heir = world._add(Heir(world, "heir", "collector"), "root")
    world.settle()
    heir.post()
    world.advance(3)
    root.crash()
    heir.post()
    heir.write(to_record(root.mail(origin=b"x" * 16, via=(b"x" * 16,), depth=1, sequence=9), OUTBOX, 0))
    heir.make()
    heir.post()
    world.advance(1)
    heir.screened.clear()
    return world, root, heir


@pytest.mark.proves("CHN-031")
@pytest.mark.parametrize("judge", [lambda record: (record,), lambda record: ()], ids=["kept", "ended"])
def test_a_new_root_gives_its_unsent_mail_to_its_own_screen_once(judge: Any) -> None:
    world, _, heir = heir_with_mail()
    heir.judge = judge
    become(heir, "root", epoch=1)
    world.advance(5)
    assert [2, 9, 3] == sequences(heir.screened)
    assert {INBOX} == {record.stream for record in heir.screened}
    assert [(), (b"x" * 16,), ()] == [of_record(record).via for record in heir.screened]
    assert [2, 9, 3] == sequences(heir.inbox()) or not heir.inbox()
    for epoch in (1, 2):
        heir.condense()
        become(heir, "root", epoch=epoch)
        world.advance(5)
    assert [2, 9, 3] == sequences(heir.screened)


def for_the_lake(mail: StreamRecord) -> StreamRecord:
    """What a root keeps of it."""
    content = mail.at, mail.received, mail.key, mail.payload
    return StreamRecord(Stream.MESSAGES, mail.origin, mail.era, mail.sequence, *content, {"fmt": "raw"})


def taken_home_and_sent_up(where: str) -> None:
    """A former root has sent up what it kept of a message, which also came here as mail; this node becomes the root."""
    world, root, heir = heir_with_mail()
    kept = for_the_lake(to_record(root.mail(origin=b"x" * 16, sequence=11), INBOX, 0))
    heir.judge = lambda record: (for_the_lake(record) if record.stream == INBOX else record,)
    if where == "before it":
        heir.write(kept)
    heir.write(to_record(root.mail(origin=b"x" * 16, via=(b"x" * 16,), depth=1, sequence=11), OUTBOX, 0))
    if where == "behind it":
        heir.write(kept)
    if where == "in the lake":
        vector = VersionVector()
        vector.add(kept.source, 11, 11)
        heir.settings = msgspec.structs.replace(heir.settings, has_lake=True)
        heir.lake = InLake(((int(Stream.MESSAGES), vector.encode()),))
    become(heir, "root", epoch=1)
    world.advance(5)
    stream = [
        record for _, record in heir.disk if isinstance(record, StreamRecord) and record.stream == Stream.MESSAGES
    ]
    made = sequences(stream)
    assert ([2, 9, 3], where != "in the lake") == ([number for number in made if number != 11], 11 in made)
    assert made.count(11) <= 1


WHERE: Final = ("before it", "behind it", "in the lake")


@pytest.mark.proves("CHN-036", part="of mail that did not go up, a new root keeps nothing that it has already")
@pytest.mark.parametrize("where", WHERE)
def test_a_new_root_does_not_keep_again_what_a_former_root_sent_up_of_its_mail(where: str) -> None:
    taken_home_and_sent_up(where)


@pytest.mark.proves("CHN-033")
def test_a_crash_in_the_middle_gives_again_what_was_not_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    world, _, heir = heir_with_mail()
    monkeypatch.setattr(limits, "FETCH_BYTES", 1)
    walls = iter(range(9))
    become(heir, "root", epoch=1)
    heir.dies_before = lambda effect: isinstance(effect, Persist) and next(walls) == 1
    world.advance(5)
    assert (False, [2]) == (heir.is_up, sequences(heir.inbox()))
    heir.dies_before = lambda effect: False
    heir.start()
    world.advance(5)
    assert [2, 9, 3] == sequences(heir.inbox())


@pytest.mark.proves("CHN-031")
def test_mail_that_was_taken_home_does_not_go_up_when_the_node_is_no_root_any_more() -> None:
    world, root, heir = heir_with_mail()
    era_before = heir.era
    become(heir, "root", epoch=1)
    world.advance(5)
    root.start()
    become(heir, "collector", "root")
    heir.post()
    world.advance(10)
    assert [(heir.node, era_before, 1), (heir.node, heir.era, 1)] == [of_record(r).mid for r in root.inbox()]
    assert 0 == heir.core.counters.spool_records


@pytest.mark.proves("RTE-003", "CHN-041")
def test_of_mail_for_others_and_of_expired_mail_a_new_root_counts_what_becomes() -> None:
    world, _, heir = heir_with_mail()
    heir.post(to=("DIRECT", b"y" * 16))
    heir.post(exp=world.now.wall + 1)
    world.advance(1)
    become(heir, "root", epoch=1)
    world.advance(5)
    assert [2, 9, 3] == sequences(heir.screened)
    refused = heir.core.counters.refused
    assert (1, 1) == (refused["mail-no-route"], refused["mail-expired"])


def test_a_new_root_lets_the_journal_forget_nothing_that_it_has_to_look_through() -> None:
    world, _, heir = heir_with_mail()
    heir.may_fetch = False
    heir.told.clear()
    become(heir, "root", epoch=1)
    world.advance(2)
    before = max((event.upto for event in heir.events(Released)), default=0)
    assert before < min(lsn for lsn, record in heir.disk if getattr(record, "sequence", 0) == 2)
    heir.may_fetch = True
    world.advance(5)
    assert heir.core.outbox.seen_lsn <= max(event.upto for event in heir.events(Released))


@pytest.mark.proves("CHN-031", "LAK-007")
@pytest.mark.parametrize("restarts", [False, True], ids=["goes on", "starts again"])
@pytest.mark.parametrize("answer", [None, LakeUnread("busy")], ids=["silent", "unread"])
def test_what_is_drained_while_a_new_root_waits_for_its_lake_takes_no_mail_with_it(
    answer: LakeUnread | None, restarts: bool
) -> None:
    world, _, heir = heir_with_mail()
    heir.settings, heir.lake = msgspec.structs.replace(heir.settings, has_lake=True), answer
    heir.told.clear()
    become(heir, "root", epoch=1)
    world.advance(0.5)
    end = heir.core.outbox.seen_lsn
    heir.order(Drained(end))
    world.advance(0.5)
    kept = max((event.upto for event in heir.events(Released)), default=0)
    heir.disk = [(lsn, record) for lsn, record in heir.disk if lsn > kept or not isinstance(record, StreamRecord)]
    if restarts:
        heir.crash()
        heir.start()
    heir.lake = InLake(())
    world.advance(60)
    assert [2, 9, 3] == sequences(heir.screened)
    assert restarts or end <= heir.core.outbox.safe_lsn, "counted when all is read"


@pytest.mark.proves("CHN-033")
def test_a_new_root_that_knows_no_filters_yet_does_not_look_at_its_unsent_mail() -> None:
    world, _, heir = heir_with_mail()
    heir.settings = msgspec.structs.replace(heir.settings, awaits_filters=True)
    become(heir, "root", epoch=1)
    world.advance(5)
    assert ([], True) == (heir.screened, heir.core.parent.is_closed)
    heir.order(FiltersKnown())
    world.advance(5)
    assert ([2, 9, 3], False) == (sequences(heir.screened), heir.core.parent.is_closed)


@pytest.mark.proves("CHN-033")
def test_a_parent_that_knows_no_filters_yet_takes_nothing_full_or_not() -> None:
    world = World()
    root = world.root(awaits_filters=True)
    a = world.sensor("a")
    world.settle()
    a.make()
    world.settle()
    assert (0, 0) == (root.core.counters.accepted, len(root.samples()))
    root.order(HoldBack(is_full=True))
    root.order(FiltersKnown())
    world.settle()
    assert (0, 0) == (root.core.counters.accepted, len(root.samples()))
    root.order(HoldBack(is_full=False))
    world.settle()
    assert (State.OPEN, 1) == (a.core.state, len(root.samples()))
    root.order(FiltersKnown())
    a.make()
    world.settle()
    assert ([], 2) == (a.events(ParentLost), len(root.samples()))
