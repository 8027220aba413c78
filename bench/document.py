"""Documents beside pycrdt, loro and automerge (DOC-060 to DOC-061): the fold, what is late, how it grows, bytes.

    scripts/bench-install
    .venv/bin/python -m bench.document [--operations 20000] [--rounds 5]

The same edits of sixteen sources for all, in the same process, taking turns; medians of CPU time, so that a busy machine
spoils less of it. The collector of garbage rests.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from bench.peers import crdts
from bench.peers.crdts import Edit, Peer
from weft.cores.document.fold.engine import Engine
from weft.cores.document.fold.schema import Schema
from weft.wire.document.operations import Operation, Stamp, emit, parse
from weft.wire.document.xml import Node, Payload

SOURCES: Final = 16
BEGAN: Final = 1_763_800_000.0
PACE_S: Final = 7_200 / 20_000
"""A bout of two hours has 20,000 entries."""
LATE_S: Final = 20.0


class Figure(NamedTuple):
    """One line of the table; `goal`: what DOC-060 and DOC-061 ask."""

    what: str
    goal: str
    seen: str
    is_met: bool | None


def source_of(number: int) -> bytes:
    return bytes.fromhex(f"a{number:07x}000040008000{number:012x}")


def body_of(edit: Edit, sequence: int, at: float) -> bytes:
    """The same edit as an operation."""
    stamp = Stamp(source_of(edit.source), at, sequence)
    if edit.kind == "add":
        reference = {"period": str(edit.place[0]), "jam": str(edit.place[1])}
        node = Node(edit.tag, {"eid": edit.eid, edit.name: edit.value})
        return emit("add", reference, stamp, Payload("", [node], {}))
    reference = {"eid": edit.eid}
    if edit.kind == "set":
        return emit("set", reference, stamp, Payload("", [], {edit.name: edit.value}))
    return emit(
        "add" if edit.kind == "text" else "remove",
        reference,
        stamp,
        Payload(edit.value if edit.kind == "text" else "", [], {}),
    )


def bodies_of(edits: list[Edit]) -> list[bytes]:
    """In order of keys, each source's from 1."""
    sequences = [0] * SOURCES
    bodies = []
    for number, edit in enumerate(edits):
        sequences[edit.source] += 1
        bodies.append(body_of(edit, sequences[edit.source], BEGAN + round(number * PACE_S, 3)))
    return bodies


def seconds(way: Callable[[], object]) -> float:
    """Of CPU, of one run, with the collector at rest."""
    gc.collect()
    gc.disable()
    began = time.process_time()
    way()
    taken = time.process_time() - began
    gc.enable()
    return taken


