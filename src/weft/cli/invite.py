"""`weft invite`: let another machine into the fabric (SEC-020 to SEC-057)."""

import json as to_json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from cyclopts import App, Parameter

from weft.base.errors import UserError
from weft.base.now import SECOND
from weft.base.settings import span_ns
from weft.cli.asking import order, status_of, try_status
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.cli.which import PORT, AskedPort

app = App(name="invite", help="Let another machine into the fabric: prints the token that `weft join` takes there.")

For = Annotated[str, Parameter(name="--for")]
START_S: Final = 20.0  # seconds in which a restarted node has to answer again
LOOK_S: Final = 0.1
STRANGERS: Final = """\
weft: the root has keys now, and listens at {host}. Nodes that run without keys are strangers to it: stop each one of them
  and start it with: weft join TOKEN --name NAME --state ITS_DIRECTORY
"""


@app.default
def invite(  # tidy: each is an option of the command line
    *,
    role: str = "sensor",
    uses: int = 1,
    lasts: For = "15m",
    names: str = "*",
    listen: str | None = None,
    port: AskedPort = PORT,
    json: Flag = False,
) -> int:
    """Print the line with which another machine joins: `weft invite`, and there `weft join TOKEN`.

    The first time, give the address of this machine at which others reach it: `weft invite --listen 192.168.1.10`. The
    root then gets keys and restarts at that address within a second. From then on it accepts only nodes whose keys it
    knows. Keep the line secret: whoever has it can join, until it is used or expires.

    Args:
        role: sensor; collector, which may have others below it and become the root; operator, service, reader, bridge.
        uses: how many machines may join with it.
        lasts: how long it is valid, e.g. 15m, 2h, 7d.
        names: a pattern of the names that may join, e.g. 'pi*'.
        listen: the address of this machine at which others reach the root; only needed the first time.
        port: the root's name, its state directory, or the first of its ten ports.
        json: the invitation as JSON; the token is one of its fields.
    """
    span = span_ns(lasts)
    if span is None:
        raise UserError("usage", f"--for {lasts!r} is no span of time", "15m, 2h or 7d")
    if listen is not None:
        _listen_at(port, listen)
    status_of(port)  # fails at once if the root does not run
    _wait(port, _leads)
    answer = order(port, "invite", role=role, uses=uses, for_s=span / SECOND, names=names)
    if json:
        print(to_json.dumps(answer))
        return 0
    print(f"weft join {answer['token']}")
    until = datetime.fromtimestamp(answer["expires_minutes"] * 60, UTC)
    machines = "one machine" if uses == 1 else f"{uses} machines"
    print(
        f"for {machines}, as {clean(role)}, until {until:%Y-%m-%d %H:%M} UTC; weft invite revoke {answer['ident']}",
        file=sys.stderr,
    )
    return 0


def _listen_at(port: int, host: str) -> None:
    """Let the root listen there, with keys; it may restart for that."""
    era = status_of(port).get("era")
    answer = order(port, "listen", address=host)
    if answer["starts"]:
        print(STRANGERS.format(host=clean(host)), end="", file=sys.stderr)
        _wait(port, lambda status: status.get("era") != era)


def _wait(port: int, holds: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until the node's status passes `holds`; a root that has just started leads after two heartbeats."""
    ends_at = time.monotonic() + START_S
    while (status := try_status(port)) is None or not holds(status):
        if time.monotonic() > ends_at:
            raise UserError("unavailable", "the root is not there yet", "weft status; then weft invite again")
        time.sleep(LOOK_S)


def _leads(status: dict[str, Any]) -> bool:
    """Whether the node leads, or is no root at all: then the order is refused and says so."""
    configuration = status.get("cores", {}).get("configuration", {})
    return status.get("level") != "root" or configuration.get("state") == "ROOT"


@app.command(name="ls")
def show(*, port: AskedPort = PORT, json: Flag = False) -> int:
    """Show the invitations of the root: which are open, and who has joined with them.

    Args:
        port: the root's name, its state directory, or the first of its ten ports.
        json: as JSON.
    """
    from weft.cli.kit.console import console, plain_table  # loads rich

    invitations = order(port, "invitations")["invitations"]
    if json:
        print(to_json.dumps(invitations))
        return 0
    table = plain_table("ID", "STATE", "ROLE", "USES", "UNTIL", "NAMES", "JOINED", "WRONG")
    for each in invitations:
        until = f"{datetime.fromtimestamp(each['expires_at'] / SECOND, UTC):%Y-%m-%d %H:%M}"
        uses = f"{len(each['joined'])}/{each['uses']}"
        row = (each["ident"], each["state"].lower(), each["role"], uses, until, each["names"], " ".join(each["joined"]))
        table.add_row(*map(clean, row), str(each["wrong"]))
    console(markup=False).print(table)
    return 0


@app.command(name="revoke")
def revoke(ident: str, /, *, port: AskedPort = PORT, json: Flag = False) -> int:
    """Withdraw an invitation: its token is no longer accepted. Machines that have joined stay; see weft key revoke.

    Args:
        ident: its id, as weft invite ls shows it.
        port: the root's name, its state directory, or the first of its ten ports.
        json: {"ident"}.
    """
    order(port, "withdraw", ident=ident)
    print(to_json.dumps({"ident": ident}) if json else f"nobody can join with {clean(ident)} any more")
    return 0
