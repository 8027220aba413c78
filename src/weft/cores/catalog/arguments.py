"""Arguments of queries: one JSON object of known keys (CAT-034)."""

from typing import TypeVar

import msgspec

from weft.base.errors import UNREADABLE
from weft.cores.catalog.refusals import Refusal

T = TypeVar("T")


def read_argument(args: tuple[bytes, ...], position: int, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode the argument at a position; a missing or empty one gives the defaults. Raises Refusal `bad-argument`."""
    frame = args[position] if position < len(args) else b""
    try:
        return decoder.decode(frame or b"{}")
    except UNREADABLE as error:
        raise Refusal("bad-argument", str(error)) from None
