"""Weft weaves a fleet of machines into one fabric."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.client.addressing import (
        AFTER_ALL,
        BEFORE_ALL,
        CHILDREN_OF_LOCAL,
        LOCAL,
        NEAREST_COORD,
        PARENTS_OF_LOCAL,
        direct,
    )
    from weft.client.chain import chain_client
    from weft.client.link.opening import Curve
    from weft.client.message import Message, Receipt, SendFailed, drop
    from weft.client.sync import chain_sync

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
    "Message": "message",
    "Receipt": "message",
    "SendFailed": "message",
    "chain_client": "chain",
    "chain_sync": "sync",
    "drop": "message",
}


def __getattr__(name: str) -> Any:
    """The client library (CLI-020), loaded when it is first asked for: a node never needs it."""
    if name not in __all__:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"weft.client.{_ROOMS.get(name, 'addressing')}"), name)
