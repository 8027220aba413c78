"""`weft doc join` and `open`: a node of its own that takes part in a session, without a file of settings."""

import io
import re
import socket
import subprocess
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.doc_calls import Many
from weft.cli.kit.exits import DENIED, complain
from weft.cli.kit.options import Flag
from weft.client.doc.errors import BadFile, DocError

PORT_FROM: Final = 29_500
"""The first port to try for the node's block of ten: nodes usually begin at 27500, catalogs at 28500."""
PLACES, BLOCK = 300, 10
"""How many blocks to try first, and the ports of a block: all are below those that the system gives to clients."""
JOURNAL_MEGABYTES: Final = 256
BEGUN_S: Final = 30
SHIPPED: Final = ("derby", "plain")
SAME: Final = ("listen", "advertise", "mdns", "operator", "serve", "serve_host", "token")
"""Options that have the same name in the table of a session."""
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
Open = Annotated[bool, Parameter(name="--open", negative="", show_default=False)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of both commands.

    Attributes:
        schema: derby, plain, or a TOML file of your own; the same for everybody.
        peer: host:port of a node that takes part already; several may be given.
        listen: host or host:port for other nodes; any host but 127.0.0.1 needs --key, or --open, which lets everybody edit.
        advertise: host or host:port to announce, if others reach this node at another address.
        mdns: --no-mdns: neither announce this node by mDNS nor look for others.
        operator: the name of the person who enters here; part of every entry.
        serve: port of a board for browsers.
        serve_host: where the board listens; any host but 127.0.0.1 needs --token.
        token: what a browser must send to see the board from elsewhere, and always to enter something.
        name: of the node (SESSION-HOSTNAME).
        state: directory of its journal (~/.local/state/weft/weft/NAME).
        node_port: first of ten ports for status and metrics; default: free ones.
        is_open: everybody on the network is trusted.
        key: the file of weft doc key new; only nodes with this file take part.
        check: only say whether these settings can be used; start nothing.
    """

    schema: str = "derby"
    peer: Many = ()
    listen: str = "127.0.0.1"
    advertise: str = ""
    mdns: bool = True
    operator: str = ""
    serve: int = 0
    serve_host: str = "127.0.0.1"
    token: str = ""
    name: str | None = None
    state: Path | None = None
    node_port: int | None = None
    is_open: Open = False
    key: str = ""
    check: Flag = False


DEFAULT: Final = Options()


def join(session: str, /, *, options: Options = DEFAULT) -> int:
    """Run a node here that takes part in a session until Ctrl-C: `weft doc join "Hall 5" --operator Ann --serve 8080`.

    On several machines: `weft doc join "Hall 5" --listen 192.168.1.20 --open`. They find each other by mDNS if that is
    installed, else by --peer; one peer is enough to find all others. Every node keeps all entries, also when others leave.
    An existing node does the same with a table [doc.session.NAME] in its file.

    Args:
        session: its name, the same for everybody: letters, digits, blanks, `.`, `_`, `-`.
    """
    return _become(_usable(session, options), session, options)


def open_file(file: Path, /, *, session: str | None = None, options: Options = DEFAULT) -> int:
    """Join a session and bring a file into it, if nobody has entered anything yet: `weft doc open bout.xml`.

    Args:
        file: a log of weft doc export, a document (DerbyXML), or a roster (CSV: team,number,name).
        session: its name, the same for everybody; default: the name of the file without its ending.
    """
    meant = session if session is not None else file.stem
    document = _usable(meant, options)
    if not file.is_file():
        raise UserError("usage", f"there is no file {file}", f"weft doc join {meant!r}: an empty document")
    try:
        _look_into(file, schema_of(options.schema))
    except DocError as error:
        text = f"{file}: {error.text}\n  try: {error.mend}"
        return complain(text.replace("--partial", f"weft doc join {meant!r}, then weft doc import --partial"), DENIED)
    if not options.check:
        from weft.node.settings import settings_of
        from weft.shell.process import state_directory

        state = state_directory(settings_of(document, "the command line"))
        words = [str(file), "--session", meant, "--node", str(state), "--if-empty", "--wait", str(BEGUN_S)]
        if not (options.peer or options.mdns):
            words += ["--settle", "0"]  # nobody can connect
        subprocess.Popen(
            [sys.executable, "-m", "weft.cli.main", "doc", "import", *words], stdin=subprocess.DEVNULL
        )  # our own interpreter and words
    return _become(document, meant, options)


def _look_into(file: Path, schema: str) -> None:
    """Check, before anything is started, that the file can be imported; BadFile."""
    from weft.cli.doc_files import text_of
    from weft.client.doc.importing import entries_of, roster_of
    from weft.client.doc.logfile import read_log
    from weft.cores.document.fold.schema import Schema
    from weft.wire.document.xml import Node

    text, loaded = text_of(str(file)), Schema.load(schema)
    begin = text.lstrip()[:1]
    if begin == "{":
        log = read_log(text.split("\n"))
        if log.header.load().name != loaded.name:
            raise BadFile(f"it is of schema {log.header.schema}", mend=f"--schema {log.header.schema}")
    elif begin == "<":
        list(entries_of(text, loaded))
    else:
        list(roster_of(io.StringIO(text, newline=""), Node("", {})))


def _usable(session: str, options: Options) -> dict[str, Any]:
    """The settings of the node; UserError if they cannot be used."""
    from weft.node.settings import settings_of

    if options.key:
        from weft.shell.keys import session_key

        session_key(Path(options.key))
    if _host_of(options.listen) not in LOOPBACK and not (options.is_open or options.key):
        text = f"this node has no keys: everybody who reaches {options.listen} could edit the document"
        mend = "--key FILE of weft doc key new; --open, on a network that you trust; or the table [doc] of a node that has joined a closed fabric"
        raise UserError("usage", text, mend)
    document = document_of(session, options)
    settings_of(document, "the command line")
    return document


def _become(document: dict[str, Any], session: str, options: Options) -> int:
    from weft.cli.up import become

    if not options.check:
        become(document)
    print(f"{document['node']['name']}: session {session!r} at {options.listen}, usable")
    return 0


def schema_of(word: str) -> str:
    """A schema for the settings: the name of a built-in one, or the text of a file."""
    if word in SHIPPED:
        return word
    try:
        return Path(word).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            "usage", f"--schema {word}: {error}", "derby, plain, or a TOML file; docs/doc.md shows one"
        ) from None


def name_of(session: str) -> str:
    """The node's name: unique among the machines of a session, and usable as a directory.

    >>> name_of("Hall 5").startswith("Hall-5-")
    True
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"{session}-{socket.gethostname().partition('.')[0]}")[:64].strip("-")


