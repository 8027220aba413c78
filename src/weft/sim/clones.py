"""Clients of the Clone pattern on machines of their own: a snapshot, the updates after it, and writes (CFG-060..063).

The pattern has no acknowledgements, and no number shows that an update was lost. So a careful client takes a fresh
snapshot when it hears nothing, and at intervals.
"""

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from weft.base.endpoints import endpoint_of
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.sim.hosts import Host
from weft.sim.plan import CLONE_PORT, CLONE_PREFIX
from weft.wire import chp
from weft.wire.replication import ICanHaz, KThxBai

if TYPE_CHECKING:
    from weft.sim.fabric import Fabric
    from weft.sim.machine import Machine

ASK, UPDATES, SETS = "chp-ask", "chp-updates", "chp-sets"
SILENT_NS: Final = 5 * SECOND  # the server beats each second
AGAIN_NS: Final = 20 * SECOND
UUID_BYTES: Final = 16
SUBJECT: Final = "what clients of the Clone pattern share"


class CloneProgram:
    """One client; it changes to the next server when the current one is silent."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.uuid = host.chance.randbytes(UUID_BYTES)
        self.pairs: dict[str, bytes] = {}
        self.number = 0
        self._incoming: dict[str, bytes] | None = None
        """The part of a snapshot that has arrived so far."""
        self._held: list[chp.KvPub] = []
        self._turn = 0
        self._heard_at = self._again_at = 0

    def begin(self, now: Now) -> None:
        """Subscribe first, then ask for everything."""
        address = self.host.fabric.address_of(self.host.plan.calls[self._turn % len(self.host.plan.calls)])
        self._incoming, self._held = {}, []
        self._heard_at, self._again_at = now.mono, now.mono + AGAIN_NS
        self.host.connect(UPDATES, endpoint_of(address, CLONE_PORT + 1), b"", (CLONE_PREFIX.encode(),))
        self.host.connect(SETS, endpoint_of(address, CLONE_PORT + 2), b"")
        self.host.connect(ASK, endpoint_of(address, CLONE_PORT), b"")
        self.host.say(ASK, chp.encode_ask(ICanHaz(CLONE_PREFIX)))

    def stop(self, now: Now) -> None:
        """Stop; nobody needs to be told."""

    def write(self, key: str, value: bytes, _: Now) -> None:
        """Request a write; an update shows whether it was made."""
        frames = chp.encode_set(chp.KvSet(CLONE_PREFIX + key, 0, self.uuid, value))
        self.host.fabric.streams.announce(self.host.name, SETS, frames)

    def hear(self, channel: str, _: bytes, frames: list[bytes], now: Now) -> None:
        """A piece of a snapshot, an update, or a beat."""
        self._heard_at = now.mono
        try:
            message = chp.decode_answer(frames) if channel == ASK else chp.decode_update(frames)
        except PeerError:
            return
        if isinstance(message, chp.KvSync) and self._incoming is not None:
            self._incoming[message.key] = message.value
        elif isinstance(message, KThxBai) and self._incoming is not None:
            self.pairs, self.number, self._incoming = self._incoming, message.number, None
            self.host.fabric.recorder.meet("a clone that has everything")
            for update in self._held:
                self._take(update)
        elif isinstance(message, chp.KvPub):
            if self._incoming is None:
                self._take(message)
            else:
                self._held.append(message)

    def _take(self, update: chp.KvPub) -> None:
        if update.number <= self.number:
            return
        self.number = update.number
        self.host.fabric.recorder.counts["clone updates"] += 1
        if update.value:
            self.pairs[update.key] = update.value
        else:
            self.pairs.pop(update.key, None)

    def wake(self, now: Now) -> None:
        """Nothing is received, or it is time to check for missed updates."""
        if now.mono >= self._heard_at + SILENT_NS:
            self._turn += 1
            self.begin(now)
        elif now.mono >= self._again_at:
            self.begin(now)

    def deadline(self) -> int | None:
        """When to be woken."""
        return min(self._heard_at + SILENT_NS, self._again_at)

    def act(self) -> None:
        """Nothing to do: messages are sent at once."""

    def waits(self, core: Any) -> str:
        """What it waits for from the root."""
        return "" if self._incoming is None and self.number >= core.context.number else "which has not heard all"

    def noted(self, what: str) -> None:
        """Its process has changed; no checker uses that."""


class CloneBook:
    """Records the final state of clients and the root; does nothing without clients."""

    def __init__(self, fabric: "Fabric") -> None:
        self.fabric = fabric
        self.is_wanted = any(host.runs == "clone" for host in fabric.plan.hosts)

    def durable(self, machine: "Machine", entries: Any) -> None:
        """Nothing to record: writes of clients are configuration writes."""

    def spoke(self, machine: "Machine", effect: Any) -> None:
        """Nothing to record."""

    def went_back(self, machine: "Machine") -> None:
        """Nothing to record."""

    def waits(self, machine: "Machine") -> str:
        """What a root's clients wait for; empty: nothing."""
        core = self._core(machine)
        for host in self._clients() if core is not None else ():
            why = host.waits(core, set())
            if why:
                return f"{host.name}, {why}"
        return ""

    def rest(self, machine: "Machine") -> None:
        """The contents of the root and its clients."""
        core = self._core(machine)
        if core is None:
            return
        configuration: Any = machine.running.cores["configuration"]
        contents = {
            machine.name: {pair.key: pair.value for pair in configuration.store.view(CLONE_PREFIX) if pair.value}
        }
        contents |= {
            host.name: host.program.pairs for host in self._clients() if isinstance(host.program, CloneProgram)
        }
        for name, pairs in contents.items():
            digest = blake2b(repr(sorted(pairs.items())).encode(), digest_size=16).hexdigest()
            self.fabric.recorder.note(name, 0, "info", "state", [SUBJECT, digest])

    def _core(self, machine: "Machine") -> Any:
        """The core that answers clients: the root's."""
        core: Any = machine.node.cores.get("clone") if machine.node is not None and self.is_wanted else None
        return core if core is not None and core.server.is_active else None

    def _clients(self) -> list[Host]:
        return [host for host in self.fabric.hosts.values() if host.plan.runs == "clone"]
