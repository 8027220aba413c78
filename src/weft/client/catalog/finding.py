"""Decides which broker a program uses: one or several host:port, one of this machine, or the first one heard.

A node with a catalog writes the endpoint of a local socket for administrators into `<state directory>/catalog.endpoint`.
The socket has mode 0600; orders that come through it may do what others may not (CAT-061).
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from weft.client.catalog.discovery import Found as Found  # noqa: PLC0414  # part of what this module offers
from weft.client.catalog.discovery import find_broker, reached, servers_of
from weft.client.catalog.entries import Address
from weft.client.catalog.errors import CatalogError, Unreachable
from weft.client.catalog.limits import ANSWER_S, BEACON_S, LOCAL_S, PORT, TRIES
from weft.client.link.finding import Door, state_base
from weft.client.link.keyring import Given, Keyring
from weft.client.link.opening import Target

Broker = str | int | os.PathLike[str] | Sequence[str] | None
"""host:port, a port of this machine, or several of these; None: `WEFT_CATALOG`, else the broker of this machine, else the
first one whose beacon is heard."""
VARIABLE: Final = "WEFT_CATALOG"
DOOR: Final = Door("catalog")
PORT_MAX: Final = 65_535
LOCAL: Final = "127.0.0.1"


async def found(broker: Broker = None, net: str = "", keyring: Keyring | None = None) -> Found:
    """The broker that is meant; Unreachable says what was tried.

    If none is named: first the one of this machine, which would answer at once; then the first beacon of the next second
    or so (BEA-004).
    """
    seeds = seeds_of(broker)
    if seeds:
        keys = max(len(servers_of(keyring, seed)) for seed in seeds)
        text = f"no broker answers at {', '.join(seeds)}{'' if keyring is None else ' with a key that is known here'}"
        return await _try(Search(seeds, net, keyring), ANSWER_S * TRIES * keys, text)
    local = f"{LOCAL}:{PORT}"
    try:
        return await _try(Search((local,), net, keyring), LOCAL_S, "")
    except Unreachable:
        of = f" of network {net}" if net else ""
        text = f"no broker answers at {local}, and no beacon{of} was heard within {BEACON_S:g} s"
        return await _try(Search((), net, keyring), BEACON_S, text)


class Search(NamedTuple):
    """Where to search for a broker, and the keys to expect."""

    seeds: Sequence[str]
    net: str
    keyring: Keyring | None


async def _try(search: Search, wait_s: float, text: str) -> Found:
    try:
        async with asyncio.timeout(wait_s + ANSWER_S):
            return await find_broker(search.seeds, net=search.net, wait_s=wait_s, keyring=search.keyring)
    except CatalogError as error:
        if isinstance(error, Unreachable) or error.code in ("timeout", "unreachable"):
            raise Unreachable(text) from None
        raise
    except TimeoutError:
        raise Unreachable(text) from None


def seeds_of(broker: Broker) -> tuple[str, ...]:
    """The addresses to try, as `host:port`; empty: listen for beacons.

    >>> seeds_of("10.0.0.7"), seeds_of(5250), seeds_of(["a:1", "tcp://b:2"])
    (('10.0.0.7:5246',), ('127.0.0.1:5250',), ('a:1', 'b:2'))
    """
    if broker is None:
        broker = [word for word in os.environ.get(VARIABLE, "").replace(",", " ").split() if word]
    if isinstance(broker, str | int | os.PathLike):
        broker = [os.fspath(broker) if not isinstance(broker, int) else str(broker)]
    return tuple(_seed(word) for word in broker)


def _seed(word: str) -> str:
    """One broker's address as `host:port`, from user input; Unreachable `bad-broker` if it is none."""
    word = word.removeprefix("tcp://")
    if word.isascii() and word.isdecimal():
        word = f"{LOCAL}:{word}"
    host, colon, port = word.rpartition(":")
    if not colon or host.endswith(":") or word.endswith("]"):
        host, port = f"[{word}]" if ":" in word and not word.endswith("]") else word, str(PORT)
    if not host or os.sep in host or not (port.isascii() and port.isdecimal() and 0 < int(port) <= PORT_MAX):
        raise Unreachable(f"{word!r} is not a broker's address: host:port, or a port of this machine", "bad-broker")
    return f"{host}:{port}"


def address_of(seed: str) -> Address:
    """Host and port of `host:port`.

    >>> address_of("[::1]:5246")
    Address(ip='::1', port=5246)
    """
    host, _, port = seed.rpartition(":")
    return Address(host.strip("[]"), int(port))


def keepers_door(state: str | os.PathLike[str] | None = None) -> str:
    """The local socket for administrators of a broker: from its node's state directory, else the only one there is.

    Unreachable if there is none, or several and nobody said which.
    """
    if state is not None:
        directory = Path(state).absolute()
        if (door := DOOR.endpoint_in(directory)) is None:
            raise Unreachable(
                f"{directory} is the state directory of no node that runs a catalog: it has no {DOOR.name}.sock"
            )
        return door
    doors = list(DOOR.alive().values())
    if len(doors) == 1:
        return doors[0]
    if doors:
        raise Unreachable(f"several nodes of this machine run a catalog: {', '.join(doors)}")
    raise Unreachable(f"no node that runs a catalog is found below {state_base()}")


class Place:
    """The address of a client's broker; it is searched for again when the broker no longer answers."""

    def __init__(self, broker: Broker, net: str, keys: Given = None) -> None:
        """UserError if keys cannot be read."""
        self._broker, self._net = broker, net
        self._keyring = Keyring.of(keys)
        self.has_keys = self._keyring is not None
        self._found: Found | None = None
        self._lock = asyncio.Lock()

    @property
    def known(self) -> Found | None:
        """The broker that was found last; None if it must be searched for."""
        return self._found

    async def found(self) -> Found:
        """The broker; if it is not known it is searched for."""
        async with self._lock:
            if self._found is None:
                self._found = await found(self._broker, self._net, self._keyring)
            return self._found

    def target(self, found: Found, port: int) -> Target:
        """One of the broker's ports, with the key under which it was found."""
        return reached(Address(found.host, port).endpoint, self._keyring, found.server)

    def forget(self, was: Found | None = None) -> None:
        """Search again next time. With `was` only if that is still the known one."""
        if was is None or was is self._found:
            self._found = None
