"""`weft join` and `weft init`: make this machine part of a fabric with keys (SEC-020 to SEC-057)."""

import json as to_json
import os
import re
import socket
import sys
import time
from pathlib import Path
from typing import Any, Final

from weft import __version__
from weft.base.endpoints import endpoint_of, host_of, port_of
from weft.base.errors import PeerError, UserError
from weft.base.settings import is_plain_name
from weft.cli import service as service_commands
from weft.cli.kit.options import Flag
from weft.cli.up import become, read_schemas, text_of
from weft.shell.blocks import free_blocks
from weft.wire.token import Token, decode

PORT: Final = 27_500
FILE: Final = "node.toml"
FILE_MODE: Final = 0o600
NODES: Final = ("sensor", "collector")
"""Roles of machines that run a node."""
MENDS: Final = {
    "unknown-version": "the whole line that weft invite printed at the root",
    "bad-checksum": "copy the whole line again: a character is missing or wrong",
    "unknown-role": "a Weft as new as that of the root",
}


def join(  # tidy: each is an option of the command line
    token: str,
    file: Path | None = None,
    /,
    *,
    name: str | None = None,
    listen: str | None = None,
    port: int | None = None,
    state: Path | None = None,
    stay: Flag = False,
    service: Flag = False,
) -> int:
    """Bring this machine into a fabric: makes its keys, joins, writes its file and runs the node until Ctrl-C.

    The line comes from `weft invite` at the root; nothing else has to be copied. Later, start the node with
    `weft up STATE/node.toml`. A machine may join again with a new line when its keys were revoked, or the root has new
    keys.

    Args:
        token: the line, beginning with weft1.
        file: a TOML file with more tables for the node's file: [store], [catalog], [doc.session.NAME] …
        name: unique in the fabric; default: the name of this machine.
        listen: the address of this machine at which others reach it; default: the one from which it reaches the root.
        port: first of its ten ports; default: 27500, or the next block that is free.
        state: directory of keys, journal and identity (~/.local/state/weft/joined/NAME).
        stay: only join; start nothing.
        service: let systemd run the node, now and after each boot, as weft service install does: for root a service of the
            system with its state in /var/lib/weft, for others a service of the user.
    """
    read = token_of(token)
    called = name if name is not None else own_name()
    places = _service_places(read, has_more=stay or state is not None) if service else None
    place = (state or (places.state / called if places else default_state(called))).absolute()
    document = _document_of(file)
    host = listen if listen is not None else _address_towards(read)
    if read.role in NODES:  # before the token is used, so that a mistake in the file uses up nothing
        _check(document, called, read.role, host, port)
    welcome = _enrol(read, called, place, host)
    if read.role not in NODES:
        print(f"joined {welcome.fabric} as {read.role} {called}; programs use these keys with WEFT_KEYS={place}")
        return 0
    first = port if port is not None else free_blocks(1, PORT, host)[0]
    _overlay(document, "fleet", {"name": welcome.fabric})
    node = {
        "name": called,
        "level": read.role,
        "host": host,
        "port": first,
        "state": str(place),
        "join": list(welcome.parents),
    }
    _overlay(document, "node", node)
    _overlay(document, "security", {"mode": "curve"})
    _place(document, host)
    path = _write_file(place, document)
    then = "" if places else f"; from now on: weft up {path}"
    print(f"joined {welcome.fabric} as {called} at {endpoint_of(host, first)}{then}", file=sys.stderr)
    if places:
        return service_commands.install(path, mine=places.is_mine)
    if not stay:
        become(document)
    return 0


def _service_places(token: Token, *, has_more: bool) -> service_commands.Places:
    """Where this user's services are; checked before the token is used. UserError if no service can be installed."""
    if has_more:
        text = "--service starts the node, with its state where services have it"
        raise UserError("usage", text, "without --stay and --state; or weft service install FILE later")
    if token.role not in NODES:
        raise UserError("usage", f"this token is for a {token.role}, which runs no node", "the same without --service")
    return service_commands.own_places()


def init(*, name: str | None = None, state: Path | None = None, fleet: str = "weft", json: Flag = False) -> int:
    """Make the keys and the identity of a node, and start nothing: `weft init --name root`.

    For a root that other machines shall reach from its first start: run this, then `weft up` with the address in its
    file. If the root runs already, `weft invite --listen ADDRESS` does the same. All other machines get their keys from
    `weft join`.

    Args:
        name: of the node; default: the name of this machine.
        state: directory of its keys, journal and identity (~/.local/state/weft/FLEET/NAME).
        fleet: name of the fabric, as in its file.
        json: {"name", "public", "keys"}: its public key, and the directory of both halves.
    """
    from weft.node.settings import settings_of
    from weft.shell.identity import begin_start
    from weft.shell.keymaking import found_fabric
    from weft.shell.process import state_directory

    called = name if name is not None else own_name()
    node = {"name": called, "level": "root"} | ({"state": str(state)} if state is not None else {})
    settings = settings_of({"node": node, "fleet": {"name": fleet}}, "the command line")
    place = state_directory(settings)
    who = begin_start(place, called, time.time_ns())
    pair = found_fabric(place, who, endpoint_of(settings.node.host, settings.node.port))
    keys = place / "keys"
    facts = {"name": called, "public": str(pair.public), "keys": str(keys)}
    print(to_json.dumps(facts) if json else f"{called} has the key {pair.public} in {keys}")
    return 0


