"""What the catalog's taps and bridges cost, and whether 10,000 services ever hold a broker up (docs/catalog.md).

    .venv/bin/python -m bench.catalog_net [NAME...] [--rounds 5]

All processes are real. Of each measure both sides take turns; processor time is compared where a busy machine makes the
clock on the wall useless.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple, Self

from bench.catalog import Stage, loaded
from bench.peers import programs
from bench.peers.stores import ROOT, cpu_s
from bench.sensor import cpu_seconds
from bench.store import Bar, compared, show
from weft.catalog import Client, NotFound, SyncClient

BURST: Final = 20_000  # calls of one turn: several windows of a tap, each of which begins with its copies
TAPS: Final[dict[str, dict[str, int] | None]] = {
    "untapped": None,
    "tapped": {},
    "every message": {"rate": 1_000_000, "max_frame": 64},
}
LOCKSTEP: Final = 2_000
PROGRAM: Final = """
import asyncio, sys
from weft.catalog import Service
service = Service("thermo", broker=sys.argv[1], beacon_port=0)

@service.endpoint
async def read(sensor: bytes) -> bytes:
    return b"21.5"

asyncio.run(service.run())
"""


class Options(NamedTuple):
    rounds: int


@contextmanager
def service(broker: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that answers `read`, and knows nothing of taps."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM, broker], cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def found(broker: str, name: str = "thermo") -> int:
    """The port of the service, as soon as it is there."""
    with SyncClient(broker) as client:
        while (port := port_of(client, name)) is None:
            time.sleep(0.1)
        return port


def port_of(client: SyncClient, name: str) -> int | None:
    try:
        place = client.get(name).address
    except NotFound:
        return None
    return place.port if place is not None else None


class Tapping:
    """Reads a tap in a thread, while it is open."""

    def __init__(self, broker: str, **wanted: Any) -> None:
        self.broker, self.wanted = broker, wanted
        self.accounts: dict[str, Any] = {}
        self._has_begun, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._read()))

    async def _read(self) -> None:
        async with Client(self.broker) as client, client.tap("thermo", seconds=600, **self.wanted) as tapped:
            self._has_begun.set()
            await asyncio.to_thread(self._over.wait)
            await tapped.stop()
            async for _ in tapped:
                pass
            self.accounts = tapped.accounts

    def __enter__(self) -> Self:
        self._thread.start()
        self._has_begun.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def taps(options: Options) -> list[Bar]:
    """A service that is called as fast as it can, tapped and not: processor time of a call, and calls a second."""
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in TAPS}
    copied = dict.fromkeys(TAPS, 0)
    with Stage() as stage, ExitStack() as stack:
        broker = f"127.0.0.1:{stage.broker(0).port}"
        process = stack.enter_context(service(broker))
        port = found(broker)

        def measured() -> tuple[float, float]:
            before = cpu_seconds(process.pid)
            rate = loaded("calls", port, BURST)["per_second"]
            return (cpu_seconds(process.pid) - before) / BURST * 1e6, rate

        def tapped(name: str) -> tuple[float, float]:
            wanted = TAPS[name]
            if wanted is None:
                return measured()
            with Tapping(broker, **wanted) as tapping:
                seen = measured()
            copied[name] += tapping.accounts["copied"]
            return seen

        measured()
        names = list(TAPS)
        for turn in range(options.rounds):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                figures[name].append(tapped(name))
    spent = {name: low(row[0] for row in rows) for name, rows in figures.items()}
    for name, rows in figures.items():
        rate, copies = statistics.median(row[1] for row in rows), copied[name] / len(rows) / BURST
        print(f"  {name:<14} {spent[name]:>6.1f} us of a processor a call, {rate:>7,.0f}/s, {copies:.3f} copies a call")
    what = "processor time of a call with a tap, of one without"
    return [Bar(what, spent["tapped"], spent["untapped"], 1.03, is_at_most=True)]


def low(values: Iterable[float]) -> float:
    """The mean of the lowest quarter: what else runs only adds."""
    found = sorted(values)
    return statistics.fmean(found[: max(1, len(found) // 4)])


def bridge(options: Options) -> list[Bar]:
    """A call of a service of another network through both brokers, beside the same call at the service itself."""
    crossing = '\n[catalog.bridge]\nexport = ["*"]\nimport = ["*"]\n'
    with Stage() as stage, ExitStack() as stack:
        green = stage.broker(0, 'net = "green"' + crossing)
        blue = stage.broker(0, f'net = "blue"{crossing}to = ["127.0.0.1:{green.port + 3}"]\n')
        stack.enter_context(service(f"127.0.0.1:{green.port}"))
        direct, across = found(f"127.0.0.1:{green.port}"), found(f"127.0.0.1:{blue.port}", "thermo@green")
        before = [cpu_s(each.process.pid) for each in (green, blue)]
        seen = compared(
            {
                "at the service": lambda: 1e6 * loaded("call", direct, LOCKSTEP)["p50"],
                "over the bridge": lambda: 1e6 * loaded("call", across, LOCKSTEP)["p50"],
            },
            options.rounds,
            "us",
        )
        spent = sum(cpu_s(each.process.pid) for each in (green, blue)) - sum(before)
        print(
            f"  both brokers spent {spent / options.rounds / LOCKSTEP * 1e6:,.0f} us of a processor on each call that crossed"
        )
    return [
        Bar(
            "what a bridge adds to a call, of 1 ms",
            seen["over the bridge"] - seen["at the service"],
            1_000,
            1,
            is_at_most=True,
        )
    ]


MEASURES: Final[dict[str, Callable[[Options], list[Bar]]]] = {"taps": taps, "bridge": bridge}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASURES))
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if unknown := set(given.names) - set(MEASURES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    programs.end_in_order()
    for name in given.names or MEASURES:
        show(name, MEASURES[name], Options(given.rounds))


if __name__ == "__main__":
    main()
