"""Round after round nodes of the store are killed, stopped for a while, or told to end: all agree, and nothing is lost."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from tests.fabric.fabric import Fabric
from tests.fabric.storehands import Ack, Eye, Hand, Hands, Seen
from tests.fabric.test_chain_rounds import script_of
from weft.base.chance import Chance
from weft.base.changes import Chain, Event, Link
from weft.base.changes import Path as StorePath
from weft.base.records import Stream, StreamRecord
from weft.cli.asking import order
from weft.cores.store import memory
from weft.shell.journal import JournalReader
from weft.store import MISSING

TREE = {"root": "", "collector-1": "root", "sensor-1": "collector-1", "sensor-2": "root"}
MORE = TREE | {"sensor-3": "collector-1"}
"""By default, and with `--soak`."""
WRITERS = ("root", "sensor-1", "sensor-2", "sensor-3")
WATCHED = ("collector-1", "sensor-2")
KINDS = ("kill", "pause", "end", "two", "some", "pauses", "again", "all")
"""What a round does: one is killed, stopped for a while, told to end; two are killed, some are; some are stopped for a
while; one is killed when it has just come back; all are killed."""
ROUNDS, NIGHT = 3, 18
"""By default, and with `--soak`."""
SETTLED_S = 60.0
STORE = """
[store]
clock = "0.5s"
"""


class Houses(Fabric):
    """Every node holds the store; the root founds it."""

    def settings(self, name: str, port: int, state: Path) -> str:
        text = super().settings(name, port, state) + STORE
        return text + ('found = "home"\n' if name == "root" else "")

    def of(self, name: str) -> dict[str, Any]:
        """What the store of a node says of itself."""
        return dict(self.status(name).get("cores", {}).get("store", {}))

    def is_whole(self, name: str) -> bool:
        """Whether it serves, reaches all others, and lacks nothing."""
        store = self.of(name)
        return bool(store.get("serves")) and not store["missing"] and store["members"] == len(self.parents) - 1


class Rounds:
    """A fabric, its clients, and what is done to it."""

    def __init__(self, fabric: Houses, chance: Chance, pause_s: float) -> None:
        self.fabric, self.chance = fabric, chance
        self.said: list[str] = []
        self.trees: dict[str, dict[StorePath, Any] | None] = {}
        self.names = list(fabric.parents)
        writers = [name for name in WRITERS if name in self.names]
        hands = [Hand(name, fabric.place / name, Chance(f"{chance.random()}"), pause_s) for name in writers]
        self.hands = Hands(hands, [Eye(name, fabric.place / name) for name in WATCHED])

    # Hitting

    def wait(self, span_s: float) -> None:
        ends_at = time.monotonic() + span_s
        self.fabric.until(lambda: time.monotonic() >= ends_at, "time passes")

    def play(self, kind: str, pause_s: float) -> None:
        """Hit; sometimes what was hit has come back before the next round."""
        names = self.names
        count = {"two": 2, "some": 3, "pauses": 3, "all": len(names)}.get(kind, 1)
        victims = self.chance.sample(names, count)
        self.said.append(f"{time.time():.3f} {kind} {' '.join(victims)}")
        if kind.startswith("pause"):
            self.pause(victims, pause_s)
        elif kind == "end":
            self.end(victims)
        else:
            for victim in victims:
                self.fabric.kill(victim)
        if kind == "again":
            self.fabric.until(lambda: bool(self.fabric.status(victims[0])), f"{victims[0]} is back")
            self.fabric.kill(victims[0])
        if self.chance.random() < 0.6:
            self.fabric.until(lambda: all(map(self.fabric.is_whole, names)), f"all are back after {victims}")
        self.wait(self.chance.uniform(0.2, 1.5))

    def pause(self, victims: list[str], span_s: float) -> None:
        processes = [self.fabric.member(victim).process for victim in victims]
        living = [process for process in processes if process is not None and process.poll() is None]
        for process in living:
            process.send_signal(signal.SIGSTOP)
        self.wait(span_s)
        for process in living:
            process.send_signal(signal.SIGCONT)

    def end(self, victims: list[str]) -> None:
        """In order; it is started again."""
        processes = [self.fabric.member(victim).process for victim in victims]
        for process in processes:
            if process is not None and process.poll() is None:
                process.terminate()
        self.fabric.until(lambda: all(each is None or each.poll() is not None for each in processes), "the end")

    # Coming to rest

    def settle(self) -> None:
        """Nobody writes any more; all become equal, and the watchers have seen it."""
        self.hands.rest()
        self.fabric.until(self.are_equal, "all hold the same", SETTLED_S)
        self.fabric.until(self.have_seen, "the watchers have seen it")

    def are_equal(self) -> bool:
        if not all(map(self.fabric.is_whole, self.names)):
            return False
        self.trees = {name: self.hands.tree(self.fabric.place / name) for name in self.names}
        first = self.trees["root"]
        return first is not None and all(tree == first for tree in self.trees.values())

    def have_seen(self) -> bool:
        there = {path: chain.head for path, (value, chain, _) in self.whole().items() if value is not MISSING}
        return all(eye.view == there for eye in self.hands.eyes)

    def whole(self) -> dict[StorePath, Any]:
        """What all hold."""
        return self.trees["root"] or {}

    def conflicts(self) -> set[Link]:
        """What the nodes say that has lost."""
        rows = [
            row
            for name in self.names
            for row in order(self.fabric.ports[name], "store-show", what="conflicts")["conflicts"]
        ]
        return {(row["lost"]["node"], row["lost"]["tick"]) for row in rows}


class Kept(NamedTuple):
    """A change as it stands in a journal."""

    lsn: int
    event: Event
    is_shown: bool


class Book(NamedTuple):
    """The store in one node's journal."""

    kept: list[Kept]
    own: list[int]
    """Ticks, as they were taken."""
    lost: set[Link]
    damages: int
    purged: set[StorePath]
    """Entries that went as copies of something forgotten."""


