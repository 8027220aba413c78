"""Annexes: protocols that are installed beside Weft, each with a core, channels, orders, a command and a page (HSE-007).

A node runs an annex if its file has a table of that name. Weft imports an annex only through its entry point
(`installed.py`); an annex may import what docs/annex.md lists. Begin with `Annex`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from weft.base.effects import Core
from weft.base.errors import UserError
from weft.base.keys import VERBS
from weft.base.settings import is_plain_name
from weft.node import installed
from weft.node.channels import ADDS, BINDS, CALLS, CHANNELS, DIALS, Channel
from weft.node.rows import Row
from weft.node.settings import BUDGET_WEIGHTS, NodeSettings
from weft.node.start import Start
from weft.node.wires import Wire

WAYS: Final = (BINDS, DIALS, CALLS, ADDS)
"""How an annex's sockets may be opened."""
KINDS: Final = ("stream", "publish")
"""Which kinds of channels an annex may have."""


class Annex(NamedTuple):
    """What one package adds to a node. All of its names begin with the name of the package: `lease`, `lease-ask`."""

    name: str
    """Name of its core, of its table in a node's file, and of its entry point."""
    what: str
    """One sentence, for lists."""
    settings: type[msgspec.Struct]
    """The type of its table. A field `port` is the first port of its bound channels; 0: they are not bound."""
    make: Callable[[Any, Start], Core]
    """Makes its core from its table and the start of the node."""
    channels: Mapping[str, Channel] = {}
    wires: Sequence[Wire] = ()
    """Wires from other cores' events to its orders, and back; they come after all rows of Weft."""
    orders: Mapping[str, Row] = {}
    """The orders that people and programs may send to the node's port +6."""
    command: str = ""
    """Its noun on the command line, `module:app`; empty: none."""
    page: str = ""
    """The file in its package that explains it; `weft annexes NAME` prints it."""


def admit(name: str) -> Annex:
    """Load the annex of that name, and register its channels in this process; UserError `bad-annex`."""
    annex = installed.load(name)
    faults = ["its entry point names no Annex"] if not isinstance(annex, Annex) else list(_faults(name, annex))
    if faults:
        raise UserError("bad-annex", f"the annex {name} cannot be used: {'; '.join(faults)}", installed.MEND)
    CHANNELS.update(annex.channels)
    return annex  # type: ignore[no-any-return]  # its type is checked above


def admitted(settings: NodeSettings) -> dict[str, Annex]:
    """The annexes that have a table in these settings."""
    return {name: admit(name) for name in settings.annexes}


def _faults(name: str, annex: Annex) -> Iterator[str]:
    """What is wrong with an annex, as far as it could disturb the other protocols of a node."""
    if annex.name != name or not is_plain_name(name):
        yield f"it calls itself {annex.name!r}"
    if name in BUDGET_WEIGHTS:
        yield "a core of Weft is called so"
    for channel, row in annex.channels.items():
        yield from _faults_of_channel(name, channel, row)
    for order, asked in annex.orders.items():
        if not _is_own(name, order) or asked.core != name:
            yield f"the order {order} is not its own"


def _faults_of_channel(name: str, channel: str, row: Channel) -> Iterator[str]:
    rules = (
        (_is_own(name, channel) and row.core == name, "is not its own"),
        (CHANNELS.get(channel, row) == row, "is there already"),
        (row.kind in KINDS and row.how in WAYS, f"is none of {', '.join(KINDS)} that {', '.join(WAYS)}"),
        (row.block == (name if row.how == BINDS else ""), f"has the block {row.block!r}"),
        (row.verb in VERBS, f"has the verb {row.verb!r}, which no role has"),
    )
    return (f"the channel {channel} {fault}" for holds, fault in rules if not holds)


def _is_own(annex: str, name: str) -> bool:
    return name == annex or name.startswith(f"{annex}-")


def table_of(annex: Annex, settings: NodeSettings) -> Any:
    """The annex's table in the node's file."""
    return msgspec.convert(settings.annexes[annex.name], annex.settings)


def cores_of(annexes: Iterable[Annex], start: Start) -> dict[str, Core]:
    """Their cores, made from the settings of this start."""
    return {annex.name: annex.make(table_of(annex, start.settings), start) for annex in annexes}


def ports_of(settings: NodeSettings) -> dict[str, int]:
    """The first port of the bound channels of each annex, from the file; without a port they are not bound."""
    ports = {name: getattr(table_of(annex, settings), "port", 0) for name, annex in admitted(settings).items()}
    return {name: port for name, port in ports.items() if port}
