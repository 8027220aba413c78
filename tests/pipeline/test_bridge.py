"""The bridge (PIP-102): drained rows are in an answer before a driver has committed them, and are the rows that it commits."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

import weft.pipeline as weft
from tests.pipeline.conftest import CHANGES
from tests.pipeline.ground import (
    CPU,
    DRAIN,
    ERA,
    LOAD,
    MEM,
    NET,
    OTHER_DRAIN,
    SEEN,
    A,
    B,
    Ground,
    Plot,
    at_ms,
    event,
    lost,
    single,
    taken,
)  # fmt: skip
from tests.pipeline.plain import lake_of
from weft.base.chance import Chance
from weft.base.errors import UserError
from weft.base.records import Record, Stream, StreamRecord
from weft.cli.sql import freshness_line, sql
from weft.lake import retention
from weft.lake.files import LocalFiles
from weft.lake.importing.delimited import Reading
from weft.lake.importing.running import Wish, import_files
from weft.lake.layout import Layout
from weft.lake.manifest import Manifest, decode
from weft.lake.segments import append_segment
from weft.lake.series import SeriesDefinition
from weft.lake.stubs import read_manifest
from weft.pipeline.bridge import bridge, pending, silver, verdicts
from weft.pipeline.bridge.bridge import Freshness
from weft.pipeline.bridge.claims import Claims
from weft.pipeline.sql import Lake
from weft.pipeline.tables import EVENTS, SERIES, STAGES, Table
from weft.wire import samples
from weft.wire.store.path import pack_path

pytestmark = pytest.mark.prove("a lake that grows while it is asked")

NUMBERS = (
    "5",
    " 7 ",
    "+3",
    "-0",
    "1.5",
    "1e3",
    "",
    "x",
    "9223372036854775808",
    "1_0",
    "NaN",
    "inf",
    "-Infinity",
    "12d",
    ".5",
    "5.",
)
"""What may stand where a number should."""
LISTS = (
    '["a","b"]',
    "[1,2]",
    "[1,null]",
    "[]",
    "{}",
    "no json",
    '[["n",5]]',
    '[["n"],["m","x"]]',
    "null",
    '""',
    '["x",{"a":1}]',
    "[",
)
"""What may stand where a list should."""
TEXTS = ("", "a", "a.b", "é🦊", "x" * 1_025, "true", "\n", '"', "n1")
ATTRIBUTES: dict[str, dict[str, tuple[Any, ...]]] = {
    "samples": {"node": TEXTS, "group": TEXTS, "volatile": ("true", "x"), "step": ("a",)},
    "messages": {
        "node": TEXTS, "group": TEXTS, "depth": NUMBERS, "unsure": ("true", "false"), "via": LISTS,
        "frames": ("[1,2]", "[]", "no json", "null"), "fmt": ("raw", "text", "xml", "json", "msgpack", "odd"),
    },
    "events": {"node": TEXTS, "group": TEXTS, "level": TEXTS, "fmt": ("json",)},
    "store": {
        "path": (pack_path(("a", "b")), pack_path((1, True, None, "é", 1 << 70)), b"\xff", "x"),
        "chain": ([["n1", 3], ["é", 5]], [], "no", [["n", -1]]), "deleted": (False, True, "x"), "tock": (10, 1 << 62, "5"),
        "by": TEXTS,
    },
    "catalog": {
        "op": TEXTS, "instance": TEXTS, "state": TEXTS, "epoch": TEXTS, "reason": TEXTS, "health": TEXTS,
        "owner": TEXTS, "observed_ip": TEXTS, "net": TEXTS, "since": (1_795_227_300.5, *NUMBERS), "fmt": ("json",),
    },
    "logs": {"level": TEXTS, "fmt": ("json",)},
    "documents": {
        "eff": (1_795_227_300.5, *NUMBERS), "inert": TEXTS, "ts": TEXTS, "ref": TEXTS, "by": TEXTS, "osource": TEXTS,
        "oseq": NUMBERS, "from": TEXTS, "schema": TEXTS,
    },
    "configuration": {"deleted": (True, False), "who": TEXTS, "prev": NUMBERS},
}  # fmt: skip
"""Of each stream what its records may carry; any of it may be left out."""
ORIGINS: dict[str, tuple[Any, ...]] = {
    "documents": (f"G5/{A}", f"a/b\n/{B}", f"G5/{A}\n", "G5/short", f"/{A}"),
    "configuration": ("root",),
    "store": ("n1", "n2", "é" * 64),
}
LOG: dict[str, tuple[Any, ...]] = {
    "ts": (1_795_227_300.25, 5, "5", None, -1.5e300), "net": ("green", None), "level": ("INFO", None, 5),
    "service": ("s", None, {"a": [1]}), "instance": ("a", ""), "logger": ("", None), "message": ("hot", "", None, True),
    "seq": (1, "2", 1.5, 1 << 63, None), "fields": ({}, {"a": {"b": [1, 2.5]}}, None, "x"), "repeated": (4, None, -1),
    "lost": ({"from": 1, "to": 5}, {"from": "x"}, [], None, {}),
}  # fmt: skip
BODIES: dict[str, tuple[Any, ...]] = {
    "events": ({"node": "n", "name": "x", "number": 5}, {"key": 1.5, "number": "7"}, {"filter": {"a": 1}, "number": 1.5}, {"name": None}, [1], 5, {}),
    "catalog": ({"metadata": {"a": "b", "c": [1, {"d": None}], "e": None}}, {"metadata": 5}, {}, [1], "x", {"metadata": {}}),
    "messages": ({"b": 1, "a": [1.5, None]}, "text", 5),
    "store": (5, "x", {"a": b"\x00"}, [1, None], 1 << 63),
    "configuration": (1, "x", {"a": 1}),
}  # fmt: skip


def payload(chance: Chance, stream: str, attributes: dict[str, Any]) -> bytes:
    """What a record carries: often what it says, sometimes bytes that nobody can read, sometimes nothing."""
    if chance.random() < 0.1:
        return chance.choice((b"", b"\xc1", b"\xff\xfe", "é".encode()))
    if stream == "logs":
        said = {name: chance.choice(values) for name, values in LOG.items() if chance.random() < 0.9}
        if chance.random() < 0.6:
            said |= {"level": "INFO", "service": "s", "instance": "a", "message": "m"}
        return msgspec.json.encode([said] if chance.random() < 0.05 else said)
    if stream == "documents":
        return chance.choice((b"<set/>", b"", b"<add a='\xc3\xa9'/>"))
    body = chance.choice(BODIES[stream])
    is_json = stream in ("events", "catalog", "configuration") or attributes.get("fmt") == "json"
    return msgspec.json.encode(body) if is_json else msgspec.msgpack.encode(body)


def odd_record(chance: Chance, stream: str, number: int) -> StreamRecord:
    """A record of a stream; nothing in it is as it should be for certain."""
    said = {name: chance.choice(values) for name, values in ATTRIBUTES[stream].items() if chance.random() < 0.85}
    if chance.random() < 0.5:
        said |= {name: values[0] for name, values in ATTRIBUTES[stream].items()}
    at = received = at_ms(number) * 1_000_000 + chance.choice((0, 1, 999, 123_456_789))
    if chance.random() < 0.15:
        at = chance.choice((0, -1_500, at + 2 * 86_400_000_000_000, 946_684_800_000_000_000, at - 86_400_000_000_001))
    origin = chance.choice(ORIGINS.get(stream, (bytes.fromhex(A), bytes.fromhex(B), "a-name")))
    era = chance.choice((1, 2, None, 1 << 23)) if stream == "configuration" else chance.choice((ERA, ERA, None))
    key = chance.choice((*TEXTS, "k.l.m", "y" * 9_000))
    sequence = chance.choice((0, 1 << 41)) if chance.random() < 0.03 else number
    return StreamRecord(
        Stream[stream.upper()], origin, era, sequence, at, received, key, payload(chance, stream, said), said
    )


def odd_samples(chance: Chance, number: int) -> Record:
    """A few samples, in a batch or alone; values of every type, bytes that are none, definitions that collide."""
    origin = chance.choice((A, B))
    said: dict[str, Any] = {
        name: chance.choice(values) for name, values in ATTRIBUTES["samples"].items() if chance.random() < 0.3
    }
    if chance.random() < 0.15:
        at = at_ms(number) * 1_000_000
        odd: dict[str, Any] = {"at": chance.choice((at, 0, at + 2 * 86_400_000_000_000)), "received": at}
        return single(
            number, chance.choice((b"\xc1", b"\xa3abc", b"\x05", b"\xcb\x7f\xf8" + bytes(6))), origin, **odd, **said
        )
    wide = samples.Series("wide", "W", "basic", {f"l{n}": "x" for n in range(chance.choice((3, 65)))})
    long = samples.Series("x" * chance.choice((3, 1_025)), "é", "basic", {"a": "b" * chance.choice((2, 1_025))})
    series = (CPU, MEM, NET, SEEN, LOAD, wide, long)
    rows = [
        (chance.choice(series), chance.choice((5, 2.5, -1, 0.1, 1 << 62, "text")), chance.choice((None, 7, 1.5)))
        for _ in range(chance.randint(1, 4))
    ]
    return taken(number, rows, origin, **said)


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what only a batch can give, in an order."""
    kept = [{name: value for name, value in row.items() if name not in ("batch", "definition")} for row in rows]
    return sorted(kept, key=repr)


