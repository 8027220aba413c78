"""Every number of the HTTP server, with its unit and its reason."""

from typing import Final

CONNECTIONS_MAX: Final = 256  # SEC-046
TOLD_MAX: Final = 32  # connections beyond those that are still told 503; the rest is closed without a word
HEAD_BYTES_MAX: Final = 8 << 10  # SEC-046
PATIENCE_S: Final = 10.0  # for a head, for a body, and for an answer to be taken (SEC-046)
PIECE_BYTES: Final = 4 << 10  # read at a time
BODIES_MAX: Final = 16  # read and answered at once, of all routes: each may have 8 MiB
STALLED_S: Final = 30.0  # a viewer of a stream that takes nothing for so long is gone
STILL_HERE_S: Final = 10.0  # so often something is said in a stream, or the page believes that we are gone
UNSENT_BYTES: Final = 16 << 10  # what the kernel holds for a viewer: an event or two, never eight (JAM-020)
FAREWELL_S: Final = 0.2  # answers under way may end so long when the server stops
ASSET_BYTES_MAX: Final = 16 << 20  # all files of one application together: they are held in memory
"""Of Bokeh's or Plotly's JavaScript there is a third of that."""
