"""Z85, the text form of CURVE keys (ZeroMQ RFC 32): 32 bytes are 40 characters."""

from base64 import b85decode, b85encode
from typing import Final

_LETTERS: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_OURS: Final = b"".join((_LETTERS, b"!#$%&()", b"*+-;<=>?@^_`{|}~"))
_Z85: Final = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_TO: Final = bytes.maketrans(_OURS, _Z85)
_FROM: Final = bytes.maketrans(_Z85, _OURS)
KEY_BYTES: Final = 32
KEY_CHARACTERS: Final = 40


def to_z85(key: bytes) -> str:
    """A key as text.

    >>> to_z85(bytes.fromhex("5869aff450549732cbaaed5e5df9b30a6da31cb0e5742bad5ad4a1a768f1a67b"))
    'szs#hp/J=p+C%@ouhp/lzke8P<-A2PtgxmzxZ}%D'
    """
    return b85encode(key).translate(_TO).decode("ascii")


def from_z85(text: str) -> bytes | None:
    """The key of a text; None: it is none.

    >>> from_z85(to_z85(bytes(range(32)))) == bytes(range(32)), from_z85("short"), from_z85("~" * 40)
    (True, None, None)
    """
    data = text.encode("utf-8", "replace")
    if len(data) != KEY_CHARACTERS or data.translate(None, _Z85):
        return None
    try:
        return b85decode(data.translate(_FROM))
    except ValueError:
        return None
