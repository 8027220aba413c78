"""Opens connections: the only module of the client libraries that connects (HSE-003).

Keys are applied here and nowhere else. The protocols over plain TCP have none.
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
    """An address to connect to, and the keys to use there."""

    endpoint: str
    """In ZeroMQ's form: `tcp://host:port` or `ipc:///path`."""
    curve: Curve | None = None
    """None: the connection is not encrypted and not authenticated."""


class BadEndpoint(UserError):
    """Not a valid endpoint; `reason` says why."""

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__("bad-endpoint", f"{endpoint}: {reason}", "ipc:///path/to/chains.sock or tcp://host:port")
        self.reason = reason


def dial(opened: "zmq.Socket[Any]", target: Target) -> None:
    """Connect a ZeroMQ socket, with the keys of the target. The other end may start later. Raises BadEndpoint."""
    if target.endpoint.startswith("tcp://["):
        opened.setsockopt(zmq.IPV6, 1)
    if target.curve is not None:
        opened.curve_serverkey, opened.curve_publickey, opened.curve_secretkey = target.curve
    try:
        opened.connect(target.endpoint)
    except zmq.ZMQError as error:
        raise BadEndpoint(target.endpoint, error.strerror or str(error)) from None


def listen(opened: "zmq.Socket[Any]", host: str, port: int) -> int:
    """Bind a ZeroMQ socket, and return its port; with `port` 0 a free one is chosen. zmq.ZMQError if it cannot be bound."""
    if ":" in host:
        opened.setsockopt(zmq.IPV6, 1)
        host = f"[{host}]"
    opened.bind(f"tcp://{host}:{port}")
    opened.setsockopt(zmq.BACKLOG, BACKLOG)
    return int(bytes(opened.get(zmq.LAST_ENDPOINT)).rstrip(b"\0").rpartition(b":")[2])


async def open_stream(protocol: Callable[[], P], target: Target) -> P:
    """Connect by TCP, without keys; OSError if nobody listens there."""
    host, _, port = target.endpoint.removeprefix("tcp://").rpartition(":")
    loop = asyncio.get_running_loop()
    transport, made = await loop.create_connection(protocol, host.strip("[]"), int(port))
    _keep_alive(transport.get_extra_info("socket"))
    return made


def _keep_alive(opened: socket.socket | None) -> None:
    """Let the kernel probe a silent connection: a machine that has lost power does not close it."""
    if opened is None or opened.family not in (socket.AF_INET, socket.AF_INET6):
        return
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE:
        if hasattr(socket, name):  # not every system has all of them
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
