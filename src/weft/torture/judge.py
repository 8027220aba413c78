"""Collects the final state of all nodes as facts, and lets `weft.checks` judge the whole history.

The plain clients ask replicas over the wire. Journals and segments are read from the disk when all processes have ended;
`weft lake check` compares the tables with the segments.
"""

import json
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import zmq

from weft.base.ranges import RangeSet
from weft.base.records import Stream, StreamRecord
from weft.base.vectors import VersionVector
from weft.checks import FIELD_CHECKERS, judge_all
from weft.checks.history import Fact
from weft.lake.layout import STREAMS, Layout
from weft.lake.manifest import ERA_END, Manifest, origin_of
from weft.lake.reader import Follower
from weft.shell.journal import JournalReader
from weft.torture import limits
from weft.torture.book import Book
from weft.torture.clients import SESSION, Away, DocumentLink, Machine, StoreLink, ask, listed
from weft.torture.files import BROKER, DOCUMENTS, FAR, FAR_NET, FLEET_NAME, STORES, broker_port
from weft.torture.lookers import registers
from weft.torture.plan import COLLECTORS, NODES, ROOT

KEYS: Final = "/app/torture/"
MARK: Final = ' n="'
ATTRIBUTE: Final = re.compile(r' (\w+)="([^"]*)"')
PAGE: Final = 1_000
BODIES: Final = "all operations"
SHOWN: Final = "the document"
NUMBERS: Final = "numbers by source"
ABOUT: Final = (BODIES, SHOWN, NUMBERS)
"""Facts of a document besides its notes: digests of its log and of the shown document, and the log's numbers by source."""
ROAD: Final = (Stream.SAMPLES, Stream.EVENTS, Stream.CATALOG, Stream.STORE, Stream.DOCUMENTS)
"""Streams whose numbers have no holes. Messages are judged by the statuses that their senders got."""
LATE: Final = (Stream.EVENTS, Stream.CATALOG)
"""The streams of these to which nodes write while they end."""


def digest(held: Any) -> str:
    """A digest of a replica's contents."""
    return blake2b(json.dumps(held, sort_keys=True).encode(), digest_size=16).hexdigest()


# Replicas; each of these functions runs in a thread on the machine


def configuration_of(at: Machine, _: "zmq.Context[Any]") -> dict[str, Any]:
    """All keys that clients wrote."""
    found: dict[str, Any] = {}
    after = ""
    while True:
        order = {"order": "list", "subtree": KEYS, "count": PAGE, "after": after}
        status, answer = ask(at, "/order", order)
        if status != 200:
            raise Away(str(answer))
        for key, _number, value in answer["pairs"]:
            found[key] = json.loads(value) if isinstance(value, str) else value
            after = key
        if not answer.get("is_more"):
            return found


def registers_of(at: Machine, _: "zmq.Context[Any]") -> dict[str, Any]:
    """The values that clients replaced in turn."""
    return {key: value for key, (_, value) in registers(at).items()}


def store_of(at: Machine, _: "zmq.Context[Any]") -> dict[str, Any]:
    """All entries that clients wrote."""
    link = StoreLink(at)
    try:
        return link.tree("t")
    finally:
        link.close()


def document_of(at: Machine, context: "zmq.Context[Any]") -> dict[str, Any]:
    """How often each note is in the log, and the other facts of the document (`ABOUT`)."""
    link = context.socket(zmq.DEALER)
    link.setsockopt(zmq.LINGER, 0)
    try:
        link.connect((at.state / "doc.endpoint").read_text("utf-8").strip())
        asked = DocumentLink(link)
        counted = Notes()
        bodies: dict[str, str] = {}
        numbers: dict[str, RangeSet] = {}
        start = 0
        while True:
            (answer,) = asked.ask("log", {"from": start, "limit": PAGE})
            if answer.get("code"):
                raise Away(str(answer))
            for operation in answer["body"]["operations"]:
                counted.take(operation)
                bodies[f"{operation['source']}:{operation['sequence']}"] = digest(operation["body"].hex())
                numbers.setdefault(str(operation["source"]), RangeSet()).add(operation["sequence"])
            start = answer["body"]["next"]
            if start is None or start >= answer["body"]["total"]:
                (shown,) = asked.ask("digest", {})
                ranges = {source: list(map(list, each)) for source, each in sorted(numbers.items())}
                return {**counted.counts, BODIES: digest(bodies), SHOWN: shown["body"]["digest"], NUMBERS: ranges}
    finally:
        link.close()


