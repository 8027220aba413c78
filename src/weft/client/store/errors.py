"""What can go wrong with the store: one type per code of CLN-003, and three that no server says."""

import re
from typing import Final

from weft.client.link import errors
from weft.client.link.errors import LinkError


class StoreError(LinkError):
    """The store did not do it; `code` is the server's word (CLN-003), `text` its sentence."""

    code = "bad-request"


class BadRequest(StoreError):
    """The server does not understand it, or gave no better reason."""


class BadPath(StoreError):
    """That is no path (STO-004, COD-005)."""

    code = "bad-path"


class BadValue(StoreError):
    """That is no value (STO-005)."""

    code = "bad-value"


class NotFound(StoreError):
    """There is nothing at that path."""

    code = "not-found"


class ConditionFailed(StoreError):
    """The entry is not as the caller thought; nothing was written.

    With `may_be_own` the request had been said once before, over a connection that broke: then it may have been
    this very write that changed the entry. Reading it tells.
    """

    may_be_own = False


class Exists(ConditionFailed):
    """It was to be new, and is there already."""

    code = "exists"


class ChainMismatch(ConditionFailed):
    """Its last change is another one."""

    code = "chain-mismatch"


class ValueMismatch(ConditionFailed):
    """Its value is another one."""

    code = "value-mismatch"


class TypeRefused(StoreError):
    """The value does not fit the type that is set for the path (ADM-010)."""

    code = "type-error"


class NotAuthorised(StoreError):
    """This user may not do that."""

    code = "not-authorised"


class AuthFailed(StoreError):
    """The server does not believe who this is, or wants to know it."""

    code = "auth-failed"


class TooLarge(StoreError):
    """The value or the store is too large."""

    code = "too-large"


class Unencodable(StoreError):
    """MessagePack cannot carry that value."""

    code = "unencodable"


class Busy(StoreError):
    """The server has too much to do already; later."""

    code = "busy"


class StorageFull(StoreError):
    """The node's disk or journal is full: it reads, and writes nothing."""

    code = "storage-full"


class ReadOnly(StoreError):
    """The node takes no writes; `weft store state` says why."""

    code = "read-only"


class NotReady(StoreError):
    """The node has not joined the store yet."""

    code = "not-ready"


class TickExhausted(StoreError):
    """The node has used up its numbers."""

    code = "tick-exhausted"


class Unsupported(StoreError):
    """This server cannot do that."""

    code = "unsupported"


class Unconfirmed(StoreError):
    """It is written at the node, and fewer members have it than were asked for; it stands, and goes on spreading."""

    code = "unconfirmed"


class Unreachable(errors.Unreachable, StoreError):
    """No server was reached: what was asked for has not happened."""

    mend = "weft up with a [store] in the node's file; or node=, --node or WEFT_STORE= with HOST:PORT"


class Unanswered(errors.Unanswered, StoreError):
    """It was said, and no answer came: what was asked for may have happened, or happen still."""

    mend = "read it, or the chain of the entry: whether it happened"


class Closed(errors.Closed, StoreError):
    """The client has been closed."""


BY_CODE: Final = errors.by_code(
    BadRequest,
    BadPath,
    BadValue,
    NotFound,
    Exists,
    ChainMismatch,
    ValueMismatch,
    TypeRefused,
    NotAuthorised,
    AuthFailed,
    TooLarge,
    Unencodable,
    Busy,
    StorageFull,
    ReadOnly,
    NotReady,
    TickExhausted,
    Unsupported,
    Unconfirmed,
)
FOREIGN: Final = (
    ("ClientChainError('Entry already exists", Exists),
    ("ClientChainError(", ChainMismatch),
    ("ClientError('Data is ", ValueMismatch),
    ("KeyError(", NotFound),
    ("ClientAuth", AuthFailed),
    ("NoAuth", AuthFailed),
    ("ACLError", NotAuthorised),
)
"""How servers that know no codes begin their errors."""

WRAPPED: Final = re.compile(r"""\w+Error\((["'])(.*)\1\)""", re.DOTALL)
"""An error of theirs around its sentence."""


def error_of(code: str, text: str) -> StoreError:
    """The error that a server has said.

    >>> str(error_of("exists", "ClientChainError('Entry already exists at a.b')"))
    'Entry already exists at a.b'
    >>> type(error_of("", "ClientChainError('Entry is new at new')")).__name__, error_of("odd", "x").code
    ('ChainMismatch', 'odd')
    """
    kind = BY_CODE.get(code)
    if kind is None and not code:
        kind = next((kind for begins, kind in FOREIGN if text.startswith(begins)), BadRequest)
        code = kind.code
    wrapped = WRAPPED.fullmatch(text)
    return (kind or StoreError)(wrapped[2] if wrapped else text, code)
