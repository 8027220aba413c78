"""Messages and events: in their tables exactly once, whatever their bytes are and whoever dies (PIP-020, CHN-036)."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.ground import ERA, MEM, OTHER_DRAIN, T0_MS, A, B, Ground, Plot, at_ms, event, message, taken
from weft.lake.consumers import consumers
from weft.pipeline.check import Check
from weft.pipeline.job import Done
from weft.pipeline.judging import FUTURE_MS
from weft.pipeline.runner import Runner
from weft.pipeline.sql import Lake

pytestmark = pytest.mark.prove("whole batches in Spark")

STEPS = ("coverage", "bronze", "quarantine", "silver", "progress")
SPOKEN = [
    message(1, b"\xc1\x00"),
    message(3, "grün".encode(), fmt="text"),
    message(4, b"<a/>", fmt="xml"),
    message(6, b'{"b": 1, "a": []}', fmt="json", via=[bytes.fromhex(A), bytes.fromhex(B)], depth=2),
    message(7, b"\x91\x01ab", fmt="msgpack", frames=[2, 2], key="shop.x"),
    message(9, b"\x91\x01", fmt="msgpack", unsure=True, depth="deep", frames="none", via=7),
]
"""One of each format; the fifth says more bytes than its format has."""
REFUSED = [
    (message(20, b"\xff", fmt="text"), "undecodable"),
    (message(22, b"<a>\xff</a>", fmt="xml"), "undecodable"),
    (message(24, b'{"a":', fmt="json"), "bad-json"),
    (message(26, b"\xc1", fmt="msgpack"), "undecodable"),
    (message(28, b"\xcb\x7f\xf0\0\0\0\0\0\0", fmt="msgpack"), "bad-number"),
    (message(30, b"", fmt="cbor"), "unknown-format"),
    (message(32, b"x" * (1 << 20) + b"x"), "too-long"),
    (message(34, b"x", key="k" * 1025), "too-long"),
    (message(36, b"x", after_ns=-(FUTURE_MS + 1) * 1_000_000), "future"),
    (message(0, b"x"), "no-sequence"),
]


@pytest.fixture
def plot(spark: SparkSession, ground: Ground) -> Plot:
    """The messages of a lake."""
    return Plot(ground.lake.root, spark, "messages")


def ask(plot: Plot, text: str) -> list[tuple[Any, ...]]:
    with Lake(plot.lake.root) as lake:
        return [tuple(row.values()) for row in lake.query(text).to_pylist()]


@pytest.mark.proves("CHN-036", "PIP-031", "PIP-032")
def test_each_format_has_its_body_and_bad_bytes_are_kept_aside_with_the_reason(plot: Plot) -> None:
    done = plot.take(*SPOKEN, *[record for record, _ in REFUSED])
    assert (len(SPOKEN) + len(REFUSED), len(SPOKEN) - 1, 0, len(REFUSED) + 1) == done.outcome[:4]
    rows = plot.rows("silver.messages", "sequence", "type", "fmt", "payload", "body", "via", "depth", "unsure")
    assert [
        (1, "shop.order", "raw", b"\xc1\x00", None, None, 0, False),
        (3, "shop.order", "text", "grün".encode(), "grün", None, 0, False),
        (4, "shop.order", "xml", b"<a/>", "<a/>", None, 0, False),
        (6, "shop.order", "json", b'{"b": 1, "a": []}', '{"a":[],"b":1}', [A, B], 2, False),
        (9, "shop.order", "msgpack", b"\x91\x01", "[1]", None, 0, True),
    ] == rows
    refused = dict(plot.rows("quarantine.messages", "sequence", "reason"))
    assert {record.sequence: why for record, why in REFUSED} | {7: "undecodable"} == refused
    (first, *_) = plot.rows("silver.messages")
    assert (f"{A}/{ERA}/1", A, at_ms(1) * 1_000_000 + 7) == (first["mid"], first["node"], first["at_ns"])
    assert 5_000 == (first["received"] - first["at"]).microseconds
    bronze = dict(plot.rows("bronze.messages", "sequence", "raw"))
    assert [record.payload[: 1 << 20] for record, _ in REFUSED] == [bronze[record.sequence] for record, _ in REFUSED]


@pytest.mark.proves("CHN-036", "PIP-021", "PIP-022", "PIP-030", "PIP-032", "LAK-031")
def test_a_message_is_in_silver_once_whoever_dies_and_whatever_way_it_came(plot: Plot) -> None:
    """Batches that repeat each other, each killed again and again, ever later."""

    class Pulled(Exception):
        pass

    def some(*numbers: int, depth: int = 1, origin: str = A) -> list[Any]:
        return [message(n, b"%d" % n, depth=depth, origin=origin) for n in numbers]

    batches = [
        (some(1, 2, 8), some(2, 5, depth=2)),
        (some(5, 9, depth=3), some(3, 30, origin=B)),
        (some(1, 40), [message(9, b"another"), message(50, b"\xff", fmt="text"), message(41, frames=[0, 0])]),
    ]
    points = [("before", STEPS[0]), *[("after", step) for step in STEPS]]
    calm = plot.options
    for number, (here, there) in enumerate(batches):
        plot.write(*here)
        plot.write(*there, drain=OTHER_DRAIN)
        for point in points[number :: len(batches)]:

            def watch(*at: str, point: tuple[str, str] = point) -> None:
                if at == point:
                    raise Pulled

            plot.restart(calm._replace(watcher=watch))
            with pytest.raises(Pulled):
                plot.take()
        plot.restart(calm)
        done = plot.take()
        assert done.outcome.rows == sum(done.outcome[1:4])
        assert 0 == done.missing
    held = [(A, 1), (A, 2), (A, 5), (A, 8), (A, 9), (A, 40), (A, 41), (B, 3), (B, 30)]
    assert held == plot.rows("silver.messages", "origin", "sequence")
    assert [(9, b"another", "changed"), (50, b"\xff", "undecodable")] == plot.rows(
        "quarantine.messages", "sequence", "raw", "reason"
    )
    assert [(5, 4, 1, 0), (4, 3, 1, 0), (5, 2, 1, 2)] == ask(
        plot, "SELECT rows_in, rows_silver, rows_duplicate, rows_quarantine FROM meta.progress ORDER BY batch"
    )
    assert [([0, 0],)] == ask(plot, "SELECT frames FROM messages WHERE sequence = 41")
    verdict = Check(plot.lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences)


@pytest.mark.proves("PIP-020", "PIP-024", "LAK-016")
def test_one_session_runs_a_query_per_stream_and_goes_on_where_each_was(spark: SparkSession, ground: Ground) -> None:
    """Holes of messages are nothing missing; the next run takes what is new, and a stream that is new."""
    messages, events = (Plot(ground.lake.root, spark, stream) for stream in ("messages", "events"))
    batches: list[Done] = []

    def run(epoch: int) -> list[tuple[str, int]]:
        batches.clear()
        Runner(ground.lake, batches.append)._run(spark, epoch, once=True)
        return [(done.job, done.outcome.silver) for done in batches]

    ground.write(taken(1, [(MEM, 1, None)]))
    messages.write(message(3, b"{}", fmt="json"), message(9, b"x"))
    assert [("samples", 1), ("messages", 2)] == run(1)
    events.write(
        event(1, "node.started", "info", name="a", level="root"),
        event(2, "config.applied", "info", number=7),
        event(3, "carrier.child-lost", "warning", node=B, why="silent"),
    )
    messages.write(message(3, b"{}", fmt="json"), message(10, b"y"))
    assert 2 == len(ask(messages, "FROM messages"))
    assert ("behind", 2) == (Check(ground.lake).run().state, Check(ground.lake).run().waiting)
    assert [("events", 3), ("messages", 1)] == sorted(run(2))
    found = ask(ground, "SELECT stream, received, missing, state FROM completeness ORDER BY stream")
    assert [("events", 3, 0), ("messages", 3, 0), ("samples", 1, 0)] == [row[:3] for row in found]
    assert "sparse" == found[1][3]
    assert [(3,), (9,), (10,)] == ask(messages, "SELECT sequence FROM messages ORDER BY 1")
    columns = "event, subsystem, severity, peer, subject, number"
    assert [
        ("node.started", "node", "info", None, "a", None),
        ("config.applied", "config", "info", None, None, 7),
        ("carrier.child-lost", "carrier", "warning", B, None, None),
    ] == ask(events, f"SELECT {columns} FROM events ORDER BY sequence")
    assert [f'{{"node":"{B}","why":"silent"}}'] == [row[0] for row in ask(events, "SELECT fields FROM events")][2:]
    verdict = Check(ground.lake).run()
    assert ("equal", 4, 0) == (verdict.state, verdict.segments, verdict.waiting)
    committed = {(consumer.name, consumer.stream) for consumer in consumers(ground.lake)}
    assert {(name, name) for name in ("samples", "messages", "events")} == committed
    assert T0_MS < at_ms(1)