def token_of(text: str) -> Token:
    """The token of a line; UserError `unknown-version`, `bad-checksum`, `unknown-role`, `expired`."""
    try:
        read = decode(text.strip().removeprefix("weft join").strip())
    except PeerError as error:
        raise UserError(error.code, f"this is no token of weft invite ({error})", MENDS[error.code]) from None
    if read.is_expired(time.time_ns()):
        text = "this token has expired, by the clock of this machine"
        raise UserError("expired", text, "weft invite at the root prints another one; check the clock, too")
    return read


def own_name() -> str:
    """The name of this machine, in the form of a node's name."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", socket.gethostname()).strip(".-")[:63]
    return plain if is_plain_name(plain) else "node"


def default_state(name: str) -> Path:
    """The state directory of a machine that joins."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "weft" / "joined" / name


def _document_of(file: Path | None) -> dict[str, Any]:
    from weft.node.settings import read_document

    if file is None:
        return {}
    document = read_document(text_of(file), str(file))
    read_schemas(document, file.parent)
    return document


def _check(document: dict[str, Any], name: str, role: str, host: str, port: int | None) -> None:
    """UserError if no node could run with these tables."""
    from weft.node.settings import settings_of

    node = {**document.get("node", {}), "name": name, "level": role, "host": host}
    settings_of({**document, "node": node | ({"port": port} if port is not None else {})}, "the file of this node")


def _enrol(token: Token, name: str, state: Path, host: str) -> Any:
    """Write keys and identity to disk, then join.

    If the machine crashes in between, it joins again with the same key and is accepted.
    """
    from weft.shell.identity import begin_start
    from weft.shell.joining import knock
    from weft.shell.keymaking import keep_welcome, make_keys
    from weft.wire.enrolment import About

    who, pair = begin_start(state, name, time.time_ns()), make_keys(state)
    about = About(name, token.role if token.role in NODES else "", host, __version__)
    welcome = knock(token, pair, who.node_id, about)
    keep_welcome(state, welcome)
    return welcome


def _address_towards(token: Token) -> str:
    from weft.shell.keymaking import local_address

    for endpoint in token.endpoints:
        if found := local_address(host_of(endpoint), port_of(endpoint)):
            return found
    raise UserError("unavailable", "no address of this machine reaches the root", "--listen ADDRESS")


def _overlay(document: dict[str, Any], table: str, keys: dict[str, Any]) -> None:
    document[table] = {**document.get(table, {}), **keys}


def _place(document: dict[str, Any], host: str) -> None:
    """Complete the tables: documents listen for other machines, the catalog is local."""
    from weft.shell.keymaking import moved

    sessions = document.get("doc", {}).get("session", {})
    for session in sessions.values():
        session["listen"] = moved(session.get("listen", "127.0.0.1"), host)
    if "catalog" in document:
        document["catalog"] = {"host": "127.0.0.1", **document["catalog"]}


def _write_file(state: Path, document: dict[str, Any]) -> Path:
    """Write the node's file into its state directory; only the owner may read it, because a table may hold a token."""
    from weft.node.fleettext import block
    from weft.node.settings import settings_of
    from weft.shell.files import Files, put_whole

    settings_of(document, "the file of this node")
    path = state / FILE
    text = "# Written by weft join; start the node with: weft up " + str(path) + "\n"
    put_whole(Files(), path, (text + "\n".join(_tables(document, block))).encode())
    path.chmod(FILE_MODE)
    return path


def _tables(document: dict[str, Any], block: Any, above: str = "") -> list[str]:
    """Tables as TOML; tables within tables become headers of their own."""
    parts: list[str] = []
    for key, value in document.items():
        head = f"{above}{key if re.fullmatch('[A-Za-z0-9_-]+', key) else repr(key)}"
        if isinstance(value, dict):
            plain = {k: v for k, v in value.items() if not isinstance(v, dict) and not _is_tables(v)}
            parts.append(block(f"[{head}]", plain))
            parts += _tables({k: v for k, v in value.items() if k not in plain}, block, f"{head}.")
        else:
            parts += [block(f"[[{head}]]", each) for each in value]
    return parts


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)
