"""The identity of this node, kept in its state directory: made once, with an era that grows at each start."""

import errno
import os
import uuid
from pathlib import Path
from typing import Final

import msgspec

from weft.base.errors import StorageFailed, UserError
from weft.base.identity import next_era
from weft.lake.files import LocalFiles
from weft.shell.files import Files, put_whole

SECRET_BYTES: Final = 32
NOT_HERE: Final = frozenset({errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EEXIST})
"""Errors that show that a state directory cannot be at this path; every other error is one of the disk."""


class Identity(msgspec.Struct, frozen=True):
    """The node's UUID, its name, the era of this start, and a secret that never leaves this machine."""

    node: str
    name: str
    era: int
    secret: str = ""
    """Hex. Values hashed with it can be compared, but not guessed (CHN-065)."""

    @property
    def node_id(self) -> bytes:
        return bytes.fromhex(self.node)


def begin_start(state: Path, name: str, wall_ns: int) -> Identity:
    """The identity of a new start, durable before it is used: no era is ever used twice.

    A state directory belongs to one name; another name is refused (UserError `name-changed`), and so is a path where
    there can be no directory (`no-state`). StorageFailed if the disk fails.
    """
    path = state / "node.json"
    try:
        LocalFiles().make_directories(state)
        known = _read(path)
        if known is not None and known.name != name:
            raise UserError(
                "name-changed",
                f"{state} is the state of node {known.name!r}, not of {name!r}",
                f"weft up --name {known.name} --state {state}, or another --state",
            )
        node = known.node if known else uuid.uuid4().hex
        secret = (known.secret if known else "") or os.urandom(SECRET_BYTES).hex()
        identity = Identity(node, name, next_era(wall_ns, known.era if known else 0), secret)
        put_whole(Files(), path, msgspec.json.encode(identity))
    except OSError as error:
        if error.errno in NOT_HERE:
            text = f"no state can be kept in {state}: {error.strerror}"
            raise UserError("no-state", text, "--state DIR, a directory in which you may write") from None
        mount = Files().mount_point(state)
        raise StorageFailed(f"the state directory {state} cannot be written: {error.strerror} ({mount})") from error
    return identity


def identity_in(state: Path) -> Identity | None:
    """The identity stored in a state directory; None if there is none.

    UserError `bad-identity` if it cannot be read.
    """
    return _read(state / "node.json")


def _read(path: Path) -> Identity | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Identity)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(
            "bad-identity",
            f"{path} is damaged: {error}",
            f"restore it, or move {path.parent} away to begin as a new node",
        ) from error
