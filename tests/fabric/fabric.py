"""A real fabric on loopback for a test: processes of `weft up`, and what their journals and their lake hold."""

import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Final, Self, cast

import pyarrow.parquet as pq

from tests.fabric import warm
from tests.patience import PATIENCE_S
from weft.base.identity import Origin
from weft.base.records import Stream, StreamRecord
from weft.base.vectors import VersionVector
from weft.cli.asking import try_status
from weft.cli.fleet import Fleet, Member
from weft.shell.blocks import free_blocks
from weft.shell.journal import JournalReader

FLEET = f"test-{os.getpid()}"  # nodes of other test runs are not heard
UP: Final = ("-m", "weft.cli.main", "up")
FIRST_PORT = 28_000 + os.getpid() % 20 * 200
SETTINGS = """
[fleet]
name = "{fleet}"
beacon_port = {beacon_port}
beat_s = 0.2
dead_s = 1.0

[node]
name = "{name}"
level = "{level}"
parent = "{parent}"
port = {port}
state = "{state}"
flush_s = 0.1

[metric.cpu]
detail = "CPU"
rate = "0.1s"
per = "core"

[metric.memory]
detail = "MEMORY"
rate = "0.1s"

[lake]
path = "{lake}"
{more}
"""


class WarmFleet(Fleet):
    """A fleet whose nodes are forked from a process that has loaded what they need."""

    def _run(self, arguments: Sequence[str], out: IO[bytes], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        if tuple(arguments[:3]) != UP:
            return super()._run(arguments, out, errors)
        return cast("subprocess.Popen[bytes]", warm.start(arguments[2:], out, errors))


class Fabric:
    """Nodes by name with their parents; every process that was started is ended by `with`."""

    is_fresh = False
    """Whether each node begins as people begin it, in a fresh process."""

    def __init__(self, place: Path, parents: dict[str, str], more: str = "") -> None:
        self.place, self.parents = place, parents
        self.lake = place / "lake"
        self.fleet = Fleet(place) if self.is_fresh else WarmFleet(place)
        self.ports = dict(zip(parents, free_blocks(max(1, len(parents)), FIRST_PORT), strict=False))
        self.more = more

    def __enter__(self) -> Self:
        for name in self.parents:
            self.start(name)
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.fleet.members:
            member.wanted = False
            if member.process is not None and member.process.poll() is None:
                member.process.kill()
                member.process.wait()

    def settings(self, name: str, port: int, state: Path) -> str:
        return SETTINGS.format(
            fleet=FLEET,
            name=name,
            level=name.partition("-")[0],
            parent=self.parents[name],
            port=port,
            beacon_port=next(iter(self.ports.values())),
            state=state,
            lake=self.lake,
            more=self.more,
        )

    def start(self, name: str) -> Member:
        file = self.place / f"{name}.toml"
        file.write_text(self.settings(name, self.ports[name], self.place / name), "utf-8")
        member = Member(name, (*UP, str(file)), self.ports[name])
        self.fleet.add(member)
        return member

    def member(self, name: str) -> Member:
        return next(member for member in reversed(self.fleet.members) if member.name == name)

    def kill(self, name: str) -> None:
        process = self.member(name).process
        assert process is not None
        process.kill()
        process.wait()

    def status(self, name: str) -> dict[str, Any]:
        return try_status(self.ports[name]) or {}

    def taken(self, name: str) -> int:
        return int(self.status(name).get("cores", {}).get("measurement", {}).get("numbered", 0))

    def logs(self) -> str:
        """The end of what everybody has said."""
        return "\n".join(f"-- {name}\n{self.log_of(name)[-1500:]}" for name in self.parents)

    def log_of(self, name: str) -> str:
        return (self.place / f"{name}.log").read_text("utf-8")

    def until(self, holds: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        """Wait, bounded, until something holds; dead processes are started again meanwhile."""
        ends_at = time.monotonic() + patience_s
        while not holds():
            self.fleet.watch()
            assert time.monotonic() < ends_at, f"not within {patience_s} s: {what}\n{self.logs()}"
            time.sleep(0.05)  # tidy: other processes tell nobody; bounded above

    def measure_on(self, samples: int = 60) -> None:
        """Until every node has numbered so many more samples in its present era."""
        before = {name: self.taken(name) for name in self.parents}
        self.until(
            lambda: all(self.taken(name) >= before[name] + samples for name in self.parents), f"{samples} more samples"
        )

    def stop(self) -> None:
        """Along the road: the deepest first, so that all that was taken is handed over."""
        depth = {name: self._depth(name) for name in self.parents}
        for level in sorted(set(depth.values()), reverse=True):
            self.fleet.stop([name for name in depth if depth[name] == level], patience_s=30)

    def _depth(self, name: str) -> int:
        return 0 if not self.parents[name] else 1 + self._depth(self.parents[name])

    def made(self) -> VersionVector:
        """What all nodes say in their own journals that they have numbered."""
        return numbered_in(*(self.place / name / "journal" for name in self.parents))

    def drained(self) -> tuple[VersionVector, int]:
        """What stands in the lake's segments, and how many rows are there more than once."""
        seen: Counter[tuple[str, int, int]] = Counter()
        for path in sorted((self.lake / "drain" / "samples").rglob("*.parquet")):
            columns = pq.read_table(path, columns=["origin", "era", "sequence"]).to_pydict()
            seen.update(zip(columns["origin"], columns["era"], columns["sequence"], strict=True))
        vector = VersionVector()
        for origin, era, sequence in sorted(seen):
            vector.add(Origin(bytes.fromhex(origin), era), sequence)
        return vector, sum(count - 1 for count in seen.values())


def numbered_in(*journals: Path) -> VersionVector:
    """All samples that stand in these journals."""
    vector = VersionVector()
    for journal in journals:
        for _, record in JournalReader(journal).entries():
            if isinstance(record, StreamRecord) and record.stream == Stream.SAMPLES:
                vector.add(Origin(record.origin, record.era), record.sequence, record.last)
    return vector
