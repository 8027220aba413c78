"""The life of a service's connection to its broker, in virtual time (CAT-023)."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.service.rig import EPOCH, OTHER, SEED, WALL, Rig, up, waited
from weft.cores.service.core import Service
from weft.cores.service.messages import (
    BEACONS,
    BEATS,
    BROKER,
    Denied,
    Dropped,
    Registered,
)
from weft.cores.service.states import TABLE, On, State
from weft.wire.catalog.messages import (
    APPROVED,
    AWK,
    COMMANDS,
    DENIED,
    DENIED_TOO,
    DISCONNECT,
    HEARTBEAT,
    REGISTRATION,
    Beacon,
    Beat,
    Beats,
    Message,
)


@pytest.mark.proves("CAT-023", "CAT-013")
def test_a_service_dials_its_seed_and_says_all_of_itself() -> None:
    rig = Rig(id="t1", record={"ip": "10.0.0.9", "port": 9, "tags": ["lab"]}, interval_ms=500)
    rig.start()
    expected = {
        "name": "thermo",
        "id": "t1",
        "heartbeat": 500,
        "ip": "10.0.0.9",
        "port": 9,
        "tags": ["lab"],
        "beacon": False,
    }
    assert ([SEED], expected) == (rig.dialled, rig.registration())
    assert ("REGISTERING", [REGISTRATION]) == (rig.state, rig.said())


@pytest.mark.proves("CAT-023", "BEA-014")
def test_an_approval_says_what_was_agreed() -> None:
    rig = Rig()
    rig.start()
    rig.approve(heartbeat=4000)
    assert ("UP", [Registered(SEED, "i1", EPOCH, 4000)]) == (rig.state, rig.told())


@pytest.mark.proves("BEA-014")
@pytest.mark.parametrize(
    "body",
    [
        (),
        (b"",),
        (b"no json",),
        (b"[1]",),
        (b'{"heartbeat":"x","liveness":99,"hb":-1,"epoch":7}',),
        (b"[" * 9999,),
        (b'{"a":"\xff"}',),
    ],
)
def test_an_empty_or_odd_approval_is_accepted(body: tuple[bytes, ...]) -> None:
    rig = Rig()
    rig.start()
    rig.say(APPROVED, *body)
    assert ("UP", [Registered(SEED, "", "", 1000)]) == (rig.state, rig.told())


@pytest.mark.proves("BEA-014")
def test_an_interval_is_lengthened_and_never_shortened() -> None:
    rig = Rig()
    rig.start()
    rig.approve(heartbeat=100)
    assert 1000 == rig.told()[0].interval_ms


@pytest.mark.proves("CAT-023")
def test_no_answer_in_two_seconds_means_a_new_socket_ever_later() -> None:
    rig = Rig()
    rig.start()
    waits = []
    for _ in range(9):
        rig.run(1.999)
        assert "REGISTERING" == rig.state
        rig.run(0.001)
        assert "DROPPED" == rig.state
        waits.append(waited(rig))
    doubled = [0.25, 0.5, 1, 2, 4, 8, 8, 8, 8]
    assert [True] * 9 == [0.8 * want <= wait <= 1.2 * want + 0.001 for want, wait in zip(doubled, waits, strict=True)]
    assert 9 == len(set(waits)), "always the same is no chance"


@pytest.mark.proves("CAT-023", "BEA-004")
def test_seeds_take_their_turns() -> None:
    rig = Rig(seeds=("a:1", "b:2", "c:3"))
    rig.start()
    for _ in range(3):
        rig.run(2)
        waited(rig)
    assert ["a:1", "b:2", "c:3", "a:1"] == rig.dialled


@pytest.mark.proves("CAT-023")
@pytest.mark.parametrize("code", ["name-taken", "limit"])
@pytest.mark.parametrize("word", [DENIED, DENIED_TOO])
def test_what_may_pass_is_tried_again_on_a_new_socket(code: str, word: bytes) -> None:
    rig = Rig()
    rig.start()
    rig.say(word, Error="not now", code=code)
    assert ("DROPPED", [Denied(code, "not now", (), is_final=False)]) == (rig.state, rig.told())
    assert 0.2 <= waited(rig) <= 0.301
    rig.approve()
    assert "UP" == rig.state


@pytest.mark.proves("CAT-023")
def test_any_other_refusal_is_final() -> None:
    rig = Rig()
    rig.start()
    rig.say(DENIED, Error="no tags", code="bad-field", fields=["tags"])
    assert [Denied("bad-field", "no tags", ("tags",))] == rig.told()
    rig.run(100)
    assert ("DENIED", [SEED], None) == (rig.state, rig.dialled, rig.core.deadline())


@pytest.mark.proves("CAT-023")
def test_who_was_refused_may_be_started_again() -> None:
    rig = Rig()
    rig.start()
    rig.say(DENIED, b"\xff nothing that can be read")
    assert "denied" == rig.told()[0].code
    rig.start()
    assert "REGISTERING" == rig.state


@pytest.mark.proves("CAT-023", "BEA-021")
def test_told_to_disconnect_it_comes_back_on_a_new_socket_within_an_interval() -> None:
    waits = []
    for name in "abcdefgh":
        rig = up(name=name)
        rig.say(DISCONNECT)
        assert ([Dropped("told")], False) == (rig.told(), rig.is_open)
        waits.append(waited(rig))
        rig.approve(epoch=OTHER)
        assert "UP" == rig.state
    assert (True, 8) == (max(waits) <= 1.001, len(set(waits)))


@pytest.mark.proves("CAT-023")
def test_words_of_an_older_connection_are_not_heard() -> None:
    rig = up()
    old = rig.core.tag
    rig.say(DISCONNECT)
    waited(rig)
    rig.hear(Message(APPROVED), peer=old)
    assert "REGISTERING" == rig.state


@pytest.mark.proves("CAT-023")
def test_stopping_is_said_on_the_connection_and_then_there_is_silence() -> None:
    rig = up()
    rig.stop()
    assert ((b"thermo", b"i1"), "STOPPED", False) == (rig.last().body, rig.state, rig.is_open)
    assert [DISCONNECT] == rig.said()
    rig.beacon(id=OTHER)
    rig.run(100)
    assert ([], [], None) == (rig.said(), rig.said(BEATS), rig.core.deadline())


@pytest.mark.proves("CAT-023", "BEA-010")
def test_without_a_connection_goodbye_is_said_by_datagram() -> None:
    rig = up()
    rig.say(DISCONNECT)
    rig.stop()
    assert ([DISCONNECT], []) == (rig.said(BEATS), rig.said())


@pytest.mark.proves("CAT-023")
@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
@pytest.mark.parametrize("on", list(On), ids=lambda on: on.name)
def test_every_row_of_the_table_leads_where_it_says(state: State, on: On) -> None:
    rig = up()
    rig.core.state = state
    cell = TABLE.get((state, on))
    rig.core._turn(on, Message(DENIED) if on in (On.PUT_OFF, On.REFUSED) else Message(APPROVED), rig.now)
    assert (cell.then if cell else state) == rig.core.state


WORDS = st.sampled_from([*sorted(COMMANDS), b"?"])
BODIES = st.lists(
    st.sampled_from([b"", b"thermo", b"udp", b"\xff", b'{"code":"limit"}', b'{"hb":1,"dbp":1}']), max_size=4
)
MESSAGES = st.builds(lambda word, body: (BROKER, Message(word, b"", tuple(body))), WORDS, BODIES)
BEACON = st.builds(
    lambda port, epoch, ip: (BEACONS, Beacon(port, dbp=1, id=epoch, hb=port), ip),
    st.sampled_from([0, 5246, 5247]),
    st.sampled_from(["", EPOCH, OTHER]),
    st.sampled_from([b"10.0.0.1", b"10.0.0.2", b"\xff"]),
)
DATAGRAM = st.builds(lambda word: (BEATS, Beats((Beat(word, "thermo", 1.0),))), st.sampled_from([AWK, HEARTBEAT]))
STEPS = st.lists(
    st.one_of(
        MESSAGES, BEACON, DATAGRAM, st.floats(0, 5), st.sampled_from(["start", "stop", "update", "approve", "sleep"])
    ),
    max_size=40,
)


def play(steps: list[Any], wrong_by: int) -> Rig:
    """One story, under a wall clock that is wrong by so much."""
    rig = Rig(seeds=() if len(steps) % 2 else (SEED,))
    rig.wrong_by = wrong_by
    orders: dict[str, Callable[[], None]] = {
        "start": rig.start,
        "stop": rig.stop,
        "approve": rig.approve,
        "sleep": partial(rig.sleep, 20),
    }
    for step in steps:
        if isinstance(step, float):
            rig.run(step)
        elif step == "update":
            rig.update(1, weight=1)
        elif isinstance(step, str):
            orders[step]()
        else:
            channel, message, *peer = step
            rig.hear(message, channel, *peer)
    return rig


@pytest.mark.proves("CAT-081", "CAT-023")
@given(STEPS)
def test_whatever_is_said_to_it_one_socket_is_open_and_it_registers_in_the_end(steps: list[Any]) -> None:
    rig = play(steps, 0)
    rig.start()
    if rig.state == "IDLE":
        rig.beacon()
    for _ in range(1_000):
        if rig.state == "REGISTERING":
            rig.approve()
        if rig.state == "UP":
            break
        rig.run(0.1)
    assert "UP" == rig.state
    assert len(rig.core._brokers._heard) <= 16


@pytest.mark.proves("CAT-012")
@given(STEPS, st.integers(-WALL, WALL))
@settings(max_examples=30)
def test_no_wall_clock_changes_what_it_does(steps: list[Any], wrong_by: int) -> None:
    def story(wrong_by: int) -> list[Any]:
        log = play(steps, wrong_by).log
        return [(at, on, getattr(what, "command", getattr(what, "word", what))) for at, on, what in log]

    assert story(0) == story(wrong_by)


def test_nothing_of_a_service_is_kept() -> None:
    rig = up()
    assert [] == list(rig.core.condense())
    rig.core.restore([], rig.now)
    assert ("UP", "service") == (rig.state, Service.name)
