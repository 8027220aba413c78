"""What a change is likely to move, beside peers of the same run, in under five minutes: `make bench-quick`.

Every row is a ratio: how many times as fast as its peer ours is. Both take turns in this process; peers that have to be
started, and whole nodes, are the business of `make bench`. A row has *moved* since the last page when its median lies
further away than the rounds of both runs scatter, and by at least a tenth. With `--write` the page and its plot are written:
docs/performance.md, docs/performance.svg.

    .venv/bin/python -m bench.quick [--write] [--rounds 9] [NAME...]
"""

import argparse
import gc
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from math import log10
from pathlib import Path
from statistics import median, quantiles
from typing import Final, NamedTuple

import msgpack

from bench import chains, configuration, journal, measurement, ranges
from weft import __version__
from weft.wire import samples
from weft.wire.journal import encode_body

DOCS: Final = Path(__file__).parents[1] / "docs"
PAGE: Final = DOCS / "performance.md"
PLOT: Final = DOCS / "performance.svg"
MOVED_BY: Final = 0.10  # less than a tenth is nobody's business
UPDATES: Final = 2_000
SYNCS: Final = 8  # in a round: a disk has moods
LINE: Final = re.compile(r"\| (?P<what>[^|]+) \| [^|]+ \| (?P<times>[\d.]+) \| (?P<low>[\d.]+) to (?P<high>[\d.]+) \|")


class Pair(NamedTuple):
    """One row: two ways of doing the same, each timed as a whole."""

    what: str
    peer: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    clock: Callable[[], float] = time.process_time


class Figure(NamedTuple):
    """How many times as fast ours was: the median of the rounds, and the middle half of them."""

    times: float
    low: float
    high: float

    @property
    def noise(self) -> float:
        """How far the middle half of the rounds lies apart, as a share of the median."""
        return (self.high - self.low) / self.times


def pairs(place: Path, stack: ExitStack) -> list[Pair]:
    """All rows; what syncs does so in `place`, until `stack` is closed."""
    body = measurement.peer_encode()
    node, libraries = (_started(program, place) for program in STARTS)
    return [
        Pair("ranges: a batch of 100", "set", lambda: ranges.add_batches(100), lambda: ranges.set_add_batches(100)),
        Pair("samples: encode", "msgpack", lambda: samples.encode(measurement.BATCH), measurement.peer_encode),
        Pair("samples: decode, checked", "msgpack", _decoded, lambda: msgpack.unpackb(body)),
        Pair("chains: four filters, singly", "msgspec alone", chains.pipeline(1), chains.by_hand(1)),
        Pair("chains: four filters, in arrays", "msgspec alone", chains.pipeline(64), chains.by_hand(64)),
        Pair("chains: four stages that do nothing", "pluggy", *chains.no_operations()),
        Pair("chains: an expression", "cel alone", *chains.expression()),
        Pair("configuration: updates", "dict and json", *_followed()),
        *(_synced(size, place / str(size), stack) for size in journal.SIZES),
        Pair("a node's start: imports", "asyncio, zmq, msgspec", node, libraries, _childrens),
    ]


STARTS: Final = ("import gc; gc.disable(); import weft.shell.serve", "import asyncio, msgspec, zmq")


def _decoded() -> object:
    return samples.decode(measurement.BODY)


def _followed() -> tuple[Callable[[], object], Callable[[], object]]:
    """Updates of 64 bytes until a sensor has them, in turns of 100; nothing of it is kept."""
    frames = configuration.updates(UPDATES, 1_000)

    def ours() -> None:
        core, source = configuration.replica(("/CONFIG/web/",), serves=False, is_kept=False)
        configuration.follow_in_turns(frames, core, source)

    return ours, partial(configuration.follow_plainly, frames)


def _synced(size: int, place: Path, stack: ExitStack) -> Pair:
    """Turns of so many records of 190 bytes, each synced, and the very bytes of them."""
    place.mkdir()
    contenders = journal.Contenders(place)
    stack.callback(contenders.close)
    batch = journal.records(size)
    data = bytes(encode_body(batch)[0])

    def ours() -> None:
        for _ in range(SYNCS):
            contenders.write_journal(batch)

    def theirs() -> None:
        for _ in range(SYNCS):
            contenders.write_raw(data)

    return Pair(f"journal: turns of {size:,}", "write, fdatasync", ours, theirs, time.perf_counter)


def _started(program: str, place: Path) -> Callable[[], object]:
    """A process that ends when it has loaded all; compiled before, as what is installed is."""
    compiled = {**os.environ, "PYTHONPYCACHEPREFIX": str(place), "PYTHONDONTWRITEBYTECODE": ""}
    return lambda: subprocess.run([sys.executable, "-c", program], check=True, env=compiled)


def _childrens() -> float:
    """Seconds of a processor that processes took which have ended."""
    spent = os.times()
    return spent.children_user + spent.children_system


