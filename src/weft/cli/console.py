"""`weft console`: the address of a node's console, and a login to change something there (CON-001, CON-004)."""

import json as json_module

from cyclopts import App

from weft.base.endpoints import HTTP as HTTP_PORT
from weft.base.endpoints import host_of, is_endpoint, port_of
from weft.base.errors import UserError
from weft.base.now import SECOND
from weft.base.settings import span_ns
from weft.cli.asking import LOCAL, page_of, post
from weft.cli.config_store import user_name
from weft.cli.kit.options import Flag
from weft.cli.which import PORT, AskedPort

app = App(name="console", help="Print the address of a node's console, the fleet in a browser; log in to it.")


@app.default
def console(*, port: AskedPort = PORT, json: Flag = False) -> int:
    """Print the address of a node's console, and of the root's, which knows the whole fleet.

    Every node has one at its first port + 6. A browser on this machine may read it; in a closed fabric a browser
    elsewhere needs a tunnel to this machine, such as `ssh -L`, or `keys/http.token` of the node at the node's address.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        json: the same as JSON.
    """
    status = page_of(port, "status")
    root = str(status["root"]["endpoint"])
    facts = {
        "console": address_of(port),
        "name": status["name"],
        "level": status["level"],
        "open": status["open"],
        "root": address_of(port_of(root), host_of(root)) if is_endpoint(root) and status["level"] != "root" else None,
    }
    if json:
        print(json_module.dumps(facts))
        return 0
    print(facts["console"])
    if facts["root"]:
        print(f"{status['name']} is a {status['level']} and knows what passes it; the whole fleet: {facts['root']}")
    if not status["open"]:
        ahead = f"ssh -L {port + HTTP_PORT}:{LOCAL}:{port + HTTP_PORT} MACHINE"
        print(f"a browser of this machine may read it; from elsewhere: {ahead}, then the same address")
    return 0


@app.command
def login(*, port: AskedPort = PORT, who: str = "", span: str = "8h", json: Flag = False) -> int:
    """Print an address at which a browser may make changes in the console, for a while: `weft console login --who anna`.

    Only the user who runs the node may ask, on its machine. The part behind `#` is a key: until it expires or the node
    restarts, its holder may do at this node whatever the command line may, but weft reload and further logins. Each change
    is recorded with the name.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        who: the name that is recorded with each change; default: your user name on this machine.
        span: for how long, e.g. `30m`; a day at most.
        json: the same as JSON.
    """
    lasts_ns = span_ns(span)
    if not lasts_ns:
        raise UserError("usage", f"--span {span} is no span of time", "--span 8h")
    name = who or user_name() or "operator"
    token = post(port, "console/login", {"who": name, "for_s": lasts_ns / SECOND}, "console login")["token"]
    address = f"{address_of(port)}#login={token}"
    print(json_module.dumps({"console": address, "token": token, "who": name, "span": span}) if json else address)
    return 0


def address_of(port: int, host: str = LOCAL) -> str:
    """The address of the console of the node whose port block begins at `port`."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port + HTTP_PORT}/console/"
