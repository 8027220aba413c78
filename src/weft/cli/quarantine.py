"""`weft quarantine`: the last messages that a node has refused."""

import json as json_module
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from weft.cli.asking import page_of
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.cli.which import PORT, AskedPort

LINE_BYTES: Final = 16


def quarantine(*, port: AskedPort = PORT, json: Flag = False) -> int:
    """Show the last messages that the node at PORT has refused, newest first: the sender, the bytes, and the reason.

    A node keeps at most 100 of them, in memory only, and of each the first 256 bytes of at most 8 frames.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        json: all of it as JSON, frames as hex.
    """
    page = page_of(port, "quarantine")
    if json:
        print(json_module.dumps(page))
        return 0
    for message in page["messages"]:
        for line in lines_of(message):
            print(line)
    print(f"{len(page['messages'])} kept of {page['refused']} refused since the start")
    return 0


def lines_of(message: dict[str, Any]) -> Iterator[str]:
    """A refused message for people: when, who, why; then its frames in hexadecimal, safe for a terminal."""
    at = datetime.fromtimestamp(message["at"] / 1e9, UTC)
    why = f": {clean(message['why'])}" if message["why"] else ""
    peer = f" from {clean(message['peer'])}" if message["peer"] else ""
    yield f"{at:%Y-%m-%d %H:%M:%S.%f} UTC  {message['channel']}{peer}  {message['code']}{why}"
    for number, frame in enumerate(message["frames"], 1):
        data, size = bytes.fromhex(frame["hex"]), frame["bytes"]
        cut = f", the first {len(data)} shown" if len(data) < size else ""
        yield f"  frame {number} of {message['count']}, {size} bytes{cut}"
        for start in range(0, len(data), LINE_BYTES):
            line = data[start : start + LINE_BYTES]
            yield f"    {start:04x}  {line.hex(' '):{3 * LINE_BYTES - 1}}  {_column(line.decode('latin-1'))}"


def _column(text: str) -> str:
    r"""The text beside hexadecimal digits, one character for each byte: printable ASCII, or a dot.

    >>> _column("a\x1b[2Jß")
    'a.[2J.'
    """
    return "".join(letter if " " <= letter <= "~" else "." for letter in text)
