"""Changes of a service's record (CAT-018)."""

import json
from typing import Any

import pytest

from tests.service.rig import Rig, up, waited
from weft.cores.service.messages import (
    BEATS,
    Denied,
    Updated,
)
from weft.wire.catalog.messages import (
    AWK,
    DENIED,
    DISCONNECT,
    HEARTBEAT,
    UPDATE,
)


@pytest.mark.proves("CAT-018")
def test_a_change_is_said_and_kept_for_the_next_registration() -> None:
    rig = up(record={"ip": "10.0.0.9", "port": 9, "tags": ["a"]})
    rig.update(7, tags=["b"], port=None)
    assert {"name": "thermo", "id": "i1", "tags": ["b"], "port": None} == json.loads(rig.last().body[0])
    assert [] == rig.told()
    rig.say(AWK)
    assert [(7, Updated())] == rig.told()
    rig.say(DISCONNECT)
    waited(rig)
    told = rig.registration()
    assert (["b"], False) == (told["tags"], "port" in told)


@pytest.mark.proves("CAT-018")
def test_a_refused_change_is_forgotten() -> None:
    rig = up()
    rig.update(7, tags=3)
    rig.say(DENIED, Error="no list", code="bad-field", fields=["tags"])
    assert [(7, Denied("bad-field", "no list", ("tags",)))] == rig.told()
    assert ("UP", "tags" in rig.core.record) == (rig.state, False)


@pytest.mark.proves("CAT-018")
def test_changes_go_one_after_the_other() -> None:
    rig = up()
    for ticket in (1, 2, 3):
        rig.update(ticket, weight=ticket)
    assert [UPDATE] == rig.said()
    rig.say(AWK)
    rig.say(DENIED, Error="", code="bad-field")
    rig.say(AWK)
    assert [1, 2, 3] == [ticket for ticket, _ in rig.told()]
    assert 3 == rig.core.record["weight"]


@pytest.mark.proves("CAT-018")
def test_the_acknowledgement_of_a_beat_is_none_of_a_change() -> None:
    rig = up()
    rig.run(1.6)
    assert [HEARTBEAT] == rig.said()
    rig.update(1, weight=5)
    rig.told()
    rig.say(AWK)
    assert [] == rig.told()
    rig.say(AWK)
    assert [(1, Updated())] == rig.told()


@pytest.mark.proves("CAT-018", "BEA-021")
def test_a_change_that_is_not_answered_is_said_again_on_a_new_connection() -> None:
    rig = up()
    rig.update(1, weight=5)
    rig.run_with_beacons(2)
    assert "DROPPED" == rig.state
    waited(rig)
    rig.approve()
    assert UPDATE == rig.last().command
    rig.say(AWK)
    assert (1, Updated()) == rig.told()[-1]


@pytest.mark.proves("CAT-018")
def test_a_broker_that_knows_it_no_more_is_told_all_again_and_then_the_change() -> None:
    rig = up()
    rig.update(1, weight=5)
    rig.say(DENIED, Error="who?", code="not-registered")
    waited(rig)
    rig.approve()
    assert UPDATE == rig.last().command


def test_a_broker_that_answers_no_change_is_not_asked_for_ever() -> None:
    rig = up()
    rig.update(1, weight=5)
    answers: list[Any] = []
    while not answers:
        rig.run_with_beacons(1)
        if rig.state == "REGISTERING":
            rig.approve()
        answers = [event for event in rig.told() if isinstance(event, tuple)]
    assert ("UP", [(1, "unanswered")]) == (rig.state, [(ticket, told.code) for ticket, told in answers])


def test_a_change_of_the_interval_counts_at_once() -> None:
    rig = up(interval_ms=60_000)
    rig.update(1, heartbeat=100)
    rig.say(AWK)
    rig.run(1)
    assert 8 <= len(rig.said(BEATS)) <= 11


def test_changes_without_a_connection_wait_and_without_a_service_do_not() -> None:
    rig = Rig()
    rig.update(1, weight=1)
    rig.start()
    rig.update(2, weight=2)
    assert [1] == [ticket for ticket, _ in rig.told()]
    rig.approve()
    assert UPDATE == rig.last().command
    rig.stop()
    assert [(2, "closed")] == [(e[0], e[1].code) for e in rig.told() if isinstance(e, tuple)]
