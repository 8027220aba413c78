"""The keys of a node in its state directory, and what enrolment told it (SEC-004, SEC-013).

    keys/                   directory, 0700
    keys/node.key_secret    the node's pair, in pyzmq's form of certificates, 0600
    keys/next.key_secret    the pair that is to be the next one, while the node's key is rotated, 0600
    keys/node.key           its public half in the same form, for people
    keys/http.token         what opens the node's pages to programs of other machines, 0600
    keys/known.json         whom it knows before the configuration tells it (`Known`), 0600

A node without `keys/node.key_secret` has no keys. Whoever may read the secret is the node: wider modes end the start.
"""

import os
from pathlib import Path
from typing import Annotated, Final

import msgspec
import zmq
from msgspec import Meta

from weft.base.errors import UNREADABLE, StorageFailed, UserError
from weft.base.keys import Keys as Keys  # noqa: PLC0414  # part of what this module offers
from weft.base.keys import Trust, pair_of
from weft.lake.files import LocalFiles, make_directories
from weft.shell.files import Files, put_whole

FOLDER: Final = "keys"
SECRET: Final = "node.key_secret"  # noqa: S105  # a name of a file
FOLLOWING: Final = "next.key_secret"
PUBLIC: Final = "node.key"
KNOWN: Final = "known.json"
TOKEN: Final = "http.token"  # noqa: S105  # a name of a file
TOKEN_BYTES: Final = 32
OTHERS: Final = 0o077  # what nobody but the owner may have
FILE_BYTES_MAX: Final = 4 << 20


class Known(Trust, frozen=True, kw_only=True, omit_defaults=True):
    """What enrolment told a node, enough to reach its parent, and to know it: the configuration tells the rest."""

    beacon_key: Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")] = ""
    """The fabric's secret for datagrams, in hex (BEA-007); empty: none."""

    def __repr__(self) -> str:
        return f"Known(bindings={self.bindings!r}, places={self.places!r}, beacon_key=...)"


def load_keys(state: Path, name: str = SECRET) -> Keys | None:
    """The node's pair; None if it has none. UserError `open-keys`: others may read it, `bad-keys`: it is no pair."""
    path = state / FOLDER / name
    text = _private_text(path)
    if text is None:
        return None
    pair = pair_of(text)
    if pair is None or not _is_pair(pair):
        raise UserError("bad-keys", f"{path} holds no key pair", "weft init, or the file of a backup")
    return pair


def load_known(state: Path) -> Known:
    """What enrolment told; nothing, if there was none. UserError `open-keys`, `bad-keys`."""
    path = state / FOLDER / KNOWN
    text = _private_text(path)
    if text is None:
        return Known()
    try:
        return msgspec.json.decode(text, type=Known)
    except (*UNREADABLE, ValueError) as error:
        raise UserError("bad-keys", f"{path} cannot be read: {error}", "weft join with a new token") from None


def save_known(state: Path, known: Known) -> None:
    """Keep it, whole or not at all; StorageFailed."""
    path = state / FOLDER / KNOWN
    try:
        make_folder(state)
        put_whole(Files(), path, msgspec.json.encode(known))
    except OSError as error:
        raise StorageFailed(f"{path} cannot be written: {error.strerror}") from error


def http_token(state: Path) -> str:
    """What a program of another machine says to read this node's pages and to give it orders; made once. UserError, StorageFailed."""
    path = state / FOLDER / TOKEN
    text = _private_text(path)
    if text is None:
        text = os.urandom(TOKEN_BYTES).hex()
        try:
            make_folder(state)
            put_whole(Files(), path, text.encode())
        except OSError as error:
            raise StorageFailed(f"{path} cannot be written: {error.strerror}") from error
    return text.strip()


def make_folder(state: Path) -> Path:
    """The folder of the keys, which nobody else may look into; OSError."""
    folder = state / FOLDER
    make_directories(LocalFiles(), state)
    Files().make_directory(folder)
    return folder


def session_key(path: Path) -> Keys:
    """The pair in a file that only its owner may read; UserError `no-keys`, `open-keys`, `bad-keys`."""
    again = "weft doc key new FILE; or the same file as the others of the session"
    try:
        mode = path.stat().st_mode
        text = path.read_text("utf-8")[:FILE_BYTES_MAX]
    except FileNotFoundError:
        raise UserError("no-keys", f"{path} is not there", again) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("bad-keys", f"{path} cannot be read: {error}", again) from None
    if mode & OTHERS:
        raise UserError("open-keys", f"{path} can be read by others than its owner", f"chmod 600 {path}")
    pair = pair_of(text)
    if pair is None or not _is_pair(pair):
        raise UserError("bad-keys", f"{path} holds no key pair", again)
    return pair


def _private_text(path: Path) -> str | None:
    """A file that only its owner may touch, in a folder of the same kind; None: it is not there."""
    try:
        modes = path.parent.stat().st_mode, path.stat().st_mode
        with path.open(encoding="utf-8") as file:
            text = file.read(FILE_BYTES_MAX)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("bad-keys", f"{path} cannot be read: {error}", f"chmod 600 {path}, as its owner") from None
    if any(mode & OTHERS for mode in modes):
        text = f"{path} can be read by others than its owner: whoever read it can pose as this node"
        raise UserError(
            "open-keys",
            text,
            f"chmod 700 {path.parent}; chmod 600 {path}; and new keys if somebody did: weft key revoke, then weft join",
        )
    return text


def _is_pair(pair: Keys) -> bool:
    try:
        return zmq.curve_public(pair.secret.encode()) == pair.public.encode()
    except (ValueError, zmq.ZMQError):
        return False
