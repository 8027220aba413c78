"""Somebody who gives the commands for keys to the leader: `weft key rotate`, `weft key revoke`, `weft join`.

A command that was not obeyed is repeated. After the faults the locksmith restores what a replaced root took with it: a
node whose key the present root does not know joins again, and a revoked one that is listed is revoked again, as
docs/security.md says. At rest it records who owns which key, as each node knows it, and tries every former key at every
port.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.base.effects import Reply
from weft.base.keys import Binding, binding_key, encode_binding
from weft.base.now import SECOND
from weft.base.records import Entry
from weft.cores.configuration.messages import Write, WriteKeys, Written
from weft.cores.enrolment.context import until_of
from weft.cores.enrolment.messages import KeysRevoked, RevokeKey, RotateKey, RotationBegun
from weft.cores.enrolment.rotation import Stage
from weft.node.node import NodeEffect
from weft.sim.intruders import Knock
from weft.sim.keys import knock
from weft.wire.z85 import from_z85

if TYPE_CHECKING:
    from weft.sim.fabric import Fabric
    from weft.sim.machine import Machine

LOCKSMITH: Final = 1 << 20
"""Its first ticket."""
ROUND_NS: Final = 2 * SECOND  # between two attempts
CARE_NS: Final = 10 * SECOND  # after the heal: by then a fleet has one root again
FORMER: Final = "former"
INVITE, ROTATE, REVOKE, LET_IN = "invite", "rotate", "revoke", "let in"


class Task(msgspec.Struct, eq=False):
    """What is wanted from the leader of a machine's fleet."""

    kind: str
    machine: Any
    uuid: bytes


