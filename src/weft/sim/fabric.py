"""All machines of a plan, the cables between them, and the network for beacons."""

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from weft.base.identity import Origin
from weft.base.records import Entry
from weft.checks import Checker, Suite
from weft.cores.configuration.root import ORIGIN
from weft.node.node import NodeEffect
from weft.sim.bridgebook import BridgeBook
from weft.sim.callers import CallerProgram
from weft.sim.catalog import ServiceProgram, WatcherProgram
from weft.sim.catalogbook import CatalogBook
from weft.sim.clones import CloneBook, CloneProgram
from weft.sim.datagrams import Datagrams
from weft.sim.datagrams import Weather as Air
from weft.sim.documentbook import DocumentBook
from weft.sim.fleetbook import FleetBook
from weft.sim.hosts import Host, Program
from weft.sim.keys import Keyring, knock
from weft.sim.links import Streams
from weft.sim.locksmith import Locksmith
from weft.sim.machine import Machine
from weft.sim.mailbook import Mailbook
from weft.sim.plan import BASE_PORT, Plan, names_of, pairs
from weft.sim.recorder import Recorder
from weft.sim.sockets import Host as Endpoint
from weft.sim.sockets import Path, Router
from weft.sim.storebook import Storebook
from weft.sim.strangers import Impostor
from weft.sim.world import World
from weft.wire.journal import decode_record
from weft.wire.z85 import from_z85

PROGRAMS: Final[dict[str, Callable[[Host], Program]]] = {
    "service": ServiceProgram,
    "watcher": WatcherProgram,
    "caller": CallerProgram,
    "clone": CloneProgram,
}
"""The kinds of programs that a host may run."""
SELF: Final = Path(10_000, 10_000)  # from a machine to itself
SLOW_NS: Final = 200_000_000  # a cable slower than this is called slow: beats come late on it


def address(number: int, *, is_other: bool = False) -> str:
    """The address of the machine with that number, or the other one that it gets when it moves."""
    return f"10.{int(is_other)}.{number >> 8}.{number & 255}"


class Book(Protocol):
    """Records the facts of one protocol, for its checkers."""

    is_wanted: bool
    """Whether the plan has anything of that protocol."""

    def durable(self, machine: Machine, entries: Iterable[Entry]) -> None:
        """A batch is about to be durable."""

    def spoke(self, machine: Machine, effect: NodeEffect) -> None:
        """An effect is about to be carried out."""

    def went_back(self, machine: Machine) -> None:
        """The disk is empty or an old copy."""

    def waits(self, machine: Machine) -> str:
        """What the machine waits for; empty: nothing."""

    def rest(self, machine: Machine) -> None:
        """Record the final state."""