def measured(pair: Pair, rounds: int) -> Figure:
    """Both ways, taking turns; who begins changes from round to round."""
    pair.ours()  # once before anything counts
    pair.theirs()
    ratios = []
    for number in range(rounds):
        gc.collect()
        spent = {}
        for way in (pair.ours, pair.theirs) if number % 2 else (pair.theirs, pair.ours):
            began = pair.clock()
            way()
            spent[way] = pair.clock() - began
        ratios.append(spent[pair.theirs] / spent[pair.ours])
    low, _, high = quantiles(ratios, n=4)
    return Figure(median(ratios), low, high)


def has_moved(before: Figure, now: Figure) -> bool:
    """Whether it is another figure, and not the same one on another day."""
    change = abs(now.times / before.times - 1)
    return change > max(MOVED_BY, before.noise + now.noise)


def read(page: str) -> dict[str, Figure]:
    """The figures of an earlier page."""
    return {
        found["what"]: Figure(*(float(found[name]) for name in ("times", "low", "high")))
        for found in LINE.finditer(page)
    }


def page_of(rows: dict[str, tuple[str, Figure]]) -> str:
    """The page, as `read` reads it."""
    system = f"Python {platform.python_version()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.0f}"
    table = "\n".join(
        f"| {what} | {peer} | {figure.times:.3g} | {figure.low:.3g} to {figure.high:.3g} |"
        for what, (peer, figure) in rows.items()
    )
    return f"""\
# What Weft costs beside its peers

Written by `make bench` and by `make bench-quick ARGS=--write`, last with Weft {__version__}, {system}. Each row is a
ratio: how many times as fast as the peer ours is, the median of rounds in which both take turns in one process, and the
middle half of the rounds. Below 1 ours is slower: of what ours does beside, checks, numbers and checksums, the peer does
nothing. `make bench-quick` measures them again, and says which have moved by more than noise.

![Each row with the middle half of its rounds; right of the line ours is faster](performance.svg)

| what | beside | times as fast | middle half of the rounds |
|---|---|--:|--:|
{table}

The peers that have to be started (etcd, Redis, MoaT-KV, NATS, mosquitto, rsyslog and others), what each row is asked for
and how to repeat it: [bench/README.md](../bench/README.md).
"""


LEFT, WIDTH, HIGH, RIGHT = 270, 400, 22, 60
FONT: Final = 'font-family="sans-serif" font-size="12"'


def plot_of(rows: dict[str, tuple[str, Figure]]) -> str:
    """The same as dots on a line of powers of ten, with the middle half of the rounds."""
    lowest = min((log10(figure.low) for _, figure in rows.values()), default=0)
    highest = max((log10(figure.high) for _, figure in rows.values()), default=0)
    first, last = min(-1.0, lowest), max(1.0, highest)

    def at(times: float) -> float:
        return LEFT + WIDTH * (log10(times) - first) / (last - first)

    height = HIGH * (len(rows) + 2)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{height}" {FONT}>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for power in range(int(first), int(last) + 1):
        x, shade = at(10.0**power), "#333333" if power == 0 else "#dddddd"
        drawn.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="8" y2="{height - HIGH}" stroke="{shade}"/>')
        drawn.append(f'<text x="{x:.1f}" y="{height - 6}" text-anchor="middle">{10.0**power:g}</text>')
    for number, (what, (_, figure)) in enumerate(rows.items()):
        y, x = HIGH * (number + 0.8), at(figure.times)
        drawn.append(f'<text x="{LEFT - 10}" y="{y + 4:.1f}" text-anchor="end">{what}</text>')
        drawn.append(
            f'<line x1="{at(figure.low):.1f}" x2="{at(figure.high):.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#1f77b4" stroke-width="4"/>'
        )
        drawn.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#1f77b4"><title>{figure.times:.3g}</title></circle>'
        )
    return "\n".join([*drawn, "</svg>\n"])


def show(rows: dict[str, tuple[str, Figure]], before: dict[str, Figure]) -> None:
    """Print each row beside that of the last page."""
    print(f"load {os.getloadavg()[0]:.1f}\n\n| what | beside | times as fast | before | |\n|---|---|--:|--:|---|")
    for what, (peer, figure) in rows.items():
        last = before.get(what)
        word = "new" if last is None else "MOVED" if has_moved(last, figure) else ""
        print(f"| {what} | {peer} | {figure.times:.3g} | {'' if last is None else f'{last.times:.3g}'} | {word} |")


def main(words: Iterable[str] | None = None) -> None:
    """Measure the rows whose names begin so, or all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args(words)
    before = read(PAGE.read_text("utf-8")) if PAGE.exists() else {}
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        made = pairs(Path(place), stack)
        chosen = [pair for pair in made if not asked.names or pair.what.startswith(tuple(asked.names))]
        rows = {pair.what: (pair.peer, measured(pair, asked.rounds)) for pair in chosen}
    show(rows, before)
    if asked.write and not asked.names:
        PAGE.write_text(page_of(rows), "utf-8")
        PLOT.write_text(plot_of(rows), "utf-8")


if __name__ == "__main__":
    main()
