"""Errors of the store: one type per code of CLN-003, and three that come from the client itself."""

import re
from typing import Final

from weft.client.link import errors
from weft.client.link.errors import LinkError


class StoreError(LinkError):
    """The request failed; `code` is the server's code (CLN-003), `text` its sentence."""

    code = "bad-request"


class BadRequest(StoreError):
    """The server does not understand the request, or gave no better reason."""


class BadPath(StoreError):
    """Not a valid path (STO-004, COD-005)."""

    code = "bad-path"


class BadValue(StoreError):
    """Not a valid value (STO-005)."""

    code = "bad-value"


class NotFound(StoreError):
    """There is nothing at that path."""

    code = "not-found"


class ConditionFailed(StoreError):
    """The condition of a write is not met; nothing was written.

    `may_be_own`: the request was sent a second time, because the connection broke before the first answer. Then the
    first one may have written the value, and so made the condition false. Read the entry to find out.
    """

    may_be_own = False


class Exists(ConditionFailed):
    """There is a value already, and `new` was requested."""

    code = "exists"


class ChainMismatch(ConditionFailed):
    """Its last change is not the expected one."""

    code = "chain-mismatch"


class ValueMismatch(ConditionFailed):
    """Its value is not the expected one."""

    code = "value-mismatch"


class TypeRefused(StoreError):
    """The value does not fit the type that is set for the path (ADM-010)."""

    code = "type-error"


class NotAuthorised(StoreError):
    """This user may not do that."""

    code = "not-authorised"


class AuthFailed(StoreError):
    """The server requires authentication, or it failed."""

    code = "auth-failed"


class TooLarge(StoreError):
    """The value or the store is too large."""

    code = "too-large"


class Unencodable(StoreError):
    """MessagePack cannot carry that value."""

    code = "unencodable"


class Busy(StoreError):
    """The server has too much to do: try again later."""

    code = "busy"


class StorageFull(StoreError):
    """The node's disk or journal is full: the store can be read but not written."""

    code = "storage-full"


class ReadOnly(StoreError):
    """The node accepts no writes; `weft store state` says why."""

    code = "read-only"


class NotReady(StoreError):
    """The node has not joined the store yet."""

    code = "not-ready"


class TickExhausted(StoreError):
    """The node has used up its ticks, and cannot write any more."""

    code = "tick-exhausted"


class Unsupported(StoreError):
    """This server cannot do that."""

    code = "unsupported"


class Unconfirmed(StoreError):
    """The write is durable at the node, but fewer members than requested have it; it stays, and still spreads."""

    code = "unconfirmed"


class Unreachable(errors.Unreachable, StoreError):
    """No server was reached: the request has not been carried out."""

    mend = "weft up with a [store] in the node's file; or node=, --node or WEFT_STORE= with HOST:PORT"


class Unanswered(errors.Unanswered, StoreError):
    """The request was sent, but no answer came: it may have been carried out, or may still be."""

    mend = "read the entry: its value, or its chain, shows whether it was written"


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
"""How error texts begin at servers without codes, such as MoaT-KV, and the type of each."""

WRAPPED: Final = re.compile(r"""\w+Error\((["'])(.*)\1\)""", re.DOTALL)
"""The form of such a server's error; the second group is the sentence."""


def error_of(code: str, text: str) -> StoreError:
    """The exception for an error of a server.

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
