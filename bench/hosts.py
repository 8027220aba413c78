"""Whole fleets for the benches on one small machine: many nodes in few processes, on a network of their own.

A host is one process with one event loop and several nodes in it, each a whole `Process` with its own sockets, journal
and synced disk; only the loop and the interpreter are shared. Whoever is to be killed gets a host for itself. A host
prints a JSON line whenever a node's standing changes, with the machine's monotonic clock, which all processes share, so
nothing is asked while it is measured.

On Linux with the right to it, the whole bench runs in a network namespace: its loopback device then counts exactly this
fleet's bytes, headers of TCP and IP included. Without that right the machine's own loopback is used, and said.
"""

import asyncio
import contextlib
import gc
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import msgspec

from weft.cores.carrier.core import Carrier
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.store import Store
from weft.cores.measurement.messages import Measure
from weft.cores.topology.core import Topology
from weft.cores.topology.messages import PlaceAssigned
from weft.node.events import RoleChanged
from weft.node.settings import settings_of
from weft.shell.ends import Heard
from weft.shell.links import Links
from weft.shell.process import Doors, Process
from weft.shell.serve import COLLECT_AFTER, founded, raise_file_limit

OWN_NETWORK: Final = "WEFT_BENCH_OWN_NETWORK"
LOOK_S: Final = 0.01
FILL: Final = 10_000  # keys before the node has its turn again
FILL_AFTER_S: Final = 0.5
VALUE: Final = b"%064d" % 0
CONFIGURATION: Final = ("updates", "ask")
"""Channels on which a replica hears its configuration."""


def enter_own_network() -> bool:
    """Run this program again in a network namespace with loopback only, where that is allowed; whether it is so now."""
    if os.environ.get(OWN_NETWORK):
        return os.environ[OWN_NETWORK] == "yes"
    words = [sys.executable, *sys.orig_argv[1:]]
    for way in (["unshare", "-n"], ["unshare", "-rn"]):
        if shutil.which("unshare") and shutil.which("ip") and _works([*way, "ip", "link", "set", "lo", "up"]):
            command = [*way, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *words]
            os.execvpe("unshare", command, {**os.environ, OWN_NETWORK: "yes"})
    return False


