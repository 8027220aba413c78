"""Lists the ports of a node that need no key of the fabric, and who can use each (SEC-055); `weft status` shows them.

On a closed fabric these are the ports of foreign protocols, which have no keys, of HTTP, which has a token, and of
datagrams, which have at most a MAC. On an open fabric they are all ports.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from weft.base.endpoints import HTTP as HTTP_PORT
from weft.base.endpoints import endpoint_of, is_loopback
from weft.node.channels import Channel
from weft.node.settings import NodeSettings

ANYBODY: Final = "whoever reaches it"
MACHINE: Final = "every user of this machine"
USER: Final = "programs of this user"
TOKEN: Final = "every user of this machine may read; orders: this user, or the token"  # noqa: S105  # says who
INVITED: Final = "any key, with an invitation"


class OpenDoor(NamedTuple):
    """One port that needs no key of the fabric."""

    name: str
    at: str
    """`host:port`."""
    lets_in: str
    """Who can use it."""


class Listener(Protocol):
    """The sockets of one channel."""

    @property
    def name(self) -> str:
        """The name of the channel."""

    @property
    def places(self) -> list[tuple[str, int] | Path]:
        """Where it is bound."""

    @property
    def row(self) -> Channel:
        """The channel's row in `CHANNELS`."""


def of_ends(ends: Iterable[Listener], *, is_closed: bool) -> Iterator[OpenDoor]:
    """Open ports of ZeroMQ sockets."""
    for end in ends:
        for place in end.places:
            if not isinstance(place, Path) and (lets_in := _lets_in(end.row, place[0], is_closed=is_closed)):
                yield OpenDoor(end.name, endpoint_of(*place), lets_in)


def _lets_in(row: Channel, host: str, *, is_closed: bool) -> str:
    """Who can use a port at that host without a key that the fabric knows; empty: nobody."""
    if not is_closed or (row.is_plain and is_loopback(host)):
        return reached_by(host)
    return INVITED if row.is_for_strangers else ""


def of_pages(settings: NodeSettings) -> Iterator[OpenDoor]:
    """Open ports of HTTP: the node's own pages, and boards of documents."""
    own = settings.node
    lets_in = TOKEN if settings.is_closed else ANYBODY
    yield OpenDoor("http", endpoint_of(own.host, own.port + HTTP_PORT), lets_in)
    for name, session in (settings.doc.session if settings.doc is not None else {}).items():
        if session.serve:
            yield OpenDoor(
                f"board {name}", endpoint_of(session.serve_host, session.serve), reached_by(session.serve_host)
            )


def reached_by(host: str) -> str:
    """Who can reach a port without access control."""
    return MACHINE if is_loopback(host) else ANYBODY
