"""The settings of a board: which node, which session, where to listen (JAM-020).

python -m weft.web.board ENDPOINT SESSION [--port N] [--host H] [--token T]
python -m weft.web.board '{"node": ENDPOINT, "session": NAME, "port": N}'
python -m weft.web.board -      the same JSON on standard input, so that no list of processes shows the token
"""

import argparse
import os
from collections.abc import Sequence
from typing import IO, Annotated, Final

import msgspec

from weft.base.endpoints import is_loopback
from weft.base.errors import UserError
from weft.node.doctable import TOKEN_BYTES_MIN

PORT: Final = 8_090
TRY: Final = (
    'python -m weft.web.board ipc:///path/doc.sock SESSION --port 8090, or with --host 0.0.0.0 --token "a long word"'
)


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One board."""

    node: str
    """The node's endpoint for programs, as in `doc.endpoint` of its state directory; or that directory, or the node's name."""
    session: str = ""
    """Name of the session; empty: the only one of the node."""
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = PORT
    """0: any free port; the file `ready` names it."""
    host: str = "127.0.0.1"
    token: str = ""
    """The secret that an operator must send; empty, on loopback only: everybody who can read the page may make entries."""
    parent: int = 0
    """The process whose end also ends the board; 0: none."""
    open: str = ""
    """Where other machines reach the node of an open fabric; empty: the fabric is closed, or they cannot reach it."""
    note: str = ""
    """File to write the address of the page to."""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.host)


def settings_of(words: Sequence[str], stdin: IO[str]) -> Settings:
    """The settings of a command line; UserError `usage`."""
    if len(words) == 1 and words[0] != "-h":
        text = stdin.read() if words[0] == "-" else words[0]
        try:
            settings = msgspec.json.decode(text, type=Settings)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UserError("usage", f"settings of a board: {error}", TRY) from None
    else:
        settings = _of_words(words)
    return _checked(settings)


def _of_words(words: Sequence[str]) -> Settings:
    parser = argparse.ArgumentParser("python -m weft.web.board", description="A scoreboard in the browser.")
    parser.add_argument("node")
    parser.add_argument("session", nargs="?", default="")
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--token", default=os.environ.get("WEFT_BOARD_TOKEN", ""))
    given = vars(parser.parse_args(list(words)))
    try:
        return msgspec.convert(given, Settings)
    except msgspec.ValidationError as error:
        raise UserError("usage", f"settings of a board: {error}", TRY) from None


def _checked(settings: Settings) -> Settings:
    if not settings.is_loopback and not settings.token:
        raise UserError("usage", f"everybody who reaches {settings.host} could make entries: this needs a token", TRY)
    if settings.token and len(settings.token.encode()) < TOKEN_BYTES_MIN:
        raise UserError("usage", f"a token of less than {TOKEN_BYTES_MIN} bytes can be guessed", TRY)
    return settings
