"""Finds blocks of free ports for processes of this machine, and reserves them until they are bound."""

import errno
import os
import socket
from collections import deque
from typing import Final

from weft.base.errors import UserError
from weft.shell.listening import with_loopback

BLOCK: Final = 10  # ports of one node
LAST: Final = 60_000
_KEPT: Final[deque[int]] = deque()
"""Descriptors that reserve the blocks found last."""
_KEPT_MAX: Final = 64  # the largest fabric needs 18; after 64 blocks the first ones are bound already


def free_blocks(count: int, start: int = 27_500, host: str = "127.0.0.1", ports: int = BLOCK) -> list[int]:
    """`count` bases of blocks of `ports` ports that are free at an address of this machine and on its loopback, from `start` up.

    A node binds both: its pages, and its doors for programs, are on loopback wherever it listens.

    They stay reserved for this process until it ends, even after an `exec`, or until it has reserved 64 later blocks: this
    function gives them to no other process. A program that binds a port without this function is not hindered.

    UserError `no-ports`.
    """
    found: list[int] = []
    width = -(-ports // BLOCK) * BLOCK
    for base in range(start, LAST, width):
        if _take(base, ports, host):
            found.append(base)
            if len(found) == count:
                return found
    raise UserError(
        "no-ports", f"there are no {count} free port blocks between {start} and {LAST}", "stop other fleets first"
    )


def _take(base: int, ports: int, host: str) -> bool:
    last = base + ports - 1
    guards: list[int] = []
    for ten in range(base // BLOCK, last // BLOCK + 1):
        if (guard := _reserved(ten)) is None:
            break
        guards.append(guard)
    else:
        if all(_is_free(port, at) for at in with_loopback(host) for port in range(base, last + 1)):
            _keep(guards)
            return True
    for guard in guards:
        os.close(guard)
    return False


def _reserved(ten: int) -> int | None:
    """A descriptor with a name that only one process of this network can have at a time; None: another process has it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as guard:
        try:
            guard.bind(f"\0weft-ports-{ten}")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return None
        return guard.detach()


def _keep(guards: list[int]) -> None:
    for guard in guards:
        os.set_inheritable(guard, True)  # `weft join` becomes the node that it found ports for
        _KEPT.append(guard)
    while len(_KEPT) > _KEPT_MAX:
        os.close(_KEPT.popleft())


def _is_free(port: int, host: str) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True
