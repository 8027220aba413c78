"""`weft fleet`: repairs a fleet that follows a wrong root (FLD-011)."""

import json as to_json
from typing import Annotated, Final

from cyclopts import App, Parameter

from weft.cli.asking import order
from weft.cli.kit.text import clean
from weft.cli.which import PORT, AskedPort

app = App(name="fleet", help="Repair a fleet that follows a wrong root.")

NOW: Final = {
    "leads": "it is the root itself: nothing was changed",
    "becomes-root": "it becomes the root again, as its file says",
    "seeks": "it follows the next root that calls",
}


@app.command(name="reset-root")
def reset_root(*, port: AskedPort = PORT, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Let a node forget which root it follows, and the votes it has given: `weft fleet reset-root --port 27510`.

    For a fleet that waits for a root that does not exist. Run it for every node, first for the one that is the root by its
    file: if only some nodes forget their votes, these could elect a second root. Records stay in the nodes' journals, and
    go up when there is a root again.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        json: what was forgotten, as JSON.
    """
    answer = order(port, "reset-root")
    root, epoch, now = answer["root"], answer["epoch"], answer["now"]
    if json:
        print(to_json.dumps({"root": root, "epoch": epoch, "now": now}))
    else:
        followed = f"the node followed {clean(root)}, epoch {epoch}" if root else "the node followed no root"
        print(f"{followed}; {NOW.get(now, clean(now))}")
    return 0