def medians(ways: list[Callable[[], object]], rounds: int) -> list[float]:
    """Seconds of each way, all taking turns."""
    taken = [[seconds(way) for way in ways] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


SCHEMA: Final = Schema.load("derby")


def one_by_one(operations: list[Operation]) -> Engine:
    """As they come in a quiet session: a batch each."""
    engine = Engine(SCHEMA)
    for operation in operations:
        engine.insert([operation])
    return engine


def at_once(operations: list[Operation]) -> Engine:
    """As they come at a start."""
    engine = Engine(SCHEMA)
    engine.insert(operations)
    engine.finish()
    return engine


def folding(operations: list[Operation], bodies: list[bytes], peers: list[Peer], rounds: int) -> list[Figure]:
    ways: list[Callable[[], object]] = [
        lambda: one_by_one(operations),
        lambda: at_once(operations),
        lambda: at_once([parse(body) for body in bodies]),
        *(peer.apply for peer in peers),
    ]
    single, whole, parsed, *others = medians(ways, rounds)
    count = len(operations)
    figures = [
        Figure(
            "fold of parsed operations, one by one", ">= 50,000/s", f"{count / single:,.0f}/s", count / single >= 50_000
        ),
        Figure("fold of parsed operations, at once", ">= 50,000/s", f"{count / whole:,.0f}/s", count / whole >= 50_000),
        Figure("parse and fold from bytes", ">= 20,000/s", f"{count / parsed:,.0f}/s", count / parsed >= 20_000),
    ]
    bars = {"loro": 1.0, "pycrdt": 0.2}
    for peer, taken in zip(peers, others, strict=True):
        ratio = (count / single) / (len(peer.updates) / taken)
        said = f"{ratio:.2f} ({len(peer.updates) / taken:,.0f}/s)"
        figures.append(Figure(f"fold beside {peer.name}", f">= {bars[peer.name]}", said, ratio >= bars[peer.name]))
    return figures


def lateness(operations: list[Operation], rounds: int) -> list[Figure]:
    """One operation that comes when all others are there."""
    near = one_late(operations, round(len(operations) - LATE_S / PACE_S), rounds)
    middle = one_late(operations, len(operations) // 2, rounds)
    first = one_late(operations, SOURCES, rounds)
    total, worst = max(middle[0], first[0]), max(middle[1], first[1])
    return [
        Figure(f"one operation {LATE_S:.0f} s late", "< 20 ms", f"{near[0] * 1e3:.1f} ms", near[0] < 0.02),
        Figure("any late operation, in all", "< 1 s", f"{total:.2f} s", total < 1.0),
        Figure("any late operation, longest slice", "< 100 ms", f"{worst * 1e3:.0f} ms", worst < 0.1),
    ]


def one_late(operations: list[Operation], place: int, rounds: int) -> tuple[float, float]:
    """Medians of all the seconds until it is in, and of the longest that anybody waits in one go."""
    late = parse(
        emit(
            "set",
            {"path": "venue"},
            Stamp(source_of(99), operations[place].timestamp + 0.001, 1),
            Payload("hall", [], {}),
        )
    )
    totals, worsts = [], []
    for _ in range(rounds):
        engine = at_once(operations)
        slices = [seconds(lambda: engine.insert([late]))]  # noqa: B023  # it is called at once
        while engine.is_behind:
            slices.append(seconds(engine.work))
        totals.append(sum(slices))
        worsts.append(max(slices))
    return statistics.median(totals), statistics.median(worsts)


def growth(operations: list[Operation], rounds: int) -> list[Figure]:
    """Ten times the log (DOC-060), beside ten logs of a tenth, so that both are measured as long."""
    tenth = operations[: len(operations) // 10]
    ten, large = medians([lambda: [one_by_one(tenth) for _ in range(10)], lambda: one_by_one(operations)], rounds)
    times = 10 * large / ten
    return [Figure("ten times the log, one by one", "<= 12 times", f"{times:.1f} times", times <= 12)]


def weight(bodies: list[bytes], peers: list[Peer]) -> list[Figure]:
    mean = sum(map(len, bodies)) / len(bodies)
    figures = []
    for peer in peers:
        theirs = sum(map(len, peer.updates)) / len(peer.updates)
        bar, is_met = ("<= 6", mean / theirs <= 6) if peer.name == "pycrdt" else ("-", None)
        said = f"{mean / theirs:.1f} ({mean:.0f} / {theirs:.0f} B; all at once {len(peer.whole) / len(bodies):.0f} B)"
        figures.append(Figure(f"bytes of an operation beside an update of {peer.name}", bar, said, is_met))
    return figures


def jams() -> Figure:
    """Two sources, apart, each enter jam 1."""
    two = [parse(emit("add", {"period": "1", "jam": "1"}, Stamp(source_of(number), BEGAN, 1))) for number in (1, 2)]
    root = at_once(two).root
    ours = sum(1 for period in root.children for child in period.children if child.tag == "jam")
    return Figure("jams where two make jam 1 apart", "1", f"{ours} (pycrdt: {crdts.jams_in_pycrdt()})", ours == 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    edits = list(crdts.edits(options.operations, SOURCES))
    bodies = bodies_of(edits)
    operations = [parse(body) for body in bodies]
    peers = [peer for peer in (crdts.pycrdt_of(edits, SOURCES), crdts.loro_of(edits, SOURCES)) if peer is not None]
    if len(peers) < 2:
        print("pycrdt and loro are not below var/peers/crdts: scripts/bench-install brings them\n")
    figures = [
        *folding(operations, bodies, peers, options.rounds),
        *lateness(operations, options.rounds),
        *growth(operations, options.rounds),
        *weight(bodies, peers),
        jams(),
    ]
    print(f"{options.operations:,} operations of {SOURCES} sources, medians of {options.rounds}\n")
    print("| measure | goal | seen | |\n|---|--:|--:|---|")
    for figure in figures:
        print(
            f"| {figure.what} | {figure.goal} | {figure.seen} | {('', 'met', 'MISSED')[0 if figure.is_met is None else 2 - figure.is_met]} |"
        )
    rate = crdts.automerge_rate(options.operations)
    if rate is not None:
        print(
            f"\nautomerge 0.1.2 puts {rate:,.0f} entries a second; its binding can neither change a document nor save it."
        )


if __name__ == "__main__":
    main()
