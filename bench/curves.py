"""How CPU time and memory grow with nodes, children, keys, entries, services, operations and commits: exponents (CFG-095).

    .venv/bin/python -m bench.curves [NAME...] [--whole] [--max N] [--rounds 3] [--write]

Each size of a curve is measured in a process of its own, mostly a core in virtual time, in CPU time: a busy machine adds little.
`--whole` adds the largest sizes, which take hours and gigabytes; `--max` leaves out what is larger. `processes` are nodes with
real sockets, which take a minute a size, so they are measured only if named. `--write` puts the curves that were measured into
docs/growth.md and docs/growth.svg.
"""

import argparse
import platform
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from bench.growth import configurations, cores, fleets
from bench.growth.fit import fit_of
from bench.growth.meter import Measure, Meter, measured
from bench.growth.page import Reasons, Seen, exponents_of, page_of, plot_of, section_of, word_of
from bench.hosts import enter_own_network, load

DOCS: Final = Path(__file__).parents[1] / "docs"
PAGE: Final = DOCS / "growth.md"
PLOT: Final = DOCS / "growth.svg"
QUICK_S: Final = 20.0
"""A size that takes longer than this is measured once."""


class Curve(NamedTuple):
    """Sizes in a geometric series, and what is done at each."""

    measure: Measure
    sizes: tuple[int, ...]
    whole: tuple[int, ...] = ()
    """Larger ones."""
    is_quiet: bool = True
    """Whether it is measured without being named."""
    is_warmed: bool = True
    """Whether the interpreter may see the code, in a smallest size, before anything counts."""
    reasons: Reasons = Reasons()


def of_fleets(why: str, *whats: str) -> dict[str, str]:
    """The same reason for all that is counted then."""
    return {f"{what}, {unit}": why for what in whats for unit in ("messages", "bytes", "CPU s", "calls")}


BEACONS: Final = of_fleets(
    "a beacon is a datagram to everyone on the segment, so n nodes hear n of them each; with `beacons = false` nobody does.",
    fleets.JOINED,
    fleets.AT_REST,
)
REMEMBERED: Final = {f"{fleets.MEMORY}, MB": "each node remembers the others whose beacons it hears."}
LINKS: Final = of_fleets(
    "members of a mesh have n (n - 1) links, with a beat on each once a second (LNK-021), and what one says goes to all others; a hello names them all.",
    fleets.JOINED,
    fleets.AT_REST,
)
PAGES: Final = {
    "n keys listed in pages, CPU s": "a page looks at no key of another; the first one gathers all of the subtree, which no"
    " cache holds when it is large."
}
LOG: Final = {
    "n commits, CPU s": "until the log's first checkpoint, after a hundred commits, `deltalake` does more for each commit the"
    " longer the log is; behind it the last step shows what a commit costs from then on (docs/decisions/0030)."
}
CHECKPOINTS: Final = dict.fromkeys(
    ("n operations one by one, CPU s", "n operations at once, CPU s", "one operation in the middle of n, CPU s"),
    "the calls of functions are linear, 52,000 for 1,000 operations and 1,093,000 for 20,000: checkpoints begin at 4,096 operations,"
    " each element is copied once when it changes behind one, and a document of a hundred thousand fits no cache.",
)
CURVES: Final[dict[str, Curve]] = {
    "keys": Curve(
        configurations.keys,
        (1_000, 3_162, 10_000, 31_623, 100_000),
        (316_228, 1_000_000, 10_000_000),
        reasons=Reasons({}, PAGES),
    ),
    "children": Curve(configurations.children, (10, 32, 100, 316, 1_000)),
    "simulated": Curve(fleets.simulated, (3, 10, 30, 100), (300, 500)),
    "segment": Curve(fleets.segment, (3, 10, 30, 100), (300,), reasons=Reasons(BEACONS | REMEMBERED)),
    "mesh": Curve(fleets.mesh, (3, 6, 12, 24), (48, 96), reasons=Reasons(LINKS)),
    "processes": Curve(fleets.processes, (3, 6, 12, 25), (50, 100, 200, 500), is_quiet=False, is_warmed=False),
    "entries": Curve(cores.entries, (1_000, 3_162, 10_000, 31_623, 100_000), (316_228, 1_000_000)),
    "services": Curve(cores.services, (10, 100, 1_000, 10_000, 50_000)),
    "namesakes": Curve(cores.namesakes, (10, 32, 100, 316, 1_000)),
    "documents": Curve(
        cores.documents, (1_000, 3_162, 10_000, 31_623, 100_000), (316_228, 1_000_000), reasons=Reasons({}, CHECKPOINTS)
    ),
    "commits": Curve(cores.commits, (10, 32, 100, 316), (1_000,), is_warmed=False, reasons=Reasons({}, LOG)),
}


def seen_of(name: str, curve: Curve, asked: argparse.Namespace, words: Iterable[str]) -> Seen:
    """Measure one curve."""
    sizes = tuple(size for size in (*curve.sizes, *(curve.whole if asked.whole else ())) if size <= asked.max)
    if curve.is_warmed and sizes:
        curve.measure(sizes[0], Meter())
    costs: dict[str, dict[int, float]] = {}
    for size in sizes:
        began = time.monotonic()
        least = measured(curve.measure, size, 1)
        if asked.rounds > 1 and curve.is_quiet and time.monotonic() - began < QUICK_S:
            again = measured(curve.measure, size, asked.rounds - 1)
            least = {what: min(cost, again[what]) for what, cost in least.items()}
        for what, cost in least.items():
            costs.setdefault(what, {})[size] = cost
        print(f"  {size:,}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    about = " ".join((curve.measure.__doc__ or "").split())
    system = f"Python {platform.python_version()}, {load()}"
    how = f"{time.strftime('%d %b %Y', time.gmtime())}, {system}: `python -m bench.curves {' '.join([name, *words])}`"
    return Seen(name, about, how, sizes, costs, curve.reasons)


def more(seen: Seen) -> list[str]:
    """Costs that grow faster than n log n, though nothing forces them to."""
    return [what for what, points in seen.costs.items() if word_of(what, fit_of(what, points), seen.reasons) == "MORE"]


def main(words: list[str] | None = None) -> None:
    """Measure the named curves, or all that need no sockets."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CURVES))
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--max", type=int, default=10**9)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args(words)
    if unknown := set(asked.names) - set(CURVES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if "processes" in asked.names:
        enter_own_network()
    flags = [word for word in sys.argv[1:] if word not in CURVES and word != "--write"]
    found = []
    for name in asked.names or [name for name, curve in CURVES.items() if curve.is_quiet]:
        found.append(seen_of(name, CURVES[name], asked, flags))
        print(section_of(found[-1]), flush=True)
        if asked.write:
            page = page_of(PAGE.read_text("utf-8") if PAGE.exists() else "", found, list(CURVES))
            PAGE.write_text(page, "utf-8")
            PLOT.write_text(plot_of(exponents_of(page)), "utf-8")
    print(f"more than n log n: {', '.join(f'{s.name}: {what}' for s in found for what in more(s)) or 'nothing'}")


if __name__ == "__main__":
    main()
