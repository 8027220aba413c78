"""Weft weaves a fleet of machines into one fabric.

Its names are those of a program in the chains of its node; `weft.store`, `weft.catalog`, `weft.doc` and `weft.pipeline` are
the other libraries. Importing it opens nothing, and loads a name only when it is used. Start with `chain_client`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.client.chain.addressing import (
        AFTER_ALL,
        BEFORE_ALL,
        CHILDREN_OF_LOCAL,
        LOCAL,
        NEAREST_COORD,
        PARENTS_OF_LOCAL,
        direct,
    )
    from weft.client.chain.client import chain_client
    from weft.client.chain.message import Message, Receipt, SendFailed, drop
    from weft.client.chain.sync import chain_sync
    from weft.client.link.opening import Curve

__version__ = "0.1.0"
__all__ = [
    "AFTER_ALL",
    "BEFORE_ALL",
    "CHILDREN_OF_LOCAL",
    "LOCAL",
    "NEAREST_COORD",
    "PARENTS_OF_LOCAL",
    "Curve",
    "Message",
    "Receipt",
    "SendFailed",
    "chain_client",
    "chain_sync",
    "direct",
    "drop",
]

_ROOMS = {
    "Curve": "link.opening",
    "Message": "chain.message",
    "Receipt": "chain.message",
    "SendFailed": "chain.message",
    "chain_client": "chain.client",
    "chain_sync": "chain.sync",
    "drop": "chain.message",
}


def __getattr__(name: str) -> Any:
    """The client library (CLI-020), loaded when it is first asked for: a node never needs it."""
    if name not in __all__:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"weft.client.{_ROOMS.get(name, 'chain.addressing')}"), name)
