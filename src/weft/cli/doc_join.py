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
"""Where the ten ports of its node are looked for: nodes usually begin at 27500, catalogs at 28500."""
PLACES, BLOCK = 300, 10
"""So many blocks, of so many ports, are looked at first: all below those that the system gives away."""
JOURNAL_MEGABYTES: Final = 256
BEGUN_S: Final = 30
SHIPPED: Final = ("derby", "plain")
SAME: Final = ("listen", "advertise", "mdns", "operator", "serve", "serve_host", "token")
"""What the table of a session calls as the options do."""
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
Open = Annotated[bool, Parameter(name="--open", negative="", show_default=False)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What both commands take.

    Attributes:
        schema: derby, plain, or a TOML file of your own; the same for everybody.
        peer: host:port of somebody who takes part already; several may be given.
        listen: host or host:port for others; beyond 127.0.0.1 that needs --key, or --open, since whoever reaches it may enter.
        advertise: host or host:port that is said to others, where they reach it by another one.
        mdns: --no-mdns: neither found nor looking by mDNS.
        operator: who enters here; stands in every entry.
        serve: a board for browsers on this port.
        serve_host: where the board listens; beyond 127.0.0.1 it needs --token.
        token: what a browser must say to see a board from elsewhere, and any to enter.
        name: of the node (SESSION-HOSTNAME).
        state: directory of its journal (~/.local/state/weft/weft/NAME).
        node_port: first of ten ports for status and metrics; default: free ones.
        is_open: yes, the network is trusted.
        key: the file of weft doc key new; who has it takes part, and nobody else.
        check: say whether that can be used, and start nothing.
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

    On several machines: `weft doc join "Hall 5" --listen 192.168.1.20 --open`. They find each other by mDNS where that
    is installed, else by --peer; one that is connected to anybody is connected to all. What is entered is kept, here and
    there, whoever goes away. Another node does the same with a table [doc.session.NAME] in its file.

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
            words += ["--settle", "0"]  # nobody will connect
        subprocess.Popen(
            [sys.executable, "-m", "weft.cli.main", "doc", "import", *words], stdin=subprocess.DEVNULL
        )  # our own interpreter and words
    return _become(document, meant, options)


def _look_into(file: Path, schema: str) -> None:
    """Whether it can be taken in, before anything is started; BadFile."""
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
    """The settings of the node; UserError where it could not be one."""
    from weft.node.settings import settings_of

    if options.key:
        from weft.shell.keys import session_key

        session_key(Path(options.key))
    if _host_of(options.listen) not in LOOPBACK and not (options.is_open or options.key):
        text = f"whoever reaches {options.listen} could enter anything: this node has no keys"
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
    """What the settings say of a schema: the name of one that ships, or what a file says."""
    if word in SHIPPED:
        return word
    try:
        return Path(word).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            "usage", f"--schema {word}: {error}", "derby, plain, or a TOML file; docs/doc.md shows one"
        ) from None


def name_of(session: str) -> str:
    """What the node is called: unique in the hall, and a directory.

    >>> name_of("Hall 5").startswith("Hall-5-")
    True
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"{session}-{socket.gethostname().partition('.')[0]}")[:64].strip("-")


def document_of(session: str, options: Options) -> dict[str, Any]:
    """The file of a node with only what a session needs."""
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
    """The endpoint of a peer, its host in numbers, as peers tell it to one another; UserError where the name is nobody's."""
    from weft.base.endpoints import endpoint_of

    host, _, port = peer.rpartition(":")
    try:
        found = str(socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, ValueError, OverflowError) as error:
        raise UserError("usage", f"--peer {peer}: {error}", "--peer HOST:PORT of somebody in the session") from None
    return endpoint_of(found, int(port))


def first_port(name: str, state: Path | None) -> int:
    """Where a node looks for free ports: not where another one does that is started at the same moment."""
    place = zlib.crc32(f"{name} {state or Path.home()}".encode())
    return PORT_FROM + place % PLACES * BLOCK


def _host_of(listen: str) -> str:
    from weft.base.endpoints import host_of, is_address

    return host_of(listen) if is_address(listen) else listen