def _works(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def loopback() -> tuple[int, int]:
    """Bytes and packets that the loopback device of this network has carried; both directions of a connection."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name.strip() == "lo":
            fields = rest.split()
            return int(fields[0]), int(fields[1])
    return 0, 0


def load() -> str:
    """One minute's load of the machine, as it stands beside every figure."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def framed(frames: Iterable[bytes]) -> int:
    """Bytes of a message on the wire: each frame with the flags and length that ZMTP puts before it."""
    return sum(len(frame) + (2 if len(frame) < 256 else 9) for frame in frames)


class CountedLinks(Links):
    """Counts what is heard per channel: messages, and bytes as ZMTP frames them."""

    def __init__(self, on_readable: Callable[[], None]) -> None:
        super().__init__(on_readable)
        self.bytes: Counter[str] = Counter()
        self.messages: Counter[str] = Counter()

    def drain(self) -> tuple[list[Heard], bool]:
        heard, more = super().drain()
        for item in heard:
            self.bytes[item.source.channel] += framed(item.frames)
            self.messages[item.source.channel] += 1
        return heard, more


class WatchedProcess(Process):
    """Tells when a metric is measured for the first time at another rate than before."""

    on_rate: Callable[[str, str, float], None]

    def employ(self) -> None:
        super().employ()
        measure, rates = self.runner.performers[Measure], dict[str, int]()

        def note(work: Measure) -> None:
            measure(work)
            for spec in work.specs:
                if rates.get(spec.name) != spec.rate_ns:
                    rates[spec.name] = spec.rate_ns
                    self.on_rate(self.settings.node.name, spec.name, spec.rate_ns / 1e9)

        self.runner.performers[Measure] = note


# One host


def spare_garbage() -> None:
    """Let Python's collector look at what it looks at in a node of `weft up`."""
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


class Guest:
    """One node of a host."""

    def __init__(self, document: dict[str, Any]) -> None:
        wish = document.pop("bench", {})
        self.fill_keys: int = wish.get("keys", 0)
        self.links = CountedLinks if wish.get("counts", True) else Links
        self.settings = founded(settings_of(document))
        self.name = self.settings.node.name
        self.process: WatchedProcess | None = None
        self.told: tuple[Any, ...] = ()
        self.runs = asyncio.Event()
        self.bytes: Counter[str] = Counter()
        self.messages: Counter[str] = Counter()

    async def live(self) -> None:
        """One start after the other while its role changes, as `weft up` does."""
        reason: Any = RoleChanged("", 0)
        while isinstance(reason, RoleChanged):
            self.process = WatchedProcess(self.settings, Doors(links=self.links))
            spare_garbage()
            self.process.on_rate = _say_rate
            self.process.runner.on_tell = self._hear
            reason = await self.process.run()
            self._keep_counts(self.process)
        _say(node=self.name, what="ended", why=repr(reason))

    def _hear(self, event: Any) -> None:
        assert self.process is not None
        self.process.telemetry.on_tell(event)
        if isinstance(event, PlaceAssigned):
            _say(node=self.name, what="placed")

    async def fill(self) -> None:
        """At a root that leads: put so many keys into its store, as so many writes had done; its journal has them not."""
        await self.runs.wait()
        await asyncio.sleep(FILL_AFTER_S)
        store = self._store
        for n in range(self.fill_keys):
            store.apply(f"/BENCH/many/k{n:07}", store.number + 1, VALUE, store.number if n else 0)
            if n % FILL == 0:
                await asyncio.sleep(0)
        _say(node=self.name, what="filled", keys=len(self._store.pairs))

    @property
    def _store(self) -> Store:
        assert self.process is not None
        configuration = self.process.node.cores["configuration"]
        assert isinstance(configuration, Configuration)
        return configuration.store

    def _keep_counts(self, process: WatchedProcess) -> None:
        if isinstance(process.links, CountedLinks):
            self.bytes += process.links.bytes
            self.messages += process.links.messages

    def counts(self) -> dict[str, Any]:
        """What was heard so far, over all starts."""
        links = self.process.links if self.process is not None else None
        keys = len(self._store.pairs) if self.process is not None else 0
        if not isinstance(links, CountedLinks):
            return {"bytes": {}, "messages": {}, "keys": keys}
        return {
            "bytes": dict(self.bytes + links.bytes),
            "messages": dict(self.messages + links.messages),
            "keys": keys,
        }

    def look(self) -> None:
        """Say how it stands, if that is new."""
        if self.process is None:
            return
        cores = self.process.node.cores
        topology, configuration, carrier = cores["topology"], cores["configuration"], cores["carrier"]
        assert isinstance(topology, Topology)
        assert isinstance(configuration, Configuration)
        assert isinstance(carrier, Carrier)
        told = (
            topology.role.name,
            topology.standing.name,
            configuration.is_current,
            carrier.state.name,
            carrier.child.endpoint,
        )
        if configuration.is_current:
            self.runs.set()
        if told != self.told:
            self.told = told
            keys = ("role", "standing", "runs", "link", "parent")
            _say(node=self.name, what="stands", **dict(zip(keys, told, strict=True)))


def _say(**fields: Any) -> None:
    print(json.dumps({"at": time.monotonic(), **fields}), flush=True)


def _say_rate(node: str, metric: str, rate_s: float) -> None:
    _say(node=node, what="measures", metric=metric, rate=rate_s)


async def host(documents: list[dict[str, Any]]) -> None:
    """Run these nodes until standard input ends; a line there asks for the counts."""
    guests = [Guest(document) for document in documents]
    lives = [asyncio.create_task(guest.live()) for guest in guests]
    lives += [asyncio.create_task(guest.fill()) for guest in guests if guest.fill_keys]
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def heard() -> None:
        words = os.read(0, 4_096)
        if not words:
            ended.set()
        for _ in range(words.count(b"\n")):
            _say(node="", what="counts", counts={guest.name: guest.counts() for guest in guests})

    loop.add_reader(0, heard)
    _say(node="", what="ready")
    while not ended.is_set():
        for guest in guests:
            guest.look()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), LOOK_S)
    del lives
    os._exit(0)  # a bench has nothing to hand over


# The bench's side


