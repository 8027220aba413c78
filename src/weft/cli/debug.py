"""`weft debug`: tools for finding a fault in a running node."""

import sys

from cyclopts import App

from weft.cli.asking import text_of
from weft.cli.which import PORT, AskedPort

app = App(name="debug", help="Print what a node received and did lately, to find a fault.")


@app.command
def dump(*, port: AskedPort = PORT) -> int:
    """Print the last 4,096 messages, orders and effects of the node at PORT, oldest first, as JSON lines.

    `weft debug dump > flight.jsonl`

    Frames are cut to 128 bytes, in hexadecimal, and may contain secret values. A node writes the same to the directory
    `flight` in its state directory when it ends by a fault, and when it gets the signal USR2.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
    """
    sys.stdout.write(text_of(port, "flight"))
    return 0