def fresh_rows(plot: Plot, table: Table) -> list[dict[str, Any]]:
    with Lake(plot.lake.root, fresh=True) as asked:
        return plain(asked.query(f"SELECT * FROM {table.full_name}").to_pylist())


def committed_rows(plot: Plot, table: Table) -> list[dict[str, Any]]:
    with Lake(plot.lake.root) as asked:
        return plain(asked.query(f"SELECT * FROM {table.full_name}").to_pylist())


def drain(plot: Plot, chance: Chance, records: list[Record]) -> None:
    """Records over some segments of two drains."""
    for drain in (DRAIN, OTHER_DRAIN):
        some = [record for place, record in enumerate(records) if (place % 3 == 0) == (drain == OTHER_DRAIN)]
        cut = chance.randint(0, len(some))
        for part in (some[:cut], some[cut:]):
            if part:
                plot.write(*part, drain=drain)


def made(chance: Chance, stream: str, number: int) -> Record:
    return odd_samples(chance, number) if stream == "samples" else odd_record(chance, stream, number)


def histories(stream: str) -> list[list[Record]]:
    """Of samples what comes before and after a commit: numbers again, and numbers that had been announced lost."""
    chance = Chance(f"bridge {stream}")
    later = [made(chance, stream, 4 * chance.randint(0, 240) + 1) for _ in range(300)]
    if stream != "samples":
        return [later]
    return [[made(chance, stream, 4 * n + 1) for n in range(30)] + [lost(301, 340), lost(533, 560, B)], later]


