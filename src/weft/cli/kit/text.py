"""Makes text from other machines, programs and files safe for a terminal (SEC-045)."""

from weft.base.printable import clean

__all__ = ["clean", "clean_bytes"]


def clean_bytes(data: bytes) -> str:
    r"""Foreign bytes as text if they are text, else in Python's notation.

    >>> clean_bytes(b"<a/>"), clean_bytes(b"a\x1b[2J"), clean_bytes(b"\xff")
    ('<a/>', 'a\\x1b[2J', "b'\\xff'")
    """
    try:
        return clean(data.decode())
    except UnicodeDecodeError:
        return repr(data)
