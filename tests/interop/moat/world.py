"""Weft's nodes among real servers: processes that speak the moat dialect, and rooms in which they meet."""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from tests.interop.moat.peers import CYCLE_S, GAP_S, Member, Mosquitto, Real, Relay, free_ports, until
from tests.interop.moat.speaker import Whole, living
from weft.cli.asking import try_status
from weft.shell.blocks import free_blocks

NODE = """
[fleet]
name = "{fleet}"
beacon_port = {beacon}

[node]
name = "{name}"
level = "root"
port = {port}
state = "{state}"
flush_s = 0.1

[store]
name = "{name}"
port = {client}
broker = "127.0.0.1:{broker}"
dialects = ["moat"]
keys = "moat"
mesh = {mesh}
cycle = {cycle}
gap = {gap}
del_cycle = {cycle}
del_gap = {gap}
{more}
[store.hostmap]
{hosts}
"""
M = TypeVar("M", bound=Member)
FIRST_PORT = 29_000 + os.getpid() % 10 * 200


class Seat(NamedTuple):
    """Where a member writes, at which port its broker is, and from which one on the members' client ports are."""

    place: Path
    broker: int
    base: int


class Woven(Member):
    """A node of Weft that holds the store."""

    def __init__(self, name: str, seat: Seat, *, founds: str = "", mesh: bool = False) -> None:
        place, broker, base = seat
        [self.block] = free_blocks(1, FIRST_PORT + 20 * int(name[1:]))
        self.port = base + int(name[1:])
        self.file = place / f"{name}.toml"
        settings = NODE.format(
            fleet=f"interop-{os.getpid()}",
            beacon=free_ports(1)[0],
            name=name,
            port=self.block,
            state=place / name,
            client=self.port,
            broker=broker,
            mesh=str(mesh).lower(),
            cycle=CYCLE_S,
            gap=GAP_S,
            more=f'found = "{founds}"' if founds else "",
            hosts="\n".join(f'n{number} = "127.0.0.1:{base + number}"' for number in range(1, 10)),
        )
        self.file.write_text(settings, "utf-8")
        super().__init__(name, place, [sys.executable, "-m", "weft.cli.main", "up", str(self.file)])

    def status(self) -> dict[str, Any]:
        """What its store says of itself."""
        return dict((try_status(self.block) or {}).get("cores", {}).get("store", {}))

    def is_complete(self) -> bool:
        return bool(self.status().get("serves")) and super().is_complete()

    def seconds_between(self, first: str, last: str) -> float:
        """From the first event of one kind in its log to the first of another."""
        lines = [json.loads(line) for line in self.said().splitlines() if line.startswith("{")]
        began, ended = (next(line["ts"] for line in lines if line["event"] == event) for event in (first, last))
        return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()

    def stop(self) -> int:
        """Let it wind down; its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(20)


class Room:
    """One broker, or two with a bridge that can be cut; each member has a wire to its broker of its own."""

    def __init__(self, place: Path, version: str, *, is_split: bool = False) -> None:
        self.place, self.version = place, version
        self.members: dict[str, Member] = {}
        self.wires: dict[str, Relay] = {}
        self._open = ExitStack()
        self.base = self._free_base()
        self.left = self._open.enter_context(Mosquitto("left", place))
        self.bridge = self._open.enter_context(Relay(self.left.port))
        self.right = self.left
        if is_split:
            self.right = self._open.enter_context(Mosquitto("right", place, self.bridge.port))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def real(self, name: str, *init: str, right: bool = False, loads: Path | None = None) -> Real:
        """Let a real server come; with `init` it founds the store, with `loads` it begins with a file."""
        wire = self._wire(name, right=right)
        return self._enter(Real(name, self.place, self.version, wire, self.base, *init, loads=loads))

    def woven(self, name: str, *, right: bool = False, founds: str = "", mesh: bool = False) -> Woven:
        """Let a node of Weft come."""
        seat = Seat(self.place, self._wire(name, right=right), self.base)
        return self._enter(Woven(name, seat, founds=founds, mesh=mesh))

    def woven_ones(self) -> list[Woven]:
        """The nodes of Weft."""
        return [member for member in self.members.values() if isinstance(member, Woven)]

    def whole(self) -> dict[str, Whole]:
        """What each member that lives holds."""
        found = {}
        for name, member in self.members.items():
            with member.client() as client:
                found[name] = client.whole()
        return found

    def equal(self, patience_s: float, *, tombstones: bool = False) -> Whole:
        """Wait until all hold the same and miss nothing, and return it."""

        def shown(whole: Whole) -> Whole:
            return whole if tombstones else living(whole)

        def are_equal() -> bool:
            try:
                first, *others = map(shown, self.whole().values())
                return all(first == other for other in others) and self.are_complete()
            except OSError:
                return False

        until(are_equal, lambda: self._differences(shown), patience_s)
        return shown(next(iter(self.whole().values())))

    def are_complete(self) -> bool:
        """Whether nobody misses anything."""
        return all(member.is_complete() for member in self.members.values())

    def all_live(self) -> None:
        """Nobody has been brought to an end by what another one said."""
        assert [] == [
            f"{name}: {member.said()[-2000:]}" for name, member in self.members.items() if not member.is_alive
        ]

    def _differences(self, shown: Callable[[Whole], Whole]) -> str:
        held = {name: shown(whole) for name, whole in self.whole().items()}
        paths = sorted({path for each in held.values() for path in each}, key=repr)
        lines = [
            f"{path}: { {name: each.get(path) for name, each in held.items()} }"
            for path in paths
            if len({repr(each.get(path)) for each in held.values()}) > 1
        ]
        missing = {}
        for name, member in self.members.items():
            with member.client() as client:
                missing[name] = client.missing()
        return "\n".join(["not equal", *lines[:20], f"{len(lines)} paths differ; missing {missing}"])

    def _enter(self, member: M) -> M:
        self.members[member.name] = self._open.enter_context(member)
        return member

    def _wire(self, name: str, *, right: bool) -> int:
        self.wires[name] = self._open.enter_context(Relay((self.right if right else self.left).port))
        return self.wires[name].port

    @staticmethod
    def _free_base() -> int:
        """Of ten ports for clients."""
        [base] = free_blocks(1, FIRST_PORT + 199)
        return base
