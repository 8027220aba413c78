"""Every number that all clients share, with its unit and its reason."""

from typing import Final

BACK_OFF_SPREAD: Final = 0.2  # share of a wait, in both directions: a hundred clients of one node reconnect one by one
BACKLOG: Final = 512  # connections that wait to be accepted (SEC-010)
IDLE_S: Final = 10  # seconds of silence; then the kernel checks whether the other end of a TCP connection is there
PROBE_INTERVAL_S: Final = 5  # seconds between two checks
PROBES_MAX: Final = 3  # checks without an answer after which the connection counts as broken
SOCKET_PATH_BYTES_MAX: Final = 107  # of a Unix socket
LIVE_S: Final = 0.5  # seconds to find out whether anybody listens at a socket

LINGER_MS: Final = 1_000  # how long messages may still leave after the socket was closed

NEVER_MS: Final = 86_400_000
"""One day until libzmq reconnects by itself, which means never: after a restart the node does not know the old routing id,
so the client opens a new socket. The value -1, libzmq's own `never`, must not be used: with it libzmq drops messages that
have arrived, and a half-read message aborts the process."""
SOCKET_QUEUE: Final = 1_000  # multiparts, either way
KEY_FILE_BYTES_MAX: Final = 4 << 20  # a thousand bindings, and what each may say
SERVERS_MAX: Final = 8  # keys that are tried for one address
FRAME_BYTES_MAX: Final = (1 << 20) + (1 << 16)  # CLI-002
