"""Every number of the HTTP server, with its unit and its reason."""

from typing import Final

CONNECTIONS_MAX: Final = 256  # SEC-046
STREAMS_MAX: Final = 192  # viewers at once: the other connections are for whoever asks, or gives an order
TOLD_MAX: Final = 32  # further connections that get a 503; those beyond are closed without an answer
HEAD_BYTES_MAX: Final = 8 << 10  # SEC-046
PATIENCE_S: Final = 10.0  # seconds for a head, for a body, and for the client to read an answer (SEC-046)
PIECE_BYTES: Final = 4 << 10  # bytes that are read at a time
BODIES_MAX: Final = 16  # requests read and answered at once, of all routes: each may have 8 MiB
STALLED_S: Final = 30.0  # seconds; a viewer of a stream that reads nothing for so long is disconnected
STILL_HERE_S: Final = 10.0  # seconds between events in a stream; without one the page assumes that the server is gone
UNSENT_BYTES: Final = 16 << 10  # bytes that the kernel buffers for a viewer: one or two events (JAM-020)
FAREWELL_S: Final = 0.2  # seconds for answers in progress when the server stops
LOGINS_MAX: Final = 64  # logins at one node at once
LOGIN_S_MAX: Final = 86_400.0  # seconds: after a day the operator logs in again
ASSET_BYTES_MAX: Final = (
    16 << 20
)  # all files of one application, which stay in memory; Bokeh's JavaScript has a third of it
