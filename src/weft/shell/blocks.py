"""Blocks of ports for processes of this machine: free now, and given to nobody else before they are bound."""

import errno
import os
import socket
from collections import deque
from typing import Final

from weft.base.errors import UserError

BLOCK: Final = 10  # ports of one node
LAST: Final = 60_000
_KEPT: Final[deque[int]] = deque()
_KEPT_MAX: Final = 64  # the largest fabric takes 18; whoever has taken so many has bound the first ones by then


def free_blocks(count: int, start: int = 27_500, host: str = "127.0.0.1", ports: int = BLOCK) -> list[int]:
    """`count` bases of blocks of `ports` ports that are free at an address of this machine, from `start` upward.

    They stay reserved for this process until it ends, even beyond an `exec`, or until it has taken many more: no other
    process that asks here gets them. A program that binds a port without asking is not held back.
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
        if all(_is_free(port, host) for port in range(base, last + 1)):
            _keep(guards)
            return True
    for guard in guards:
        os.close(guard)
    return False


def _reserved(ten: int) -> int | None:
    """The descriptor of a name that one process of this network has at a time; None: another one has it."""
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