def document_of(session: str, options: Options) -> dict[str, Any]:
    """The settings of a node that only takes part in a session."""
    from weft.shell.blocks import free_blocks

    state = {"state": str(options.state.absolute())} if options.state else {}
    name = options.name or name_of(session)
    port = options.node_port or free_blocks(1, first_port(name, options.state))[0]
    table = {
        "schema": schema_of(options.schema),
        "peers": [numeric(peer) for peer in options.peer],
        "key": str(Path(options.key).absolute()) if options.key else "",
        **{name: getattr(options, name) for name in SAME},
    }
    document: dict[str, Any] = {
        "node": {"name": name, "level": "root", "runs": [], "beacons": False, "port": port} | state,
        "journal": {"megabytes": JOURNAL_MEGABYTES},
        "doc": {"session": {session: {key: value for key, value in table.items() if value or value is False}}},
    }
    if options.is_open:
        document["security"] = {"mode": "none", "allow_insecure": True}
    return document


def numeric(peer: str) -> str:
    """The endpoint of a peer with a numeric host, as peers exchange it; UserError if the name cannot be resolved."""
    from weft.base.endpoints import endpoint_of

    host, _, port = peer.rpartition(":")
    try:
        found = str(socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, ValueError, OverflowError) as error:
        raise UserError("usage", f"--peer {peer}: {error}", "--peer HOST:PORT of somebody in the session") from None
    return endpoint_of(found, int(port))


def first_port(name: str, state: Path | None) -> int:
    """Where a node begins to look for free ports; different for each node, so that two that start together do not collide."""
    place = zlib.crc32(f"{name} {state or Path.home()}".encode())
    return PORT_FROM + place % PLACES * BLOCK


def _host_of(listen: str) -> str:
    from weft.base.endpoints import host_of, is_address

    return host_of(listen) if is_address(listen) else listen
