"""How programs connect to a node's chains and documents: each connection is a new DEALER socket (CLI-002)."""

import os
from collections.abc import Callable
from typing import Final

import zmq

from weft.client.link.limits import FRAME_BYTES_MAX, LINGER_MS, NEVER_MS, SOCKET_QUEUE
from weft.client.link.opening import Target
from weft.client.link.sockets import ENDED, Bounds, Socket
from weft.wire.multipart import MULTIPART_BYTES_MAX, MULTIPART_FRAMES_MAX

BOUNDS: Final = Bounds(FRAME_BYTES_MAX, SOCKET_QUEUE, LINGER_MS, MULTIPART_FRAMES_MAX, MULTIPART_BYTES_MAX)


def dealer(target: Target, on_ready: Callable[[], None], on_end: Callable[[], None]) -> Socket:
    """Open a socket that never reconnects; `on_end` is called when its connection has ended. Raises BadEndpoint."""
    made = Socket(zmq.DEALER, BOUNDS, on_ready)
    made.set(zmq.RECONNECT_IVL, NEVER_MS)
    made.set(zmq.ROUTING_ID, b"\x01" + os.urandom(15))
    made.watch({ENDED: on_end})
    made.dial(target)
    return made
