"""`weft catalog serve`: a standalone broker, without a node's file."""

from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.kit.options import Flag
from weft.node.settings import LOOPBACK, settings_of
from weft.shell.blocks import free_blocks

PORT: Final = 5_246
BLOCKS_FROM: Final = 28_500
"""The first port to try for the node's block of ten; nodes usually begin at 27500."""
JOURNAL_MEGABYTES: Final = 256


Open = Annotated[bool, Parameter(name="--open", negative="", show_default=False)]
More = Annotated[tuple[str, ...], Parameter(name="--set", negative="", show_default=False)]


def serve(  # tidy: each is an option of the command line
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    state: Path | None = None,
    name: str = "catalog",
    net: str = "",
    beacons: bool = True,
    strict: Flag = False,
    unique_names: Flag = False,
    node_port: int | None = None,
    is_open: Open = False,
    more: More = (),
    check: Flag = False,
) -> int:
    """Run a catalog until Ctrl-C or SIGTERM: services find it by its beacon, programs with `weft catalog`.

    A node does the same when its file has a table [catalog]; docs/catalog.md lists its settings.

    Args:
        host: address to listen on; any other than 127.0.0.1 needs --open, because everybody on that network may register.
        port: TCP for services and programs, UDP for beats; changes are published on the next port.
        state: directory of its journal, with all registrations (~/.local/state/weft/weft/NAME).
        name: of its node.
        net: name of its network, sent in its beacon.
        beacons: --no-beacons: it sends no beacons; services need its address.
        strict: a registration must have name, ip, port, function and heartbeat.
        unique_names: one instance of a name at a time.
        node_port: first of ten ports for status and metrics; default: free ones.
        is_open: everybody on the network is trusted.
        more: KEY=VALUE of the table [catalog], the value as TOML, e.g. liveness=5; several may be given.
        check: only say whether these settings can be used; start nothing.
    """
    if host not in LOOPBACK and not is_open:
        text = f"this broker has no keys: everybody who reaches {host} could register services, and query them"
        mend = "--open, on a network that you trust; or the table [catalog] of a node that has joined a closed fabric"
        raise UserError("usage", text, mend)
    document = document_of(
        {"host": host, "port": port, "net": net, "strict": strict, "unique_names": unique_names, "beacons": beacons},
        {
            "name": name,
            "port": node_port or free_blocks(1, BLOCKS_FROM)[0],
            **({"state": str(state.absolute())} if state else {}),
        },
    )
    document["catalog"] |= _tables(more)
    if is_open:
        document["security"] = {"mode": "none", "allow_insecure": True}
        document["node"]["host"] = host
    settings_of(document, "the command line")
    if check:
        print(f"{name}: a catalog at {host}:{port}, usable")
        return 0
    from weft.cli.up import become

    return become(document)


def document_of(catalog: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """The node file of a node that only runs a catalog."""
    return {
        "node": {"level": "root", "runs": [], "beacons": False, **node},
        "journal": {"megabytes": JOURNAL_MEGABYTES},
        "catalog": {key: value for key, value in catalog.items() if value != ""},
    }


def _tables(words: tuple[str, ...]) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads("\n".join(words))
    except ValueError as error:
        raise UserError("usage", f"--set {' '.join(words)}: {error}", "--set liveness=5 --set 'reap=\"1h\"'") from None
