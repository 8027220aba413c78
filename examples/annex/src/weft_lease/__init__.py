"""An annex of Weft: leases that one node of the fleet gives to the others. `ANNEX` says all that it adds to a node."""

import msgspec

from weft.node.annexes import Annex
from weft.node.channels import BINDS, CALLS, Channel
from weft.node.events import JournalChanged
from weft.node.rows import Named, Row
from weft.node.wires import Orders, when
from weft_lease import wire
from weft_lease.core import HoldBack, Lease, Take


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[lease]` of a node's file."""

    port: int = 0
    """Where a node listens that gives leases."""
    at: str = ""
    """host:port of that node, in the files of all others."""


class Order(Named, forbid_unknown_fields=True):
    """`lease`: take, free or look at the lease of a name; `who`: for whom, if not for this node."""

    verb: wire.Verb
    name: wire.Name
    who: str = ""
    span_s: wire.Seconds = 0


def hold_back(node: Orders, event: JournalChanged) -> None:
    """What cannot be written down cannot be promised."""
    node.order("lease", HoldBack(event.state != "OPEN"))


GIVES = Channel("lease", "stream", wire.decode(wire.Ask), wire.encode, socket="ROUTER", how=BINDS)
ASKS = Channel("lease", "stream", wire.decode(wire.Answer), wire.encode, socket="DEALER", how=CALLS)
ANNEX = Annex(
    name="lease",
    what="Take a name for a while, so that nobody else of the fleet has it.",
    settings=Table,
    make=lambda table, start: Lease(start.settings.node.name, table.at),
    channels={"lease": GIVES._replace(block="lease", verb="join"), "lease-ask": ASKS._replace(verb="serve")},
    wires=[when(JournalChanged).then(hold_back)],
    orders={
        "lease": Row(
            "lease",
            Order,
            lambda request, ticket: Take(ticket, request.verb, request.name, request.who, request.span_s),
        )
    },
    command="weft_lease.cli:lease",
    page="lease.md",
)
