"""Annexes: protocols that are installed beside Weft, each with a core, channels, orders, a command and a page (HSE-007).

A node runs an annex if its file has a table of that name. Weft names no annex and imports none but through its entry point
(`installed.py`); an annex imports what docs/annex.md lists. Begin with `Annex`.
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

HOWS: Final = (BINDS, DIALS, CALLS, ADDS)
"""How sockets of annexes come to be."""
KINDS: Final = ("stream", "publish")


class Annex(NamedTuple):
    """What one package adds to a node. All of its names begin with its own: `lease`, `lease-ask`."""

    name: str
    """Of its core, of its table in a node's file, and of its entry point."""
    what: str
    """One sentence, for lists."""
    settings: type[msgspec.Struct]
    """Of its table. A field `port` is where its bound channels begin; 0: they are not bound."""
    make: Callable[[Any, Start], Core]
    """Its core, from these settings."""
    channels: Mapping[str, Channel] = {}
    wires: Sequence[Wire] = ()
    """What its core does when others tell something, and others when it does; behind all rows of Weft."""
    orders: Mapping[str, Row] = {}
    """What people and programs may order at the node's port +6."""
    command: str = ""
    """Its noun of the command line, `module:app`; empty: none."""
    page: str = ""
    """The file in its package that explains it; `weft annexes NAME` prints it."""


def admit(name: str) -> Annex:
    """The annex of that name, its channels from now on among those of this process; UserError `bad-annex`."""
    annex = installed.load(name)
    faults = ["its entry point names no Annex"] if not isinstance(annex, Annex) else list(_faults(name, annex))
    if faults:
        raise UserError("bad-annex", f"the annex {name} cannot be used: {'; '.join(faults)}", installed.MEND)
    CHANNELS.update(annex.channels)
    return annex  # type: ignore[no-any-return]  # looked at above


def admitted(settings: NodeSettings) -> dict[str, Annex]:
    """The annexes that these settings have a table of."""
    return {name: admit(name) for name in settings.annexes}


def _faults(name: str, annex: Annex) -> Iterator[str]:
    """What is wrong with an annex: everything that could disturb the other protocols of a node."""
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
        (row.kind in KINDS and row.how in HOWS, f"is none of {', '.join(KINDS)} that {', '.join(HOWS)}"),
        (row.block == (name if row.how == BINDS else ""), f"has the block {row.block!r}"),
        (row.verb in VERBS, f"has the verb {row.verb!r}, which no role has"),
    )
    return (f"the channel {channel} {fault}" for holds, fault in rules if not holds)


def _is_own(annex: str, name: str) -> bool:
    return name == annex or name.startswith(f"{annex}-")


def table_of(annex: Annex, settings: NodeSettings) -> Any:
    """What the node's file says for it."""
    return msgspec.convert(settings.annexes[annex.name], annex.settings)


def cores_of(annexes: Iterable[Annex], start: Start) -> dict[str, Core]:
    """Their cores, made from the settings of this start."""
    return {annex.name: annex.make(table_of(annex, start.settings), start) for annex in annexes}


def ports_of(settings: NodeSettings) -> dict[str, int]:
    """Where the bound channels of each begin, as the file says; those that say nothing are not bound."""
    ports = {name: getattr(table_of(annex, settings), "port", 0) for name, annex in admitted(settings).items()}
    return {name: port for name, port in ports.items() if port}
