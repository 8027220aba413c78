"""The store, the catalog and documents: one core each, in this process."""

import gc
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from msgspec import Raw

from bench.catalog_pauses import Stage, register, second
from bench.document import LATE_S, PACE_S, SOURCES, at_once, bodies_of, one_by_one, source_of
from bench.growth.meter import Meter
from bench.peers.crdts import ATTRIBUTES, MIX, TAGS, Edit
from weft.base.chance import Chance
from weft.base.effects import Source
from weft.base.now import SECOND, Now
from weft.cores.catalog.limits import PER_NAME_MAX
from weft.cores.document.fold.engine import Engine
from weft.cores.store.core import Store
from weft.cores.store.messages import ClientCame, Found, LinkUp, StoreSettings
from weft.wire.document.operations import Operation, Stamp, emit, parse
from weft.wire.document.xml import Payload
from weft.wire.store.clients import Request
from weft.wire.store.pack import pack

NOW: Final = Now(SECOND, 1_795_227_299 * SECOND)
CLIENT: Final = Source("store-clients", b"c")
ROOM: Final = 1_000
"""Entries in one place of the store."""
SECONDS: Final = 3
SIBLINGS: Final = 10
"""Instances of a service of one name."""
DEEDS: Final = 100


# The store


def path_of(number: int) -> tuple[str, ...]:
    return ("bench", "home", f"room{number // ROOM}", f"temperature{number:08d}")


def store_of(entries: object = ()) -> Store:
    store = Store(StoreSettings(name="a"), Chance("growth"))
    store.restore(entries, NOW)  # type: ignore[arg-type]  # entries of a journal
    return store


def ask(store: Store, seq: int, action: str, **words: object) -> None:
    """A request that comes alone: a turn of its own."""
    store.receive(Request(seq=seq, action=action, **words), CLIENT, NOW)  # type: ignore[arg-type]  # as each action has them
    store.effects()
    store.deadline()


