"""What can go wrong between a client and the other end, whatever they speak about: a code, a sentence, a mend."""

from typing import TypeVar

from weft.base.errors import WeftError


class LinkError(WeftError):
    """It was not done: `code` says why in one word, `text` in a sentence, `mend` what helps, if anything is known to."""

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
    """Nobody was reached: what was asked for has not happened."""

    code = "unreachable"


class Unanswered(LinkError):
    """It was said, and no answer came: what was asked for may have happened, or happen still."""

    code = "unanswered"


class Closed(LinkError):
    """The client has been closed."""

    code = "closed"


K = TypeVar("K", bound=type[LinkError])


def by_code(*kinds: K) -> dict[str, K]:
    """The kinds of error that the other end can name, by its word for each."""
    return {kind.code: kind for kind in kinds}
