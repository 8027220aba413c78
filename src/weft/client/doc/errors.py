"""What can go wrong with a document: one type per code that programs tell apart, and three that no node says."""

from typing import Any, Final

from weft.client.link import errors
from weft.client.link.errors import LinkError


class DocError(LinkError):
    """It was not done, and nothing has changed; `code` is one word, `text` a sentence, `mend` what helps."""

    code = "refused"


class NoSession(DocError):
    """The node has no such session, or several, and none was named."""

    code = "no-session"


class BadReference(DocError):
    """That refers to nothing that an operation could (DOC-020)."""

    code = "no-reference"


class BadXml(DocError):
    """What is to be added is no XML that a document takes (DOC-001)."""

    code = "bad-xml"


class NoEffect(DocError):
    """It would change nothing where it is entered (DOC-035); `code` says why: `fixed`, `bad-attribute`, `nothing-new`, …."""

    code = "no-effect"


class NotFound(DocError):
    """There is no such element, conflict or operation here."""

    code = "not-found"


class NotAllowed(DocError):
    """Who enters here may not do that (GSP-054)."""

    code = "not-allowed"


class TooLarge(DocError):
    """One operation has at most 65,536 bytes (GSP-013)."""

    code = "too-large"


class TooFast(DocError):
    """More than 200 own operations a second, behind a burst of 1,000 (GSP-055)."""

    code = "too-fast"


class StorageFull(DocError):
    """The node's journal has no room: nothing can be entered here (GSP-031)."""

    code = "storage-full"


class BadFile(DocError):
    """That is no file of this kind, or its trailer does not say what it holds (GSP-033)."""

    code = "bad-file"


class Unsupported(DocError):
    """This node cannot do that."""

    code = "unsupported"


class Unreachable(errors.Unreachable, DocError):
    """No node was reached: what was asked for has not happened."""


class Unanswered(errors.Unanswered, DocError):
    """It was said, and no answer came: what was asked for may have happened. `log` tells."""


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
    """The error that a node has said.

    >>> error = error_of("too-large", {"text": "70,000 bytes", "mend": "smaller pieces"})
    >>> type(error).__name__, error.text, error.mend
    ('TooLarge', '70,000 bytes', 'smaller pieces')
    """
    told = body if isinstance(body, dict) else {}
    kind = BadReference if code.startswith("unknown-") else BY_CODE.get(code, DocError)
    return kind(str(told.get("text", "")), code, str(told.get("mend", "")))
