"""The frames before a message on a ROUTER; they go back before its answer, unchanged (CFG-010, CFG-011).

DEALER of Weft, REQ      empty delimiter
REQ that correlates      4-byte id, empty delimiter
bare DEALER, CHP         nothing

The form is recognised by the first two frames behind the identity.
"""

from typing import Any, Final

import msgspec

from weft.base.errors import PeerError

ID_BYTES: Final = 4  # of a REQ that correlates

Envelope = tuple[bytes, ...]
"""`(b"",)`, `(id, b"")` or `()`."""
_DELIMITED: Final[Envelope] = (b"",)
_BARE: Final[Envelope] = ()


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A message that came in on a ROUTER."""

    envelope: Envelope
    message: Any


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A message that goes back in the envelope of what it answers."""

    envelope: Envelope
    message: Any


def split(frames: list[bytes], words: frozenset[bytes]) -> tuple[Envelope, list[bytes]]:
    """The envelope of the frames behind an identity, and the message; `words` are those that begin a bare message.

    PeerError `envelope` for what is none of the three forms (CFG-011).

    >>> split([b"", b"ICANHAZ"], frozenset({b"ICANHAZ"})), split([b"ICANHAZ"], frozenset({b"ICANHAZ"}))
    (((b'',), [b'ICANHAZ']), ((), [b'ICANHAZ']))
    """
    first = frames[0] if frames else None
    if first == b"":
        return _DELIMITED, frames[1:]
    if first in words:
        return _BARE, frames
    if first is not None and len(first) == ID_BYTES and len(frames) > 1 and not frames[1]:
        return (first, b""), frames[2:]
    raise PeerError("envelope", "neither a delimiter nor a known word", first or b"")


def opened(frames: list[bytes]) -> list[bytes]:
    """The frames of an answer behind its delimiter; some parents send none, then all of them."""
    return frames[1:] if frames and not frames[0] else frames
