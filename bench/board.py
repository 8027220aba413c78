"""How soon a board shows an entry: from the durable operation to the byte at a viewer (JAM-020: at most 250 ms on the spot).

    .venv/bin/python -m bench.board [--entries 100] [--viewers 100]

Two nodes and their boards as processes of this machine. An entry counts as durable when the client that made it is
answered, so what is shown leaves nothing out. "here" is a viewer of the same node's board, "there" one of the other's; the
other viewers only listen.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from rich.console import Console

from weft.cli.demos.bout import SESSION, Bout, Laptop, Plan
from weft.client.doc.client import Client

PAUSE_S: Final = 0.1
QUIET_S: Final = 1.5  # until everybody has the first state


class Viewer:
    """Notes when each score first came."""

    def __init__(self) -> None:
        self.seen: dict[int, float] = {}

    async def run(self, port: int) -> None:
        """Listen until cancelled."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        writer.write(f"GET /events?view=hall HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
        while line := await reader.readline():
            before, found, after = line.partition(b'"home":{"name":"Home","color":"","score":')
            if found and before:
                for score in range(max(self.seen, default=0) + 1, int(after.partition(b",")[0]) + 1):
                    self.seen[score] = time.perf_counter()  # of two entries at once the later is shown


async def measured(ann: Laptop, bob: Laptop, entries: int, viewers: int) -> tuple[list[float], list[float]]:
    """Seconds from durable to shown, here and there."""
    here, there = Viewer(), Viewer()
    crowd = [Viewer() for _ in range(viewers)]
    ports = [(here, ann.board), (there, bob.board), *((viewer, ann.board) for viewer in crowd)]
    tasks = [asyncio.ensure_future(viewer.run(port)) for viewer, port in ports]
    await asyncio.sleep(QUIET_S)
    durable: dict[int, float] = {}
    async with Client(ann.state, session=SESSION) as client:
        for score in range(1, entries + 1):
            await client.add("period=1 jam=1", '<pass team="home" points="1"/>')
            durable[score] = time.perf_counter()
            await asyncio.sleep(PAUSE_S)
    await asyncio.sleep(QUIET_S)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return tuple([max(0.0, viewer.seen[score] - at) for score, at in durable.items()] for viewer in (here, there))  # type: ignore[return-value]  # two of them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=100)
    parser.add_argument("--viewers", type=int, default=100)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, Bout(Path(place), Plan(), Console(quiet=True)) as bout:
        ann, bob = bout.laptops.values()
        spans = asyncio.run(measured(ann, bob, told.entries, told.viewers))
    print(f"{told.entries} entries, one every {PAUSE_S * 1_000:.0f} ms, {told.viewers} further viewers; milliseconds\n")
    print("| durable to shown | median | 95 % | worst | target |\n|---|--:|--:|--:|--:|")
    for where, found in zip(("here", "there"), spans, strict=True):
        spans_ms = sorted(span * 1_000 for span in found)
        row = statistics.median(spans_ms), spans_ms[int(len(spans_ms) * 0.95) - 1], spans_ms[-1]
        print(f"| {where} | {' | '.join(f'{value:.1f}' for value in row)} | {'250' if where == 'here' else ''} |")
    print()


if __name__ == "__main__":
    main()
