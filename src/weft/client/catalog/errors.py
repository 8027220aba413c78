"""Errors of the catalog: those that brokers and services report (CAT-033, CAT-080), and those of the client."""

from typing import Any, Final

from weft.client.link import errors
from weft.client.link.errors import LinkError


class CatalogError(LinkError):
    """The request failed; `code` says why in one word, `text` in a sentence."""

    def __init__(
        self, text: str = "", code: str = "", mend: str = "", *, service: str = "", fields: tuple[str, ...] = ()
    ) -> None:
        super().__init__(text, code, mend)
        self.service, self.fields = service, fields


class NotFound(CatalogError):
    """There is no such service, or none that can be used; `state` says which (CAT-033)."""

    code = "inactive"
    state = "unknown"
    """`unknown`, `inactive`, `left`, `critical`."""
    last_seen: float | None = None
    """Unix seconds."""


class CatalogTimeout(CatalogError):
    """No answer came in any of the attempts (CAT-024)."""

    code = "timeout"


class Unreachable(errors.Unreachable, CatalogTimeout):
    """No broker can be reached."""

    mend = "weft up with a [catalog] in a node's file; broker= or WEFT_CATALOG= with HOST:PORT; of a closed fabric keys= or WEFT_KEYS="


class Closed(errors.Closed, CatalogError):
    """The client was closed meanwhile."""


class Denied(CatalogError):
    """A broker refused it, with one code of CAT-080; nothing has changed."""

    code = "not-authorised"


class BadRequest(Denied):
    """The request is invalid: `bad-json bad-name missing-field bad-field reserved-key immutable-field too-large …`."""

    code = "bad-field"


class NameTaken(Denied):
    """The name and instance belong to another owner."""

    code = "name-taken"


class NotRegistered(Denied):
    """There is no such instance."""

    code = "not-registered"


class NotOwner(Denied):
    """The instance belongs to another owner."""

    code = "not-owner"


class LimitReached(Denied):
    """A limit of the broker is reached."""

    code = "limit"


class Unsupported(CatalogError):
    """This broker, or this service, cannot do that."""

    code = "unsupported"


class CallFailed(CatalogError):
    """The service answered a call with an error: `failed`, `unknown-endpoint`, `busy`, or a code of its own."""


class GarbledAnswer(CatalogError):
    """The answer cannot be decoded: no broker, or no service, listens there."""

    code = "garbled"


_BAD: Final = ("bad-json", "bad-name", "missing-field", "bad-field", "reserved-key", "immutable-field", "too-large")
BY_CODE: Final[dict[str, type[CatalogError]]] = {
    **dict.fromkeys((*_BAD, "bad-argument", "unknown-query"), BadRequest),
    **errors.by_code(NameTaken, NotRegistered, NotOwner, LimitReached, Unsupported),
}
"""Exceptions by a broker's code; every other code is `Denied`."""


def error_of(answer: dict[str, Any]) -> CatalogError:
    """The error in a broker's JSON answer: a refusal with its code, or NotFound for a warning (CAT-033).

    >>> error_of({"Error": "no", "code": "name-taken", "service": "A"}).code
    'name-taken'
    >>> error_of({"Error": "none", "warning": "inactive", "service": "zz", "state": "left"}).state
    'left'
    """
    text, code, service = (str(answer.get(key) or "") for key in ("Error", "code", "service"))
    if "warning" in answer or not code:
        missing = NotFound(text, service=service)
        missing.state = str(answer.get("state") or "unknown")
        missing.last_seen = seen if isinstance(seen := answer.get("last_seen"), int | float) else None
        return missing
    fields = answer.get("fields")
    named = tuple(map(str, fields)) if isinstance(fields, list) else ()
    return BY_CODE.get(code, Denied)(text, code, service=service, fields=named)
