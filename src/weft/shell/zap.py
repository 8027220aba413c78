"""Decides at every handshake whether a peer may connect: libzmq asks this handler (ZAP 1.0; SEC-010, SEC-011).

Sockets are made with `ZAP_ENFORCE_DOMAIN`, so that no peer can connect without a handler. The handler only checks that a
key is known; permissions are checked for every message (SEC-012). Its table is replaced as a whole.
"""

import asyncio
from collections import Counter
from functools import partial
from typing import Any, Final

import zmq

from weft.base.keys import KeyTable
from weft.node.handshake import decide
from weft.shell.crowd import Crowd, Knock, hang_up, peer_of
from weft.shell.monitors import Monitors

ENDPOINT: Final = "inproc://zeromq.zap.01"
OUTCOMES: Final = ("ok", "unknown-key", "role", "no-key", "domain", "malformed", "no-handshake", "crowd", "too-much")
"""Outcomes of a handshake: those of `Verdict.why`, and three more.

`no-handshake`: libzmq refused without asking. `crowd`: too many connections, of one address or in all, had not proved a
key, and this one was the oldest. `too-much`: it had sent more than a handshake needs.
"""
LOOK_S: Final = 0.1  # between two looks at connections without a proof; in between they may send too much
TURN_MAX: Final = 256  # handshakes in one callback, so that a crowd of strangers cannot starve the node
NOW: Final = zmq.NOBLOCK
_REFUSED: Final = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
_WATCHED: Final = _REFUSED | zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED


class Gatekeeper:
    """Answers the requests of one ZeroMQ context in the running loop, from `open` to `close`."""

    def __init__(self, context: "zmq.Context[Any]", table: KeyTable) -> None:
        self.table = table
        """The keys that it knows; it may be replaced at any time, and decides the next request."""
        self.decided: Counter[str] = Counter()
        """Handshakes by outcome. For `no-handshake`, the peer had no keys, expected another key here, or sent a recorded
        handshake again."""
        self.last_refused = ""
        """The address of the peer that was refused last, if it is known."""
        self.crowd = Crowd()
        """The connections that have not proved a key."""
        self._failed: set[int] = set()
        """Sockets at which a handshake has failed; the event that a connection has ended follows, and says which."""
        self._sent_away: set[tuple[int, int]] = set()
        """Connections, by socket and descriptor, that this node ends, and has counted."""
        self._monitors = Monitors(context)
        self._context = context
        self._socket: zmq.Socket[bytes] | None = None
        self._looking: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Begin to answer, before the first socket of the context is bound."""
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(ENDPOINT)
        asyncio.get_running_loop().add_reader(self._socket.FD, self._read)

    def forget(self) -> None:
        """Reset the counts: so far they come from the node's own tries."""
        self.decided.clear()
        self.last_refused = ""

    def watch(self, made: "zmq.Socket[Any]") -> None:
        """Count peers that libzmq refuses at a socket without asking: without keys, or with a wrong key for this node.

        Also note connections and their ends there, so that those without a proof stay within limits (SEC-053).
        """
        self._monitors.watch(made, _WATCHED, partial(self._note, id(made)))

    def ignore(self, made: "zmq.Socket[Any]") -> None:
        """Stop watching a socket, before it is closed."""
        if self._monitors.ignore(made):
            self.crowd.leave(id(made))
            self._failed.discard(id(made))
            self._sent_away = {each for each in self._sent_away if each[0] != id(made)}

    def _note(self, door: int, event: int, value: int, _: str) -> None:
        if event == zmq.EVENT_ACCEPTED:
            self._note_came(door, value)
        elif event == zmq.EVENT_DISCONNECTED:
            self._note_went(door, value)
        else:
            self._failed.add(door)

    def _note_came(self, door: int, fd: int) -> None:
        peer = peer_of(fd)
        gone = self.crowd.came(Knock(door, fd, peer), asyncio.get_running_loop().time()) if peer else None
        if gone is not None:
            self._send_away(gone, "crowd")
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _note_went(self, door: int, fd: int) -> None:
        """Count a failed handshake, unless this node has ended the connection and counted why."""
        self.crowd.went(door, fd)
        if (door, fd) not in self._sent_away and door in self._failed:
            self.decided["no-handshake"] += 1
        self._failed.discard(door)
        self._sent_away.discard((door, fd))

    def _look(self) -> None:
        """End connections that have sent too much without a proof; look again while there are some without one."""
        for knock in self.crowd.loud():
            self._send_away(knock, "too-much")
        self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look) if len(self.crowd) else None

    def _send_away(self, knock: Knock, why: str) -> None:
        if hang_up(knock):
            self._sent_away.add((knock.door, knock.fd))
            self.decided[why] += 1
            self.last_refused = knock.peer[0]

    def close(self) -> None:
        """Stop answering; without an answer libzmq refuses every peer."""
        self._monitors.close()
        if self._looking is not None:
            self._looking.cancel()
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket.FD)
            self._socket.close()
            self._socket = None

    def _read(self) -> None:
        for _ in range(TURN_MAX):
            if self._socket is None:
                return
            try:
                peer, _, *request = self._socket.recv_multipart(NOW)
            except zmq.Again:
                return
            verdict = decide(request, self.table)
            self.decided[verdict.why] += 1
            if not verdict.allowed:
                self.last_refused = verdict.address
            self._socket.send_multipart([peer, b"", *verdict.frames], NOW)
        asyncio.get_running_loop().call_soon(self._read)  # the descriptor is edge-triggered
