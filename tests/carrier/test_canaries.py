"""Planted bugs: each is what somebody will write one day, and each is caught by the transcript that is named."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.carrier.test_transcripts import (
    collector_loses_disk,
    crash_before_sync,
    gap,
    lost_disk,
    lost_hack,
    rolled_back_disk,
    small_spool,
)
from weft.base.effects import Connect, Persist
from weft.base.now import SECOND
from weft.cores.carrier.child import Child
from weft.cores.carrier.childprogress import ChildProgress, Progress
from weft.cores.carrier.memory import Received
from weft.cores.carrier.outbox import Outbox
from weft.cores.carrier.parent import Parent
from weft.cores.carrier.seen import Seen, Verdict
from weft.cores.carrier.spool import Dropping

Patch = pytest.MonkeyPatch


def hack_before_persist(patch: Patch) -> None:
    honest = Parent.flush

    def flush(self: Parent, now: Any) -> None:
        honest(self, now)
        self.context.effects.sort(key=lambda effect: isinstance(effect, Persist))

    patch.setattr(Parent, "flush", flush)


def era_is_ignored_by_the_receiver(patch: Patch) -> None:
    honest_note, honest_find = ChildProgress.note, ChildProgress.find
    patch.setattr(
        ChildProgress, "note", lambda self, h, lsn, last: honest_note(self, Received(h.node, 0, h.upto), lsn, last)
    )
    patch.setattr(ChildProgress, "find", lambda self, node, era: honest_find(self, node, 0))


def duplicates_are_forgotten_after_a_minute(patch: Patch) -> None:
    honest = Parent._join
    heard: dict[bytes, int] = {}

    def join(self: Parent, hello: Any, source: Any, now: Any) -> None:
        if now.mono - heard.get(hello.id, now.mono) > 60 * SECOND:
            self.progress = ChildProgress(is_safe_at_once=self.context.settings.is_safe_at_once)
        heard.setdefault(hello.id, now.mono)
        honest(self, hello, source, now)

    patch.setattr(Parent, "_join", join)


def spool_is_trimmed_at_held(patch: Patch) -> None:
    patch.setattr(Child, "_safe_of", lambda self, hack: hack.upto)


def collector_calls_safe_what_it_holds(patch: Patch) -> None:
    patch.setattr(Progress, "pass_on", lambda self, frontier: False)
    patch.setattr(Parent, "_safe", lambda self, link: link.upto)


def socket_is_kept_after_silence(patch: Patch) -> None:
    honest = Child.greet

    def greet(self: Child, what: Any, before: Any, now: Any) -> None:
        had_one = self.parent is not None
        honest(self, what, before, now)
        if had_one:
            self.context.effects[:] = [e for e in self.context.effects if not isinstance(e, Connect)]

    patch.setattr(Child, "greet", greet)


def gap_is_not_answered(patch: Patch) -> None:
    patch.setattr(Outbox, "go_back", lambda self: None)


def root_keeps_what_comes_twice(patch: Patch) -> None:
    patch.setattr(Seen, "take", lambda self, record: Verdict.NEW)


def era_is_kept_over_a_restart(patch: Patch) -> None:
    patch.setattr("tests.carrier.rig.World.next_era", lambda self: 1_001)


def drop_is_silent(patch: Patch) -> None:
    patch.setattr(Dropping, "announcements", lambda self: [])


def drop_announces_one_too_few(patch: Patch) -> None:
    honest = Dropping.announcements
    patch.setattr(Dropping, "announcements", lambda self: honest(self)[:-1])


def restart_begins_at_the_end(patch: Patch) -> None:
    honest = Outbox.resume
    patch.setattr(Outbox, "resume", lambda self, safe, seen: honest(self, max(safe, seen), seen))


BUGS: list[tuple[Callable[[Patch], None], Callable[[], None]]] = [
    (hack_before_persist, crash_before_sync),
    (era_is_ignored_by_the_receiver, lost_disk),
    (duplicates_are_forgotten_after_a_minute, lambda: lost_hack(7_200)),
    (spool_is_trimmed_at_held, collector_loses_disk),
    (collector_calls_safe_what_it_holds, collector_loses_disk),
    (socket_is_kept_after_silence, lost_hack),
    (gap_is_not_answered, gap),
    (root_keeps_what_comes_twice, rolled_back_disk),
    (era_is_kept_over_a_restart, rolled_back_disk),
    (drop_is_silent, small_spool),
    (drop_announces_one_too_few, small_spool),
    (restart_begins_at_the_end, rolled_back_disk),
]


@pytest.mark.prove("a life for each bug")
@pytest.mark.parametrize(("plant", "transcript"), BUGS, ids=[plant.__name__ for plant, _ in BUGS])
def test_planted_bug_is_caught(
    plant: Callable[[Patch], None], transcript: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        transcript()


@pytest.mark.prove("the same lives as with each bug")
@pytest.mark.parametrize("transcript", {id(each): each for _, each in BUGS}.values(), ids=lambda each: each.__name__)
def test_without_the_bug_the_transcript_holds(transcript: Callable[[], None]) -> None:
    transcript()
