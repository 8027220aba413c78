"""Makes the keys of a node, and stores what it learned when it joined (SEC-004, SEC-020); `shell.keys` reads both.

address.json    in the state directory: where a node listens since its first invitation, if its file says loopback
"""

import ipaddress
import os
import socket
import time
from pathlib import Path
from typing import Final

import msgspec
import zmq

from weft.base.endpoints import endpoint_of, host_of, is_address, is_loopback, port_of
from weft.base.errors import UNREADABLE, StorageFailed, UserError
from weft.base.keys import Binding
from weft.cores.enrolment.limits import UNTIL_S
from weft.node.settings import NodeSettings
from weft.shell.files import Files, put_whole, remove
from weft.shell.identity import Identity
from weft.shell.keys import (
    FOLDER,
    FOLLOWING,
    PUBLIC,
    SECRET,
    Keys,
    Known,
    load_keys,
    load_known,
    make_folder,
    save_known,
)
from weft.wire.enrolment import Welcome

ADDRESS: Final = "address.json"
SESSION: Final = "Who has this file takes part."
BEACON_KEY_BYTES: Final = 32
_PUBLIC: Final = """\
# The public key of a node of Weft (a CURVE certificate in pyzmq's form). Anybody may read it.
metadata
curve
    public-key = "{public}"
"""
_SECRET: Final = """\
# The key pair of a node of Weft (a CURVE certificate in pyzmq's form). Whoever reads this file is the node.
metadata
curve
    public-key = "{public}"
    secret-key = "{secret}"
"""  # noqa: S105  # a template, without the secret


class Address(msgspec.Struct, frozen=True):
    """Where a node listens, in place of the loopback address of its file."""

    host: str


def make_keys(state: Path) -> Keys:
    """The key pair of a node, made if there is none; UserError `open-keys`, `bad-keys`, StorageFailed."""
    found = load_keys(state)
    return found if found is not None else write_keys(state, new_pair())


def new_pair() -> Keys:
    """Make a new pair of keys."""
    public, secret = zmq.curve_keypair()
    return Keys(public.decode("ascii"), secret.decode("ascii"))


def write_keys(state: Path, pair: Keys, name: str = SECRET) -> Keys:
    """Write a key pair into the key directory, completely or not at all, readable by its owner only; StorageFailed."""
    try:
        folder = make_folder(state)
        put_whole(Files(), folder / name, _SECRET.format(public=pair.public, secret=pair.secret).encode())
        if name == SECRET:
            put_whole(Files(), folder / PUBLIC, _PUBLIC.format(public=pair.public).encode())
    except OSError as error:
        raise StorageFailed(f"the keys of {state} cannot be written: {error.strerror}") from error
    return pair


def write_session_key(path: Path) -> Keys:
    """Make the key pair of a document session in a new file; UserError `exists`, StorageFailed."""
    pair = new_pair()
    text = _SECRET.format(public=pair.public, secret=pair.secret).replace(
        "Whoever reads this file is the node.", SESSION
    )
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(made, "w", encoding="ascii") as file:
            file.write(text.replace("of a node of Weft", "of a session of documents"))
    except FileExistsError:
        raise UserError("exists", f"{path} is there already", "another name, or that file") from None
    except OSError as error:
        raise StorageFailed(f"{path} cannot be written: {error.strerror}") from error
    return pair


def following_key(state: Path) -> str:
    """The public half of the next key pair; empty: there is none. UserError `open-keys`, `bad-keys`."""
    found = load_keys(state, FOLLOWING)
    return "" if found is None or found == load_keys(state) else found.public


def make_following(state: Path) -> str:
    """The public half of the next key pair, made if there is none; UserError, StorageFailed."""
    return following_key(state) or write_keys(state, new_pair(), FOLLOWING).public


def take_following(state: Path, node: str) -> str:
    """Make the next key pair the current one of the node with UUID `node`; its public half. UserError, StorageFailed.

    After a crash in between, the new pair is in both files, which counts as done.
    """
    pair = load_keys(state, FOLLOWING)
    if pair is None:
        raise UserError("no-keys", f"{state / FOLDER / FOLLOWING} is not there any more", "weft key rotate")
    known = load_known(state)
    if node in known.bindings:
        own = msgspec.structs.replace(known.bindings[node], curve=(pair.public,))
        save_known(state, msgspec.structs.replace(known, bindings={**known.bindings, node: own}))
    write_keys(state, pair)
    try:
        remove(Files(), state / FOLDER / FOLLOWING)
    except OSError as error:
        raise StorageFailed(f"{state / FOLDER / FOLLOWING} cannot be removed: {error.strerror}") from error
    return pair.public


