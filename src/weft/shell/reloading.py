"""Tables of a node's file that can be changed while its process runs: `weft reload` (OPS-007).

`[store]`, `[catalog]` and `[doc]` say which further cores a node has, and with whom they communicate. Changed tables
take effect by a new start of the node in the same process, as a new address or key does. Durable state stays, the
sockets of children and clients reconnect by themselves, and other processes need no message. If that start fails, the
node goes on with the tables before.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

import msgspec

from weft.base.errors import UNREADABLE, UserError
from weft.node.events import SettingsReloaded
from weft.node.settings import NodeSettings, settings_of
from weft.shell.http.messages import JSON, Request, Response, Route

RELOAD: Final = "/reload"
BODY_BYTES_MAX: Final = 4 << 20  # no configuration file is larger
FOLLOWED: Final = ("store", "catalog", "doc")
LAST_WORDS_S: Final = 0.3  # time for the answer to leave


class Reloading:
    """The tables that a node has been asked to follow from its next start on."""

    def __init__(self, settings: NodeSettings, era: int, tell: Callable[[Any], None]) -> None:
        """`settings`: as given to this start, before anything was added."""
        self._settings, self._era, self._tell = settings, era, tell
        self.following: NodeSettings | None = None
        """What the next start of this process follows; None: nobody has asked."""

    def route(self) -> Route:
        """The route over HTTP; the server's gate admits programs of this machine only."""
        return Route(self.take, "POST", BODY_BYTES_MAX)

    def take(self, request: Request) -> Response:
        """Takes the file as JSON: 200 with the changed tables, 400 if unreadable, 409 if invalid or another node's."""
        try:
            said = settings_of(msgspec.json.decode(request.body, type=dict[str, Any]), "the file")
        except UNREADABLE as error:
            return _answer(400, text=f"that is no JSON of a file: {error}")
        except UserError as error:
            return _answer(409, text=error.text)
        own = self._settings.node.name
        if said.node.name != own:
            return _answer(409, text=f"this is node {own}, and the file is that of {said.node.name}")
        tables = tuple(name for name in FOLLOWED if getattr(said, name) != getattr(self._settings, name))
        if tables and self.following is None:
            loop = asyncio.get_running_loop()
            loop.call_later(LAST_WORDS_S, self._tell, SettingsReloaded(tables))
        if tables:
            wanted = {name: getattr(said, name) for name in FOLLOWED}
            self.following = msgspec.structs.replace(self._settings, **wanted)
        return _answer(200, tables=tables, era=self._era)


def _answer(status: int, **fields: Any) -> Response:
    return Response(status, JSON, json.dumps(fields).encode() + b"\n")
