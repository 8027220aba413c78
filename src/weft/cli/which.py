"""Finds the node of this machine that a command means: `--node` and `--port` are two names of one option.

A node writes the endpoint of its pages into `<state directory>/http.endpoint`; its block of ten ports begins six below.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter, Token

from weft.base.endpoints import CLIENTS, PORT_MAX, host_of, is_address, is_loopback
from weft.base.endpoints import HTTP as HTTP_PORT
from weft.base.endpoints import port_of as port_of_address
from weft.base.errors import UserError
from weft.cli.asking import DOOR
from weft.client.link.finding import VARIABLE, directory_of, shortest, state_base

PORT: Final = 27_500
"""The default first port of a node's ten."""
MEND: Final = "weft up, or the first of its ten ports, its name or its state directory as --node or --port"


def port_of(word: str) -> int:
    """The first port of the node that is meant by a number, a name, a state directory, or a socket in one."""
    if word.isascii() and word.isdecimal():
        if not 0 < int(word) <= PORT_MAX:
            raise UserError(
                "usage", f"{word} cannot be the first of a node's ten ports", f"a port from 1 to {PORT_MAX}"
            )
        return int(word)
    if word.startswith("tcp://"):
        return _of_endpoint(word.removeprefix("tcp://"))
    directory = Path(word.removeprefix("ipc://")).parent if word.startswith("ipc://") else directory_of(word)
    places = [directory] if directory is not None else list(DOOR.alive(word) or DOOR.noted(word))
    if len(places) > 1:
        text = f"{len(places)} nodes are called {word!r}: {', '.join(map(str, places))}"
        raise UserError("several-nodes", text, f"--node {shortest(places)}")
    noted = DOOR.endpoint_in(places[0]) if places else None
    if noted is None:
        where = f"in {places[0]}" if places else f"called {word!r} below {state_base()}"
        raise UserError("unavailable", f"no node {where} has noted its ports", MEND)
    return int(noted.rpartition(":")[2]) - HTTP_PORT


def _of_endpoint(address: str) -> int:
    """The first port of the node with this endpoint of chains, which is its ninth; UserError if it is on another machine."""
    if not (is_address(address) and is_loopback(host_of(address))):
        raise UserError("usage", f"{address} is not of this machine, where its node takes orders", MEND)
    return port_of_address(address) - CLIENTS


def place_of(word: str) -> str:
    """The state directory of the node whose first port is this number; any other word unchanged."""
    if not (word.isascii() and word.isdecimal()) or Path(word).is_dir():
        return word
    wanted = f":{int(word) + HTTP_PORT}"
    for place, noted in DOOR.noted().items():
        if noted.endswith(wanted):
            return str(place)
    raise UserError("unavailable", f"no node below {state_base()} has the ports from {word} on", MEND)


def _to_port(_: Any, tokens: Sequence[Token]) -> int:
    return port_of(tokens[0].value)


def _to_place(_: Any, tokens: Sequence[Token]) -> str:
    return place_of(tokens[0].value)


AskedPort = Annotated[int, Parameter(name=("--node", "--port"), converter=_to_port, env_var=VARIABLE)]
"""For commands that ask a node by its ports."""
AskedNode = Annotated[str | None, Parameter(name=("--node", "--port"), converter=_to_place, show_default=False)]
"""For commands that use a socket in the state directory; without the option they look at the environment."""
