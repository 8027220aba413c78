"""The keys of a node in its state directory, and what it learned when it joined (SEC-004, SEC-013).

    keys/                   directory, 0700
    keys/node.key_secret    the node's key pair, in pyzmq's form of certificates, 0600
    keys/next.key_secret    the next key pair, while the node's key is rotated, 0600
    keys/node.key           the public key in the same form, for people
    keys/http.token         gives programs of other machines access to the node's pages, 0600
    keys/known.json         which nodes it knows before the configuration arrives (`Known`), 0600

A node without `keys/node.key_secret` has no keys. Whoever can read the secret can act as the node, so a node does not
start if the modes are wider.
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
from weft.lake.files import LocalFiles
from weft.shell.files import Files, put_whole

FOLDER: Final = "keys"
SECRET: Final = "node.key_secret"  # noqa: S105  # a name of a file
FOLLOWING: Final = "next.key_secret"
PUBLIC: Final = "node.key"
KNOWN: Final = "known.json"
TOKEN: Final = "http.token"  # noqa: S105  # a name of a file
TOKEN_BYTES: Final = 32
OTHERS: Final = 0o077  # permissions that only the owner may have
FILE_BYTES_MAX: Final = 4 << 20


class Known(Trust, frozen=True, kw_only=True, omit_defaults=True):
    """What a node learned when it joined: enough to reach and recognise its parent. The configuration has the rest."""

    beacon_key: Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")] = ""
    """The fabric's secret for datagrams, in hex (BEA-007); empty: none."""

    def __repr__(self) -> str:
        return f"Known(bindings={self.bindings!r}, places={self.places!r}, beacon_key=...)"


def load_keys(state: Path, name: str = SECRET) -> Keys | None:
    """The node's key pair; None if it has none.

    UserError `open-keys`: others may read it, `bad-keys`: it is no pair.
    """
    path = state / FOLDER / name
    text = _private_text(path)
    if text is None:
        return None
    pair = pair_of(text)
    if pair is None or not _is_pair(pair):
        raise UserError("bad-keys", f"{path} holds no key pair", "weft init, or the file of a backup")
    return pair


def load_known(state: Path) -> Known:
    """What the node learned when it joined; empty if it never did. UserError `open-keys`, `bad-keys`."""
    path = state / FOLDER / KNOWN
    text = _private_text(path)
    if text is None:
        return Known()
    try:
        return msgspec.json.decode(text, type=Known)
    except (*UNREADABLE, ValueError) as error:
        raise UserError("bad-keys", f"{path} cannot be read: {error}", "weft join with a new token") from None


def save_known(state: Path, known: Known) -> None:
    """Store what the node knows, completely or not at all; StorageFailed."""
    path = state / FOLDER / KNOWN
    try:
        make_folder(state)
        put_whole(Files(), path, msgspec.json.encode(known))
    except OSError as error:
        raise StorageFailed(f"{path} cannot be written: {error.strerror}") from error


def http_token(state: Path) -> str:
    """The token with which programs of other machines read this node's pages and give orders; made once.

    UserError, StorageFailed.
    """
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
    """The key directory, made if needed, which no other user may read; OSError."""
    folder = state / FOLDER
    LocalFiles().make_directories(state)
    Files().make_directory(folder)
    return folder


def session_key(path: Path) -> Keys:
    """The key pair in a file that only its owner may read; UserError `no-keys`, `open-keys`, `bad-keys`."""
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
    """The text of a file that only its owner may access, in a directory of the same kind; None: there is no file."""
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
