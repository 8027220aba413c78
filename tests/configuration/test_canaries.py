"""Planted bugs: each is what somebody will write one day, and each is caught by the scenario that is named."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.configuration.test_scenarios import (
    crash_in_the_middle_of_a_snapshot,
    groups_are_told_apart,
    healthy_children_stay,
    hole_above_a_sensor,
    joins_after_a_deletion,
    keys_of_others_are_written_often,
    lost_last_update,
    new_root_goes_on,
    parent_goes_back,
    sync_collector_beats,
    unseen_deletion_of_a_foreign_parent,
)
from tests.configuration.test_states import late_reply_stays_out
from tests.configuration.test_vectors import play
from weft.base.effects import Persist
from weft.cores.configuration import core, root
from weft.cores.configuration.context import Context
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.memory import Part
from weft.cores.configuration.replica import Replica
from weft.cores.configuration.serving import Serving
from weft.cores.configuration.stage import Stage
from weft.cores.configuration.states import On, State
from weft.cores.configuration.store import Store
from weft.cores.configuration.tips import Tips
from weft.sim import fleetbugs
from weft.wire.replication import KvPub

Patch = pytest.MonkeyPatch
Scenario = Callable[[], None]


def lower_number_is_ignored(patch: Patch) -> None:
    honest = Replica.judge
    patch.setattr(Replica, "judge", lambda self, u: On.DUPLICATE if honest(self, u) is On.LOWER else honest(self, u))


def equal_number_with_other_bytes_is_accepted(patch: Patch) -> None:
    honest = Replica.judge

    def judge(self: Replica, update: KvPub) -> On:
        return On.DUPLICATE if update.number == self.context.store.number else honest(self, update)

    patch.setattr(Replica, "judge", judge)


def waiting_list_is_not_applied(patch: Patch) -> None:
    patch.setattr(Replica, "_go_through", lambda self, update, now: None)


def filtered_replica_counts_by_one(patch: Patch) -> None:
    patch.setattr(Replica, "_is_whole", lambda self: True)


def end_does_not_count_deletions(patch: Patch) -> None:
    honest = Store.tip

    def tip(self: Store, subtree: str) -> int:
        numbers = [pair.number for pair in self.view("" if subtree == "/" else subtree)]
        return min(honest(self, subtree), max(numbers, default=0))

    patch.setattr(Store, "tip", tip)
    patch.setattr(Store, "lasts", lambda self, subtree: [])


def stage_is_seen_early(patch: Patch) -> None:
    honest = Stage.add

    def add(self: Stage, pair: Any) -> None:
        honest(self, pair)
        self._context.store.pairs[pair.key] = pair

    patch.setattr(Stage, "add", add)


def late_reply_is_staged(patch: Patch) -> None:
    honest = Replica.hear_answer

    def hear_answer(self: Replica, message: Any, source: Any, now: Any) -> None:
        honest(self, message, source._replace(peer=self._ask_tag), now)

    patch.setattr(Replica, "hear_answer", hear_answer)


def telltale_is_missing(patch: Patch) -> None:
    patch.setattr(Replica, "_tell_tale", lambda self, now: None)


def telltale_repeats_everything(patch: Patch) -> None:
    def tell_tale(self: Replica, now: Any) -> None:
        for pair in self.context.store.view("") if self.serves else ():
            self.context.publish(KvPub(pair.key, pair.number, b"", pair.value, pair.number - 1))
        for last in self.context.store.chains.values() if self.serves else ():
            self.context.publish(KvPub(last.key, last.number - 1, b"", b"x", last.number - 1))

    patch.setattr(Replica, "_tell_tale", tell_tale)


def trigger_is_kept_waiting(patch: Patch) -> None:
    honest = Replica.resync

    def resync(self: Replica, on: On, update: KvPub | None, now: Any) -> None:
        honest(self, on, update, now)
        if update is not None:
            self.waiting.append(update)

    patch.setattr(Replica, "resync", resync)


def epoch_stands_in_low_bits(patch: Patch) -> None:
    patch.setattr(root, "number_of", lambda epoch, counter: counter << 23 | epoch)


def nobody_beats_in_sync(patch: Patch) -> None:
    honest = Configuration._is_believed
    patch.setattr(
        Configuration, "_is_believed", lambda self, now: honest(self, now) and self.replica.state is not State.SYNC
    )


def orphans_beat_on(patch: Patch) -> None:
    patch.setattr("weft.cores.configuration.silence.Silence.is_orphaned", lambda self, now: False)


def updates_count_as_beats(patch: Patch) -> None:
    patch.setattr(Serving, "beat", fleetbugs.updates_count_as_beats(Serving.beat))


def group_is_a_prefix_in_the_subscription(patch: Patch) -> None:
    honest = Context.connect

    def connect(self: Context, channel: str, endpoint: str, tag: bytes, topics: tuple[bytes, ...] = ()) -> None:
        honest(self, channel, endpoint, tag, tuple(topic.rstrip(b"/") for topic in topics))

    patch.setattr(Context, "connect", connect)


def group_is_a_prefix_in_the_snapshot(patch: Patch) -> None:
    honest = Store.view
    patch.setattr(Store, "view", lambda self, s: tuple(p for p in honest(self, "") if p.key.startswith(s.rstrip("/"))))


def tip_is_not_asked(patch: Patch) -> None:
    honest = Tips.ask
    patch.setattr(Tips, "ask", lambda self, topics, now: honest(self, topics, now)[:0])


def parent_that_goes_back_is_believed(patch: Patch) -> None:
    honest = Tips.hear
    patch.setattr(Tips, "hear", lambda self, answer, now: honest(self, answer, now) and False)


def parts_count_at_once(patch: Patch) -> None:
    patch.setitem(core._RECALL, Part, lambda self, part: self.store.take(part))


def published_before_durable(patch: Patch) -> None:
    honest = Context.take
    patch.setattr(Context, "take", lambda self: sorted(honest(self), key=lambda e: isinstance(e, Persist)))


def requests_are_forgotten_in_sync(patch: Patch) -> None:
    patch.setattr(Serving, "release", lambda self, now: self.waiting.clear())


def early_child() -> None:
    from tests.configuration.test_serving import (
        test_requests_wait_until_there_is_something_to_serve_but_not_for_ever as waiting,
    )

    waiting()


def half_a_snapshot() -> None:
    with pytest.MonkeyPatch.context() as patch:
        crash_in_the_middle_of_a_snapshot(patch)


def wall() -> None:
    from tests.configuration.test_root import test_what_is_said_is_said_behind_the_wall as said_behind

    said_behind()


def named(name: str) -> Scenario:
    def transcript() -> None:
        play(name)

    transcript.__name__ = f"transcript_{name}"
    return transcript


LOWER, DUP, EARLY, FILTERED = named("lower"), named("dup"), named("early"), named("filtered")
BUGS: list[tuple[Callable[[Patch], None], Scenario]] = [
    (lower_number_is_ignored, LOWER),
    (equal_number_with_other_bytes_is_accepted, DUP),
    (waiting_list_is_not_applied, EARLY),
    (filtered_replica_counts_by_one, FILTERED),
    (end_does_not_count_deletions, joins_after_a_deletion),
    (stage_is_seen_early, LOWER),
    (late_reply_is_staged, late_reply_stays_out),
    (telltale_is_missing, hole_above_a_sensor),
    (telltale_repeats_everything, healthy_children_stay),
    (trigger_is_kept_waiting, unseen_deletion_of_a_foreign_parent),
    (epoch_stands_in_low_bits, new_root_goes_on),
    (nobody_beats_in_sync, sync_collector_beats),
    (orphans_beat_on, sync_collector_beats),
    (updates_count_as_beats, keys_of_others_are_written_often),
    (group_is_a_prefix_in_the_subscription, groups_are_told_apart),
    (group_is_a_prefix_in_the_snapshot, groups_are_told_apart),
    (tip_is_not_asked, lost_last_update),
    (parent_that_goes_back_is_believed, parent_goes_back),
    (parts_count_at_once, half_a_snapshot),
    (published_before_durable, wall),
    (requests_are_forgotten_in_sync, early_child),
]


@pytest.mark.parametrize(("plant", "scenario"), BUGS, ids=[plant.__name__ for plant, _ in BUGS])
def test_planted_bug_is_caught(plant: Callable[[Patch], None], scenario: Scenario, monkeypatch: Patch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        scenario()


@pytest.mark.parametrize("scenario", {id(each): each for _, each in BUGS}.values(), ids=lambda each: each.__name__)
def test_without_the_bug_the_scenario_holds(scenario: Scenario) -> None:
    scenario()
