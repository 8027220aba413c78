"""Tests a node's own ports at every start: if one accepts a stranger, the node does not start (SEC-051).

An option of libzmq may be missing in a build, or be ignored; so the behaviour itself is tested. Each port is tried without
keys, and with a key pair that no node knows.
"""

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Final, NamedTuple

import zmq
from zmq.utils.monitor import parse_monitor_message

from weft.shell.keys import Keys
from weft.shell.sockets import Context, Socket, connect_with

PATIENCE_S: Final = 3.0  # a port that has not answered until then has not accepted the stranger
LOOK_S: Final = 0.01  # between two looks at the tries
COUNTERPARTS: Final = {"ROUTER": "DEALER", "SUB": "PUB", "PUB": "SUB", "XPUB": "SUB"}
_ENDED: Final = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)


class Entrance(NamedTuple):
    """A port where a socket with keys is bound."""

    name: str
    endpoint: str
    """`tcp://host:port`."""
    socket: str
    """The type of the socket."""


class _Try(NamedTuple):
    door: Entrance
    monitor: Socket


async def open_entrances(entrances: Iterable[Entrance], server: str) -> list[Entrance]:
    """The entrances that accept a stranger; `server`: the node's public key."""
    context: Context = zmq.Context()
    stranger = Keys(*(each.decode() for each in zmq.curve_keypair()))
    with ExitStack() as closing:
        closing.callback(context.term)
        tries = [_begin(context, closing, door, keys, server) for door in entrances for keys in (None, stranger)]
        return list(dict.fromkeys(await _accepting(tries)))


def _begin(context: Context, closing: ExitStack, door: Entrance, keys: Keys | None, server: str) -> _Try:
    made = prober(context, closing, COUNTERPARTS[door.socket], door.endpoint)
    if keys is not None:
        connect_with(made, keys, server)
    monitor = watched(made, closing, int(_ENDED))
    made.connect(door.endpoint)
    return _Try(door, monitor)


def prober(context: Context, closing: ExitStack, kind: str, endpoint: str) -> Socket:
    """A socket of that type, to connect once and see whether it is accepted; `closing` closes it."""
    made = context.socket(getattr(zmq, kind))
    closing.callback(made.close, 0)
    made.setsockopt(zmq.LINGER, 0)
    made.setsockopt(zmq.IPV6, int("[" in endpoint))
    return made


def watched(made: Socket, closing: ExitStack, events: int) -> Socket:
    """The monitor of a socket that is not connected yet; `closing` closes it."""
    monitor = made.get_monitor_socket(events)
    closing.callback(monitor.close, 0)
    closing.callback(made.disable_monitor)
    return monitor


async def _accepting(tries: list[_Try]) -> list[Entrance]:
    """The entrances where a first handshake succeeded; returns when all tries have ended, or after `PATIENCE_S`."""
    loop, waiting, found = asyncio.get_running_loop(), list(tries), []
    ends_at = loop.time() + PATIENCE_S
    while waiting and loop.time() < ends_at:
        for each in [each for each in waiting if each.monitor.poll(0)]:
            waiting.remove(each)
            event = parse_monitor_message(each.monitor.recv_multipart())
            if event["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                found.append(each.door)
        await asyncio.sleep(LOOK_S)
    return found