class Locksmith:
    """Does nothing if keys do not change."""

    def __init__(self, fabric: "Fabric") -> None:
        self.fabric, self.recorder = fabric, fabric.recorder
        self.is_wanted = fabric.plan.keys_change
        self.revoked: dict[bytes, str] = {}
        """Nodes that must not come in again, by UUID."""
        self._tasks: list[Task] = []
        self._asked: dict[int, Task] = {}
        self._ticket = LOCKSMITH
        self._care_at: int | None = None
        self._goes_round = False

    # Commands

    def begin(self) -> None:
        """As soon as somebody leads, invite all machines of the plan."""
        if self.is_wanted:
            first = {fleet.name: self.fabric.fleet_of(fleet.name)[0] for fleet in self.fabric.plan.fleets}
            for machine in first.values():
                self._want(INVITE, machine)

    def rotate(self, machine: "Machine") -> None:
        """Order another key for the machine."""
        self._want(ROTATE, machine)

    def steal(self, machine: "Machine") -> None:
        """The machine is stolen: revoke its keys. It runs on."""
        machine.keys.is_stolen = True
        self._want(REVOKE, machine)

    def replace(self, machine: "Machine") -> None:
        """The machine gets an empty disk: revoke its former keys, and let it join by another invitation."""
        former, machine.keys.is_out = machine.node_id, True
        machine.crash("lost", is_loud=True)
        self._tasks.append(Task(REVOKE, machine, former))
        self._want(LET_IN, machine)

    def _want(self, kind: str, machine: "Machine") -> None:
        self._tasks.append(Task(kind, machine, machine.node_id))
        if not self._goes_round:
            self._goes_round = True
            self._go_round(None)

    def _go_round(self, _: None) -> None:
        """Repeat every command that was not obeyed, one at a time for each machine."""
        world, first = self.fabric.world, dict[str, Task]()
        self._care()
        for task in self._tasks:
            first.setdefault(task.machine.name, task)
        for task in first.values():
            leader = self._leader(task.machine.plan.fleet)
            if leader is not None:
                self._ticket += 1
                self._asked[self._ticket] = task
                _ASK[task.kind](self, leader, task, self._ticket)
        self._goes_round = bool(self._tasks) or self._care_at is not None
        if self._goes_round:
            world.call_at(world.at + ROUND_NS, self._go_round)

    def _leader(self, fleet: str) -> "Machine | None":
        """The leader; while two believe that they lead, one of them."""
        return next((each for each in self.fabric.fleet_of(fleet) if each.node is not None and _leads(each)), None)

    def _invite(self, leader: "Machine", task: Task, ticket: int) -> None:
        fleet = self.fabric.fleet_of(task.machine.plan.fleet)
        known = [(each.node_id, self._invited(each, leader)) for each in fleet]
        writes = tuple(Write(binding_key(uuid), encode_binding(bound)) for uuid, bound in known)
        leader.obey("configuration", WriteKeys(ticket, writes, who="somebody", ack="local"))

    def _invited(self, machine: "Machine", root: "Machine") -> Binding:
        """The binding that an invitation writes for a machine: its present key, valid from now on."""
        keys, now = machine.keys, root.clocks.now(self.fabric.world.at)
        bound = self.fabric.keyring.invited(machine.plan, keys.lives)
        return msgspec.structs.replace(bound, curve=(keys.curve,), until=until_of(now))

    def _rotate(self, leader: "Machine", task: Task, ticket: int) -> None:
        leader.obey("enrolment", RotateKey(ticket, task.machine.plan.name))

    def _revoke(self, leader: "Machine", task: Task, ticket: int) -> None:
        leader.obey("enrolment", RevokeKey(ticket, task.uuid.hex()))

    def _let_in(self, leader: "Machine", task: Task, ticket: int) -> None:
        write = Write(binding_key(task.uuid), encode_binding(self._invited(task.machine, leader)))
        leader.obey("configuration", WriteKeys(ticket, (write,), who="somebody", ack="local"))

    # Answers

    def spoke(self, machine: "Machine", effect: NodeEffect) -> None:
        """An effect is about to be carried out; it may be an answer to a command."""
        if type(effect) is not Reply or effect.ticket not in self._asked:
            return
        task, answer = self._asked.pop(effect.ticket), effect.answer
        if task not in self._tasks:
            return
        if isinstance(answer, RotationBegun):
            self._obeyed(task, "a key rotated")
        elif isinstance(answer, KeysRevoked) or getattr(answer, "code", "") == "not-found":
            self._obeyed(task, "a key revoked")
            if task.kind == REVOKE:
                self.revoked[task.uuid] = task.machine.name
        elif getattr(answer, "code", "") == "own-key":  # the leader cannot be revoked
            self._tasks.remove(task)
            task.machine.keys.is_stolen = False
        elif isinstance(answer, Written) and answer.number:
            self._obeyed(task, "a machine let in again" if task.kind == LET_IN else "machines invited")
            if task.kind == LET_IN:
                self._welcome(machine, task.machine)

    def _obeyed(self, task: Task, situation: str) -> None:
        self._tasks.remove(task)
        self.recorder.meet(situation)

    def _welcome(self, root: "Machine", machine: "Machine") -> None:
        """Tell the machine which keys to know; it starts with that."""
        bindings: Any = root.running.cores["enrolment"]
        keys, own = machine.keys, {machine.node_id.hex(): self._invited(machine, root)}
        assert keys.known is not None, "a fabric with keys"
        places = {root.endpoint: root.node_id.hex()}
        keys.known = msgspec.structs.replace(keys.known, bindings=own | bindings.bindings.leaders(), places=places)
        keys.is_out = False
        self.revoked.pop(machine.node_id, None)
        if machine.node is not None:
            machine.crash("kept", is_loud=True)
        machine.start()

    # When the faults are over

    def heal(self) -> None:
        """Some time after the heal, look for machines that are locked out, or listed although they were revoked."""
        if self.is_wanted:
            self._care_at = self.fabric.world.at + CARE_NS
            if not self._goes_round:
                self._goes_round = True
                self._go_round(None)

    def _care(self) -> None:
        if self._care_at is None or self.fabric.world.at < self._care_at:
            return
        for machine in self.fabric.machines.values():
            leader = self._leader(machine.plan.fleet)
            if leader is not None and not any(task.machine is machine for task in self._tasks):
                self._care_for(machine, _known(leader))

    def _care_for(self, machine: "Machine", known: dict[bytes, Any]) -> None:
        mine = [uuid for uuid, name in self.revoked.items() if name == machine.name and uuid in known]
        self._tasks += [Task(REVOKE, machine, uuid) for uuid in mine]
        bound = known.get(machine.node_id)
        if not (machine.is_gone or machine.keys.is_stolen) and (bound is None or machine.keys.curve not in bound.curve):
            self.recorder.meet("a machine whose key the root of today does not know")
            revoke = [] if bound is None else [Task(REVOKE, machine, machine.node_id)]
            self._tasks += [*revoke, Task(LET_IN, machine, machine.node_id)]

    # Facts

    def durable(self, machine: "Machine", entries: Iterable[Entry]) -> None:
        """Nothing to record: keys are in no record of their own."""

    def went_back(self, machine: "Machine") -> None:
        """The key went with the disk: `keyfile` has noted it."""

    def waits(self, machine: "Machine") -> str:
        """Whether a change of its key is on the way, or a command."""
        if not self.is_wanted:
            return ""
        core: Any = machine.running.cores["enrolment"]
        if core.rotation.stage is not Stage.STILL:
            return f"its next key: {core.rotation.stage.value}"
        return "a command of keys" if self._tasks and _leads(machine) else ""

    def rest(self, machine: "Machine") -> None:
        """Record whose key is whose, as this node and the root know it, and what its ports answer to former keys."""
        self._care_at = None
        if not self.is_wanted or machine.node is None or machine.waits():
            return
        self._state(machine, f"keys of {machine.plan.fleet}", _digest(machine))
        self._state(machine, f"key of {machine.name}", machine.keys.curve)
        living = [each for each in self.fabric.fleet_of(machine.plan.fleet) if not each.is_gone]
        if _leads(machine):
            known = _known(machine)
            for each in living:
                bound = known.get(each.node_id)
                if each is not machine:
                    self._state(machine, f"key of {each.name}", "" if bound is None else " ".join(bound.curve))
        for each in self.fabric.machines.values():
            for key in _former(each, is_revoked=each.node_id in self.revoked):
                self._knock(machine, key)

    def _knock(self, machine: "Machine", key: str) -> None:
        authority = machine.running.authority
        assert authority is not None, "a fabric with keys"
        for channel in sorted(machine.doors.keyed):
            is_in = knock(channel, b"CURVE", [from_z85(key) or b""], authority.table).allowed
            self.recorder.knocked(machine, [*Knock(FORMER, channel, is_in, 0, 0, is_changed=False), 0])

    def _state(self, machine: "Machine", subject: str, state: str) -> None:
        self.recorder.note(machine.name, machine.era, "info", "state", [subject, state])


def _leads(machine: "Machine") -> bool:
    core: Any = machine.running.cores["enrolment"]
    is_root: bool = core.context.is_root
    return is_root


def _known(machine: "Machine") -> dict[bytes, Any]:
    core: Any = machine.running.cores["enrolment"]
    known: dict[bytes, Any] = core.bindings.known
    return known


def _former(machine: "Machine", *, is_revoked: bool) -> list[str]:
    """The keys of a machine that are not valid any more."""
    keys = machine.keys
    stolen = [keys.curve, keys.following] if is_revoked and keys.is_stolen else []
    return [key for key in (*keys.former, *stolen) if key]


def _digest(machine: "Machine") -> str:
    authority = machine.running.authority
    assert authority is not None, "a fabric with keys"
    owners = sorted((each.uuid.hex(), each.keys) for each in authority.table)
    return blake2b(repr(owners).encode(), digest_size=8).hexdigest()


_ASK: Final[dict[str, Any]] = {
    INVITE: Locksmith._invite,
    ROTATE: Locksmith._rotate,
    REVOKE: Locksmith._revoke,
    LET_IN: Locksmith._let_in,
}