class Fabric:
    """A plan, built. Machines do not run yet; `faults` and `run` bring it to life."""

    base_port = BASE_PORT

    def __init__(self, plan: Plan, checkers: Iterable[Checker] = (), *, keep: bool = False) -> None:
        self.plan = plan
        self.addresses = {name: address(number) for number, name in enumerate(names_of(plan), 1)}
        self.world = World()
        self.keyring = Keyring(plan, self.address_of)
        self.names: dict[bytes, str] = {}
        self._origins: dict[tuple[Any, int | None, str], str] = {}
        self.named: dict[str, Origin] = {}
        """Origins, by the names that `origin_name` gave them."""
        self.recorder = Recorder(self, Suite(checkers), keep=keep)
        self.streams = Streams(self.world, plan.seed, self._link_changed)
        self.streams.queue_max = plan.queue
        if plan.closed:
            self.streams.admits = self._admits
        self.datagrams = Datagrams(self.world, plan.seed, Air())
        self.mailbook, self.storebook = Mailbook(self), Storebook(self)
        self.documentbook, self.locksmith = DocumentBook(self), Locksmith(self)
        self.books: tuple[Book, ...] = (
            self.mailbook,
            self.storebook,
            CatalogBook(self),
            BridgeBook(self),
            self.documentbook,
            CloneBook(self),
            self.locksmith,
        )
        self.machines = {node.name: Machine(node, number, self) for number, node in enumerate(plan.nodes, 1)}
        self.hosts = {host.name: Host(host, self, PROGRAMS[host.runs]) for host in plan.hosts}
        self.is_bare = all(node.runs == ("store",) for node in plan.nodes)
        """Whether its nodes hold a store and nothing else: no tree, no lake."""
        self.is_stormy = False
        self.impostors: dict[str, Impostor] = {}
        """Strangers that listen where a node did, by its name."""
        self.fleetbook = FleetBook(self) if plan.fleets else None
        self._delays = pairs(plan)
        self._links_up: set[tuple[str, str]] = set()
        self.cuts: dict[tuple[str, str], int] = {}
        self._slow: dict[tuple[str, str], tuple[int, int]] = {}
        self._flips: dict[tuple[str, str], int] = {}
        for (here, there), (least, spread) in self._delays.items():
            self.streams.set_path(here, there, Path(least, spread))
        for name in self.addresses:
            self.streams.set_path(name, name, SELF)

    # Names.

    def origin_name(self, node: bytes | str, era: int | None, fleet: str = "") -> str:
        """`name/era` of an origin; the origin of a fleet's roots is `fleet:name/epoch`."""
        known = self._origins.get((node, era, fleet))
        if known is None:
            prefix = f"{fleet}:" if fleet else ""
            name = self.names.get(node, node.hex()) if isinstance(node, bytes) else prefix + node
            known = self._origins[node, era, fleet] = f"{name}/{era or 0}"
            self.named[known] = Origin(node, era)
        return known

    def members(self) -> list[list[str]]:
        """All members, each with its fleet: nodes, and the roots of fleets as origins of their configuration."""
        roots = [[f"{fleet.name}:{ORIGIN}", fleet.name] for fleet in self.plan.fleets]
        return [*([machine.name, machine.plan.fleet] for machine in self.machines.values()), *roots]

    def _admits(self, host: Endpoint, router: Router) -> bool:
        """Whether a handshake succeeds: both ends have keys, and each knows that of the other (SEC-011, SEC-013)."""
        machine, guest = self.machines.get(router.host.name), self.machines.get(host.name)
        if machine is None or machine.node is None or guest is None or guest.node is None:
            return False
        own, other, authority = router.host.key, from_z85(host.key or ""), machine.node.authority
        if own is None or other is None or authority is None:
            return False
        if self.keyring.may_change and not guest.keys.expects(own, machine.endpoint):
            return False
        return knock(router.channel, b"CURVE", [other], authority.table).allowed

    def address_of(self, name: str) -> str:
        """The address of a machine; empty: none."""
        return self.addresses[name] if name else ""

    def fleet_of(self, fleet: str) -> list[Machine]:
        """The machines of a fleet."""
        return [machine for machine in self.machines.values() if machine.plan.fleet == fleet]

    def children_max(self, name: str) -> int:
        """The maximum number of its children."""
        return len(self.machines) if self.plan.fleets else self.children_of(name)

    def children_of(self, name: str) -> int:
        """How many nodes have it as their parent."""
        return sum(node.parent == name for node in self.plan.nodes)

    def child_of(self, peer: bytes) -> str | None:
        """The owner of the socket with that routing id."""
        return self.streams.owner_of(peer)

    def durable(self, machine: Machine, first_lsn: int) -> None:
        """The batch of a machine is about to be durable, or became so without its knowledge."""
        books = [book for book in self.books if book.is_wanted]
        if books:
            entries = [(lsn, decode_record(data)) for lsn, data in enumerate(machine.disk.unsynced_bytes(), first_lsn)]
            for book in books:
                book.durable(machine, entries)

    def admit(self, machine: Machine) -> None:
        """A stranger begins to listen at the address of a machine whose node does not run."""
        if machine.node is None and machine.name not in self.impostors:
            self.impostors[machine.name] = Impostor(self, machine)

    def evict(self, machine: Machine) -> None:
        """The machine itself needs its address: the stranger leaves."""
        impostor = self.impostors.pop(machine.name, None)
        if impostor is not None:
            impostor.end()

    # Cables.

    def cut(self, here: str, there: str) -> None:
        """Let nothing pass in this direction any more; cuts of several faults add up."""
        self.cuts[here, there] = self.cuts.get((here, there), 0) + 1
        if self.cuts[here, there] > 1:
            self.recorder.meet("two cuts of one cable at once")
        self._lay(here, there)

    def mend(self, here: str, there: str) -> None:
        """Remove one cut."""
        left = self.cuts.get((here, there), 0) - 1
        if left > 0:
            self.cuts[here, there] = left
        else:
            self.cuts.pop((here, there), None)
        self._lay(here, there)

    def slow(self, here: str, there: str, least_ns: int, spread_ns: int) -> None:
        """Set how long a message takes from here to there; as planned if both are 0."""
        if least_ns or spread_ns:
            self._slow[here, there] = (least_ns, spread_ns)
        else:
            self._slow.pop((here, there), None)
        self._lay(here, there)

    def flip(self, here: str, there: str, one_in: int) -> None:
        """From here to there, flip a bit of one message in `one_in`; of none if that is 0."""
        self._flips[here, there] = one_in
        self._lay(here, there)

    def make_whole(self) -> None:
        """Restore all cables to their original state."""
        touched = list(dict.fromkeys([*self.cuts, *self._slow, *self._flips]))
        self.cuts.clear()
        self._slow.clear()
        self._flips.clear()
        for pair in touched:
            self._lay(*pair)

    def _lay(self, here: str, there: str) -> None:
        least, spread = self._slow.get((here, there), self._delays[here, there])
        is_open = (here, there) not in self.cuts
        before = self.streams.path(here, there)
        self.streams.set_path(here, there, Path(least, spread, is_open, self._flips.get((here, there), 0)))
        if self._state(before) != (state := self._state(self.streams.path(here, there))):
            self.recorder.note(here, 0, "info", "path", [here, there, state])
        for pair in ((here, there), (there, here)):
            self._link_changed(*pair)

    def _state(self, path: Path) -> str:
        if not path.is_open:
            return "cut"
        if path.flips:
            return "flipping"
        return "slow" if path.least_ns + path.spread_ns > SLOW_NS else "open"

    def _link_changed(self, child: str, parent: str) -> None:
        """Record in the history when a transport starts or stops to carry messages in time."""
        if child not in self.machines or self.machines[child].plan.parent != parent:
            return
        ways = (self.streams.path(child, parent), self.streams.path(parent, child))
        is_up = self.streams.works(child, parent) and all(self._state(way) == "open" for way in ways)
        if is_up != ((child, parent) in self._links_up):
            (self._links_up.add if is_up else self._links_up.discard)((child, parent))
            self.recorder.note(child, 0, "info", "link", [child, parent, is_up])

    # Datagrams.

    def broadcast(self, machine: Machine, frames: list[bytes]) -> None:
        """A datagram to everyone who listens, the sender included (it hears its own voice)."""
        for other in self.machines.values():
            if other is machine:
                continue
            path = self.streams.path(machine.name, other.name)
            self.datagrams.send(machine.name, machine.address.encode(), other, path, frames)

    def post(self, here: str, source: bytes, there: Machine | Host, frames: list[bytes], channel: str) -> None:
        """One datagram from a machine to another, or to itself."""
        self.datagrams.send(here, source, there, self.streams.path(here, there.name), frames, channel)

    def host_at(self, address: str) -> Host | None:
        """The host with that address."""
        return next((host for host in self.hosts.values() if host.address == address), None)

    def broker_at(self, address: str) -> Machine | None:
        """The node with that address, if it is a broker that runs."""
        found = (machine for machine in self.machines.values() if machine.address == address)
        return next((machine for machine in found if "catalog" in machine.doors.bound), None)

    def set_weather(self, air: Air) -> None:
        """Set how many datagrams are lost, doubled, late or damaged from now on."""
        self.datagrams.weather = air