LOOSE = "TRY_CAST({} AS {})"
"""A number as DuckDB alone reads it."""
SPOILED: dict[str, list[tuple[Any, str, Any]]] = {
    "samples": [
        (bridge, "FIRST", "SELECT * FROM ({rows})"),
        (bridge, "WITHIN", "SELECT r.*, false AS {name} FROM ({rows}) r"),
        (verdicts, "STAMPS", []),
        (silver.MADE["samples"], "flags", "[]"),
    ],
    "messages": [(silver.MADE["messages"], "depth", LOOSE.format("attributes['depth']", "BIGINT"))],
    "events": [(silver.MADE["events"], "number", LOOSE.format("body ->> '$.number'", "BIGINT"))],
    "store": [(silver.MADE["store"], "by", "attributes['by']")],
    "catalog": [(verdicts.MISFITS, "catalog", list), (silver.MADE["catalog"], "metadata", "NULL")],
    "logs": [
        (verdicts.MISFITS, "logs", list),
        (silver.MADE["logs"], "seq", LOOSE.format("body ->> '$.seq'", "BIGINT")),
    ],
    "documents": [(silver.MADE["documents"], "inert_reason", "attributes['inert']")],
    "configuration": [(verdicts.MISFITS, "configuration", list)],
}
"""Bugs of the bridge, by stream: the comparison has to find each of them."""


def spoiled_rows(plot: Plot, table: Table) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """What an answer would have with each bug."""
    for place, name, bug in SPOILED[plot.stream]:
        with pytest.MonkeyPatch.context() as patch:
            if isinstance(place, dict):
                patch.setitem(place, name, bug)
            else:
                patch.setattr(place, name, bug)
            yield name, fresh_rows(plot, table)


