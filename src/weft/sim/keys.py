"""Keys of a simulated fabric: their owners, and who may connect where.

That only its owner can prove a key, and that nobody says again what was recorded, is what CURVE gives; whom a door then
lets in is decided by the node's own code (`node.handshake`), by what that node knows.
"""

from typing import Final

from weft.base.chance import Chance
from weft.base.identity import NODE_ID_BYTES
from weft.base.keys import Binding, KeyTable, Trust
from weft.node.handshake import DOMAIN, DOMAINS, KEY_BYTES, VERSION, Verdict, decide
from weft.sim.plan import Plan
from weft.wire.z85 import to_z85

LIVES: Final = 8  # disks that a machine may lose: its key is lost with each, and its next one was invited, too
MEMBERS: Final = ("collector",)  # whoever is placed as a collector, or elected
GUESTS: Final = ("bridge", "service")
"""Roles whose keys every node knows, but which no port of a node accepts."""


class Keyring:
    """All keys of a plan; without keys everybody may connect, and nothing is proved."""

    def __init__(self, plan: Plan) -> None:
        self.is_closed = plan.closed
        self._seed = plan.seed
        members = {self.uuid_of(node.name, life): node.name for node in plan.nodes for life in range(LIVES)}
        bindings = {uuid: self._binding(uuid, name, MEMBERS) for uuid, name in members.items()}
        bindings |= {self.uuid_of(role, 0): self._binding(self.uuid_of(role, 0), role, (role,)) for role in GUESTS}
        self.trust = Trust(bindings={uuid.hex(): each for uuid, each in bindings.items()}) if plan.closed else None

    def uuid_of(self, name: str, life: int) -> bytes:
        """The UUID of a machine after this many lost disks, or of a guest."""
        return Chance(f"{self._seed}/uuid/{name}/{life}").randbytes(NODE_ID_BYTES)

    def key_of(self, uuid: bytes) -> bytes:
        """The public half of the key that belongs to a UUID."""
        return Chance(f"{self._seed}/key/{uuid.hex()}").randbytes(KEY_BYTES)

    def _binding(self, uuid: bytes, name: str, roles: tuple[str, ...]) -> Binding:
        return Binding(curve=(to_z85(self.key_of(uuid)),), name=name, roles=roles)


def knock(channel: str, mechanism: bytes, credentials: list[bytes], table: KeyTable) -> Verdict:
    """The answer of a node's handler to a client at the port of a channel."""
    request = [VERSION, b"1", DOMAINS.get(channel, DOMAIN), b"10.66.0.1", b"", mechanism, *credentials]
    return decide(request, table)
