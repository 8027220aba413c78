"""Opens connections: the only module of the client libraries that connects (HSE-003).

Credentials are applied here and nowhere else, whether ZeroMQ or TCP carries the protocol.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import zmq

from weft.base.errors import UserError
from weft.client.link.limits import BACKLOG, IDLE_S, PROBE_INTERVAL_S, PROBES_MAX

P = TypeVar("P", bound=asyncio.BaseProtocol)
KEEP_ALIVE: Final = (
    ("TCP_KEEPIDLE", IDLE_S),
    ("TCP_KEEPINTVL", PROBE_INTERVAL_S),
    ("TCP_KEEPCNT", PROBES_MAX),
)


class Curve(NamedTuple):
    """Keys in Z85: the node's, and this program's own."""

    server: bytes
    public: bytes
    secret: bytes

    def __repr__(self) -> str:
        return f"Curve(server={self.server!r}, public={self.public!r}, secret=...)"  # SEC-047


class Target(NamedTuple):
    """The other end of a connection, and who we are there."""

    endpoint: str
    """As ZeroMQ has it: `tcp://host:port` or `ipc:///path`."""
    curve: Curve | None = None
    """None: the connection is not encrypted and not authenticated."""


class BadEndpoint(UserError):
    """Not a valid endpoint; `reason` says why."""

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__("bad-endpoint", f"{endpoint}: {reason}", "ipc:///path/to/chains.sock or tcp://host:port")
        self.reason = reason


def dial(opened: "zmq.Socket[Any]", target: Target) -> None:
    """Connect a ZeroMQ socket, with the credentials of the target; whoever is not there may come later. BadEndpoint."""
    if target.endpoint.startswith("tcp://["):
        opened.setsockopt(zmq.IPV6, 1)
    if target.curve is not None:
        opened.curve_serverkey, opened.curve_publickey, opened.curve_secretkey = target.curve
    try:
        opened.connect(target.endpoint)
    except zmq.ZMQError as error:
        raise BadEndpoint(target.endpoint, error.strerror or str(error)) from None


def listen(opened: "zmq.Socket[Any]", host: str, port: int) -> int:
    """Let others connect to a ZeroMQ socket; the port that it is, where `port` is 0. zmq.ZMQError if it cannot be bound."""
    if ":" in host:
        opened.setsockopt(zmq.IPV6, 1)
        host = f"[{host}]"
    opened.bind(f"tcp://{host}:{port}")
    opened.setsockopt(zmq.BACKLOG, BACKLOG)
    return int(bytes(opened.get(zmq.LAST_ENDPOINT)).rstrip(b"\0").rpartition(b":")[2])


async def open_stream(protocol: Callable[[], P], target: Target) -> P:
    """Connect by TCP, with the credentials of the target; OSError if nobody listens there."""
    host, _, port = target.endpoint.removeprefix("tcp://").rpartition(":")
    loop = asyncio.get_running_loop()
    transport, made = await loop.create_connection(protocol, host.strip("[]"), int(port))
    _keep_alive(transport.get_extra_info("socket"))
    return made


def _keep_alive(opened: socket.socket | None) -> None:
    """Let the kernel detect a machine that has lost its power, because that sends nothing."""
    if opened is None or opened.family not in (socket.AF_INET, socket.AF_INET6):
        return
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE:
        if hasattr(socket, name):  # each system has its own
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
