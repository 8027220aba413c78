"""How a core refuses an order or a question of a program or a person.

A protocol error of a peer is not a refusal: it raises `PeerError` (`weft.base.errors`).
"""

import msgspec

from weft.base.errors import WeftError


class Refusal(WeftError):
    """An order or question is refused. A refusal is a regular answer, not an error of anybody, and nothing has changed.

    `code` is from the protocol's closed list, `why` says what is wrong, `mend` says what would help; it is empty if
    nothing does.
    """

    def __init__(self, code: str, why: str = "", mend: str = "") -> None:
        super().__init__(f"{code}: {why}" if why else code)
        self.code, self.why, self.mend = code, why, mend


class Refused(msgspec.Struct, frozen=True, gc=False):
    """Answer to a person's order: it was refused and nothing has changed.

    A protocol may use an answer type of its own.
    """

    code: str
    text: str
