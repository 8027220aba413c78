"""The store on a real network that falls apart: five machines, cables that are pulled, and no broker."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

import pytest

from tests.interop.netns import Net, host_of
from tests.patience import PATIENCE_S
from weft.base.errors import UserError
from weft.cli.asking import status_of
from weft.store import MISSING, Client, StoreError

PAGE: Final = Path(__file__).parents[2] / "docs" / "store.md"
PORT: Final = 27_500
NODE: Final = """
[fleet]
name = "{fleet}"

[node]
name = "n{number}"
level = "{level}"
{parent}
host = "{host}"
port = {port}
state = "{state}"

[security]
mode = "none"
allow_insecure = true

[store]
open = true
{store}
"""
MISSED: Final = "WEFT_MISSED"
"""In the environment: how many changes the sides of the first split miss, at default timing; the bar is 100,000 in 10 s."""
WRITES: Final = int(os.environ.get(MISSED, "2000")) // 2
FAST: Final = 'clock = "1s"' if MISSED not in os.environ else ""
"""What waits for others waits for so many clocks."""


class Machine:
    """One machine with a node that holds the store."""

    def __init__(self, net: Net, number: int, place: Path, lines: Sequence[str]) -> None:
        self.net, self.number, self.inside = net, number, net.at(number)
        self.host, self.place = host_of(number), place / f"n{number}"
        self.file, self.log = place / f"n{number}.toml", place / f"n{number}.log"
        text = NODE.format(
            fleet=f"split-{os.getpid()}",
            number=number,
            level="root" if number == 1 else "sensor",
            parent="" if number == 1 else 'parent = "n1"',
            host=self.host,
            port=PORT,
            state=self.place,
            store="\n".join([*lines, 'found = "here"'] if number == 1 else lines),
        )
        self.file.write_text(text, "utf-8")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            words = [sys.executable, "-m", "weft.cli.main", "up", str(self.file)]
            self.process = subprocess.Popen(self.net.command(self.number, words), stdout=log, stderr=log)

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def of_store(self) -> dict[str, Any]:
        """What its store says of itself."""

        async def ask() -> dict[str, Any]:
            try:
                return dict(status_of(PORT, self.host).get("cores", {}).get("store", {}))
            except UserError:
                return {}

        return self.inside.call(ask())

    def client(self) -> Client:
        return Client(f"{self.host}:{PORT + 5}")

    def reached(self) -> int:
        """How many others it reaches."""
        return int(self.of_store().get("members", -1))

    def known(self) -> dict[str, Any]:
        """All changes that it has heard of, by node; empty: it lacks some, or does not answer."""

        async def ask() -> dict[str, Any]:
            try:
                async with self.client() as client:
                    told = await client.state("nodes", "missing")
                    return {} if told["missing"] else dict(told["nodes"])
            except StoreError:
                return {}

        return self.inside.call(ask())

    def tree(self, *, deleted: bool = True) -> dict[Any, Any] | None:
        """All that it holds, usually tombstones too; None: it does not answer."""

        async def read() -> dict[Any, Any] | None:
            try:
                async with self.client() as client:
                    tree = client.tree((), deleted=deleted)
                    return {entry.path: (entry.value, entry.chain, entry.tock) async for entry in tree}
            except StoreError:
                return None

        return self.inside.call(read())


class World:
    """Machines with the store, and what is done to their network."""

    def __init__(self, place: Path, count: int) -> None:
        self.net = Net(count)
        self.place, self.machines = place, dict[int, Machine]()

    def __enter__(self) -> Self:
        self.net.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        for machine in self.machines.values():
            machine.end()
        self.net.__exit__()

    def start(self, *lines: str) -> None:
        """All at once; the file of each names the first one alone, those of the others are learnt from it."""
        for number in self.net.numbers:
            peers = [] if number == 1 else [f"{host_of(1)}:{PORT}"]
            self.machines[number] = Machine(self.net, number, self.place, [f"peers = {peers}", *lines])
            self.machines[number].start()
        self.until(lambda: all(self.reaches(number, len(self.machines) - 1) for number in self.machines), "all joined")

    def reaches(self, number: int, count: int) -> bool:
        """Whether a node serves, lacks nothing, and reaches so many others."""
        store = self.machines[number].of_store()
        return bool(store.get("serves")) and not store["missing"] and store["members"] == count

    def until(self, holds: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> float:
        """Wait, bounded; how long it took."""
        began = time.monotonic()
        while not holds():
            assert time.monotonic() - began < patience_s, f"not within {patience_s} s: {what}\n{self.logs()}"
            time.sleep(0.05)  # tidy: other processes tell nobody; bounded above
        return time.monotonic() - began

    def logs(self) -> str:
        return "\n".join(f"-- {each.number}\n{each.log.read_text('utf-8')[-3000:]}" for each in self.machines.values())

    def trees(self, *, deleted: bool = True) -> list[dict[Any, Any] | None]:
        return [machine.tree(deleted=deleted) for machine in self.machines.values()]

    def are_equal(self) -> bool:
        first, *others = self.trees()
        return first is not None and all(tree == first for tree in others)

    def split(self, *sides: Sequence[int]) -> None:
        """Cut, and wait until everybody has noticed."""
        self.net.split(*sides)
        for side in sides:
            self.until(lambda side=side: all(self.reaches(at, len(side) - 1) for at in side), "the cut is noticed")  # type: ignore[misc]  # bound

    def heal(self, capsys: Any, what: str) -> None:
        """Join the cables, and wait until all are equal."""
        self.net.heal()
        self.agree(capsys, what)

    def agree(self, capsys: Any, what: str, *, linked: bool = True) -> None:
        """All know the same changes and miss none, so that they are equal; how long that took is shown.

        Tombstones that everybody has are purged, at one machine a moment before the other: they are equal soon.
        """
        others = len(self.machines) - 1 if linked else 0
        up = self.until(lambda: all(machine.reached() >= others for machine in self.machines.values()), "links")
        equal = up + self.until(self.know_the_same, "all know the same")
        with capsys.disabled():
            sys.stdout.write(f"\n  {what}: links up after {up:.1f} s, equal after {equal:.1f} s\n")
        trees = self.trees(deleted=False)
        assert trees[0]
        assert trees == [trees[0]] * len(trees)
        self.until(self.are_equal, "tombstones are equal")

    def know_the_same(self) -> bool:
        """Whether all have heard of the same changes, and lack none of them."""
        known = [machine.known() for machine in self.machines.values()]
        return bool(known[0]) and all(each == known[0] for each in known)

    def wait(self, span_s: float) -> None:
        """Let time pass."""
        time.sleep(span_s)  # tidy: a cable is away for so long

    def write(self, *works: tuple[int, str, int]) -> None:
        """At machines, under marks, so many changes each, all at once: own keys, keys of both sides, deletions."""
        begun = [self.machines[at].inside.begin(_write(self.machines[at], mark, count)) for at, mark, count in works]
        for each in begun:
            each.result(PATIENCE_S + WRITES / 100)


async def _write(machine: Machine, mark: str, count: int) -> None:
    async with machine.client() as client:
        for batch in range(0, count, 100):
            await asyncio.gather(*(_change(client, mark, number) for number in range(batch, min(batch + 100, count))))


async def _change(client: Client, mark: str, number: int) -> None:
    """Of ten changes six to own keys, two to keys of both sides, one deletion of each."""
    match number % 10:
        case 0 | 1:
            await client.set(("both", number), mark)
        case 2:
            await client.delete(("both", "old", number))
        case 3:
            await client.set((mark, number), "soon gone")
            await client.delete((mark, number))
        case _:
            await client.set((mark, number), number)


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Five machines; the file of each names the first one alone."""
    with World(tmp_path_factory.mktemp("five"), 5) as world:
        world.start(FAST)
        world.write((1, "old", 50))
        world.until(world.are_equal, "equal before")
        yield world


