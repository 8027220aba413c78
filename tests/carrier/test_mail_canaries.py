"""Planted bugs in what is done with mail: each is caught by the transcript that is named."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.carrier.test_canaries import (
    Patch,
    duplicates_are_forgotten_after_a_minute,
    era_is_ignored_by_the_receiver,
    era_is_kept_over_a_restart,
    gap_is_not_answered,
    hack_before_persist,
)
from tests.carrier.test_home import heir_with_mail, taken_home_and_sent_up
from tests.carrier.test_mail_transcripts import (
    another_parent,
    crash_before_sync,
    crash_between_in_and_out,
    gap,
    gone_for_ever,
    lost_disk,
    lost_hack,
    rolled_back_disk,
    small_spool,
)
from tests.carrier.test_roles import become
from weft.base.effects import Effect, Persist
from weft.base.records import CoreRecord
from weft.base.spool import RecordsFetched
from weft.cores.carrier.core import Carrier
from weft.cores.carrier.identities import Identities, Meeting, Window
from weft.cores.carrier.memory import Home, Met, from_record
from weft.cores.carrier.outbox import Outbox
from weft.cores.carrier.parent import Parent
from weft.cores.carrier.seen import Seen
from weft.cores.carrier.spool import Dropping
from weft.sim.mailbugs import mail_for_one_parent_only


def consumed_and_produced_in_two_records(patch: Patch) -> None:
    honest = Parent.flush

    def flush(self: Parent, now: Any) -> None:
        effects, self.context.effects = self.context.effects, []
        honest(self, now)
        for effect in self.context.effects:
            effects += halves(effect)
        self.context.effects = effects

    patch.setattr(Parent, "flush", flush)


def halves(effect: Effect) -> Iterator[Effect]:
    """What was consumed first, what was produced then."""
    if not isinstance(effect, Persist):
        yield effect
        return
    for is_memory in (True, False):
        records = tuple(r for r in effect.records if isinstance(r, CoreRecord) is is_memory)
        if records:
            yield Persist(records, effect.within_ns)


def identities_are_forgotten_at_a_restart(patch: Patch) -> None:
    patch.setattr(Identities, "replay", lambda self, met: None)
    patch.setattr(Identities, "condense", lambda self: iter(()))


def identities_are_not_in_snapshots(patch: Patch) -> None:
    patch.setattr(Identities, "condense", lambda self: iter(()))


def identities_are_not_written_down(patch: Patch) -> None:
    patch.setattr(Identities, "news", lambda self: [])


def identities_of_all_eras_are_one(patch: Patch) -> None:
    honest = Identities.meet
    patch.setattr(Identities, "meet", lambda self, origin, era, sequence: honest(self, origin, 0, sequence))


def everything_is_new(patch: Patch) -> None:
    patch.setattr(Window, "meet", lambda self, sequence, width: Meeting.NEW)


def mail_goes_to_one_parent_only(patch: Patch) -> None:
    patch.setattr(Outbox, "begin", mail_for_one_parent_only(Outbox.begin))


def mail_is_given_up(patch: Patch) -> None:
    honest = Dropping.take

    def take(self: Dropping, order: RecordsFetched, safe_lsn: int) -> bool:
        self._is_taken = lambda lsn: True
        return honest(self, order, safe_lsn)

    patch.setattr(Dropping, "take", take)


def mail_comes_home_at_every_start(patch: Patch) -> None:
    honest = Carrier._recall_mail
    patch.setattr(Carrier, "_recall_mail", lambda self, memory: type(memory) is Home or honest(self, memory))


def mail_comes_home_unchecked(patch: Patch) -> None:
    patch.setattr(Seen, "without_repeats", lambda self, records, mail: list(records))


def taken_home_once() -> None:
    """A node becomes the root, and ends before its next snapshot; then it becomes the root of another epoch."""
    world, _, heir = heir_with_mail()
    for epoch in (1, 2):
        become(heir, "root", epoch=epoch)
        world.advance(5)
    assert [2, 9, 3] == [record.sequence for record in heir.screened]


BUGS: list[tuple[Callable[[Patch], None], Callable[[], None]]] = [
    (hack_before_persist, crash_before_sync),
    (duplicates_are_forgotten_after_a_minute, lambda: lost_hack(7_200)),
    (era_is_kept_over_a_restart, rolled_back_disk),
    (era_is_ignored_by_the_receiver, lost_disk),
    (identities_of_all_eras_are_one, lost_disk),
    (consumed_and_produced_in_two_records, crash_between_in_and_out),
    (gap_is_not_answered, gap),
    (everything_is_new, another_parent),
    (identities_are_forgotten_at_a_restart, lambda: rolled_back_disk(is_back_at_once=False)),
    (identities_are_not_in_snapshots, lambda: rolled_back_disk(is_back_at_once=False)),
    (identities_are_not_written_down, lambda: rolled_back_disk(is_back_at_once=False)),
    (mail_goes_to_one_parent_only, gone_for_ever),
    (mail_is_given_up, small_spool),
    (mail_comes_home_at_every_start, taken_home_once),
    (mail_comes_home_unchecked, lambda: taken_home_and_sent_up("in the lake")),
]
LONG = (duplicates_are_forgotten_after_a_minute,)


@pytest.mark.parametrize(
    ("plant", "transcript"),
    [pytest.param(*bug, marks=[pytest.mark.prove("a long life")] if bug[0] in LONG else []) for bug in BUGS],
    ids=[plant.__name__ for plant, _ in BUGS],
)
def test_planted_bug_is_caught(
    plant: Callable[[Patch], None], transcript: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        transcript()


def test_without_the_bug_a_root_takes_its_mail_home_once() -> None:
    taken_home_once()


def test_an_identity_is_written_down_as_it_was_met() -> None:
    met = Identities()
    met.meet(b"a" * 16, 7, 3)
    (news,) = met.news()
    assert Met(b"a" * 16, 7, [3]) == news
    assert Home(9) == from_record(CoreRecord("carrier", 10, b"\x91\x09"))