def read_book(journal: Path, name: str) -> Book:
    """What a journal holds of the store."""
    reader = JournalReader(journal)
    assert reader.first_lsn == 1, "nothing of it is forgotten yet"
    book = Book([], [], set(), 0, set())
    for lsn, record in reader.entries():
        event = memory.event_of(record, {name})
        if event is not None:
            book.kept.append(Kept(lsn, event, memory.shown(record, {name}) is not None))
            if isinstance(record, StreamRecord):
                book.own.append(event.tick)
        elif isinstance(record, StreamRecord) and record.stream == Stream.EVENTS and record.key == "store.conflict":
            lost = json.loads(record.payload)["lost"]
            book.lost.add((lost["node"], lost["tick"]))
        elif (stale := memory.stale_of(record)) is not None:
            book.purged.add(stale.path)
    return book


class Verdict:
    """All that is wrong, from the journals, the trees, the lake and what clients heard."""

    def __init__(self, books: dict[str, Book], whole: dict[StorePath, Any], lost: set[Link]) -> None:
        self.books, self.whole = books, whole
        self.lost = lost.union(*(book.lost for book in books.values()))
        self.events: dict[Link, Event] = {}
        for book in books.values():
            for _, event, _ in book.kept:
                known = self.events.get(event.chain.head)
                if known is None or len(event.chain.links) > len(known.chain.links):
                    self.events[event.chain.head] = event
        self.fine = self._fine()

    def _fine(self) -> set[Link]:
        """Changes whose fate is known, newest first: each makes those fine that its author had seen."""
        there = {chain.head for _, chain, _ in self.whole.values()}
        fine: set[Link] = set()
        later: dict[StorePath, list[Chain]] = {}
        for event in sorted(self.events.values(), key=_order, reverse=True):
            link, above = event.chain.head, later.setdefault(event.path, [])
            is_forgotten = event.value is None and event.path not in self.whole
            if link in there or link in self.lost or is_forgotten or any(chain.covers(link) for chain in above):
                above.append(event.chain)
                fine.add(link)
        return fine

    def wrong(self, acks: list[Ack]) -> Iterator[str]:
        for name, book in self.books.items():
            yield from wrong_ticks(name, book)
            yield from wrong_order(name, book)
        for path, chain, value, over in acks:
            known = self.events.get(chain.head)
            if known is None:
                yield f"{chain.head} at {path} was acknowledged, and stands in no journal"
            elif chain.head not in self.fine:
                yield f"{chain.head} at {path} ({value}) was acknowledged and is lost without a word"
            elif isinstance(over, tuple) and not known.chain.covers(over):
                yield f"{chain.head} at {path} was written over something else than {over}"
        yield from self.wrong_tree()

    def wrong_tree(self) -> Iterator[str]:
        greatest: dict[StorePath, Event] = {}
        for event in self.events.values():
            best = greatest.get(event.path)
            if best is None or event.beats(best):
                greatest[event.path] = event
        for path, event in greatest.items():
            held = self.whole.get(path)
            if held is None and event.value is not None:
                yield f"{path} is gone, and should be {event.chain.head}"
            elif held is not None and held[1].head != event.chain.head:
                yield f"{path} is {held[1].head}, and should be {event.chain.head}"