@pytest.mark.proves("LNK-020", "LNK-021", "HEA-006", "HEA-013", "STO-012")
def test_five_machines_that_were_cut_into_three_and_two_agree_soon_after(five: World, capsys: Any) -> None:
    five.split((1, 2, 3), (4, 5))
    five.write((1, "one side", WRITES), (4, "the other", WRITES))
    assert not five.are_equal()
    five.heal(capsys, f"split of three and two, {WRITES} changes each")
    tree = five.machines[5].tree() or {}
    assert {"one side", "the other"} >= {value for path, (value, *_) in tree.items() if path[:1] == ("both",)} - {
        MISSING
    }
    assert MISSING is tree["one side", 3][0]


@pytest.mark.proves("LNK-021", "HEA-010", "HEA-011")
def test_who_hears_only_one_direction_of_a_cable_learns_all_from_others(five: World, capsys: Any) -> None:
    five.net.deafen(receiver=2, sender=1)
    five.until(lambda: five.reaches(1, 3) and five.reaches(2, 3), "the cut is noticed")
    five.write((1, "sender", 100), (2, "receiver", 100))
    five.agree(capsys, "one direction of one cable cut, 100 changes each", linked=False)
    five.net.open(receiver=2, sender=1)
    five.agree(capsys, "that direction works again")


