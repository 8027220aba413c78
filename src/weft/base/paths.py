"""Keys of the replicated configuration: slash-separated paths (CFG-004)."""

import re
from typing import Final

KEY_BYTES_MAX: Final = 255
_KEY: Final = re.compile(r"(/[A-Za-z0-9._:@%+=~\[\]-]+)+")


def is_key(text: str) -> bool:
    """Whether `text` is a key: 2..255 bytes, non-empty segments, no slash at the end.

    >>> is_key("/CONFIG/web/metric/cpu"), is_key("/CONFIG//cpu"), is_key("/CONFIG/")
    (True, False, False)
    """
    return 2 <= len(text) <= KEY_BYTES_MAX and _KEY.fullmatch(text) is not None


def is_under(key: str, subtree: str) -> bool:
    """Whether `key` lies in `subtree`: a prefix if that ends in a slash or is empty, else one exact key.

    >>> is_under("/CONFIG/g10/rate", "/CONFIG/g1/")
    False
    """
    return key.startswith(subtree) if not subtree or subtree.endswith("/") else key == subtree
