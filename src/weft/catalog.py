"""The catalog, for programs: who provides what and where, and how a program becomes a service itself (docs/catalog.md).

>>> import weft.catalog
>>> weft.catalog.Service("thermo").name
'thermo'
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from weft.client.catalog.client import Client
    from weft.client.catalog.discovery import Found, find_broker
    from weft.client.catalog.entries import Address, Change, Entry, Value
    from weft.client.catalog.errors import (
        BadRequest,
        CallFailed,
        CatalogError,
        CatalogTimeout,
        Closed,
        Denied,
        GarbledAnswer,
        LimitReached,
        NameTaken,
        NotFound,
        NotOwner,
        NotRegistered,
        Unreachable,
        Unsupported,
    )
    from weft.client.catalog.handler import Handler
    from weft.client.catalog.service import Service
    from weft.client.catalog.sync import SyncClient
    from weft.client.catalog.tapped import Copied

__all__ = [
    "Address",
    "BadRequest",
    "CallFailed",
    "CatalogError",
    "CatalogTimeout",
    "Change",
    "Client",
    "Closed",
    "Copied",
    "Denied",
    "Entry",
    "Found",
    "GarbledAnswer",
    "Handler",
    "LimitReached",
    "NameTaken",
    "NotFound",
    "NotOwner",
    "NotRegistered",
    "Service",
    "SyncClient",
    "Unreachable",
    "Unsupported",
    "Value",
    "find_broker",
]

_ROOMS: Final = {
    "Address": "entries",
    "Change": "entries",
    "Client": "client",
    "Copied": "tapped",
    "Entry": "entries",
    "Found": "discovery",
    "Handler": "handler",
    "Service": "service",
    "SyncClient": "sync",
    "Value": "entries",
    "find_broker": "discovery",
}
"""Where names stand that are no errors."""


def __getattr__(name: str) -> Any:
    """Loaded when it is first asked for: a service needs nothing of a client."""
    if name not in __all__:
        raise AttributeError(f"module 'weft.catalog' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"weft.client.catalog.{_ROOMS.get(name, 'errors')}"), name)
