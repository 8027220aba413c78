"""An intruder on a machine of its own connects to every port of nodes with keys, and notes what happens (SEC-027, CHK-021).

It has no key, an unknown key, or one that was rotated or revoked. Its messages are valid, so a node that accepted the
connection would accept it as a node. Only the port at which machines join admits unknown keys: there it has no token.
"""

import contextlib
import itertools
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, Final

import msgpack
import zmq

from weft.torture import limits
from weft.torture.book import Book
from weft.torture.clients import Machine
from weft.torture.files import DOCUMENT, STORES
from weft.torture.keys import Pair, pair_of
from weft.torture.plan import STRANGER
from weft.torture.room import step_into

PLAIN, UNKNOWN, FORMER, GUESSES = "plain", "unknown", "former", "guesses"
PORTS: Final = (*range(10), DOCUMENT)
WAYS: Final = (zmq.DEALER, zmq.SUB, zmq.PUB)
"""Kinds of sockets; each port of a node has the counterpart of one of them."""
EVIL: Final = b"e" * 16
AT: Final = b"10.77.0.66:27500"
WORDS: Final[list[list[bytes]]] = [
    [b"/MARCO", AT, EVIL, b'{"fleet":"torture","epoch":4000000,"count":1,"protocol":1}'],
    [b"", b"polo", AT, EVIL, b'{"fleet":"torture","name":"stranger","protocol":1}'],
    [b"", b"stop", AT, EVIL, b"{}"],
    [b"ICANHAZ?", b"/"],
    [
        msgpack.packb(
            {"op": "hello", "v": 1, "role": "node", "name": STRANGER, "id": EVIL, "era": 1, "first": 1, "next": 1}
        )
    ],
    [msgpack.packb({"op": "hello", "v": 1, "role": "client", "name": STRANGER, "id": EVIL})],
]
JOIN: Final = [b"JOIN", EVIL[:8], EVIL, 2 * EVIL, json.dumps({"name": STRANGER, "level": "collector"}).encode()]
REFUSED: Final = b"REFUSED"
BEACON: Final = b"WEFTN1 torture stranger " + EVIL.hex().encode() + b" root 27500 9"


class Try:
    """One socket that tries one port."""

    def __init__(self, port: int, who: str, made: "zmq.Socket[bytes]", monitor: "zmq.Socket[bytes]") -> None:
        self.port, self.who = port, who
        self.is_in = False
        """Whether a handshake succeeded."""
        self.heard: list[list[bytes]] = []
        self._made, self._monitor = made, monitor

    def look(self) -> None:
        """Handle events and answers; after a handshake, send all messages once."""
        if not self.is_in and self._monitor.poll(0):
            self._monitor.recv_multipart()
            self.is_in = True
            self._say([JOIN] if self.who == GUESSES else WORDS)
        while self._made.type != zmq.PUB and self._made.poll(0):
            self.heard.append(self._made.recv_multipart())

    def _say(self, words: list[list[bytes]]) -> None:
        with contextlib.suppress(zmq.ZMQError):  # a SUB says nothing, and nobody may listen
            for frames in words:
                self._made.send_multipart(frames, zmq.DONTWAIT)


class Stranger(threading.Thread):
    """Tries the ports of machines in `wanted`, again and again while a fault asks for it, until `end`."""

    def __init__(self, machines: dict[str, Machine], wanted: Counter[str], book: Book) -> None:
        super().__init__(name=STRANGER, daemon=True)
        self.knocks = 0
        self._machines, self._wanted, self._book = machines, wanted, book
        self._is_over = threading.Event()

    def run(self) -> None:
        """Try one machine after the other until `end`."""
        step_into(self._machines[STRANGER].namespace)
        while not self._is_over.wait(limits.KNOCKS_PAUSE_S):
            for name in sorted(+self._wanted):
                self.knock(self._machines[name])

    def end(self) -> None:
        """Stop."""
        self._is_over.set()
        self.join(limits.ANSWER_S)

    def knock(self, at: Machine, former: Iterable[Pair] = ()) -> None:
        """Try all ports of a machine, and note the result of each; in a thread on the stranger's machine."""
        server = pair_of(at.state)
        if server is None:
            return
        made = Pair(*(half.decode() for half in zmq.curve_keypair()))
        callers = [(PLAIN, None), (UNKNOWN, made), *((FORMER, each) for each in former)]
        self._shout(at)
        for way in WAYS:
            self._knock_with(way, at, server.public, callers)

    def knock_once(self, _: Machine, __: "zmq.Context[Any]", at: Machine, former: list[Pair]) -> None:
        """The same, for a desk at the stranger's machine."""
        self.knock(at, former)

    def _knock_with(self, way: int, at: Machine, server: str, callers: "list[tuple[str, Pair | None]]") -> None:
        """Let all callers try all ports at once."""
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        with ExitStack() as closing:
            closing.callback(context.term)
            tries = []
            for port, (who, pair) in itertools.product(PORTS, callers):
                is_guess = port == _door(at) and pair is not None
                made = connected(closing, context.socket(way), f"tcp://{at.host}:{at.port + port}", pair, server)
                tries.append(Try(port, GUESSES if is_guess else who, *made))
            ends_at = time.monotonic() + limits.KNOCK_S
            while time.monotonic() < ends_at:
                for each in tries:
                    each.look()
                time.sleep(limits.KNOCK_LOOK_S)  # tidy: a refused socket gets no event; bounded above
            for each in tries:
                self._note(at, each)

    def _note(self, at: Machine, each: "Try") -> None:
        """Note a try in the form that the checker `sealed` reads; a refusal at the joining port counts as one."""
        self.knocks += 1
        refused = sum(frames[:1] == [REFUSED] for frames in each.heard) if each.who == GUESSES else 0
        value = [each.who, f"+{each.port}", each.is_in, refused, refused, False, len(each.heard) - refused]
        self._book.note(at.name, "info", "knocked", value)

    def _shout(self, at: Machine) -> None:
        """Send the beacon of an unknown root."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
            made.sendto(BEACON, (at.host, at.port))


def connected(
    closing: ExitStack, made: "zmq.Socket[bytes]", endpoint: str, pair: Pair | None, server: str
) -> "tuple[zmq.Socket[bytes], zmq.Socket[bytes]]":
    """A socket, connected with that pair, and its monitor; `closing` closes both."""
    closing.callback(made.close, 0)
    made.setsockopt(zmq.LINGER, 0)
    if made.type == zmq.SUB:
        made.setsockopt(zmq.SUBSCRIBE, b"")
    if pair is not None:
        made.setsockopt(zmq.CURVE_SERVERKEY, server.encode())
        made.setsockopt(zmq.CURVE_PUBLICKEY, pair.public.encode())
        made.setsockopt(zmq.CURVE_SECRETKEY, pair.secret.encode())
    monitor = made.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    closing.callback(monitor.close, 0)
    closing.callback(made.disable_monitor)
    made.connect(endpoint)
    return made, monitor


def _door(at: Machine) -> int:
    """The port at which machines join: the last of the root's ten, or the one before if the store has that one."""
    return 8 if at.name in STORES else 9