def _order(event: Event) -> tuple[int, int, bytes]:
    """The greatest stands: tock, tick, then the lower name (STO-010)."""
    return event.tock, event.tick, bytes(255 - byte for byte in event.node.encode()) + b"\xff"


def wrong_ticks(name: str, book: Book) -> Iterator[str]:
    """A node's own ticks are 1, 2, 3 …, each once (P11)."""
    if book.own != list(range(1, len(book.own) + 1)):
        at = next(index for index, tick in enumerate(book.own) if tick != index + 1)
        yield f"{name} took tick {book.own[at]} as its number {at + 1}"


def wrong_order(name: str, book: Book) -> Iterator[str]:
    """What a node shows of an entry grows, so that nothing deleted comes back (CHK-011)."""
    last: dict[StorePath, Event] = {}
    for lsn, event, is_shown in book.kept:
        if is_shown:
            before = last.get(event.path)
            if before is not None and before.chain.head != event.chain.head and not event.beats(before):
                yield f"{name} shows {event.chain.head} at {lsn} behind {before.chain.head} of {event.path}"
            last[event.path] = event


def wrong_watch(eye: Eye, book: Book) -> Iterator[str]:
    """A watcher is shown the history of its node: nothing lost, doubled, or out of order (CLN-010)."""
    if not eye.seen:
        return
    shown = [
        Seen(lsn, event.path, event.chain.head, event.value is None)
        for lsn, event, is_shown in book.kept
        if is_shown and lsn >= eye.seen[0].lsn
    ]
    if "gap" in eye.marks:
        yield f"the watcher of {eye.node} was told of a gap"
    elif shown != eye.seen:
        missed, more = set(shown) - set(eye.seen), set(eye.seen) - set(shown)
        doubled = [each for each, count in Counter(eye.seen).items() if count > 1]
        yield f"the watcher of {eye.node} missed {sorted(missed)[:3]}, saw {sorted(more)[:3]} besides, {doubled[:3]} twice"


def wrong_rows(lake: Path, books: dict[str, Book]) -> Iterator[str]:
    """Every own change is a row of the lake, once."""
    files = sorted((lake / "drain" / "store").rglob("*.parquet"))
    rows = [row for path in files for row in pq.read_table(path, columns=["origin", "sequence"]).to_pylist()]
    there = Counter((row["origin"], row["sequence"]) for row in rows)
    due = {(name, tick) for name, book in books.items() for tick in book.own}
    yield from (f"not in the lake: {each}" for each in sorted(due - there.keys()))
    yield from (f"in the lake, and nobody's: {each}" for each in sorted(there.keys() - due))
    yield from (f"{count} times in the lake: {each}" for each, count in there.items() if count > 1)


