"""The keys on the disk of a simulated machine, and in its process, as `shell.keys` and `shell.process` have them.

The next pair is made first, and replaces the pair in force just before a restart. A peer whose key is not valid any
more, as far as the node knows, loses its connections; a message under such a key is dropped.
"""

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from weft.base.identity import NODE_ID_BYTES
from weft.base.keys import KeyTable, Trust
from weft.base.now import MILLISECOND
from weft.cores.configuration.core import Configuration
from weft.cores.enrolment.messages import Equip, KeyMade
from weft.node.node import Node
from weft.node.securityevents import KeySwitched
from weft.wire.z85 import to_z85

if TYPE_CHECKING:
    from weft.base.now import Now
    from weft.sim.machine import Machine

LEAVE_NS: Final = 50 * MILLISECOND  # from the loss of a key until ports are bound again, as in the shell
LAST_WORDS_NS: Final = 300 * MILLISECOND  # from the switch to the end of the process, as in the shell


class KeyFile:
    """Identity and keys of one machine."""

    def __init__(self, machine: "Machine") -> None:
        self.machine, self._keyring = machine, machine.fabric.keyring
        self.lives = -1
        """How many disks it has lost."""
        self.curve = self.following = ""
        """Public halves of the pairs on the disk: the one for the next start, and the one that follows."""
        self.in_force: str | None = None
        """The key of the process; None: there are no keys."""
        self.former: list[str] = []
        """Keys that were its own once."""
        self.known: Trust | None = None
        """What it was told when it joined."""
        self.is_stolen = False
        """Whether somebody stole the machine: it runs on until the faults end, and nobody accepts its messages."""
        self.is_out = False
        """Whether it waits to be let in; it does not start before."""
        self._table = KeyTable()
        self._made = 0

    def live_anew(self) -> bytes:
        """Begin with an empty disk: a new identity and, with keys, an invitation. Returns the UUID."""
        machine, keyring = self.machine, self._keyring
        self.lives += 1
        drawn = machine.chance.randbytes(NODE_ID_BYTES)
        if not keyring.is_closed:
            return drawn
        self.former += [key for key in (self.curve, self.following) if key]
        uuid = keyring.uuid_of(machine.name, self.lives)
        self.curve, self.following, self._made = to_z85(keyring.key_of(uuid)), "", 0
        self.known = keyring.trust_of(machine.plan)
        return uuid

    # The process

    def begin(self, node: Node, now: "Now") -> None:
        """A process starts with the pair on the disk, and knows the keys of its own configuration before it is heard."""
        if node.authority is None:
            return
        self.in_force, configuration = self.curve, node.cores["configuration"]
        assert isinstance(configuration, Configuration), "every node has one"
        node.authority.recall(configuration.store)
        node.authority.has_changed = self.swap
        if self._keyring.may_change:
            node.command("enrolment", Equip(self.curve, "", self.following), now)
        self._table = node.authority.table

    def owner(self, key: str) -> bytes | None:
        """Whose key it is, as far as the process knows; None if it is not valid any more."""
        holder = self._table.find(key)
        return None if holder is None else holder.uuid

    def expects(self, key: str, endpoint: str) -> bool:
        """Whether that key may belong to the node that listens at an endpoint (SEC-013)."""
        authority = self.machine.running.authority
        assert authority is not None, "asked where there are keys"
        holders = [authority.table.node(uuid) for uuid in authority.nodes_at(endpoint)]
        return any(holder is not None and key in holder.keys for holder in holders)

    def swap(self) -> None:
        """Apply the keys known from now on; peers that lost theirs lose their connections (SEC-025, SEC-052)."""
        node = self.machine.node
        if node is None or node.authority is None or node.authority.table is self._table:
            return
        before, self._table = self._table, node.authority.table
        gone = {each.uuid for each in before if any(self._table.find(key) is None for key in each.keys)}
        if gone:
            self.machine.later(LEAVE_NS, self.machine.doors.rebind)
            keys = {key for each in before if each.uuid in gone for key in each.keys}
            self.machine.fabric.streams.forget(self.machine.name, keys)

    # Work

    def make(self) -> None:
        """Make the next pair, if there is none."""
        if not self.following:
            self._made += 1
            self.following = to_z85(self._keyring.key_of(self.machine.node_id, self._made))
        self.machine.later(0, partial(self.machine.obey, "enrolment", KeyMade(self.following)))

    def switch(self) -> None:
        """Use the next pair from the next start on, which comes at once."""
        machine, uuid = self.machine, self.machine.node_id.hex()
        if self.following:
            self.former.append(self.curve)
            self.curve, self.following = self.following, ""
        if self.known is not None and uuid in self.known.bindings:
            own = msgspec.structs.replace(self.known.bindings[uuid], curve=(self.curve,))
            self.known = msgspec.structs.replace(self.known, bindings={**self.known.bindings, uuid: own})
        machine.fabric.recorder.meet("a key switched")
        machine.later(LAST_WORDS_NS, self._start_again)

    def _start_again(self) -> None:
        machine = self.machine
        if machine.is_busy or machine.is_paused:
            machine.later(MILLISECOND, self._start_again)
        else:
            machine.tell(KeySwitched(self.curve))
