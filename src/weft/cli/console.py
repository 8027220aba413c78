"""`weft console`: where the page of a node is that shows its fleet (CON-001)."""

import json as json_module

from weft.base.endpoints import host_of, is_endpoint, port_of
from weft.cli.asking import HTTP_PORT, LOCAL, page_of
from weft.cli.kit.options import Flag


def console(*, port: int = 27_500, json: Flag = False) -> int:
    """Print the address of a node's console, and of the root's, which knows the whole fleet.

    Every node has one at its port +6. A browser on this machine may read it; on a closed fabric one from elsewhere
    needs a way to this machine, such as `ssh -L`.

    Args:
        port: first of the node's ten ports.
        json: the same as JSON.
    """
    told = page_of(port, "status")
    root = str(told["root"]["endpoint"])
    facts = {
        "console": address_of(port),
        "name": told["name"],
        "level": told["level"],
        "open": told["open"],
        "root": address_of(port_of(root), host_of(root)) if is_endpoint(root) and told["level"] != "root" else None,
    }
    if json:
        print(json_module.dumps(facts))
        return 0
    print(facts["console"])
    if facts["root"]:
        print(f"{told['name']} is a {told['level']} and knows what passes it; the whole fleet: {facts['root']}")
    if not told["open"]:
        ahead = f"ssh -L {port + HTTP_PORT}:{LOCAL}:{port + HTTP_PORT} MACHINE"
        print(f"a browser of this machine may read it; from elsewhere: {ahead}, then the same address")
    return 0


def address_of(port: int, host: str = LOCAL) -> str:
    """The address of the console of the node whose port block begins at `port`."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port + HTTP_PORT}/console/"
