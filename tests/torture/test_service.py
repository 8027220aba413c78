"""The service of `weft torture` lives on under its name, whatever becomes of its connections (FLD-040)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from tests.patience import PATIENCE_MS
from tests.weather import greet_wrongly
from weft.checks import Acknowledged, judge
from weft.checks.history import Fact, Violation
from weft.torture import limits
from weft.torture.book import Book
from weft.torture.clients import Machine, Service

LOCAL = "127.0.0.1"


class Broker:
    """What the service hears; the test says what the broker says."""

    def __init__(self) -> None:
        self._open()
        self.port = self._router.bind_to_random_port(f"tcp://{LOCAL}")
        self.who = b""

    def _open(self) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)

    def registration(self) -> dict[str, Any]:
        """Wait for the next one, and approve it; the service has heard that."""
        self.who, record = self._heard(b"UwU")
        self.say(b"", b"OwO")
        self.say(b"", b"<3")
        self._heard(b"u.u")
        return dict(json.loads(record))

    def _heard(self, command: bytes) -> tuple[bytes, bytes]:
        """Who says it next, and what comes with it."""
        while self._router.poll(PATIENCE_MS):
            who, _, said, _, *body = self._router.recv_multipart()
            if said == command:
                return who, b"".join(body)
        raise AssertionError(f"nobody says {command!r}")

    def say(self, *frames: bytes) -> None:
        self._router.send_multipart([self.who, *frames])

    def ping(self, port: int, *frames: bytes) -> list[bytes]:
        caller = self._context.socket(zmq.DEALER)
        try:
            caller.connect(f"tcp://{LOCAL}:{port}")
            for message in (frames, (b"", b"ping", b"when")):
                caller.send_multipart(message)
            return caller.recv_multipart() if caller.poll(PATIENCE_MS) else []
        finally:
            caller.close(0)

    def close(self) -> None:
        self._context.destroy(0)

    def greets_wrongly(self) -> None:
        """Go, and let the next connection hear a greeting that was altered on the way; then be back."""
        self.close()
        greet_wrongly(LOCAL, self.port)
        self._open()
        self._router.bind(f"tcp://{LOCAL}:{self.port}")


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    made = Book(tmp_path / "history.jsonl")
    yield made
    made.close()


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    yield made
    made.close()


@pytest.fixture
def service(book: Book, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(limits, "CATALOG_BEAT_S", 0.2)
    made = Service(Machine("sensor-5", LOCAL, 0, "", tmp_path), book, "seed", f"{LOCAL}:{broker.port}")
    made.start()
    yield made
    made.end()
    assert "" == made.fault


def verdict(book: Book, listed: dict[str, str]) -> Any:
    """Of a run that ends now, where the broker lists these."""
    ends = [Fact(0, "", 0, "info", "replica", ["catalog", listed]), Fact(0, "", 0, "info", "quiet", None)]
    return judge(Acknowledged(), [*book.facts, *ends])


@pytest.mark.proves("FLD-040", part="a service whose connection libzmq has given up registers again as the same")
def test_bytes_that_are_no_zmtp_end_a_connection_and_not_the_service(
    book: Book, broker: Broker, service: Service
) -> None:
    name = broker.registration()["name"]
    broker.greets_wrongly()
    assert name == broker.registration()["name"]
    assert verdict(book, {name: "active"}) is None
    found = verdict(book, {})
    assert isinstance(found, Violation)
    assert found.why.endswith(f"1 acknowledged and lost at : {name}")


@pytest.mark.parametrize("frames", [(b"",), (b"", b"(O_O)"), (b"", b"</3")], ids=["altered", "unknown", "goodbye"])
def test_who_is_unknown_or_heard_half_a_message_registers_again_as_the_same(
    broker: Broker, service: Service, frames: tuple[bytes, ...]
) -> None:
    name = broker.registration()["name"]
    broker.say(*frames)
    assert name == broker.registration()["name"]


def test_half_a_ping_has_no_answer_and_the_next_has_one(broker: Broker, service: Service) -> None:
    record = broker.registration()
    assert [b"", b"pong", b"when", record["name"].encode()] == broker.ping(record["port"], b"ping")
