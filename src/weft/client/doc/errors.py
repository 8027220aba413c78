"""Errors of documents: one type per code that programs distinguish, and three that come from the client itself."""

from typing import Any, Final

from weft.client.link import errors
from weft.client.link.errors import LinkError


class DocError(LinkError):
    """The request failed, and nothing has changed; `code` is one word, `text` a sentence, `mend` says what helps."""

    code = "refused"


class NoSession(DocError):
    """The node has no such session, or several, and none was named."""

    code = "no-session"


class BadReference(DocError):
    """The reference cannot be the target of an operation (DOC-020)."""

    code = "no-reference"


class BadXml(DocError):
    """The text to add is not XML that a document accepts (DOC-001)."""

    code = "bad-xml"


class NoEffect(DocError):
    """The entry would change nothing (DOC-035); `code` says why: `fixed`, `bad-attribute`, `nothing-new`, …."""

    code = "no-effect"


class NotFound(DocError):
    """There is no such element, conflict or operation here."""

    code = "not-found"


class NotAllowed(DocError):
    """This person may not make this entry (GSP-054)."""

    code = "not-allowed"


class TooLarge(DocError):
    """The operation would have more than 65,536 bytes (GSP-013)."""

    code = "too-large"


class TooFast(DocError):
    """More than 200 operations a second, after a burst of 1,000 (GSP-055)."""

    code = "too-fast"


class StorageFull(DocError):
    """The node's journal has no room: nothing can be entered here (GSP-031)."""

    code = "storage-full"


class BadFile(DocError):
    """The file is of another kind, or its contents do not match its trailer (GSP-033)."""

    code = "bad-file"


class Unsupported(DocError):
    """This node cannot do that."""

    code = "unsupported"


class Unreachable(errors.Unreachable, DocError):
    """No node was reached: the request has not been carried out."""


class Unanswered(errors.Unanswered, DocError):
    """The request was sent, but no answer came: it may have been carried out. `log` shows it."""


class Closed(errors.Closed, DocError):
    """The client has been closed."""


BY_CODE: Final[dict[str, type[DocError]]] = {
    **errors.by_code(
        NoSession,
        BadReference,
        BadXml,
        NotFound,
        NotAllowed,
        TooLarge,
        TooFast,
        StorageFull,
        BadFile,
        Unsupported,
    ),
    **dict.fromkeys(("bad-reference", "bad-key", "bad-path"), BadReference),
    **dict.fromkeys(
        ("absent", "target-removed", "fixed", "bad-attribute", "nothing-new", "too-big", "duplicate-key", "superseded"),
        NoEffect,
    ),
}


def error_of(code: str, body: Any) -> DocError:
    """The exception for an error of a node.

    >>> error = error_of("too-large", {"text": "70,000 bytes", "mend": "smaller pieces"})
    >>> type(error).__name__, error.text, error.mend
    ('TooLarge', '70,000 bytes', 'smaller pieces')
    """
    fields = body if isinstance(body, dict) else {}
    kind = BadReference if code.startswith("unknown-") else BY_CODE.get(code, DocError)
    return kind(str(fields.get("text", "")), code, str(fields.get("mend", "")))
