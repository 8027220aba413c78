"""Errors between a client and its server, for all protocols: a code, a sentence, a mend."""

from typing import TypeVar

from weft.base.errors import WeftError


class LinkError(WeftError):
    """The request failed: `code` says why in one word, `text` in a sentence, `mend` what helps, if known."""

    code = "failed"
    mend = ""

    def __init__(self, text: str = "", code: str = "", mend: str = "") -> None:
        super().__init__(text or code or self.code)
        self.text = text or code or self.code
        if code:
            self.code = code
        if mend:
            self.mend = mend


class Unreachable(LinkError):
    """No server was reached: the request has not been carried out."""

    code = "unreachable"


class Unanswered(LinkError):
    """The request was sent, but no answer came: it may have been carried out, or may still be."""

    code = "unanswered"


class Closed(LinkError):
    """The client has been closed."""

    code = "closed"


K = TypeVar("K", bound=type[LinkError])


def by_code(*kinds: K) -> dict[str, K]:
    """The error types by the code that a server sends."""
    return {kind.code: kind for kind in kinds}
