"""Reads files, packed or not, as blocks of lines; neither a long line nor a large file can exhaust the memory."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from weft.lake.importing.limits import BLOCK_BYTES, LINE_BYTES_MAX

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_SUFFIXES: Final = (".gz", ".zst", ".zstd")
Read = Callable[[int], bytes]


class Block(NamedTuple):
    """Some lines without their LF, in order.

    A line that is too long is cut to one byte more than the limit, so that the parser refuses it.
    """

    lines: list[bytes]
    is_torn: bool = False
    """The end of the file; its last line has no LF."""
    fault: str = ""
    """Why the file cannot be read any further; empty if it can."""


@contextmanager
def opened(path: Path) -> Iterator[Read]:
    """Open a file for reading: plain, gzip or zstd, recognized by its first bytes. Raises OSError."""
    with path.open("rb") as file:
        magic = file.read(4)
        file.seek(0)
        if magic.startswith(_GZIP):
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked.read
        elif magic == _ZSTD:
            import zstandard

            with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as stream:
                yield stream.read
        else:
            yield file.read


def base_name(path: Path) -> str:
    """The name of a file without directory and packing suffix: a log that is packed later keeps its name and its era.

    >>> base_name(Path("/var/log/a.dcamp-data.gz"))
    'a.dcamp-data'
    """
    return path.stem if path.suffix in _SUFFIXES else path.name


def blocks(read: Read) -> Iterator[Block]:
    """All lines of a file. Bad content never raises: a damaged packed file ends with a `fault`."""
    rest, is_long = b"", False
    for piece, fault in _pieces(read):
        data = piece
        if fault:
            yield Block([rest] if rest else [], is_torn=bool(rest), fault=fault)
            return
        if is_long:  # `rest` is too long already: skip to the end of its line
            cut = data.find(b"\n")
            if cut < 0:
                continue
            yield Block([rest])
            rest, is_long, data = b"", False, data[cut + 1 :]
        lines = (rest + data).split(b"\n")
        rest = lines.pop()
        if lines:
            yield Block(lines)
        if len(rest) > LINE_BYTES_MAX:
            rest, is_long = rest[: LINE_BYTES_MAX + 1], True
    if rest:
        yield Block([rest], is_torn=True)


def _pieces(read: Read) -> Iterator[tuple[bytes, str]]:
    while True:
        try:
            data = read(BLOCK_BYTES)
        except _damages() as error:
            yield b"", f"{type(error).__name__}: {error}"
            return
        if not data:
            return
        yield data, ""


def _damages() -> tuple[type[Exception], ...]:
    """The exceptions that a damaged packed file raises."""
    import zstandard

    return EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError
