"""Through how many files one thing walks on its way through a node, and how often it changes from one file to another.

A sample, a value set in the store, a registration and an operation of a document, each in nodes of this process, with
their sockets and disks. Calls of Weft are counted as Python enters them; *changes* are those that enter another file
than the call before. Of many walks the shortest counts, since a node also does other things meanwhile. Columns *core*
count what lies in the core of the walk and in `cores/kit`. It says how far a reader has to look, not how fast it is.

    python bench/walks.py [-v]       of other sources: PYTHONPATH=OTHER/src python bench/walks.py
"""

import asyncio
import os
import random
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any, Final, Self

import weft
import weft.catalog
import weft.doc
import weft.store
from weft.cores.store.messages import Found
from weft.node.settings import NodeSettings, settings_of
from weft.shell.process import Process
from weft.shell.serve import founded

SOURCES: Final = f"{Path(weft.__file__).parent}/"
RUNNER: Final = f"{SOURCES}shell/runner.py"
TIMES: Final = 30
REST_S: Final = 0.05
START_S: Final = 3.0
WATCHED_S: Final = 12.0
ROOT: Final = {"level": "root"}
FLEET: Final = '[metric.cpu]\ndetail = "CPU"\nrate = "1s"\n'
Walk = Counter[str]
"""How often each file was entered."""
WRITER: Final = "shell/journal/writer.py"
TURNS: Final[dict[str, Callable[[Walk], bool]]] = {
    "sample: measured": lambda walk: "shell/meters/machine.py" in walk and "wire/samples.py" not in walk,
    "sample: kept and sent": lambda walk: "wire/samples.py" in walk and "wire/hop.py" in walk,
    "sample: kept at the root": lambda walk: "wire/hop.py" in walk and WRITER in walk and "wire/samples.py" not in walk,
    "sample: acknowledged": lambda walk: "wire/hop.py" in walk and WRITER not in walk,
}
"""The turns of a sample's road, by the files that no other turn enters."""


class Trace:
    """The calls inside: all of them as one walk, and each turn of a node as one."""

    def __init__(self) -> None:
        self.whole: Walk = Counter()
        self.turns: list[Walk] = [Counter()]
        self._last = ""

    def __enter__(self) -> Self:
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _look(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(SOURCES):
            return
        if name == RUNNER and frame.f_code.co_name == "work":
            self.turns.append(Counter())
        if name != self._last:
            self._last = name
            self.whole[name[len(SOURCES) :]] += 1
            self.turns[-1][name[len(SOURCES) :]] += 1


def shortest(walks: Iterable[Walk]) -> Walk:
    return min(walks, key=lambda walk: (walk.total(), len(walk)), default=Counter())


async def walked(do: Callable[[int], Awaitable[Any]], times: int = TIMES) -> Walk:
    """The shortest of so many walks."""
    walks = []
    for number in range(times):
        await asyncio.sleep(REST_S)
        with Trace() as trace:
            await do(number)
        walks.append(trace.whole)
    return shortest(walks)


def is_free(port: int) -> bool:
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) != 0


def free_block() -> int:
    """The first of ten ports where nobody listens just now."""
    firsts = random.sample(range(20_000, 30_000, 10), k=100)
    return next(first for first in firsts if all(map(is_free, range(first, first + 10))))


def settings(state: Path, name: str, beacon_port: int, node: dict[str, str], **tables: Any) -> NodeSettings:
    own = {"name": name, "state": str(state / name), "port": free_block()}
    return settings_of({"node": own | node, "fleet": {"beacon_port": beacon_port}, **tables})


async def of_clients(place: Path) -> dict[str, Walk]:
    """What programs ask of one node."""
    port = free_block()
    tables = {"store": {}, "catalog": {"port": port, "beacons": False}, "doc": {"session": {"s": {}}}}
    node = Process(settings(place, "root", free_block(), ROOT, **tables))
    running = asyncio.ensure_future(node.run())
    await asyncio.sleep(START_S)
    node.runner.order("store", Found(0, b"\xa0"))
    await asyncio.sleep(1.0)
    found: dict[str, Walk] = {}
    async with weft.store.Client((place / "root" / "store.endpoint").read_text().strip()) as store:
        found["store: set"] = await walked(lambda number: store.set("home.temp", number))
    async with weft.doc.Client(str(place / "root")) as doc:
        found["document: an operation"] = await walked(lambda number: doc.set("period=1 jam=1", {"duration": number}))
    services = [weft.catalog.Service(f"s{number}", broker=f"127.0.0.1:{port}") for number in range(TIMES // 3)]
    found["catalog: a registration"] = await walked(lambda number: services[number].start(), len(services))
    await asyncio.gather(*[service.stop() for service in services])
    node.stop()
    await running
    return found


async def of_samples(place: Path) -> dict[str, Walk]:
    """A sensor that measures once a second, and its root."""
    beacons, file = free_block(), place / "fleet.toml"
    file.write_text(FLEET)
    root = Process(founded(settings(place, "root", beacons, ROOT | {"config": str(file)})))
    first = asyncio.ensure_future(root.run())
    await asyncio.sleep(START_S)
    sensor = Process(settings(place, "sensor", beacons, {}))
    second = asyncio.ensure_future(sensor.run())
    await asyncio.sleep(2 * START_S)
    with Trace() as trace:
        await asyncio.sleep(WATCHED_S)
    sensor.stop()
    await second
    root.stop()
    await first
    return {name: shortest(filter(is_meant, trace.turns)) for name, is_meant in TURNS.items()}


CORES: Final = {"store": "store", "document": "document", "catalog": "catalog", "sample": "measurement|carrier|chains"}


def row(name: str, walk: Walk) -> str:
    rooms = tuple(f"cores/{core}/" for core in (*CORES[name.partition(":")[0]].split("|"), "kit"))
    inner = {file: count for file, count in walk.items() if file.startswith(rooms)}
    return f"{name:26}{len(walk):>7}{walk.total():>9}{len(inner):>12}{sum(inner.values()):>9}"


async def main() -> None:
    os.umask(0o077)
    found: dict[str, Walk] = {}
    for walks in (of_samples, of_clients):
        with tempfile.TemporaryDirectory() as place:
            found |= await walks(Path(place))
    print(f"{'':26}{'files':>7}{'changes':>9}{'core: files':>12}{'changes':>9}")
    for name, walk in found.items():
        print(row(name, walk))
        for file, count in walk.most_common() if "-v" in sys.argv else ():
            print(f"{count:>10} {file}")


if __name__ == "__main__":
    asyncio.run(main())
