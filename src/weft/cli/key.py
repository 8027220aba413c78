"""`weft key`: whose key the fabric knows, and whose no more (specs/07, section 6.3)."""

import json as to_json
from datetime import UTC, datetime
from typing import Final

from cyclopts import App

from weft.cli.asking import order
from weft.cli.kit.console import console
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean

app = App(name="key", help="Whose keys the fabric knows; take one back.")

PORT: Final = 27_500
SHOWN: Final = 12  # characters of a key and of a UUID that tell them apart


@app.command(name="ls")
def show(*, port: int = PORT, json: Flag = False) -> int:
    """Show whose keys a node knows: name, role, until when, and how the key begins.

    Args:
        port: first of the node's ten ports.
        json: as JSON, with whole keys.
    """
    told = order(port, "keys")["keys"]
    if json:
        print(to_json.dumps(told))
        return 0
    from rich.table import Table

    table = Table("NAME", "ROLES", "UNTIL", "KEY", "UUID", "NAMES", box=None, pad_edge=False)
    for each in told:
        until = f"{datetime.fromtimestamp(each['until'], UTC):%Y-%m-%d}" if each["until"] else "for ever"
        keys = " ".join(key[:SHOWN] for key in each["curve"])
        row = (each["name"], " ".join(each["roles"]), until, keys, each["uuid"][:SHOWN], " ".join(each["names"]))
        table.add_row(*map(clean, row))
    console(markup=False).print(table)
    return 0


@app.command(name="revoke")
def revoke(node: str, /, *, port: int = PORT) -> int:
    """Let the keys of a node be nobody's: `weft key revoke pi7`, at the root. For a machine that is lost or stolen.

    Nodes in reach shut it out within a second, also what it has open; a part of the fabric that is cut off does when it
    hears of it, at the latest when the key's time is over. To let it in again: weft invite.

    Args:
        node: its name, or its UUID.
        port: first of the root's ten ports.
    """
    told = order(port, "revoke-key", node=node)
    print(f"the keys of {clean(told['name'])} ({told['uuid']}) are nobody's any more")
    return 0
