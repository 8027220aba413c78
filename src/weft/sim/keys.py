"""Keys of a simulated fabric: their owners, and who may connect where.

CURVE guarantees that only its owner can prove a key, and that a recording cannot be replayed; so neither is simulated.
Whom a port then admits is decided by the node's own code (`node.handshake`), from what that node knows.

In a plan whose keys may change, they are in the configuration, and a new machine knows only what `weft join` told it.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from weft.base.chance import Chance
from weft.base.identity import NODE_ID_BYTES
from weft.base.keys import Binding, KeyTable, Trust
from weft.base.now import SECOND
from weft.cores.enrolment.limits import UNTIL_S
from weft.node.handshake import DOMAIN, DOMAINS, KEY_BYTES, VERSION, Verdict, decide
from weft.sim.plan import BASE_PORT, EPOCH_NS, NodePlan, Plan
from weft.wire.z85 import to_z85

LIVES: Final = 8  # disks that a machine may lose: its key is lost with each, and its next one was invited, too
MEMBERS: Final = ("collector",)  # whoever is placed as a collector, or elected
BELOW: Final = ("sensor",)
EARLIER_S: Final = (
    3_600  # before the run: what was told at joining ends before what the root writes, whatever its clock
)
GUESTS: Final = ("bridge", "service")
"""Roles whose keys every node knows, but which no port of a node accepts."""


class Keyring:
    """All keys of a plan; without keys everybody may connect, and nothing is proved."""

    def __init__(self, plan: Plan, address_of: Callable[[str], str]) -> None:
        self.is_closed, self.may_change = plan.closed, plan.keys_change
        self._plan, self._seed, self._address_of = plan, plan.seed, address_of
        members = {self.uuid_of(node.name, life): node.name for node in plan.nodes for life in range(LIVES)}
        bindings = {uuid: self._binding(uuid, name, MEMBERS) for uuid, name in members.items()}
        bindings |= {self.uuid_of(role, 0): self._binding(self.uuid_of(role, 0), role, (role,)) for role in GUESTS}
        self.trust = Trust(bindings={uuid.hex(): each for uuid, each in bindings.items()}) if plan.closed else None

    def uuid_of(self, name: str, life: int) -> bytes:
        """The UUID of a machine after this many lost disks, or of a guest."""
        return Chance(f"{self._seed}/uuid/{name}/{life}").randbytes(NODE_ID_BYTES)

    def key_of(self, uuid: bytes, number: int = 0) -> bytes:
        """The public half of the first pair of keys of a UUID, or of a later one."""
        later = f"/{number}" if number else ""
        return Chance(f"{self._seed}/key/{uuid.hex()}{later}").randbytes(KEY_BYTES)

    def _binding(self, uuid: bytes, name: str, roles: tuple[str, ...]) -> Binding:
        return Binding(curve=(to_z85(self.key_of(uuid)),), name=name, roles=roles)

    def trust_of(self, node: NodePlan) -> Trust | None:
        """The keys that a machine knows before its first start; where keys may change: its own and the leaders'."""
        if not self.may_change:
            return self.trust
        roots = [each for each in self._plan.nodes if each.level == "root" and each.fleet == node.fleet]
        met = [each for each in self._plan.nodes if each is node or self._may_lead(each) or node.level == "root"]
        return Trust(
            bindings={self.uuid_of(each.name, 0).hex(): self.invited(each, 0) for each in met},
            places={f"{self._address_of(each.name)}:{BASE_PORT}": self.uuid_of(each.name, 0).hex() for each in roots},
        )

    def invited(self, node: NodePlan, life: int) -> Binding:
        """The binding that an invitation writes for a machine."""
        roles = MEMBERS if self._may_lead(node) else BELOW
        bound = self._binding(self.uuid_of(node.name, life), node.name, roles)
        until = EPOCH_NS // SECOND + UNTIL_S - EARLIER_S
        return msgspec.structs.replace(bound, host=self._address_of(node.name), until=until)

    def _may_lead(self, node: NodePlan) -> bool:
        groups = [group for fleet in self._plan.fleets for group in fleet.groups]
        return node.level == "root" or any(node.name in group.collectors for group in groups)


def knock(channel: str, mechanism: bytes, credentials: list[bytes], table: KeyTable) -> Verdict:
    """The answer of a node's handler to a client at the port of a channel."""
    request = [VERSION, b"1", DOMAINS.get(channel, DOMAIN), b"10.66.0.1", b"", mechanism, *credentials]
    return decide(request, table)
