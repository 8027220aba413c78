"""Connects the store of a node with clients, foreign servers and a broker; unused in a node without a store."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weft.base.chance import Chance
from weft.cores.store.messages import Dial, HangUp
from weft.node.settings import NodeSettings
from weft.shell.door import note_down
from weft.shell.kernel import is_same_user
from weft.shell.links import Links
from weft.shell.opendoors import ANYBODY, USER, OpenDoor
from weft.shell.runner import Runner

if TYPE_CHECKING:
    from weft.shell.mqtt import MqttLink
    from weft.shell.storeport import StorePort


LOOPBACK: Final = "127.0.0.1"
ENDPOINT: Final = "store.endpoint"
"""A file in the state directory with the address for clients of this node's store."""


class StoreDoors:
    """Opened when the node can handle messages; closed after its last ones."""

    def __init__(  # tidy: what all doors of a node have
        self,
        settings: NodeSettings,
        runner: Runner,
        links: Links,
        state: Path,
        seed: str,
        secret: bytes = b"",
    ) -> None:
        """`secret`: the fabric's, for MACs on links without keys; empty: there is none."""
        self._secret = secret
        self._settings, self._runner, self._links, self._seed = settings, runner, links, seed
        self._endpoint = state / ENDPOINT
        self._port: StorePort | None = None
        self._place = ""
        self._broker: MqttLink | None = None

    async def open(self) -> None:
        """Listen for clients, and connect to the broker if one is configured; UserError."""
        table, own = self._settings.store, self._settings.node
        if table is None:
            return
        from weft.shell.storeport import StorePort  # imported only by a node with a store

        self._port = StorePort(self._runner)
        port = table.client_port(own.port)
        host = own.host
        if self._settings.is_closed:  # the protocol has no keys, so only programs of this user may connect (SEC-056)
            host, self._port.judge = LOOPBACK, lambda ends: is_same_user(*ends)
        await self._port.listen(host, port)
        self._place = f"{host}:{port}"
        note_down(self._endpoint, self._place)
        if table.broker:
            from weft.shell.mqtt import MqttLink, Place, Ways
            from weft.shell.mqttlogin import Sealer, login_of

            place, secret = Place.of(table.broker, table.topics), self._secret
            sealer = Sealer(secret) if secret and table.dialects == ("seed",) else None
            ways = Ways(login_of(table, self._endpoint.parent), sealer, table.require_mac)
            self._broker = MqttLink(self._runner, place, Chance(f"{self._seed}/mqtt"), self._links.dropped, ways)
            await self._broker.start()

    def open_doors(self) -> Iterator[OpenDoor]:
        """The port for clients, which needs no key; on a closed fabric the kernel says which user a client has."""
        if self._port is not None:
            yield OpenDoor("store", self._place, USER if self._settings.is_closed else ANYBODY)

    async def close(self) -> None:
        """Close all connections."""
        if self._broker is not None:
            await self._broker.close()
        if self._port is not None:
            self._endpoint.unlink(missing_ok=True)
            await self._port.close()

    @property
    def performers(self) -> dict[type, Callable[[Any], None]]:
        """The functions that open and close connections to foreign servers."""
        return {Dial: self._dial, HangUp: self._hang_up}

    def _dial(self, work: Dial) -> None:
        if self._port is not None:
            self._port.dial(work)

    def _hang_up(self, work: HangUp) -> None:
        if self._port is not None:
            self._port.hang_up(work)