def found_fabric(state: Path, who: Identity, endpoint: str) -> Keys:
    """Make the keys of a root, bind them to itself, and make the fabric's secret for datagrams; StorageFailed, UserError."""
    pair, known = make_keys(state), load_known(state)
    own = Binding(
        curve=(pair.public,),
        name=who.name,
        roles=("collector",),
        host=host_of(endpoint),
        until=int(time.time()) + UNTIL_S,
    )
    save_known(
        state,
        Known(
            bindings={**known.bindings, who.node: own},
            places={**known.places, endpoint: who.node},
            beacon_key=known.beacon_key or os.urandom(BEACON_KEY_BYTES).hex(),
        ),
    )
    return pair


def keep_welcome(state: Path, welcome: Welcome) -> None:
    """Store which nodes a machine knows since it joined; StorageFailed."""
    places = dict.fromkeys(welcome.parents[:1], welcome.root)
    save_known(state, Known(bindings=welcome.keys, places=places, beacon_key=welcome.beacon_key))


def keep_address(state: Path, host: str) -> None:
    """Let the node listen at this address from its next start on; StorageFailed."""
    try:
        put_whole(Files(), state / ADDRESS, msgspec.json.encode(Address(host)))
    except OSError as error:
        raise StorageFailed(f"{state / ADDRESS} cannot be written: {error.strerror}") from error


def addressed(settings: NodeSettings, state: Path) -> NodeSettings:
    """The settings with the stored address in place of a configured loopback address; UserError `bad-address`.

    All listeners for other nodes move to it, those of documents, too. The catalog, which programs of this machine use, stays.
    """
    path = state / ADDRESS
    try:
        host = msgspec.json.decode(path.read_bytes(), type=Address).host
    except (FileNotFoundError, NotADirectoryError):
        return settings
    except (*UNREADABLE, OSError) as error:
        raise UserError(
            "bad-address", f"{path} cannot be read: {error}", f"rm {path}, and weft invite --listen"
        ) from None
    if not is_loopback(settings.node.host):
        return settings
    change = msgspec.structs.replace
    doc, catalog = settings.doc, settings.catalog
    if doc is not None:
        sessions = {name: change(each, listen=moved(each.listen, host)) for name, each in doc.session.items()}
        doc = change(doc, session=sessions)
    if catalog is not None:
        catalog = change(catalog, host=catalog.host or settings.node.host)
    return change(settings, node=change(settings.node, host=host), doc=doc, catalog=catalog)


def moved(listen: str, host: str) -> str:
    """Where a session listens: at the node's address, unless its own table names one.

    >>> moved("127.0.0.1", "10.0.0.1"), moved("127.0.0.1:50001", "10.0.0.1"), moved("10.0.0.9", "10.0.0.1")
    ('10.0.0.1', '10.0.0.1:50001', '10.0.0.9')
    """
    if is_address(listen):
        return endpoint_of(host, port_of(listen)) if is_loopback(host_of(listen)) else listen
    return host if is_loopback(listen) else listen


def address_fault(host: str) -> str:
    """Why a node cannot listen at an address; empty: it can."""
    try:
        kind = ipaddress.ip_address(host)
    except ValueError:
        return f"{host!r} is no address in numbers"
    if kind.is_unspecified or kind.is_multicast:
        return f"{host} is no address by which others reach this machine"
    try:
        with socket.socket(socket.AF_INET6 if kind.version == 6 else socket.AF_INET) as probe:
            probe.bind((host, 0))
    except OSError:
        return f"{host} is no address of this machine"
    return ""


def local_address(towards: str, port: int) -> str:
    """The address of this machine that reaches another one; nothing is sent. Empty: there is no way to it."""
    try:
        family, _, _, _, place = socket.getaddrinfo(towards, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(place)
            return str(probe.getsockname()[0])
    except OSError:
        return ""
