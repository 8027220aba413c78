"""What stands before a message on a ROUTER, and goes back before its answer unchanged (CFG-010, CFG-011).

DEALER of Weft, REQ      empty delimiter
REQ that correlates      4-byte id, empty delimiter
bare DEALER, CHP         nothing

It is recognised from the first two frames behind the identity.
"""

from typing import Any

import msgspec

Envelope = tuple[bytes, ...]
"""`(b"",)`, `(id, b"")` or `()`."""


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A message that came in on a ROUTER."""

    envelope: Envelope
    message: Any


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A message that goes back in the envelope of what it answers."""

    envelope: Envelope
    message: Any
