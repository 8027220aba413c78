"""What an order of a person is made of: JSON that names it, and how an order of one core is made of that (CFG-022)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec


class Named(msgspec.Struct):
    """What every order says first."""

    order: str


class Row(NamedTuple):
    """One kind of order: who obeys it, what it says, and the core's order for it and a ticket."""

    core: str
    said: type[Named]
    make: Callable[[Any, int], Any]