@pytest.mark.proves("PIP-102")
@pytest.mark.parametrize("stream", STAGES)
def test_what_an_answer_has_is_what_the_driver_commits_a_moment_later(
    spark: SparkSession, tmp_path: Path, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plot = Ground(tmp_path / "lake", spark) if stream == "samples" else Plot(tmp_path / "lake", spark, stream)
    chance, stages = Chance(stream), STAGES[stream]
    named = (stages.bronze, stages.silver, *((SERIES,) if stream == "samples" else ()))
    unseen = {name for _, name, _ in SPOILED[stream]}
    for records in histories(stream):
        drain(plot, chance, records)
        before = [fresh_rows(plot, table) for table in named]
        with monkeypatch.context() as few:
            few.setattr(bridge, "OPEN_MAX", 1)
            assert [fresh_rows(plot, table) for table in named] == before
        with monkeypatch.context() as direct:
            direct.setattr(bridge, "COPIED_ROWS", 0)
            assert [fresh_rows(plot, table) for table in named] == before
        spoiled = list(spoiled_rows(plot, stages.silver))
        done = plot.take()
        assert done.outcome.silver > 0 < done.outcome.quarantined
        assert [committed_rows(plot, table) for table in named] == before
        assert [fresh_rows(plot, table) for table in named] == before
        unseen -= {name for name, rows in spoiled if rows != before[1]}
    assert set() == unseen, "bugs of the bridge that this comparison does not find"


@pytest.mark.proves("PIP-102")
def test_each_row_is_once_whatever_is_committed_while_somebody_asks(spark: SparkSession, tmp_path: Path) -> None:
    plot = Plot(tmp_path / "lake", spark, "events")

    def come(number: int) -> None:
        plot.write(event(number, "a.b", "info"))

    come(1)
    plot.take()
    come(2)
    numbers = "SELECT sequence, batch FROM silver.events ORDER BY 1"
    with Lake(plot.lake.root, fresh=True) as early, Lake(plot.lake.root, fresh=True) as old:
        early.handle(EVENTS), old.handle(EVENTS)
        plot.take()  # between the look at the table and that at the segments
        come(3)
        assert [(1, 0), (2, None), (3, None)] == [tuple(row.values()) for row in early.query(numbers).to_pylist()]
        for number in (4, 5, 6):
            plot.take()
            come(number)
        plot.take()  # and of the batch that `old` looked at nobody knows any more where it ended
        come(7)
        wanted = [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, None)]
        assert wanted == [tuple(row.values()) for row in old.query(numbers).to_pylist()]
    frame = weft.table(spark, plot.lake.root, "silver.events", fresh=True)
    assert wanted == sorted((row["sequence"], row["batch"]) for row in frame.select("sequence", "batch").collect())
    assert wanted[:-1] == sorted(
        (row["sequence"], row["batch"])
        for row in weft.table(spark, plot.lake.root, "silver.events").select("sequence", "batch").collect()
    )
    assert 0 == weft.table(spark, plot.lake.root, "silver.events", since="2100-01-01", fresh=True).count()


# Without a driver, hence without Spark.


def put_rows(lake: Layout, stream: str, *records: Record, drain: str = DRAIN) -> None:
    append_segment(lake, stream, drain, list(enumerate(records, 1)))


def manifest_of(lake: Layout, stream: str, number: int) -> Manifest:
    return decode(read_manifest(lake, stream, DRAIN, number), DRAIN, number).manifest


def told_of(lake: Layout, question: str, **more: Any) -> tuple[list[dict[str, Any]], dict[str, Freshness]]:
    """The rows of an answer, and how fresh each of its tables is."""
    with Lake(lake.root, fresh=True, **more) as asked:
        rows: list[dict[str, Any]] = asked.query(question).to_pylist()
        return rows, {one.table: one for one in asked.freshness()}


