"""The words of the console's first screen, which its picture in the README bears, so that it is seen when it is of another page."""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.house.requirements import ROOT as TREE
from tests.interop.chromium import Page

PICTURE: Final = TREE / "docs" / "console.png"
WORDS: Final = """[...document.querySelectorAll("nav a, dt, h2, .row.names *, .row.machine b")]
    .filter((part) => part.offsetParent && (part.matches("nav a, dt, h2") || !part.children.length))
    .map((part) => part.textContent.trim()).sort().join(" | ")"""
KEY: Final = b"tEXt", b"words\0"
SIGNATURE: Final = 8  # bytes in front of the first chunk
FRAME: Final = 12  # bytes of length, kind and checksum


def words_on(page: Page) -> str:
    """The words of the first screen that stay the same from start to start: names of pages, numbers, columns, machines."""
    return str(page.run(WORDS))


def words_in(file: Path) -> str:
    """The words that a picture bears; empty if it bears none."""
    kind, key = KEY
    return "".join(
        body[len(key) :].decode() for name, body in _chunks(file.read_bytes()) if name == kind and body.startswith(key)
    )


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = SIGNATURE
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += FRAME + length


def note(file: Path, words: str) -> None:
    """Put the words behind the first chunk, the picture's head."""
    kind, key = KEY
    png, body = file.read_bytes(), key + words.encode("ascii", "backslashreplace")
    behind = SIGNATURE + FRAME + struct.unpack_from(">I", png, SIGNATURE)[0]
    chunk = struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    file.write_bytes(png[:behind] + chunk + png[behind:])
