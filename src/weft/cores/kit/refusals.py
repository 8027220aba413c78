"""What a core does not do for a program or a person who asked.

A peer that breaks the protocol is another matter: that is a `PeerError` (`weft.base.errors`).
"""

import msgspec

from weft.base.errors import WeftError


class Refusal(WeftError):
    """An order or question is refused. It is an answer and nobody's fault; nothing has changed.

    `code` is one of the closed list that the protocol names, `why` says what is wrong, `mend` what helps, if anything does.
    """

    def __init__(self, code: str, why: str = "", mend: str = "") -> None:
        super().__init__(f"{code}: {why}" if why else code)
        self.code, self.why, self.mend = code, why, mend


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Answer to an order of a person: it was not obeyed, and nothing has changed. A protocol may have its own."""

    code: str
    text: str