@pytest.mark.prove("rounds of kills")
@pytest.mark.proves("STO-012", "STO-030", "STO-031", "STO-032", "HEA-006", "CLN-010", "DEL-005", "LNK-020")
def test_whoever_dies_or_sleeps_all_stores_become_equal_and_no_write_is_lost(tmp_path: Path, *, soak: bool) -> None:
    chance = Chance(os.environ.get("WEFT_SEED", "store rounds"))
    with Houses(tmp_path, MORE if soak else TREE) as fabric:
        rounds = Rounds(fabric, chance, 0.02 if soak else 0.05)
        fabric.until(lambda: all(map(fabric.is_whole, rounds.names)), "all have joined")
        rounds.hands.start()
        for kind in script_of(KINDS, NIGHT if soak else ROUNDS, chance):
            rounds.play(kind, chance.uniform(2, 8 if soak else 3))
        rounds.settle()
        lost = rounds.conflicts()
        rounds.hands.end()
        fabric.stop()
        books = {name: read_book(tmp_path / name / "journal", name) for name in rounds.names}
        hands, eyes = rounds.hands.hands, rounds.hands.eyes
        wrong = list(Verdict(books, rounds.whole(), lost).wrong([ack for hand in hands for ack in hand.acks]))
        wrong += [each for hand in hands for each in hand.strange]
        wrong += [each for eye in eyes for each in wrong_watch(eye, books[eye.node])]
        wrong += wrong_rows(fabric.lake, books)
        assert [] == wrong, rounds.said
        assert all(hand.acks for hand in hands)
        assert all(eye.seen for eye in eyes)
        (tmp_path / "summary").write_text(summary(rounds, books), "utf-8")


def summary(rounds: Rounds, books: dict[str, Book]) -> str:
    """How much was tried."""
    acks = sum(len(hand.acks) for hand in rounds.hands.hands)
    lost = {link for book in books.values() for link in book.lost}
    seen = sum(len(eye.seen) for eye in rounds.hands.eyes)
    return f"{len(rounds.said)} rounds, {acks} writes, {len(lost)} lost a conflict, {seen} changes seen, {len(rounds.whole())} entries"


def test_the_judge_finds_what_is_lost_doubled_risen_or_not_shown() -> None:
    def event(tock: int, value: bytes | None, *links: Link) -> Event:
        return Event(Chain(links), tock, ("p",), value)

    first, second, gone = event(1, b"\x01", ("a", 1)), event(2, b"\x02", ("b", 1), ("a", 1)), event(3, None, ("a", 2))
    book = Book([Kept(1, first, is_shown=True), Kept(2, gone, is_shown=True)], [1, 2], set(), 0, set())
    other = Book([Kept(1, second, is_shown=True)], [1], set(), 0, set())
    books = {"a": book, "b": other}
    held: dict[StorePath, Any] = {("p",): (MISSING, gone.chain, 3)}
    acks = [Ack(("p",), each.chain, None, MISSING) for each in (first, second, gone)]
    assert ["('b', 1) at ('p',) (None) was acknowledged and is lost without a word"] == [
        each for each in Verdict(books, held, set()).wrong(acks) if "('b', 1)" in each
    ]
    assert [] == list(Verdict(books, held, {("b", 1)}).wrong(acks))
    risen: dict[StorePath, Any] = {("p",): ("x", second.chain, 2)}
    assert ["('p',) is ('b', 1), and should be ('a', 2)"] == list(Verdict(books, risen, {("a", 2)}).wrong_tree())
    back = Book([*book.kept, Kept(3, second, is_shown=True)], [1, 2], set(), 0, set())
    assert ["a shows ('b', 1) at 3 behind ('a', 2) of ('p',)"] == list(wrong_order("a", back))
    assert ["a took tick 3 as its number 2"] == list(wrong_ticks("a", book._replace(own=[1, 3])))
    never = Ack(("p",), Chain((("c", 1),)), None, MISSING)
    assert ["('c', 1) at ('p',) was acknowledged, and stands in no journal"] == list(
        Verdict(books, held, {("b", 1)}).wrong([never])
    )
    eye = Eye("a", Path())
    eye.seen = [Seen(1, ("p",), ("a", 1), is_deleted=False)]
    assert ["the watcher of a missed [Seen(lsn=2"] == [each[:35] for each in wrong_watch(eye, book)]
    eye.seen.append(Seen(2, ("p",), ("a", 2), is_deleted=True))
    assert [] == list(wrong_watch(eye, book))
