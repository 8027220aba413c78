"""`weft key`: shows, revokes and rotates the keys of nodes (SEC-020 to SEC-057)."""

import json as to_json
import sys
import time
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from cyclopts import App, Parameter

from weft.base.errors import UserError
from weft.cli.asking import order, status_of
from weft.cli.kit.console import console, plain_table
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.cli.which import PORT, AskedPort

app = App(name="key", help="Show, rotate and revoke the keys of nodes.")

PATIENCE_S: Final = 60.0
LOOK_S: Final = 0.2
NAMED_MAX: Final = 8
RUNS: Final = {"sensor", "collector"}
"""Roles of machines that run a node: only these make keys by themselves."""
All = Annotated[bool, Parameter(name="--all", negative="", show_default=False)]
SHOWN: Final = 12  # characters shown of a key and of a UUID, enough to distinguish them


@app.command(name="ls")
def show(*, port: AskedPort = PORT, json: Flag = False) -> int:
    """Show whose keys a node knows: name, role, until when, and how the key begins.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        json: as JSON, with whole keys.
    """
    bindings = order(port, "keys")["keys"]
    if json:
        print(to_json.dumps(bindings))
        return 0

    table = plain_table("NAME", "ROLES", "UNTIL", "KEY", "UUID", "NAMES")
    for each in bindings:
        until = f"{datetime.fromtimestamp(each['until'], UTC):%Y-%m-%d}" if each["until"] else "for ever"
        keys = " ".join(key[:SHOWN] for key in each["curve"])
        row = (each["name"], " ".join(each["roles"]), until, keys, each["uuid"][:SHOWN], " ".join(each["names"]))
        table.add_row(*map(clean, row))
    console(markup=False).print(table)
    return 0


@app.command(name="revoke")
def revoke(node: str, /, *, port: AskedPort = PORT, json: Flag = False) -> int:
    """Invalidate the keys of a node: `weft key revoke pi7`, at the root. For a machine that is lost or stolen.

    Reachable nodes refuse it within a second and close its connections; a part of the fabric that is cut off does so
    when it is reachable again, at the latest when the key expires. To let it in again: weft invite.

    Args:
        node: its name, or its UUID.
        port: the root's name, its state directory, or the first of its ten ports.
        json: {"name", "uuid"} of the node.
    """
    answer = order(port, "revoke-key", node=node)
    text = f"the keys of {clean(answer['name'])} ({answer['uuid']}) are revoked"
    print(to_json.dumps({"name": answer["name"], "uuid": answer["uuid"]}) if json else text)
    return 0


@app.command(name="rotate")
def rotate(
    node: str = "", /, *, everybody: All = False, now: Flag = False, port: AskedPort = PORT, json: Flag = False
) -> int:
    """Replace the key of a node, without loss of samples or values: `weft key rotate`, at any node, for its own key.

    At the root, `weft key rotate pi7` replaces the key of another node, and `--all` the keys of all nodes, one after the
    other, the root's last. The node makes a key pair, whose secret half stays on its disk; the fabric learns the public
    half; then the node restarts with it, in the same process. The root restarts only when every node knows its next key,
    because a node that does not could not reconnect by itself.

    Args:
        node: its name; left out: the node at this port.
        everybody: all nodes; only at the root.
        now: for the root's own key: do not wait. Nodes that are away must join again, by weft invite and weft join.
        port: the node's name, its state directory, or the first of its ten ports.
        json: the outcome, as JSON.
    """
    if everybody and node:
        raise UserError("usage", f"{node} and --all", "one of the two")
    done = [_rotated(port, name, now=now) for name in (_everybody(port) if everybody else [node])]
    if json:
        print(to_json.dumps(done))
    return 0


def _everybody(port: int) -> list[str]:
    """Names of all nodes; the node at this port comes last."""
    own = str(status_of(port).get("name", ""))
    keys = order(port, "keys")["keys"]
    return [each["name"] for each in keys if RUNS & set(each["roles"]) and each["name"] != own] + [""]


def _rotated(port: int, node: str, *, now: bool) -> dict[str, Any]:
    """Start a rotation, and wait for its end."""
    begun = order(port, "rotate-key", node=node, at_once=now)
    name, ends_at, waits_for = clean(begun["name"]), time.monotonic() + PATIENCE_S, list[str]()
    while True:
        key = _key_of(port, begun["uuid"])
        if key is not None and len(key["curve"]) == 1 and key["curve"] != [begun["curve"]]:
            print(f"{name} has another key: {clean(key['curve'][0][:SHOWN])}...", file=sys.stderr)
            return {"name": begun["name"], "uuid": begun["uuid"], "curve": key["curve"][0]}
        waits_for = key["waits_for"] if key is not None else waits_for
        if time.monotonic() > ends_at:
            raise _unfinished(name, waits_for)
        time.sleep(LOOK_S)


def _key_of(port: int, uuid: str) -> dict[str, Any] | None:
    """What the node at that port knows about the key; None while it restarts."""
    try:
        keys = order(port, "keys")["keys"]
    except UserError:
        return None
    return next((each for each in keys if each["uuid"] == uuid), None)


def _unfinished(name: str, waits_for: list[str]) -> UserError:
    if not waits_for:
        return UserError(
            "unavailable", f"{name} still has its old key: does it run?", "weft status; it goes on by itself"
        )
    shown = ", ".join(map(clean, waits_for[:NAMED_MAX]))
    text = f"{name} still has its old key, because {shown} do not know the next one"
    return UserError("unavailable", text, "it goes on when they are reachable; or weft key rotate --now, without them")
