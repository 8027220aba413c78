"""Orders from people: JSON that names the order, and how an order for a core is made from it (CFG-022)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec


class Named(msgspec.Struct):
    """The fields that every order begins with."""

    order: str


class Row(NamedTuple):
    """One kind of order: the core that executes it, its JSON, and how the core's order is made from it."""

    core: str
    said: type[Named]
    make: Callable[[Any, int], Any]
