"""Files as blocks of lines, whatever they are packed in; no line and no file can use up the memory."""

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
    """Some lines without their LF, in order. Over-long ones are cut behind the length at which they are refused."""

    lines: list[bytes]
    is_torn: bool = False
    """The file ends here, and its last line has no LF."""
    fault: str = ""
    """Why the file cannot be read any further."""


@contextmanager
def opened(path: Path) -> Iterator[Read]:
    """Reads a file, plain, gzip or zstd, by what its first bytes say. Raises OSError."""
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
    """The name that an era is made of: a log that was packed since is the same log.

    >>> base_name(Path("/var/log/a.dcamp-data.gz"))
    'a.dcamp-data'
    """
    return path.stem if path.suffix in _SUFFIXES else path.name


def blocks(read: Read) -> Iterator[Block]:
    """All lines of a file. Never raises for what the file holds: a packed file that is damaged ends in a `fault`."""
    rest, is_long = b"", False
    for piece, fault in _pieces(read):
        data = piece
        if fault:
            yield Block([rest] if rest else [], is_torn=bool(rest), fault=fault)
            return
        if is_long:  # the rest of a line of which enough is held
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
    """What a packed file that is damaged raises."""
    import zstandard

    return EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError
