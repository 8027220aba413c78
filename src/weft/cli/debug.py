"""`weft debug`: tools for finding a fault in a running node."""

import sys

from cyclopts import App

from weft.cli.asking import text_of
from weft.cli.which import PORT, AskedPort

app = App(name="debug", help="What a node heard and did lately, for whoever looks for a fault.")


@app.command
def dump(*, port: AskedPort = PORT) -> int:
    """Print the last 4,096 messages, orders and effects of the node at PORT, oldest first, as JSON lines.

    `weft debug dump > flight.jsonl`

    Frames are cut to 128 bytes in hexadecimal; they may hold values that are secret. A node that ends by a fault writes
    the same into the folder `flight` of its state directory, and so does one that gets the signal USR2.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
    """
    sys.stdout.write(text_of(port, "flight"))
    return 0
