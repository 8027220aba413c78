"""Fabrics with keys in virtual time: a revocation is everywhere within a second, and both sides of a split go on (SEC-024, SEC-025)."""

from itertools import product

import msgspec
import pytest

from weft.base.keys import KeyTable, binding_key, encode_binding
from weft.base.now import SECOND
from weft.cores.configuration.messages import Write, WriteKeys
from weft.sim.fabric import Fabric
from weft.sim.intruders import INTRUDERS
from weft.sim.machine import Machine
from weft.sim.swarm import draw_plan
from weft.wire.z85 import to_z85

BUILT_S = 20
AWAY_S = 5
SEED = "0"
"""Of this one: a root, three collectors of one group below it, and two members below two of those."""


def grown() -> Fabric:
    """A fleet with keys that has placed itself; nothing befalls it."""
    fabric = Fabric(msgspec.structs.replace(draw_plan(SEED, INTRUDERS), actions=()))
    for machine in fabric.machines.values():
        fabric.world.call_at(machine.plan.start_at, Machine.start, machine)
    pass_by(fabric, BUILT_S)
    write(fabric, bindings(fabric))
    pass_by(fabric, 5)
    return fabric


def pass_by(fabric: Fabric, seconds: int) -> None:
    fabric.world.run(fabric.world.at + seconds * SECOND)


def write(fabric: Fabric, values: dict[bytes, bytes]) -> None:
    """At the root, where who joins and `weft key revoke` have it written, too."""
    writes = tuple(Write(binding_key(uuid), value) for uuid, value in values.items())
    fabric.machines["root"].obey("configuration", WriteKeys(7, writes, who="test", ack="local"))


def bindings(fabric: Fabric) -> dict[bytes, bytes]:
    """Of all nodes, as a root writes them."""
    assert fabric.keyring.trust is not None
    told = fabric.keyring.trust.bindings
    return {each.node_id: encode_binding(told[each.node_id.hex()]) for each in fabric.machines.values()}


def known_to(fabric: Fabric, machine: Machine) -> set[str]:
    """Who would let that machine in by its key."""
    key = to_z85(fabric.keyring.key_of(machine.node_id))
    return {name for name, each in fabric.machines.items() if table_of(each).find(key) is not None}


def table_of(machine: Machine) -> KeyTable:
    assert machine.running.authority is not None
    return machine.running.authority.table


@pytest.mark.proves("SEC-025", part="in virtual time: a second after it is revoked no node that is reached knows a key")
def test_a_second_after_it_is_revoked_nobody_knows_a_key() -> None:
    fabric = grown()
    stolen = fabric.machines["m1"]
    assert set(fabric.machines) == known_to(fabric, stolen)
    write(fabric, {stolen.node_id: b""})
    pass_by(fabric, 1)
    assert set() == known_to(fabric, stolen) - {"m1"}


@pytest.mark.prove("a second story of the simulator")
@pytest.mark.proves("SEC-024", part="both sides of a split know all keys: who starts there is let in, and is heard")
def test_on_both_sides_of_a_split_who_starts_anew_is_let_in() -> None:
    fabric = grown()
    for here, there in product(("root", "c2", "c3", "m2"), ("c1", "m1")):
        fabric.cut(here, there)
        fabric.cut(there, here)
    parents = {"m1": "c1", "m2": "c2"}
    for name in parents:
        fabric.machines[name].crash("kept", is_loud=True)
    pass_by(fabric, AWAY_S)
    assert {name: set() for name in parents} == {name: children_of(fabric, parents[name]) for name in parents}
    for name in parents:
        fabric.machines[name].start()
    pass_by(fabric, BUILT_S)
    assert {name: {name} for name in parents} == {name: children_of(fabric, parents[name]) for name in parents}


def children_of(fabric: Fabric, name: str) -> set[str]:
    return set(fabric.machines[name].running.standing.children.values())
