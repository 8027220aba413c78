"""Every number of the room that all clients stand on, with its unit and its reason."""

from typing import Final

BACK_OFF_SPREAD: Final = 0.2  # of a pause, either way: a hundred clients of one node come back one by one
IDLE_S: Final = 10  # then the kernel asks whether the other end of a TCP connection is there
PROBE_INTERVAL_S: Final = 5  # how often it asks
PROBES_MAX: Final = 3  # how often without an answer, until the connection counts as broken
SOCKET_PATH_BYTES_MAX: Final = 107  # of a Unix socket
LIVE_S: Final = 0.5  # whether anybody listens at a socket