class Notes:
    """Counts the notes in a log; an operation and its adopted copies count once (DOC-013)."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._known: set[tuple[str, str]] = set()

    def take(self, operation: dict[str, Any]) -> None:
        """The next operation of the log."""
        first_tag = operation["body"].decode("utf-8", "replace").partition(">")[0]
        attributes: dict[str, str] = dict(ATTRIBUTE.findall(first_tag))
        whose = (
            attributes.get("origsource", attributes.get("source", "")),
            attributes.get("origsequence", attributes.get("sequence", "")),
        )
        if whose not in self._known:
            self._known.add(whose)
            self.counts.update(notes_in(operation))


def notes_in(operation: Any) -> Iterator[str]:
    """The names of notes in an operation."""
    if isinstance(operation, bytes):
        operation = operation.decode("utf-8", "replace")
    if isinstance(operation, str):
        for piece in operation.split(MARK)[1:]:
            yield piece.partition('"')[0]
    elif isinstance(operation, dict):
        for value in operation.values():
            yield from notes_in(value)
    elif isinstance(operation, list | tuple):
        for value in operation:
            yield from notes_in(value)


def keys_of(at: Machine, _: "zmq.Context[Any]") -> dict[str, Any]:
    """The keys that a node knows, by name."""
    status, answer = ask(at, "/order", {"order": "keys"})
    if status != 200:
        raise Away(str(answer))
    return {key["name"]: key["curve"] for key in answer["keys"]}


Look = Callable[[Machine, "zmq.Context[Any]"], dict[str, Any]]
REPLICAS: Final[dict[str, tuple[tuple[str, ...], Look]]] = {
    "configuration": ((ROOT, *COLLECTORS), configuration_of),
    "registers": ((ROOT, *COLLECTORS), registers_of),
    "store": (STORES, store_of),
    "documents": (DOCUMENTS, document_of),
    "keys": (NODES, keys_of),
}
"""By protocol: the nodes that hold all data, and the function that asks one."""


CATALOGS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "catalog": ((BROKER, ""),),
    "bridged": ((FAR, ""), (BROKER, f"@{FAR_NET}")),
}
"""By protocol: the brokers that list its services, and the ending of their names there."""


def catalog_of(at: Machine, context: "zmq.Context[Any]", names: list[str], behind: str = "") -> dict[str, Any]:
    """The services that the broker calls active."""
    found = listed(context, f"{at.inside}:{broker_port(at)}", [name + behind for name in names])
    return {name.removesuffix(behind): state for name, state in found.items()}


def note_replicas(book: Book, held: dict[str, dict[str, Any]]) -> None:
    """Note what all replicas hold, by protocol and node, and a digest of each."""
    for protocol, by_node in held.items():
        for node, values in by_node.items():
            book.note(node, "info", "state", [protocol, digest(values)])
            NOTES.get(protocol, note_replica)(book, protocol, node, values)


def note_replica(book: Book, protocol: str, node: str, values: dict[str, Any]) -> None:
    """Note everything that a node holds."""
    book.note(node, "info", "replica", [protocol, values])


def note_document(book: Book, protocol: str, node: str, values: dict[str, Any]) -> None:
    """Note a node's log, and the document that it shows."""
    counts = {key: count for key, count in values.items() if key not in ABOUT}
    note_replica(book, protocol, node, dict.fromkeys(counts, ""))
    book.note(node, "info", "log", [SESSION, [list(each) for each in values.get(NUMBERS, {}).items()]])
    book.note(node, "info", "document", [SESSION, values.get(BODIES, ""), values.get(SHOWN, "")])
    doubled = {key: count for key, count in counts.items() if count > 1}
    if doubled:
        book.strange.append(f"documents: {node} holds {len(doubled)} notes more than once: {doubled}")


