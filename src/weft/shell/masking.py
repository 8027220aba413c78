"""Masks secrets on their way into a lake, and stores the key for their hashes (LAK-014).

A node that drains has the file `drain.json` in its state directory: the key, made once, and the patterns of its
`[lake] secrets`. Weft never sends the key to another machine; copy it by hand if several roots should mask a secret in the
same way. `weft drain` finds the file beside the journal of a dead node, and masks what that node would have masked.

A pattern is compared with the whole key. `*` stands for any characters but `/`, `**` for any.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from weft.base.errors import UserError
from weft.lake.body import Mask
from weft.shell.files import Files, put_whole

FILE: Final = "drain.json"
KEY_BYTES: Final = 32
_STARS: Final = re.compile(r"(\*+)")


class Hidden(msgspec.Struct, frozen=True):
    """The content of `drain.json`."""

    key: str
    """In hex."""
    secrets: tuple[str, ...] = ()


def mask_of(state: Path, secrets: tuple[str, ...]) -> Mask:
    """The mask of a draining node; its key is made at its first start. OSError, UserError `bad-identity`."""
    path = state / FILE
    known = _read(path)
    hidden = Hidden(known.key if known else os.urandom(KEY_BYTES).hex(), secrets)
    if hidden != known:
        put_whole(Files(), path, msgspec.json.encode(hidden))
    return _mask(hidden)


def mask_beside(journal: Path) -> Mask:
    """The mask of the node with this journal; of a node that never drained, a new one without patterns."""
    return _mask(_read(journal.parent / FILE) or Hidden(os.urandom(KEY_BYTES).hex()))


def fits(patterns: Iterable[str], key: str) -> bool:
    """Whether a key is secret.

    >>> fits(["/app/*/password"], "/app/db/password"), fits(["/app/*/password"], "/app/a/b/password")
    (True, False)
    >>> fits(["/app/**"], "/app/a/b"), fits(["/app/key"], "/app/keys")
    (True, False)
    """
    return any(re.fullmatch(_expression(pattern), key, re.DOTALL) for pattern in patterns)


def _expression(pattern: str) -> str:
    parts = _STARS.split(pattern)
    return "".join(
        {"*": "[^/]*", "": ""}.get(part, ".*") if part[:1] in ("*", "") else re.escape(part) for part in parts
    )


def _mask(hidden: Hidden) -> Mask:
    return Mask(lambda key: fits(hidden.secrets, key), bytes.fromhex(hidden.key))


def _read(path: Path) -> Hidden | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Hidden)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        mend = "restore it, or move it away: the lake then hides equal secrets under other names than before"
        raise UserError("bad-identity", f"{path} is damaged: {error}", mend) from None
