"""A closed fabric of real processes on loopback addresses: each node has a key pair, and knows the others by enrolment's note."""

import asyncio
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

import zmq

from tests.fabric.fabric import Fabric
from weft.base.keys import Binding
from weft.base.records import CoreRecord
from weft.node.settings import settings_of
from weft.shell.identity import begin_start
from weft.shell.keys import Keys, Known, load_keys, make_folder, save_known
from weft.shell.process import Process

QUIET_S = 2.0
NO_TICKS = b"\x91\x00"
"""What a store remembers that has not reserved its first ticks yet, which it does some seconds after its start."""
ROLES = {"root": ("collector", "operator"), "collector": ("collector",), "sensor": ("sensor",)}


class Enrolled(NamedTuple):
    """A node that has keys, or somebody who has."""

    uuid: bytes
    keys: Keys
    binding: Binding


def write_keys(state: Path) -> Keys:
    """A fresh pair, kept where a node looks for it."""
    public, secret = (each.decode() for each in zmq.curve_keypair())
    path = make_folder(state) / "node.key_secret"
    path.touch(0o600)
    path.write_text(f'metadata\ncurve\n    public-key = "{public}"\n    secret-key = "{secret}"\n', "utf-8")
    return Keys(public, secret)


def enrolled(state: Path, name: str, roles: tuple[str, ...]) -> Enrolled:
    """A node whose state directory holds its identity and its keys, made once."""
    keys = load_keys(state) or write_keys(state)
    identity = begin_start(state, name, time.time_ns())
    return Enrolled(identity.node_id, keys, Binding(curve=(keys.public,), name=name, roles=roles))


class ClosedFabric(Fabric):
    """`guests`: roles of keys that everybody knows and no node has, by name."""

    def __init__(
        self, place: Path, parents: dict[str, str], more: str = "", guests: dict[str, str] | None = None
    ) -> None:
        super().__init__(place, parents, more)
        self.nodes = {name: enrolled(place / name, name, ROLES[name.partition("-")[0]]) for name in parents}
        self.guests = {name: enrolled(place / name, name, (role,)) for name, role in (guests or {}).items()}
        everybody = {each.uuid.hex(): each.binding for each in (*self.nodes.values(), *self.guests.values())}
        places = {f"127.0.0.1:{port}": self.nodes[name].uuid.hex() for name, port in self.ports.items()}
        known = Known(bindings=everybody, places=places, beacon_key=secrets.token_hex(32))
        for name in parents:
            save_known(place / name, known)


class Hall:
    """Nodes of a closed fabric in this very process, on real sockets of 127.0.0.1, so that a test can look into their cores."""

    def __init__(self, place: Path, parents: dict[str, str], guests: dict[str, str]) -> None:
        self.fabric = ClosedFabric(place, parents, guests=guests)
        self.parents = parents
        self.up: dict[str, Process] = {}
        self._tasks: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Self:
        for name in self.parents:
            self.start(name)
        await self.until(lambda: all(self._is_ready(each) for each in self.up.values()), "all are ready")
        await self.settle()
        return self

    async def settle(self) -> None:
        """Until no core of any node has changed what it would remember for two seconds."""
        seen, since = {name: self.state(name) for name in self.up}, time.monotonic()

        def is_quiet() -> bool:
            nonlocal seen, since
            now = {name: self.state(name) for name in self.up}
            if now != seen:
                seen, since = now, time.monotonic()
            has_ticks = all(state["store"][0].data != NO_TICKS for state in now.values())
            return has_ticks and time.monotonic() - since > QUIET_S

        await self.until(is_quiet, "all are quiet", 60)

    def _is_ready(self, process: Process) -> bool:
        return process.telemetry.health.is_ready and bool(process.doc_doors.routers())

    async def __aexit__(self, *_: object) -> None:
        for process in self.up.values():
            process.runner.finish()
        await asyncio.gather(*self._tasks)

    def start(self, name: str) -> None:
        fabric, parent = self.fabric, self.parents[name]
        node = {"name": name, "level": name.partition("-")[0], "port": fabric.ports[name], "beacons": False}
        document = {
            "node": node
            | {"parent": f"127.0.0.1:{fabric.ports[parent]}" if parent else "", "state": str(fabric.place / name)},
            "fleet": {"beat_s": 0.2, "dead_s": 1.0, "heartbeat": 0.2},
            "lake": {"path": str(fabric.lake)},
            "store": {},
            "metric": {},
            "doc": {"session": {"minutes": {"schema": "plain"}}},
            "chains": {"tcp": True},
            "limits": {"memory_megabytes": 16_384},  # resident is all that this process of tests has
        }
        process = self.up[name] = self.process_of(document)
        self._tasks.append(asyncio.create_task(process.run(), name=name))

    def process_of(self, document: dict[str, Any]) -> Process:
        """One start of a node with these settings."""
        return Process(settings_of(document))

    async def end(self, *names: str) -> None:
        """Stop nodes, and wait until they have."""
        for name in names:
            self.up.pop(name).runner.finish()
        ended = [task for task in self._tasks if task.get_name() in names]
        await asyncio.gather(*ended)
        self._tasks = [task for task in self._tasks if task not in ended]

    async def until(self, holds: Callable[[], bool], what: str, patience_s: float = 30) -> None:
        """Wait, bounded, until something holds; a node that ends meanwhile says why."""
        ends_at = time.monotonic() + patience_s
        while not holds():
            for task in self._tasks:
                if task.done():
                    raise AssertionError(f"a node has ended: {task.result()!r}")
            assert time.monotonic() < ends_at, f"not within {patience_s} s: {what}"
            await asyncio.sleep(0.01)  # tidy: sockets of others tell this test nothing; bounded above

    def state(self, name: str) -> dict[str, list[CoreRecord]]:
        """What each core of a node would remember."""
        return {core: list(each.condense()) for core, each in self.up[name].node.cores.items()}

    def doors(self, name: str) -> dict[str, tuple[str, str]]:
        """Where a node listens with TCP and ZeroMQ, by channel: the endpoint, and the type of socket that speaks to it."""
        process = self.up[name]
        found = {
            channel: (f"tcp://{place[0]}:{place[1]}", SPEAKS_TO[end.row.socket])
            for channel, end in process.links.ends.items()
            for place in end.places
            if not isinstance(place, Path)
        }
        for links in process.doc_doors.sessions.values():
            found["document"] = (f"tcp://127.0.0.1:{links.port}", "DEALER")
        return found


SPEAKS_TO = {"ROUTER": "DEALER", "SUB": "PUB", "PUB": "SUB", "XPUB": "SUB"}