def note_registers(book: Book, _: str, node: str, values: dict[str, Any]) -> None:
    """Note the final values of the shared keys as read at a node."""
    for number, (key, value) in enumerate(sorted(values.items())):
        book.note("", "invoke", "call", [f"reader at {node}", number, key, ["get"]])
        book.note("", "ok", "call", [f"reader at {node}", number, value])


NOTES: Final[dict[str, Callable[[Book, str, str, dict[str, Any]], None]]] = {
    "documents": note_document,
    "registers": note_registers,
    "keys": lambda *_: None,
}
"""How to note replicas of protocols that hold something else than the values that clients wrote."""


def note_members(book: Book, states: dict[str, Path], placed: dict[str, list[str]]) -> None:
    """Note who belongs to the fabric, by name and by UUID (which names its drain), and who is in the trees of roots.

    A node that lost its disk had another UUID before.
    """
    former = [fact.value[2] for fact in book.facts if fact.what == "rewound"]
    uuids = [json.loads((state / "node.json").read_text("utf-8"))["node"] for state in states.values()]
    book.note("", "info", "members", dict.fromkeys((*states, *uuids, *former), FLEET_NAME))
    for root, names in placed.items():
        for name in names:
            book.note(root, "event", "child-joined", [name])


# Journals and the lake


Taken = dict[Stream, VersionVector]


def taken_in(journals: list[Path]) -> Taken:
    """All numbers of the streams that go up in those of these journals that are there."""
    taken = {stream: VersionVector() for stream in ROAD}
    for journal in filter(Path.is_dir, journals):
        for _, record in JournalReader(journal).entries():
            if isinstance(record, StreamRecord) and record.stream in taken:
                taken[Stream(record.stream)].add(record.source, record.sequence, record.last)
    return taken


def note_road(book: Book, at_rest: Taken, at_end: Taken, lake: Path) -> None:
    """Note what was taken, by the journals, and what is in the lake's segments.

    Records about the end itself (events, services that left) may stay in the root's journal, which would drain them after
    its next start. So of these streams only the records from before the end are judged.
    """
    layout = Layout(lake)
    segments = [(drain, manifest) for stream in ROAD for drain, manifest in manifests_of(layout, stream)]
    taken = {stream: (at_rest if stream in LATE else at_end)[stream] for stream in ROAD}
    for _, manifest in segments:  # journals have forgotten safe records
        taken[_stream(manifest)].update(manifest.vector())
    for stream, vector in taken.items():
        for origin, numbers in vector:
            for first, last in numbers:
                book.note(str(origin), "durable", "taken", [int(stream), str(origin), first, last])
    for drain, manifest in segments:
        book.note(drain, "durable", "segment", segment_fact(manifest))


def _stream(manifest: Manifest) -> Stream:
    return Stream(STREAMS.index(manifest.stream) + 1)


def manifests_of(layout: Layout, stream: Stream) -> Iterator[tuple[str, Manifest]]:
    """All segments of a stream, drain by drain; each is verified to follow the one before it."""
    name = STREAMS[stream - 1]
    place = layout.drains(name)
    for drain in sorted(path.name for path in place.iterdir()) if place.is_dir() else ():
        follower = Follower(layout, name, drain)
        number = 1
        while (manifest := follower.manifest(number)) is not None:
            yield drain, manifest
            number += 1


def segment_fact(manifest: Manifest) -> list[Any]:
    """A segment in the form that checkers read."""
    claims = [
        [str(origin_of(name, era)), first, last] for name, era, ranges in manifest.ranges for first, last in ranges
    ]
    losses = [
        [str(origin_of(name, era)), first, last] for name, era, first, last, why in manifest.lost if why != ERA_END
    ]
    return [int(_stream(manifest)), manifest.number, claims, losses, []]


