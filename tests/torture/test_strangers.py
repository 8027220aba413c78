"""Strangers at ports: who asks for keys gives them nothing, and a port that lets them in, or answers, is called by its name."""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from tests.torture.test_judge import MEMBERS
from weft.base.keys import Binding, KeyTable
from weft.checks import Sealed, judge
from weft.checks.history import Unknown, Violation
from weft.shell.blocks import free_blocks
from weft.shell.keymaking import make_keys, new_pair
from weft.shell.keys import Keys
from weft.shell.sockets import Credentials, Shape, Socket, make_socket
from weft.shell.zap import Gatekeeper
from weft.torture import limits
from weft.torture.book import Book
from weft.torture.clients import Machine
from weft.torture.keys import Pair, pair_of
from weft.torture.strangers import JOIN, Stranger

PORT_OF_JOINS = 9
KNOWN = new_pair()


class Node(threading.Thread):
    """One port of a node in a thread of its own, which hears what comes, and may answer."""

    def __init__(self, port: int, keys: Keys, how: str, answer: list[bytes]) -> None:
        super().__init__(daemon=True)
        self.heard: list[list[bytes]] = []
        self.is_over, self.is_ready = threading.Event(), threading.Event()
        self._port, self._keys, self._how, self._answer = port, keys, how, answer

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        context: zmq.Context[Socket] = zmq.Context()
        table = KeyTable.of([(b"n" * 16, Binding(curve=(KNOWN.public,), name="n", roles=("sensor",)))])
        keeper = Gatekeeper(context, table)
        made = make_socket(context, Shape("ROUTER", is_bound=True, sends=100, hears=100))
        if self._how == "keys":
            keeper.open()
            Credentials(self._keys, table).serve(made)
        elif self._how == "any key":
            made.setsockopt(zmq.CURVE_SERVER, 1)
            made.setsockopt(zmq.CURVE_SECRETKEY, self._keys.secret.encode())
        made.bind(f"tcp://127.0.0.1:{self._port}")
        self.is_ready.set()
        while not self.is_over.is_set():
            while made.poll(0):
                peer, *frames = made.recv_multipart()
                self.heard.append(frames)
                if self._answer:
                    made.send_multipart([peer, *self._answer])
            await asyncio.sleep(0.01)  # tidy: whoever knocks tells this thread nothing; `is_over` ends it
        made.close(0)
        keeper.close()
        context.term()


@contextlib.contextmanager
def node(place: Path, how: str, answer: list[bytes], offset: int) -> Iterator[tuple[Machine, Node]]:
    at = Machine("sensor-5", "127.0.0.1", free_blocks(1, 31_000, ports=15)[0], "", place, is_closed=True)
    made = Node(at.port + offset, make_keys(place), how, answer)
    made.start()
    assert made.is_ready.wait(10)
    yield at, made
    made.is_over.set()
    made.join(10)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KNOCK_S", 0.5)


CASES = {
    "a node that asks for keys": ("keys", [], 1, ""),
    "one that lets anybody in": ("none", [], 1, "plain, whose key nobody knows, came in at `+1` of sensor-5"),
    "one that takes any key": ("any key", [], 1, "unknown, whose key nobody knows, came in at `+1` of sensor-5"),
    "a door that refuses": ("any key", [b"REFUSED", b"unknown-token", b""], PORT_OF_JOINS, ""),
    "a door that welcomes": (
        "any key",
        [b"WELCOME", b"{}"],
        PORT_OF_JOINS,
        "guesses was answered 1 times at `+9` of sensor-5",
    ),
}


@pytest.mark.proves("FLD-040", part="strangers: a node that lets them in, or answers them, is found")
@pytest.mark.proves("CHK-021", part="of a real fabric, too, with keys that were renewed or revoked")
@pytest.mark.parametrize(("how", "answer", "offset", "expected"), CASES.values(), ids=CASES)
def test_a_port_that_lets_strangers_in_or_answers_them_is_named(
    tmp_path: Path, how: str, answer: list[bytes], offset: int, expected: str
) -> None:
    book = Book(tmp_path / "history")
    with node(tmp_path, how, answer, offset) as (at, served):
        Stranger({}, Counter(), book).knock(at)
    book.close()
    found = judge(Sealed(), [MEMBERS, *book.facts])
    assert expected == why(found)
    assert (how != "keys") == bool(served.heard)
    assert offset != PORT_OF_JOINS or served.heard == [JOIN]


def test_who_had_a_key_that_is_known_still_comes_in(tmp_path: Path) -> None:
    book = Book(tmp_path / "history")
    with node(tmp_path, "keys", [], 1) as (at, _):
        Stranger({}, Counter(), book).knock(at, [Pair(KNOWN.public, KNOWN.secret)])
    book.close()
    assert "former, whose key nobody knows, came in at `+1` of sensor-5" == why(judge(Sealed(), book.facts))


def test_a_pair_is_read_from_a_disk_as_it_was_written(tmp_path: Path) -> None:
    assert pair_of(tmp_path) is None
    made = make_keys(tmp_path)
    assert Pair(made.public, made.secret) == pair_of(tmp_path)


def why(found: Violation | Unknown | None) -> str:
    return "" if found is None else found.why