@pytest.mark.proves("LNK-002", "LNK-021")
def test_a_cable_that_comes_and_goes_does_no_harm(five: World, capsys: Any) -> None:
    for number in range(5):
        five.net.split((1, 2), (3, 4, 5))
        five.write((1, f"flap {number}", 50), (5, f"flop {number}", 50))
        five.wait(0.3 + number)  # also so short that nobody notices
        five.net.heal()
        five.write((2, f"flip {number}", 20))
    five.agree(capsys, "a cable that came and went five times")


@pytest.mark.proves("HEA-006", "LNK-020")
def test_two_machines_alone_agree_after_a_long_cut(tmp_path: Path, capsys: Any, *, soak: bool) -> None:
    with World(tmp_path, 2) as two:
        two.start(FAST)
        two.split((1,), (2,))
        two.write((1, "one", 1_000), (2, "other", 1_000))
        two.wait(120 if soak else 5)
        two.heal(capsys, "two machines")


def files_of_tour() -> tuple[str, str]:
    """The two files that docs/store.md shows side by side for two machines, at addresses of this network."""
    blocks = PAGE.read_text("utf-8").split("```toml\n")
    block = next(block for block in blocks if block.startswith("# a.toml on")).partition("```")[0]
    both = (
        [line[:43] for line in block.splitlines()[1:]],
        [line[43:].removeprefix("# ") for line in block.splitlines()[1:]],
    )
    one, other = ("\n".join(lines).replace("10.0.0.", "10.77.0.") for lines in both)
    return one, other


@pytest.mark.proves("LNK-020", "ADM-020")
def test_the_tour_of_two_machines_works_as_the_page_shows_it(tmp_path: Path) -> None:
    with Net(2) as net, ExitStack() as open_:

        def command(number: int, *words: str) -> list[str]:
            state = f"XDG_STATE_HOME={tmp_path / str(number)}"
            return net.command(number, ["env", state, sys.executable, "-m", "weft.cli.main", *words])

        def said(number: int, *words: str) -> str:
            ran = subprocess.run(
                command(number, *words), capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
            return ran.stdout if ran.returncode == 0 else f"{ran.returncode}: {ran.stderr}"

        for number, text in enumerate(files_of_tour(), 1):
            file = tmp_path / f"{number}.toml"
            file.write_text(text, "utf-8")
            log = open_.enter_context((tmp_path / f"{number}.log").open("wb"))
            node = subprocess.Popen(command(number, "up", str(file)), stdout=log, stderr=log)
            open_.callback(node.wait)
            open_.callback(node.kill)
        ends_at = time.monotonic() + PATIENCE_S
        while "serves clients" not in (told := said(2, "store", "state")):
            assert time.monotonic() < ends_at, f"{told}\n{(tmp_path / '2.log').read_text('utf-8')[-3000:]}"
        assert told.startswith("b: MEMBER")
        assert "" == said(1, "set", "home.kitchen.temp", "21.5", "--port", "27500")
        while "21.5\n" != (told := said(2, "get", "home.kitchen.temp", "--port", "27500")):
            assert time.monotonic() < ends_at, told
        assert "21.5\n" == said(2, "get", "home.kitchen.temp"), "found by its state directory"
        assert "serves its own machine only" in said(2, "get", "home.kitchen.temp", "--node", "10.77.0.1:27505")