def note_messages(book: Book, lake: Path) -> None:
    """Note how often each message is in the lake's segments."""
    import pyarrow.parquet as pq

    rows: list[Row] = []
    for path in sorted((lake / "drain" / "messages").rglob("*.parquet")):
        drain = path.parent.parent.name
        for row in pq.read_table(path, columns=["origin", "era", "sequence", "key", "raw"]).to_pylist():
            if row["key"] == "t.mail":
                text = row["raw"].decode("utf-8", "replace")
                rows.append(Row(text, (row["origin"], row["era"], row["sequence"]), drain))
    book.note("lake", "info", "delivered", ["messages", counted(rows)])


class Row(NamedTuple):
    """A message in a segment."""

    text: str
    identity: tuple[str, int, int]
    drain: str


def counted(rows: list[Row]) -> dict[str, int]:
    """How often each text counts.

    A new root may drain again what the root before it has drained, under the same identity: the tables hold that once. A
    text counts twice if one drain has its identity twice, or if it has two identities.
    """
    by_drain = Counter((row.text, row.identity, row.drain) for row in rows)
    most: dict[tuple[str, tuple[str, int, int]], int] = {}
    for (text, identity, _), count in by_drain.items():
        most[text, identity] = max(count, most.get((text, identity), 0))
    found: Counter[str] = Counter()
    for (text, _), count in most.items():
        found[text] += count
    return dict(found)


def tables_differ(lake: Path) -> list[str]:
    """Where the tables differ from the segments, according to `weft lake check`."""
    from weft.pipeline.check import Check

    verdict = Check(Layout(lake)).run()
    if verdict.state == "equal":
        return []
    lines = [f"tables: {each.what} {each.ranges}"[:300] for each in verdict.differences]
    return lines or [f"tables: {verdict.state}, {verdict.waiting} segments wait"]


# What nodes say of each other

UNREST: Final = frozenset(
    {"topo.left", "root.election-called", "config.parent-silent", "carrier.parent-lost", "carrier.child-lost"}
    | {"store.link-down", "store.split", "doc.peer-gone", "bridge.down", "node.input-refused"}
)
"""Events that nothing but a fault may cause."""


def unrest(logs: list[Path]) -> list[str]:
    """How often each node reported that another one is gone, or would not be understood, although nothing befell them."""
    found: Counter[tuple[str, str]] = Counter()
    for log in logs:
        for line in log.read_text("utf-8", "replace").splitlines():
            with suppress(ValueError):
                event = json.loads(line)
                found[str(event.get("node")), str(event.get("event"))] += 1
    odd = sorted((node, event, count) for (node, event), count in found.items() if event in UNREST)
    return [f"calm: {node} reported {event} {count} times, and no fault was played" for node, event, count in odd]


# Memory


def grows(memory: list[tuple[float, int]], entries: Sequence[float] = ()) -> bool:
    """Whether a process used much more memory in the last quarter of the faults than in the third.

    The upper quartile of each quarter is compared, because a process that has just started is small. `entries`: when each
    entry of the document was acknowledged, in order, in seconds, if the node takes part in it. A document is held whole, so
    the process may grow by its entries.
    """
    if len(memory) < limits.MEMORY_NOTES_MIN or memory[-1][0] - memory[0][0] < limits.MEMORY_SPAN_S:
        return False
    quarter = len(memory) // 4
    sizes = [size - limits.ENTRY_BYTES * bisect(entries, at) for at, size in memory]
    before, last = (sorted(sizes[a:b]) for a, b in ((-2 * quarter, -quarter), (-quarter, None)))
    low, high = before[len(before) * 3 // 4], last[len(last) * 3 // 4]
    return high > low * limits.GROWTH and high - low > limits.GROWTH_BYTES


# The verdict


def verdict(history: list[Fact]) -> list[str]:
    """Every violation that `weft.checks` finds, one text each."""
    return [str(found) for found in judge_all([kind() for kind in FIELD_CHECKERS], history)]
