"""Relays of a broker for services of other networks: one ROUTER each, opened by the catalog's orders (BRI-011)."""

import asyncio
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any, Final

import psutil
import zmq

from weft.base.effects import Source
from weft.base.endpoints import is_loopback
from weft.cores.catalog.messages import CloseRelay, OpenRelay, RelayOpened
from weft.node.catalogtable import SPARE_PORTS
from weft.shell.links import Links
from weft.shell.runner import Runner
from weft.shell.sockets import Shape, Socket, make_socket

SHAPE: Final = Shape("ROUTER", is_bound=True, sends=1_000, hears=64)
CHANNEL: Final = "catalog-relay"
BUDGET: Final = 64  # messages of one relay per turn of the loop
FRAMES_MAX: Final = 80
BETWEEN: Final = b"\0"
"""Separates the tag of a relay from the id of its peer; no tag contains it."""


class Relays:
    """All open relays."""

    def __init__(self, host: str, runner: Runner, links: Links) -> None:
        self._host, self._runner, self._links = host, runner, links
        self._doors: dict[bytes, Socket] = {}
        runner.performers |= self.performers()
        runner.doors[CHANNEL] = self.say

    def performers(self) -> dict[type, Callable[[Any], None]]:
        """The functions that carry out the catalog's orders."""
        return {OpenRelay: self._open, CloseRelay: self._close}

    def close(self) -> None:
        """Close all relays."""
        for tag in list(self._doors):
            self._close(CloseRelay(tag))

    def say(self, peer: bytes, frames: list[bytes]) -> None:
        """Send an answer; it is lost if the peer is gone."""
        tag, _, client = peer.partition(BETWEEN)
        door = self._doors.get(tag)
        if door is None:
            return
        try:
            door.send_multipart([client, *frames], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            self._links.dropped[f"{CHANNEL}:{error.strerror}"] += 1
        asyncio.get_running_loop().call_soon(self._hear, tag)

    def _open(self, work: OpenRelay) -> None:
        made = make_socket(self._links.context, SHAPE)
        if not is_loopback(self._host):
            self._links.credentials.serve(made)
            self._links.credentials.watch(made)
        host = f"[{self._host}]" if ":" in self._host else self._host
        for port in (*SPARE_PORTS, 0):
            if port == 0:
                self._links.credentials.ignore(made)
                made.close()
                self._runner.order("catalog", RelayOpened(work.tag, "", 0))
                return
            try:
                made.bind(f"tcp://{host}:{port}")
                break
            except zmq.ZMQError:
                continue
        self._doors[work.tag] = made
        asyncio.get_running_loop().add_reader(made.FD, self._hear, work.tag)
        self._runner.order("catalog", RelayOpened(work.tag, reached_at(self._host), port))
        self._hear(work.tag)

    def _close(self, work: CloseRelay) -> None:
        made = self._doors.pop(work.tag, None)
        if made is not None:
            asyncio.get_running_loop().remove_reader(made.FD)
            self._links.credentials.ignore(made)
            made.close()

    def _hear(self, tag: bytes) -> None:
        """Read what is available, at most `BUDGET` messages per turn: the descriptor signals only once."""
        door = self._doors.get(tag)
        if door is None:
            return
        for _ in range(BUDGET):
            try:
                client, *frames = door.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            if len(frames) <= FRAMES_MAX:
                self._runner.post(Source(CHANNEL, tag + BETWEEN + client), frames)
        asyncio.get_running_loop().call_soon(self._hear, tag)


def reached_at(host: str) -> str:
    """The address at which others reach a listener; the machine's first one if it listens at all addresses."""
    if not ip_address(host if host != "localhost" else "127.0.0.1").is_unspecified:
        return host
    found = (
        address.address
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family.name == "AF_INET" and not is_loopback(address.address)
    )
    return next(found, "127.0.0.1")
