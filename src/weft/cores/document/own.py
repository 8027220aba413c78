"""What is entered here becomes the next operation of our own source (GSP-002 to GSP-005, GSP-013, GSP-055)."""

from collections.abc import Callable
from typing import NamedTuple

from weft.cores.document.fold.engine import Engine
from weft.cores.document.gossip import Gossip
from weft.cores.document.log import Log
from weft.cores.document.mesh import Mesh
from weft.cores.document.station import Station
from weft.wire.document.operations import Payload


class Hidden(NamedTuple):
    """Who wrote what was meant, with a greater effective time (GSP-003)."""

    source: bytes
    sequence: int
    eff: float
    value: str


class Issued(NamedTuple):
    """What became of an entry."""

    source: bytes
    sequence: int
    outcome: str
    hidden_by: Hidden | None


Authorise = Callable[[str, str, dict[str, str]], str]
"""(operator, verb, reference) → why it is not allowed; empty: it is (GSP-054)."""


class Own:
    """Issues operations."""

    def __init__(self, station: Station, log: Log, engine: Engine, gossip: Gossip, mesh: Mesh) -> None:
        self.station, self.log, self.engine, self.gossip, self.mesh = station, log, engine, gossip, mesh
        self.authorise: Authorise = lambda operator, verb, reference: ""

    def issue(  # tidy: these are the words of an operation
        self,
        verb: str,
        reference: dict[str, str],
        payload: Payload,
        *,
        by: str = "",
        resolves: str = "",
        force: bool = False,
    ) -> Issued:
        """Durable first, then said to everybody; raises Refusal and then nothing has changed."""
        raise NotImplementedError
