"""`weft chain replay` (CLI-025): recorded messages a second of one core's time, from the file to the answers.

A recording of messages of 256 bytes in multiparts of 64, and the answers of a rewriter; replayed to a handler that reads, and
to one that rewrites, whose answers are compared with those of the recording. Beside it the same lines, decoded by msgspec.

    .venv/bin/python -m bench.chains_replay
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bench.measure import Row as Line
from bench.measure import compare, show
from weft.client.chain.client import ChainClient
from weft.client.chain.message import Message
from weft.client.chain.recording import HEARD, SAID, Row, line_of, read_rows
from weft.client.chain.replaying import replay
from weft.wire import clients

MULTIPARTS: Final = 200
MESSAGES: Final = 64
GOAL: Final = 50_000
PAYLOAD: Final = b"x" * 256
NODE: Final = b"\x0b" * 16
ITEM: Final[dict[str, Any]] = {"type": "demo.report", "own": False, "to": ["PARENTSOF"], "via": (NODE,), "depth": 0}


def record(path: Path) -> None:
    """A recording of a reader and a rewriter that passes everything on."""
    welcome = clients.Welcome(
        v=1,
        node=NODE,
        name="B",
        addr="127.0.0.1",
        boot=7,
        level="collector",
        parent="C",
        children=[],
        credit=1024,
        credit_bytes=8 << 20,
        beat=1000,
        dead=5000,
    )
    rows: list[tuple[str, Any]] = [
        (HEARD, welcome),
        (SAID, clients.Reg(reg=1, dir="in", type="demo.report")),
        (SAID, clients.Reg(reg=2, dir="out", type="demo.report", access="rw")),
    ]
    for first in range(1, MULTIPARTS * MESSAGES, MESSAGES):
        numbers = range(first, first + MESSAGES)
        items = [clients.RecItem(id=number, mid=(NODE, 7, number), ts=number, **ITEM) for number in numbers]
        frames = [PAYLOAD] * MESSAGES
        rows += [(HEARD, clients.Rec(1, items, frames)), (HEARD, clients.Rec(2, items, frames))]
        rows.append((SAID, clients.Next(2, [clients.NextItem(id=number) for number in numbers], [])))
    with path.open("wb") as file:
        for number, (direction, message) in enumerate(rows):
            file.write(line_of(Row(direction, clients.encode(message), number), number))


def reader(chain: ChainClient) -> None:
    """Sees everything."""
    sizes: list[int] = []
    chain.reads("demo.report", on="in")(lambda message: sizes.append(message.size))


def rewriter(chain: ChainClient) -> None:
    """Passes everything on."""

    @chain.rewrites("demo.report", on="out")
    def same(message: Message) -> Message:
        return message


def judged(row: Line) -> Line:
    """The rate beside the goal."""
    rate = 1e9 / row.ours_ns
    return row._replace(note=f"{rate:,.0f}/s, goal {GOAL:,}: {'reached' if rate >= GOAL else 'MISSED'}")


def main() -> None:
    """Print the rows."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "night.jsonl"
        record(path)
        count = MULTIPARTS * MESSAGES
        assert replay(read_rows(path), rewriter).same == count, "as recorded"
        attaches: tuple[tuple[str, Callable[[ChainClient], None]], ...] = (("reader", reader), ("rewriter", rewriter))
        rows = [
            judged(
                compare(
                    f"{what}, beside what is for others",
                    lambda attach=attach: replay(read_rows(path), attach),  # type: ignore[misc] # bound at once
                    lambda: [row.parts for row in read_rows(path)],
                    count,
                    time.process_time_ns,
                )
            )
            for what, attach in attaches
        ]
        print(f"load {Path('/proc/loadavg').read_text('ascii')}")
        show("messages of a recording, replayed", rows, "lines alone")


if __name__ == "__main__":
    main()