def entries(count: int, meter: Meter) -> None:
    """A store's node, n entries of four elements and 38 characters: set and got one by one by a client, which then asks for the
    whole tree; restored from its snapshot; and 100 changes and 100 deletions at the end.
    """
    store = store_of()
    store.command(LinkUp("mqtt"), NOW)
    store.command(Found(1, pack("home")), NOW)
    store.command(ClientCame(CLIENT.peer, "127.0.0.1:1", is_local=True), NOW)
    store.effects()
    value, other = Raw(pack("v" * 38)), Raw(pack("w" * 38))
    with meter.memory("n entries"), meter.cpu("n sets"):
        for number in range(count):
            ask(store, number + 1, "set_value", path=path_of(number), value=value)
    assert store.replica.tree.entries == count + 1
    with meter.cpu("n gets"):
        for number in range(count):
            ask(store, number + 1, "get_value", path=path_of(number))
    with meter.cpu("the whole tree"):
        ask(store, 1, "get_tree", path=("bench",))
        while store.serving.streams:
            store.wake(NOW)
            store.effects()
    with meter.cpu("n entries condensed"):
        records = list(enumerate(store.condense(), 1))
    with meter.cpu("n entries restored"):
        again = store_of(records)
    assert again.replica.tree.entries == count + 1
    with meter.cpu("100 changes and 100 deletions"):
        for number in range(DEEDS):
            path = path_of(number * count // DEEDS)
            ask(store, number + 1, "set_value", path=path, value=other)
            ask(store, number + 1, "delete_value", path=path)


# The catalog


def services(count: int, meter: Meter) -> None:
    """A broker, n services, ten of a name: registered, then three seconds in which each beats once a second, while 200 look-ups
    and 100 changes a second come; all names and all records at once; the list in pages.
    """
    _broker([(f"kind{number // SIBLINGS:05d}", f"s{number}") for number in range(count)], meter)


def namesakes(count: int, meter: Meter) -> None:
    """The same with n services of a single name, of which a broker takes 1,000."""
    assert count <= PER_NAME_MAX
    _broker([("kind", f"s{number}") for number in range(count)], meter)


def _broker(names: list[tuple[str, str]], meter: Meter) -> None:
    stage = Stage(0)
    stage.names = names
    with meter.memory("n services"):
        register(stage)
    for number in range(SECONDS):
        second(stage, Chance(f"deeds {number}"), stage.names, number)
    stage.say("all names at once", b"u_U", kind="REQ 127.0.0.1")
    stage.say("all records at once", b"u_U", b"dbp.query", b"{}", kind="REQ 127.0.0.1")
    stage.say("a page of the list", b"u_U", b"dbp.list", b"{}", kind="REQ 127.0.0.1")
    assert len(stage.core.book) == len(names)
    told = {
        "registrations": "n registrations",
        "datagrams of 16 beats": "3 beats of each",
        "wake-ups": "wake-ups of 3 s",
        "lookups": "600 look-ups",
        "updates": "300 changes",
    }
    for what, steps in stage.steps.items():
        meter.add(f"{told.get(what, what)}, CPU s", sum(steps.ms) / 1e3)


# Documents


def edits(count: int) -> Iterator[Edit]:
    """The mix of bench/document.py; what is edited is any element that is there."""
    draw, known = random.Random(f"growth {count}"), list[str]()
    kinds, weights = [kind for kind, _ in MIX], [weight for _, weight in MIX]
    for number in range(count):
        kind = draw.choices(kinds, weights)[0] if known else "add"
        if kind == "add":
            eid = f"e{draw.getrandbits(28):07x}-0000-4000-8000-{number:012d}"
            known.append(eid)
        else:
            at = draw.randrange(len(known))
            eid = known[at]
            if kind == "remove":
                known[at], known[-1] = known[-1], known[at]
                known.pop()
        place = (1 + (number * 2) // count, 1 + (number * 40) // count)
        tag, name, value = draw.choice(TAGS), draw.choice(ATTRIBUTES), str(draw.randint(0, 99))
        yield Edit(number % SOURCES, kind, eid, place, tag, name, value)


def late(operations: list[Operation], ago: int) -> Operation:
    """Of a source that nobody knew, behind all but the last so many."""
    at = operations[max(0, len(operations) - ago)].timestamp + 0.001
    return parse(emit("set", {"path": "venue"}, Stamp(source_of(99), at, 1), Payload("hall", [], {})))


def documents(count: int, meter: Meter) -> None:
    """n operations of 16 sources over as many hours as they take at 10,000 an hour: folded one by one and at once; then one that
    is 20 s late, and one in the middle of all.
    """
    operations = [parse(body) for body in bodies_of(list(edits(count)))]
    with meter.memory("the document, besides its operations"), meter.cpu("n operations one by one"):
        engine = one_by_one(operations)
    assert engine.operations == count
    with meter.cpu("one operation 20 s late"):
        _take(engine, late(operations, round(LATE_S / PACE_S)))
    with meter.cpu("the changes since then"):
        engine.changes()
    del engine
    gc.collect()
    with meter.cpu("n operations at once"):
        engine = at_once(operations)
    with meter.cpu("one operation in the middle of n"):
        _take(engine, late(operations, count // 2))
    assert engine.operations == count + 1


def _take(engine: Engine, operation: Operation) -> None:
    engine.insert([operation])
    engine.finish()


# The log of a table


def commits(count: int, meter: Meter) -> None:
    """A table of the lake, n commits of one file with one row each, as a driver makes them: a checkpoint of the log after each
    hundred, nothing joined. Then it is opened anew, as whoever reads it does. CPU time is that of `deltalake`'s threads, too.
    """
    from deltalake import DeltaTable

    from bench.lake_tables import rows_of
    from weft.lake.layout import Layout
    from weft.lake.segments import open_lake
    from weft.pipeline.delta import Tables
    from weft.pipeline.tables import SAMPLES
    from weft.pipeline.writer import Writer

    with TemporaryDirectory() as home:
        lake = Layout(Path(home))
        open_lake(lake, "ab" * 16, 1)
        tables, row = Tables(lake, cast("Any", None), Writer("samples", "growth", 1)), rows_of(1, 1)
        tables.handle(SAMPLES)
        tables.commit(SAMPLES, 0, tables.write_rows(SAMPLES, row, 0), {})
        files = [tables.write_rows(SAMPLES, row, number + 1) for number in range(count)]
        with meter.cpu("n commits"):
            for number, written in enumerate(files, 1):
                tables.commit(SAMPLES, number, written, {})
        with meter.cpu("opened anew"):
            handle = DeltaTable(tables.path(SAMPLES))
        with meter.cpu("its files listed"):
            assert len(handle.file_uris()) == count + 1
