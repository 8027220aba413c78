"""Programs and their node: one request, one answer or many (JAM-040), over the socket in the state directory.

Frames of a request: its id (1..8 bytes, chosen by the client), then a MessagePack map; of an answer: the same id, then
a map.
"""

from typing import Any

import msgspec


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A request of a program."""

    id: bytes
    verb: str
    """One of the table in `cores/document/serving.py`."""
    session: str = ""
    """Empty: the only one of the node."""
    args: dict[str, Any] = {}


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The answer to a request, or one of several."""

    id: bytes
    body: Any
    """Plain data; of a refusal, a map with `text` and `mend`."""
    code: str = ""
    """Empty: done; else why it was refused, with nothing changed."""
    more: bool = False
    """Whether further answers to the same request follow (a watch ends by `Asked(id, "end")`)."""