@pytest.mark.proves("PIP-102")
def test_a_lake_without_a_driver_answers_and_says_how_fresh_it_is(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake")
    put_rows(lake, "samples", taken(1, [(MEM, 5, None), (NET, 7, None)], node="alpha"))
    put_rows(lake, "samples", taken(1, [(MEM, 5, None), (NET, 7, None)], node="alpha"), drain=OTHER_DRAIN)
    put_rows(lake, "store", *CHANGES)
    joined = "SELECT node, config_name, value FROM samples JOIN series USING (series) ORDER BY sequence"
    wanted = [
        {"node": "alpha", "config_name": "mem", "value": 5.0},
        {"node": "alpha", "config_name": "net", "value": 7.0},
    ]
    rows, told = told_of(lake, joined.replace("config_name,", "series.config_name,"))
    assert wanted == rows
    newest = datetime.fromtimestamp((at_ms(2) + 5) / 1000, UTC)
    assert Freshness("silver.samples", True, newest, rows=4, segments=2) == told["silver.samples"]
    rows, told = told_of(lake, "SELECT node, value, result FROM latest ORDER BY value")
    assert [("alpha", 5.0, None), ("alpha", 7.0, None)] == [tuple(row.values()) for row in rows]
    assert (True, False) == (told["silver.samples"].is_bridged, told["silver.values"].is_bridged)
    rows, _ = told_of(lake, "SELECT path_text, value FROM store_current")
    assert [{"path_text": "a.b", "value": "5"}] == rows
    with pytest.raises(UserError, match="samples"):
        weft.ask(lake.root, joined, fresh=False)
    assert 2 == weft.arrow(lake.root, "silver.samples", fresh=True).num_rows
    assert 0 == weft.arrow(lake.root, "silver.samples").num_rows


@pytest.mark.proves("PIP-102")
@pytest.mark.parametrize("copied_rows", [0, bridge.COPIED_ROWS])
def test_what_waits_beyond_the_limits_is_left_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied_rows: int
) -> None:
    monkeypatch.setattr(bridge, "COPIED_ROWS", copied_rows)
    lake = lake_of(tmp_path / "lake")
    for number in range(12):
        put_rows(lake, "samples", taken(3 * number + 1, [(MEM, 1, None)] * 3))
    count = "SELECT count(*)::INT AS n, max(sequence) AS last FROM silver.samples"
    rows, told = told_of(lake, count)
    assert ([{"n": 36, "last": 36}], 0) == (rows, told["silver.samples"].left)
    monkeypatch.setattr(pending, "SEGMENTS_MAX", 5)
    rows, told = told_of(lake, count)
    assert ([{"n": 15, "last": 15}], 5, 7) == (rows, told["silver.samples"].segments, told["silver.samples"].left)
    monkeypatch.setattr(pending, "ROWS_MAX", 8)
    rows, told = told_of(lake, count)
    assert ([{"n": 8, "last": 8}], 3, 10) == (rows, told["silver.samples"].segments, told["silver.samples"].left)
    monkeypatch.setattr(pending, "BYTES_MAX", 1)
    rows, one = told_of(lake, count)
    assert ([{"n": 3, "last": 3}], 11) == (rows, one["silver.samples"].left)
    assert "10 more segments wait for weft lake run" in freshness_line(told["silver.samples"])


@pytest.mark.proves("PIP-102")
@pytest.mark.parametrize("fault", ["gone", "changed"])
def test_a_segment_that_is_gone_or_altered_leaves_the_table_as_it_is_committed(tmp_path: Path, fault: str) -> None:
    lake = lake_of(tmp_path / "lake")
    put_rows(lake, "events", event(1, "a.b", "info"))
    put_rows(lake, "events", event(2, "a.c", "info"))
    path = lake.parquet("events", DRAIN, 2)
    if fault == "gone":
        path.unlink()
    else:
        path.write_bytes(bytes([*path.read_bytes()[:-1], 0]))
    rows, told = told_of(lake, "SELECT count(*)::INT AS n FROM silver.events")
    assert [{"n": 0}] == rows
    assert not told["silver.events"].is_bridged
    assert f"segment-{fault}: drain {DRAIN}, segment 2" in told["silver.events"].why


