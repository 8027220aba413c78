"""Nodes as a bench of chains wants them: whole processes of `weft up` on loopback, with nothing to measure."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

from weft.cli.asking import try_status
from weft.cli.fleet import Fleet, Member
from weft.shell.blocks import free_blocks

FIRST_PORT: Final = 35_000
PATIENCE_S: Final = 120.0
SETTINGS: Final = """
[fleet]
name = "bench-{port}"
beacon_port = {port}

[node]
name = "{name}"
level = "{level}"
parent = "{parent}"
port = {port}
state = "{state}"
runs = ["measurement", "chains", "carrier", "topology"]
beacons = false
flush_s = 0.2

[metric]

[limits]
memory_megabytes = 8192

[journal]
megabytes = 8192
{more}
"""
JOURNAL: Final = """
[[chains.filter]]
name = "journal"
kind = "journal"
types = ["bench.*"]
dir = "in"
"""
"""At a root: keep what arrives (CHN-068)."""


class Nodes:
    """Nodes by name with their parents; all of them have ended when the block has."""

    def __init__(self, place: Path, parents: dict[str, str], more: dict[str, str] | None = None) -> None:
        self.place, self.parents, self.more = place, parents, more or {}
        self.ports = dict(zip(parents, free_blocks(len(parents), FIRST_PORT), strict=True))
        self.fleet = Fleet(place)
        self.members: dict[str, Member] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.fleet.stop_all()

    def start(self, name: str) -> None:
        """Start a node, and wait until its clients are heard."""
        parent = self.parents[name]
        words = {
            "name": name,
            "level": "collector" if name in self.parents.values() else "sensor",
            "parent": f"127.0.0.1:{self.ports[parent]}" if parent else "",
            "port": self.ports[name],
            "state": self.place / name,
            "more": self.more.get(name, ""),
        }
        if not parent:
            words["level"] = "root"
        file = self.place / f"{name}.toml"
        file.write_text(SETTINGS.format(**words), "utf-8")
        member = Member(name, ("-m", "weft.cli.main", "up", str(file)), self.ports[name])
        self.fleet.add(member)
        self.members[name] = member
        self.until(lambda: self.status(name) is not None and self.door(name).exists(), f"{name} answers")

    def stop(self, name: str) -> None:
        """End a node in order."""
        self.fleet.stop([name])
        del self.fleet.members[self.fleet.members.index(self.members.pop(name))]

    def kill(self, name: str) -> None:
        """End a node as a crash does."""
        member = self.members.pop(name)
        assert member.process is not None
        member.process.kill()
        member.process.wait()
        del self.fleet.members[self.fleet.members.index(member)]

    def door(self, name: str) -> Path:
        return self.place / name / "chains.endpoint"

    def endpoint(self, name: str) -> str:
        """Where its clients attach."""
        return self.door(name).read_text("utf-8").strip()

    def status(self, name: str) -> dict[str, Any] | None:
        return try_status(self.ports[name])

    def counters(self, name: str, core: str) -> dict[str, Any]:
        """What a core counts, as the node's status says it."""
        counted: dict[str, Any] = (self.status(name) or {}).get("cores", {}).get(core, {})
        return counted

    def pid(self, name: str) -> int:
        process = self.members[name].process
        assert process is not None
        return process.pid

    def until(self, holds: Callable[[], bool], what: str, look_s: float = 0.02) -> None:
        """Wait until something holds; TimeoutError with what the nodes have said."""
        ends_at = time.monotonic() + PATIENCE_S
        while not holds():
            dead = [member.name for member in self.members.values() if not member.is_running]
            if dead or time.monotonic() > ends_at:
                logs = "\n".join(f"-- {name}\n{self.log(name)}" for name in self.members)
                raise TimeoutError(f"{what}; ended: {dead}\n{logs}")
            time.sleep(look_s)

    def log(self, name: str) -> str:
        return (self.place / f"{name}.log").read_text("utf-8")[-1_500:]
