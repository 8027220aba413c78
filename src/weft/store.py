"""The shared store, for programs: `weft.store.Client`, the same for scripts, and what can go wrong (CLN-030).

>>> import weft.store
>>> weft.store.MISSING or "nothing"
'nothing'
"""

from weft.base.changes import Chain
from weft.client.store.client import Client
from weft.client.store.errors import (
    AuthFailed,
    BadPath,
    BadRequest,
    BadValue,
    Busy,
    ChainMismatch,
    Closed,
    ConditionFailed,
    Exists,
    NotAuthorised,
    NotFound,
    NotReady,
    ReadOnly,
    StorageFull,
    StoreError,
    TickExhausted,
    TooLarge,
    TypeRefused,
    Unanswered,
    Unencodable,
    Unreachable,
    Unsupported,
    ValueMismatch,
)
from weft.client.store.mirror import Mirror
from weft.client.store.sync import SyncClient, SyncMirror
from weft.client.store.values import MISSING, Change, Entry, Mark, Written
from weft.client.store.watching import Watch
from weft.wire.store.pack import PathValue

__all__ = [
    "MISSING",
    "AuthFailed",
    "BadPath",
    "BadRequest",
    "BadValue",
    "Busy",
    "Chain",
    "ChainMismatch",
    "Change",
    "Client",
    "Closed",
    "ConditionFailed",
    "Entry",
    "Exists",
    "Mark",
    "Mirror",
    "NotAuthorised",
    "NotFound",
    "NotReady",
    "PathValue",
    "ReadOnly",
    "StorageFull",
    "StoreError",
    "SyncClient",
    "SyncMirror",
    "TickExhausted",
    "TooLarge",
    "TypeRefused",
    "Unanswered",
    "Unencodable",
    "Unreachable",
    "Unsupported",
    "ValueMismatch",
    "Watch",
    "Written",
]
