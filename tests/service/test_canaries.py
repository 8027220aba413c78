"""Planted bugs of a service, and the test that each must turn red."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.service import test_beating as beating
from tests.service import test_changing as changing
from tests.service import test_service as life
from weft.cores.service import core as cores
from weft.cores.service import states
from weft.cores.service.beating import Beating
from weft.cores.service.brokers import Brokers
from weft.cores.service.updating import Updates
from weft.wire.catalog.messages import AWK

Plant = Callable[[pytest.MonkeyPatch], None]


def patched(owner: Any, name: str, bug: Any) -> Plant:
    return lambda patch: patch.setattr(owner, name, bug)


def answers_acknowledgements(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(cores._HEARS, AWK, lambda core, _, now: core._say(AWK, now))


def comes_back_on_the_same_socket(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cores.Service, "tag", property(lambda _: b"always"))


def comes_back_at_once(patch: pytest.MonkeyPatch) -> None:
    def bug(core: cores.Service, _: Any, now: Any) -> None:
        core._let_go(now)
        core._act_at = now.mono

    patch.setattr(cores.Service, "come_back", bug)


def retries_what_is_final(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(
        states.TABLE, (states.State.REGISTERING, states.On.REFUSED), states.Cell("put_off", states.State.DROPPED)
    )


def counts_wall_time(patch: pytest.MonkeyPatch) -> None:
    def bug(core: Beating, now: Any) -> None:
        core._heard_at = now.wall

    patch.setattr(Beating, "hear_answer", bug)


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (answers_acknowledgements, beating.test_a_broker_that_answers_by_connection_alone_keeps_its_service),
        (comes_back_on_the_same_socket, life.test_words_of_an_older_connection_are_not_heard),
        (
            comes_back_at_once,
            life.test_told_to_disconnect_it_comes_back_on_a_new_socket_within_an_interval,
        ),
        (retries_what_is_final, life.test_any_other_refusal_is_final),
        (counts_wall_time, beating.test_a_broker_that_answers_by_connection_alone_keeps_its_service),
        (
            patched(Brokers, "_counts", lambda self, beacon: True),
            beating.test_a_beacon_of_the_run_before_that_comes_late_restarts_nothing,
        ),
        (patched(Brokers, "_counts", lambda self, beacon: True), beating.test_with_a_key_only_signed_beacons_count),
        (
            patched(Beating, "excuse", lambda self, late_ns: None),
            beating.test_who_stood_still_does_not_take_that_for_silence,
        ),
        (
            patched(Beating, "ask", lambda self, now: None),
            beating.test_a_broker_whose_beacon_is_heard_but_that_does_not_answer_is_dropped,
        ),
        (patched(Updates, "owe", lambda self: None), changing.test_the_acknowledgement_of_a_beat_is_none_of_a_change),
    ],
)
def test_each_planted_bug_turns_its_check_red(
    plant: Plant, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    check()
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check()
