"""Changes tables of a node's file while its process runs: `weft reload` (OPS-007).

`[store]`, `[catalog]` and `[doc]` say which further cores a node has, and with whom they communicate; `[notify]` and
`[export]` say who outside is told of alerts and gets the values. Changed tables take effect by a new start of the node in the same process, as a new address or key does. Durable state stays, and children and
clients reconnect by themselves. If that start fails, the node goes on with the old tables.

These tables name commands that the node runs. So neither a login nor the node's token suffices to change them, and another
user of this machine may not on an open fabric either: only a program of the node's own user may, by the kernel's word (SEC-002).
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

import msgspec

from weft.base.errors import UNREADABLE, UserError
from weft.node.events import SettingsReloaded
from weft.node.settings import NodeSettings, settings_of
from weft.shell.http.messages import JSON, Request, Response, Route, refusal
from weft.shell.kernel import Address, is_same_user

RELOAD: Final = "/reload"
BODY_BYTES_MAX: Final = 4 << 20  # no configuration file is larger
FOLLOWED: Final = ("store", "catalog", "doc", "notify", "export")
LAST_WORDS_S: Final = 0.3  # between the answer and the new start, so that the answer leaves
NOT_OURS: Final = refusal(
    403,
    "not-allowed",
    "a node's file is changed by programs of its own user, on its machine",
    "as the user of the node",
)


class Reloading:
    """Holds the changed tables that the next start of a node uses."""

    def __init__(self, settings: NodeSettings, era: int, tell: Callable[[Any], None]) -> None:
        """`settings`: those given to this start, before anything was added to them."""
        self._settings, self._era, self._tell = settings, era, tell
        self.is_ours: Callable[[Address, Address], bool] = is_same_user
        """Whether this user, or root, has opened a connection, by the addresses of both ends."""
        self.following: NodeSettings | None = None
        """The settings of the next start in this process; None: nothing was changed."""

    def route(self) -> Route:
        """The route over HTTP."""
        return Route(self.take, "POST", BODY_BYTES_MAX)

    def take(self, request: Request) -> Response:
        """Take a node's file as JSON: 200 with the changed tables, 400 if unreadable, 409 if invalid or another node's.

        403 if another user, or another machine, has sent it.
        """
        there, here = request.ports
        if not self.is_ours((request.peer, there), (request.host, here)):
            return NOT_OURS
        try:
            wanted = settings_of(msgspec.json.decode(request.body, type=dict[str, Any]), "the file")
        except UNREADABLE as error:
            return _answer(400, text=f"the file cannot be read as JSON: {error}")
        except UserError as error:
            return _answer(409, text=error.text)
        own = self._settings.node.name
        if wanted.node.name != own:
            return _answer(409, text=f"this is node {own}, and the file is that of {wanted.node.name}")
        tables = tuple(name for name in FOLLOWED if getattr(wanted, name) != getattr(self._settings, name))
        if tables and self.following is None:
            loop = asyncio.get_running_loop()
            loop.call_later(LAST_WORDS_S, self._tell, SettingsReloaded(tables))
        if tables:
            changes = {name: getattr(wanted, name) for name in FOLLOWED}
            self.following = msgspec.structs.replace(self._settings, **changes)
        return _answer(200, tables=tables, era=self._era)


def _answer(status: int, **fields: Any) -> Response:
    return Response(status, JSON, json.dumps(fields).encode() + b"\n")
