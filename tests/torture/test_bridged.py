"""What clients of two bridged brokers say and take for an answer, without a network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from weft.torture import bridged
from weft.torture.book import Book
from weft.torture.bridged import CALL, REPLY, Caller, Far, sealed, unsealed
from weft.torture.clients import Away, Machine


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Far]:
    book = Book(tmp_path / "history")
    yield Far(Machine("sensor-2", "127.0.0.1", 1, "", tmp_path), book, "1", "127.0.0.1:2")
    book.close()


def test_a_call_is_served_with_the_name_of_who_serves_it_and_counted(far: Far) -> None:
    asked = [b"peer", b"b5", b"", CALL, b"now", sealed("sensor-1 7")]
    assert [b"peer", b"b5", b"", REPLY, b"now", sealed("sensor-2-1 sensor-1 7")] == far.answer("sensor-2-1", asked)
    assert {"sensor-1 7": 1} == far.served
    far.answer("sensor-2-1", asked)
    assert {"sensor-1 7": 2} == far.served, "whoever carries a call twice is found out"


def test_what_was_altered_on_the_way_is_no_call_and_a_probe_is_still_answered(far: Far) -> None:
    altered = sealed("sensor-1 7").replace(b"7", b"6")
    assert [] == far.answer("sensor-2-1", [b"peer", b"b5", b"", CALL, b"now", altered])
    assert ("", {}) == (unsealed(altered), dict(far.served))
    assert [b"peer", b"", b"pong", b"now", b"sensor-2-1"] == far.answer("sensor-2-1", [b"peer", b"", b"ping", b"now"])
    assert [] == far.answer("sensor-2-1", [b"peer", b"nothing"])


@pytest.mark.parametrize(
    ("said", "place"),
    [
        (b'{"a@far":{"ip":"10.77.0.2","port":5256,"_dbp":{}}}', "tcp://10.77.0.2:5256"),
        (b'{"a@far":{"hp":"10.77.0.2","port":5256,"_dbp":{}}}', ""),
        (b'{"b@far":{"ip":"10.77.0.2","port":5256,"_dbp":{}}}', ""),
        (b'{"a@far":{"ip":"10.77.0.2","port":5256,"_dbp":{},"inte\xf2val":1}}', None),
        (b'{"a@far":{"ip":"10.77.0.2","port":5256,"_dbp"z{}}}', None),
    ],
)
def test_an_answer_of_the_broker_that_was_altered_on_the_way_ends_no_caller(
    far: Far, monkeypatch: pytest.MonkeyPatch, said: bytes, place: str | None
) -> None:
    caller = Caller(far.at, far.book, "1", "127.0.0.1:2", [far])
    caller.context = zmq.Context()
    monkeypatch.setattr(bridged, "requested", lambda *_: [REPLY, b"now", said])
    if place is None:
        with pytest.raises(Away):
            caller._place("a@far")
    else:
        assert place == caller._place("a@far")
    caller.context.term()


def test_an_answer_that_is_anothers_is_no_acknowledgement(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Caller(far.at, far.book, "1", "127.0.0.1:2", [far])
    caller.context = zmq.Context()
    said = iter(["sensor-2-1 sensor-2 9", "sensor-4-1 sensor-2 2", "sensor-2-1 sensor-2 3"])
    monkeypatch.setattr(bridged, "requested", lambda *_: [REPLY, b"now", sealed(next(said))])
    for expected in (1, 2, 2):
        caller._call("sensor-2-1", "tcp://127.0.0.1:3")
        assert expected == caller.misanswered
    assert {"calls": 1} == far.book.acknowledged()
    caller.context.term()