@pytest.mark.proves("PIP-102")
def test_a_checkpoint_that_cannot_be_read_leaves_the_table_as_it_is_committed(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake")
    put_rows(lake, "events", event(1, "a.b", "info"))
    lake.checkpoint_id("events").parent.mkdir(parents=True)
    lake.checkpoint_id("events").write_text("{")
    rows, told = told_of(lake, "SELECT count(*)::INT AS n FROM silver.events")
    assert ([{"n": 0}], False) == (rows, told["silver.events"].is_bridged)
    assert "its checkpoint cannot be read" in told["silver.events"].why


@pytest.mark.proves("PIP-102")
def test_a_segment_whose_rows_were_given_up_is_passed_over(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake")
    put_rows(lake, "events", event(1, "a.b", "info"))
    put_rows(lake, "events", event(2, "a.c", "info"))
    retention.delete(lake, manifest_of(lake, "events", 1), LocalFiles())
    rows, told = told_of(lake, "SELECT sequence FROM silver.events")
    assert ([{"sequence": 2}], 1) == (rows, told["silver.events"].rows)


@pytest.mark.proves("PIP-102")
def test_rules_of_the_owner_and_imports_wait_for_the_driver(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake")
    put_rows(lake, "samples", taken(1, [(MEM, 5, None)]), taken(1, [(MEM, 6, None)], B))
    (lake.root / "lake.toml").write_text(f'[lake]\nknown_nodes = ["{A}"]')
    both = "SELECT (SELECT count(*) FROM bronze.samples)::INT AS bronze, (SELECT count(*) FROM silver.samples)::INT AS silver"
    assert [{"bronze": 2, "silver": 1}] == told_of(lake, both)[0]
    (lake.root / "lake.toml").write_text('[[lake.rule]]\nname = "hot"\nwhen = "value_long > 5"')
    rows, told = told_of(lake, both)
    assert [{"bronze": 2, "silver": 0}] == rows
    assert "lake.toml has rules" in told["silver.samples"].why
    (lake.root / "lake.toml").unlink()
    log = tmp_path / "a.dcamp-data"
    log.write_text("1795226590369 source=h value=1.00 detail=X config-name=x type=basic\n")
    import_files(lake, [log], Wish("attic", "auto", Reading(UTC, 0)), 1_795_300_000_000_000_000)
    rows, told = told_of(lake, both)
    assert [{"bronze": 3, "silver": 2}] == rows
    assert "imported rows wait for the driver: attic" == told["silver.samples"].why


@pytest.mark.proves("PIP-102")
def test_a_key_that_stands_for_two_things_is_no_row_and_the_first_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of(tmp_path / "lake")
    monkeypatch.setattr(SeriesDefinition, "key", lambda _: 7)
    put_rows(lake, "samples", taken(1, [(MEM, 1, None), (NET, 2, None), (MEM, 3, None)]))
    rows, _ = told_of(lake, "SELECT sequence, config_name FROM silver.samples ORDER BY 1")
    assert [(1, "mem"), (3, "mem")] == [tuple(row.values()) for row in rows]
    assert [{"series": 7, "config_name": "mem"}] == told_of(lake, "SELECT series, config_name FROM series")[0]


@pytest.mark.proves("PIP-102")
def test_keys_are_looked_at_one_by_one_only_if_a_definition_is_not_known_as_it_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    ground = Ground(tmp_path / "lake", spark)
    ground.take(taken(1, [(MEM, 1, None), (CPU, 2, 7)]))
    seen = []
    for number, one in enumerate((MEM, NET), 3):
        ground.write(taken(number, [(one, number, None)]))
        with Lake(ground.lake.root, fresh=True) as asked:
            counts = [asked.query(f"SELECT * FROM {name}").num_rows for name in ("silver.samples", "silver.series")]
            assert asked._bridge is not None
            seen.append((*counts, asked._bridge._has_defined))
    assert [(3, 2, False), (4, 3, True)] == seen


@pytest.mark.proves("PIP-102")
def test_rows_that_wait_are_judged_once_in_a_process_however_often_somebody_asks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground, judged = Ground(tmp_path / "lake", spark), list[int]()
    named = bridge.Bridge._named

    def counted(asking: bridge.Bridge, rows: str) -> set[tuple[str, int]]:
        judged.append(rows.count("/drain/samples/"))
        return named(asking, rows)

    def asked() -> list[int]:
        judged.clear()
        with Lake(ground.lake.root, fresh=True) as lake:
            return sorted(lake.query("SELECT sequence FROM silver.samples").column(0).to_pylist())

    monkeypatch.setattr(bridge, "CLAIMS", known := Claims())  # another test may have written the same segments
    monkeypatch.setattr(bridge.Bridge, "_named", counted)
    monkeypatch.setattr(bridge, "COPIED_ROWS", 0)
    ground.take(taken(1, [(MEM, 1, None), (CPU, 2, 7)]))
    ground.write(taken(3, [(MEM, 3, None)]))
    assert ([1, 2, 3], [1, 1]) == (asked(), judged), "whether silver refuses it; whether its definitions are new"
    assert ([1, 2, 3], []) == (asked(), judged)
    ground.write(taken(4, [(CPU, 4, 7)]))
    assert ([1, 2, 3, 4], [1, 1]) == (asked(), judged), "the new segment only"
    ground.write(taken(5, [(MEM, 5, None)]), single(6, b"\xc1"))
    assert ([1, 2, 3, 4, 5], [1, 1, 1]) == (asked(), judged), "the last row is refused; whether it could not be decoded"
    ground.write(taken(7, [(NET, 7, None)]))
    assert ([1, 2, 3, 4, 5, 7], [1, 1]) == (asked(), judged)
    assert ([1, 2, 3, 4, 5, 7], []) == (asked(), judged)
    with monkeypatch.context() as credulous:
        credulous.setattr(known, "contradicted", lambda claim, slices, ask: ())
        assert [1, 2, 3, 4, 5, 6, 7] == asked(), "somebody who believes everything shows it"
    with Lake(ground.lake.root, fresh=True) as lake:
        assert 3 == lake.query("FROM silver.series").num_rows
    ground.take()
    assert [1, 2, 3, 4, 5, 7] == asked()


@pytest.mark.proves("PIP-102")
def test_small_segments_are_copied_once_though_one_of_them_has_a_row_that_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "CLAIMS", Claims())
    lake = lake_of(tmp_path / "lake")
    for number, row in enumerate((taken(1, [(MEM, 1, None)]), single(2, b"\xc1"), taken(3, [(CPU, 3, 7)])), 1):
        append_segment(lake, "samples", DRAIN, [(number, row)])
    with Lake(lake.root, fresh=True) as asked:
        assert [1, 3] == sorted(asked.query("SELECT sequence FROM silver.samples").column(0).to_pylist())
        assert 3 == asked.query("FROM bronze.samples").num_rows
        copies = asked._open.sql("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'received%'").fetchall()
    assert 1 == len(copies)


@pytest.mark.proves("PIP-102")
def test_the_command_says_how_fresh_beside_the_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = lake_of(tmp_path / "lake")
    put_rows(lake, "events", event(1, "a.b", "info"), event(2, "a.c", "info"))
    question = "SELECT event FROM events ORDER BY 1"
    sql(question, lake=lake.root, json=True)
    said = capsys.readouterr()
    assert [{"event": "a.b"}, {"event": "a.c"}] == msgspec.json.decode(said.out)
    told = {"table": "silver.events", "is_bridged": True, "newest": "2026-11-21T02:15:02Z", "rows": 2, "segments": 1}
    assert {"freshness": [told | {"left": 0, "why": ""}]} == msgspec.json.decode(said.err)
    sql(question, lake=lake.root, csv=True)
    said = capsys.readouterr()
    assert ["event", "a.b", "a.c"] == said.out.splitlines()
    fresh = "newest row of 2026-11-21T02:15:02.000Z; 2 drained rows of 1 segments besides its last commit"
    assert f"silver.events: {fresh}\n" == said.err
    for more in ({"fresh": False}, {"as_of": "2026-11-21T12:00Z"}):
        with pytest.raises(UserError, match="events"):
            sql(question, lake=lake.root, **more)
        assert "" == capsys.readouterr().err


@pytest.mark.proves("PIP-102")
def test_the_bridge_needs_neither_spark_nor_numpy(tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake")
    put_rows(lake, "samples", taken(1, [(MEM, 5, None)]))
    program = (
        "import sys; from weft.cli.sql import sql; from pathlib import Path; "
        "sql('SELECT value FROM samples JOIN series USING (series)', lake=Path(sys.argv[1]), csv=True); "
        "print(sorted({'numpy', 'pandas', 'pyspark', 'py4j'} & sys.modules.keys()))"
    )
    words = [sys.executable, "-c", program, str(lake.root)]
    told = subprocess.run(words, capture_output=True, check=True, text=True).stdout.splitlines()
    assert ["value", "5.0", "[]"] == told