class Stand(NamedTuple):
    """How a node stood at an instant."""

    at: float
    role: str = ""
    standing: str = ""
    runs: bool = False
    link: str = ""
    parent: str = ""

    @property
    def is_joined(self) -> bool:
        """Leads, or has a place, runs the configuration, and hands its samples to its parent."""
        return self.runs and (self.role == "ROOT" or (self.standing == "JOINED" and self.link == "OPEN"))

    @property
    def is_settled(self) -> bool:
        """Leads, or has a place and runs the configuration."""
        return self.runs and (self.role == "ROOT" or self.standing == "JOINED")


class Host:
    """One process with nodes."""

    def __init__(self, names: Sequence[str], process: subprocess.Popen[str]) -> None:
        self.names, self.process = names, process


class Hosts:
    """All processes of a fleet; every one is ended with `with`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.hosts: list[Host] = []
        self.stands: dict[str, Stand] = {}
        self.rates: list[dict[str, Any]] = []
        self.ended: dict[str, str] = {}
        self.placed: dict[str, float] = {}
        """When a node took its last place."""
        self.filled: dict[str, int] = {}
        self.ready_at = 0.0
        """When the last process that was started had imported everything and read its settings."""
        self._counts: dict[str, Any] = {}
        self._ready = self._counted = 0
        self._heard = threading.Condition()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.hosts:
            if each.process.poll() is None:
                each.process.kill()
            each.process.wait()

    def start(self, documents: Sequence[dict[str, Any]]) -> float:
        """Start a process with these nodes; when it was started."""
        names = [document["node"]["name"] for document in documents]
        file = self.place / f"host-{len(self.hosts)}.json"
        file.write_bytes(msgspec.json.encode(list(documents)))
        at = time.monotonic()
        with (self.place / f"host-{len(self.hosts)}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "bench.hosts", str(file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.hosts.append(Host(names, process))
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()
        return at

    def kill(self, name: str) -> float:
        """Kill the process of a node with SIGKILL; when."""
        chosen = next(each for each in reversed(self.hosts) if name in each.names)
        at = time.monotonic()
        chosen.process.kill()
        chosen.process.wait()
        with self._heard:
            for each in chosen.names:
                self.stands.pop(each, None)
        return at

    def until(self, holds: Callable[[], bool], patience_s: float) -> bool:
        """Wait until something holds of what was heard; False if that does not come in time."""
        with self._heard:
            return self._heard.wait_for(holds, patience_s)

    def until_ready(self, patience_s: float = 60) -> None:
        """Until every process has made its nodes."""
        if not self.until(lambda: self._ready >= len(self.hosts), patience_s):
            raise TimeoutError(f"{len(self.hosts) - self._ready} hosts did not start; see {self.place}")

    def counts(self) -> dict[str, Any]:
        """What each node has heard so far: bytes and messages by channel."""
        alive = [each for each in self.hosts if each.process.poll() is None]
        self._counted = 0
        for each in alive:
            assert each.process.stdin is not None
            each.process.stdin.write("?\n")
            each.process.stdin.flush()
        if not self.until(lambda: self._counted >= len(alive), 10):
            raise TimeoutError("counts")
        return dict(self._counts)

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            told = json.loads(line)
            with self._heard:
                self._take(told)
                self._heard.notify_all()

    def _take(self, told: dict[str, Any]) -> None:
        at, node, what = told.pop("at"), told.pop("node"), told.pop("what")
        if what == "stands":
            self.stands[node] = Stand(at, **told)
        elif what == "measures":
            self.rates.append({"at": at, "node": node, **told})
        elif what == "placed":
            self.placed[node] = at
        elif what == "filled":
            self.filled[node] = told["keys"]
        elif what == "ended":
            self.ended[node] = told["why"]
        elif what == "ready":
            self._ready += 1
            self.ready_at = at
        else:
            self._counts |= told["counts"]
            self._counted += 1


def dealt(documents: Sequence[dict[str, Any]], count: int) -> list[list[dict[str, Any]]]:
    """The nodes dealt to so many hosts."""
    return [part for n in range(count) if (part := list(documents[n::count]))]


if __name__ == "__main__":
    raise_file_limit()
    asyncio.run(host(json.loads(Path(sys.argv[1]).read_text())))
