"""Documents edited together, for programs: `weft.doc.Client`, the same for scripts, and what can go wrong (docs/doc.md).

>>> import weft.doc
>>> weft.doc.Client.__name__
'Client'
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from weft.client.doc.client import Client
    from weft.client.doc.errors import (
        BadFile,
        BadReference,
        BadXml,
        Closed,
        DocError,
        NoEffect,
        NoSession,
        NotAllowed,
        NotFound,
        StorageFull,
        TooFast,
        TooLarge,
        Unanswered,
        Unreachable,
        Unsupported,
    )
    from weft.client.doc.sync import SyncClient
    from weft.client.doc.values import Change, Conflict, Operation, Written
    from weft.client.doc.watching import Watch

__all__ = [
    "BadFile",
    "BadReference",
    "BadXml",
    "Change",
    "Client",
    "Closed",
    "Conflict",
    "DocError",
    "NoEffect",
    "NoSession",
    "NotAllowed",
    "NotFound",
    "Operation",
    "StorageFull",
    "SyncClient",
    "TooFast",
    "TooLarge",
    "Unanswered",
    "Unreachable",
    "Unsupported",
    "Watch",
    "Written",
]

_ROOMS: Final = {
    "Change": "values",
    "Client": "client",
    "Conflict": "values",
    "Operation": "values",
    "SyncClient": "sync",
    "Watch": "watching",
    "Written": "values",
}
"""Where names stand that are no errors."""


def __getattr__(name: str) -> Any:
    """Loaded when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'weft.doc' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"weft.client.doc.{_ROOMS.get(name, 'errors')}"), name)
