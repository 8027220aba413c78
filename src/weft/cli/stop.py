"""`weft stop`: makes a group, or all nodes but the root, give up their places (TOP-017)."""

import json as to_json
from typing import Annotated, Final

from cyclopts import Parameter

from weft.cli.asking import order
from weft.cli.kit.exits import DONE, NOT_SO, notice
from weft.cli.which import PORT, AskedPort

MEND: Final = (
    "weft status shows the groups; to end one node: Ctrl-C, kill PROCESS, or for a service systemctl stop weft-NAME"
)


def stop(group: str = "", /, *, port: AskedPort = PORT, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Tell the nodes of a group, or all of them, to stop measuring and to wait: `weft stop web`.

    They send up what they have, and keep running without a place until a root starts and gives them one. Exit status 1
    if a node did not answer.

    Args:
        group: its name; left out: all nodes but the root.
        port: the root's name, its state directory, or the first of its ten ports.
        json: the stopped nodes and those without an answer, as JSON.
    """
    answer = order(port, "stop", group=group)
    stopped, missing = answer["stopped"], answer["missing"]
    if json:
        print(to_json.dumps({"stopped": stopped, "missing": missing}))
    else:
        print(f"stopped: {', '.join(stopped) or 'nobody'}")
        if missing:
            notice(f"no answer from: {', '.join(missing)}\n  try: weft status, and stop these by hand")
        elif group and not stopped:
            notice(f"no machine has a place in a group {group!r}\n  try: {MEND}")
    return NOT_SO if missing else DONE
