"""Ports that are free now, and that no other process of tests takes before they are bound."""

import socket
from collections import deque
from typing import Final

from weft.cli import fleet

KEPT: Final[deque[int]] = deque(maxlen=16)
"""Descriptors that reserve the last blocks given: by then a block is bound, or its test is over."""


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_blocks(count: int, start: int = 27_500) -> list[int]:
    """As `weft.cli.fleet.free_blocks`, but what one process was given is given to no other one at the same time."""
    found: list[int] = []
    while len(found) < count:
        (block,) = fleet.free_blocks(1, start)
        if _reserves(block):
            found.append(block)
        start = block + fleet.BLOCK
    return found


def _reserves(block: int) -> bool:
    """Take the name of a block: it is gone with the process, and another network has names of its own."""
    guard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        guard.bind(f"\0weft-tests-{block}")
    except OSError:
        guard.close()
        return False
    if len(KEPT) == KEPT.maxlen:
        socket.close(KEPT.popleft())
    KEPT.append(guard.detach())
    return True
