"""Orders from people and programs come as JSON with the order's name; a row says what becomes of one (CFG-022)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec


class Named(msgspec.Struct):
    """The field that every order has."""

    order: str


class Row(NamedTuple):
    """One kind of order: the core that executes it, its JSON, and how the core's order is made from it."""

    core: str
    request: type[Named]
    make: Callable[[Any, int], Any]
