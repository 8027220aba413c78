"""Finds out from the kernel which user is at the other end of a local TCP connection (SEC-056)."""

import os
import socket
from itertools import islice
from pathlib import Path
from typing import Final

TABLES: Final = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
LINES_MAX: Final = 200_000  # lines of the kernel's table; connections in later lines are not found, and need a key
LOCAL, REMOTE, UID = 1, 2, 7
"""Columns of the table."""

Address = tuple[str, int]


def is_same_user(client: Address, server: Address) -> bool:
    """Whether the user of this process, or root, opened the connection from `client` to `server`.

    False for a client on another machine: this kernel has no such connection.
    """
    return uid_of(client, server) in (os.geteuid(), 0)


def uid_of(client: Address, server: Address) -> int | None:
    """The user that opened a connection of this machine; None: there is none, or the kernel does not say."""
    for family, table in TABLES.items():
        here, there = _written(client, family), _written(server, family)
        if here and there and (uid := _look_up(table, here, there)) is not None:
            return uid
    return None


def _look_up(table: Path, here: str, there: str) -> int | None:
    try:
        with table.open(encoding="ascii") as file:
            rows = (line.split() for line in islice(file, LINES_MAX) if here in line and there in line)
            return next((int(row[UID]) for row in rows if (row[LOCAL], row[REMOTE]) == (here, there)), None)
    except OSError:
        return None


def _written(address: Address, family: socket.AddressFamily) -> str:
    """An address as the kernel's table shows it: words in the machine's byte order; empty: another address family."""
    host = address[0].partition("%")[0]
    try:
        raw = socket.inet_pton(family, host)
    except OSError:
        if family != socket.AF_INET6 or ":" in host or not host:
            return ""
        raw = bytes(10) + b"\xff\xff" + socket.inet_pton(socket.AF_INET, host)  # IPv4 over an IPv6 socket
    words = (int.from_bytes(raw[at : at + 4], "little") for at in range(0, len(raw), 4))
    return "".join(f"{word:08X}" for word in words) + f":{address[1]:04X}"
