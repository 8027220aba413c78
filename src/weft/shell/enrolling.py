"""Performs the work of the enrolment core: the port for machines that join, tokens, keys, address (SEC-021, SEC-022).

The port is bound while an invitation is open. It is the last one of the node's block, or the one before it if the store's
mesh uses that; the token names the port.
"""

import asyncio
from pathlib import Path
from typing import Any, Final

from weft.base.endpoints import CLIENTS, MESH, endpoint_of, is_loopback
from weft.base.errors import WeftError
from weft.base.now import SECOND
from weft.cores.configuration.core import Configuration
from weft.cores.enrolment.context import invitation_secret
from weft.cores.enrolment.messages import (
    AddressIs,
    ChangeAddress,
    CloseDoor,
    DoorIs,
    Equip,
    Invited,
    KeyMade,
    MakeKey,
    OpenDoor,
    SwitchKey,
)
from weft.node.channels import ENROL
from weft.node.node import Node
from weft.node.securityevents import AddressChanged, KeySwitched
from weft.node.settings import NodeSettings
from weft.shell.identity import Identity
from weft.shell.keymaking import (
    address_fault,
    following_key,
    found_fabric,
    keep_address,
    make_following,
    take_following,
)
from weft.shell.keys import load_keys, load_known
from weft.shell.links import Links
from weft.shell.runner import Runner
from weft.wire import token
from weft.wire.token import Token
from weft.wire.z85 import from_z85

PLACES: Final = (MESH, CLIENTS)
"""Ports in the node's block for machines that join: the first is tried first, as the store's mesh may have it."""
LAST_WORDS_S: Final = 0.3  # between the answer to a person and the restart, so that the answer leaves


class Enrolling:
    """Performs the work that the enrolment core orders."""

    def __init__(self, settings: NodeSettings, runner: Runner, links: Links, state: Path, identity: Identity) -> None:
        self._settings, self._runner, self._links = settings, runner, links
        self._state, self._identity = state, identity
        self._keys = load_keys(state) if settings.is_closed else None
        self.performers: dict[type, Any] = {
            OpenDoor: self._open,
            CloseDoor: self._close,
            ChangeAddress: self._change_address,
            MakeKey: self._make_key,
            SwitchKey: self._switch_key,
        }

    def recall(self, node: Node) -> None:
        """Admit the keys in the node's own configuration, before a port is bound.

        A node without a parent may know the root that calls it only from there. The cores learn of these keys when there is
        a parent.
        """
        kept = node.cores.get("configuration")
        if node.authority is not None and isinstance(kept, Configuration):
            node.authority.recall(kept.store)
            self._links.admit(node.authority.table.at(self._runner.clock.now().wall // SECOND), frozenset())

    def open(self) -> None:
        """Give the core this node's public key, if it has keys."""
        if self._keys is not None:
            self._runner.order(
                "enrolment", Equip(self._keys.public, load_known(self._state).beacon_key, following_key(self._state))
            )

    def token_of(self, invited: Invited) -> dict[str, Any]:
        """The answer to a person who invites: the invitation, and its token."""
        own = self._settings.node
        assert self._keys is not None, "only a node with keys invites"
        server_key = from_z85(self._keys.public)
        assert server_key is not None
        ident = bytes.fromhex(invited.ident)
        made = Token(
            role=invited.role,
            ident=ident,
            secret=invitation_secret(bytes.fromhex(self._identity.secret), ident),
            server_key=server_key,
            expires_minutes=invited.expires_minutes,
            endpoints=(endpoint_of(own.host, invited.port),),
        )
        fields = {name: getattr(invited, name) for name in invited.__struct_fields__}
        return {**fields, "host": own.host, "token": token.encode(made)}

    def _open(self, _: OpenDoor) -> None:
        own = self._settings.node
        ports = [own.port + place for place in PLACES]
        port = next((port for port in ports if self._is_bound(own.host, port)), 0)
        self._order(DoorIs(port, "" if port else f"ports {ports[0]} and {ports[1]} of {own.host} are taken"))

    def _is_bound(self, host: str, port: int) -> bool:
        """Whether the port is bound now; after a failure it is not tried again."""
        if self._links.serve_at(ENROL, host, port):
            return True
        self._links.unbind(ENROL)
        return False

    def _close(self, _: CloseDoor) -> None:
        self._links.unbind(ENROL)

    def _make_key(self, _: MakeKey) -> None:
        try:
            made = KeyMade(make_following(self._state))
        except WeftError as error:
            made = KeyMade("", str(error))
        self._order(made)

    def _switch_key(self, _: SwitchKey) -> None:
        """Switch to the next key pair and restart; StorageFailed ends the node, which then keeps its old pair."""
        self._start_again(KeySwitched(take_following(self._state, self._identity.node)))

    def _start_again(self, why: AddressChanged | KeySwitched) -> None:
        asyncio.get_running_loop().call_later(LAST_WORDS_S, self._runner.tell, why)

    def _change_address(self, work: ChangeAddress) -> None:
        own = self._settings.node
        starts = work.host != own.host or not self._settings.is_closed
        why = self._address_fault(work.host) if starts else ""
        if starts and not why:
            why = self._make_ready(work.host)
        self._order(AddressIs(work.ticket, work.host, starts, why))
        if starts and not why:
            self._start_again(AddressChanged(work.host))

    def _address_fault(self, host: str) -> str:
        own = self._settings.node
        if not is_loopback(own.host) and host != own.host:
            return f"this node listens at {own.host} already"
        if self._settings.security.mode == "none":
            return 'the file of this node asks for an open network: take [security] mode = "none" out of it'
        return address_fault(host)

    def _make_ready(self, host: str) -> str:
        """Write keys and address to disk; returns why that failed, or an empty text."""
        try:
            found_fabric(self._state, self._identity, endpoint_of(host, self._settings.node.port))
            keep_address(self._state, host)
        except WeftError as error:
            return str(error)
        return ""

    def _order(self, order: Any) -> None:
        asyncio.get_running_loop().call_soon(self._runner.order, "enrolment", order)
