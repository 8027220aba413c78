"""Operations of documents: in silver exactly once, whichever nodes tell of them, and out again in the order of the fold."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.ground import NOW_NS, OTHER_DRAIN, A, B, Plot, at_ms, operation
from weft.base.errors import UserError
from weft.base.records import LostRecord, Stream, StreamRecord
from weft.cores.document.fold.engine import Engine, fold
from weft.cores.document.fold.schema import Schema
from weft.cores.document.holding import Kept
from weft.cores.document.memory import stream_record
from weft.cores.document.messages import SessionSettings
from weft.pipeline import documents
from weft.pipeline.check import Check
from weft.pipeline.documents import Session, Stored
from weft.pipeline.job import JobOptions
from weft.pipeline.ruleset import Rules
from weft.pipeline.sql import Lake
from weft.wire import journal
from weft.wire.carried import to_item, to_record
from weft.wire.document.operations import parse

C = "c" * 32
DAY = 86_400
FIRST, SECOND = sorted([b"<set>\xff", b"<set>\xfe"], key=lambda body: sha256(body).digest())
"""Two bodies of one number: the smaller hash counts."""
TOLD = [
    operation(1, b"<set>1</set>", ref="", by="joe"),
    operation(
        2, b"<add/>", verb="add", at=1, after_ns=-1_500_000_000, eff=at_ms(2) / 1000 + 90 * DAY, osource=B, oseq=7
    ),
    operation(4, b"<remove/>", verb="remove"),
    operation(1, SECOND, said_by=B, eff=at_ms(1) / 1000 + 0.5, inert="malformed", verb="v" * 1_000),
    operation(1, b"", said_by=C, at=0, eff=0.0, ts="never", schema=None, **{"from": B}),
    operation(1, b"<set/>", session="Jam's 2/b", schema="plain", ref=None, by=None, **{"from": None}),
]
ROOT = f'<%s %s source="{A}" sequence="%d" timestamp="%s" %s'
TEXTS = [
    ROOT % ("set", 'period="1" jam="3"', 1, "1795227300.25", 'by="joe"><score>3</score></set>'),
    ROOT % ("set", "", 2, "never", "><x></set>\udcff"),
    ROOT % ("add", "", 3, "253402300799", f'origsource="{B}" origsequence="9"><x/></add>'),
    ROOT % ("v" * 5_000, "", 4, "1", "/>"),
    ROOT % ("set", f'period="{"9" * 60_000}"', 5, "1e400", f'by="{"b" * 60_000}"/>'),
]
BODIES = [text.encode("utf-8", "surrogateescape") for text in TEXTS]
"""Whatever a source may say, inert or not: it has a number, so it is a row."""


def carried(bodies: list[bytes], session: str) -> Iterator[StreamRecord]:
    """Records of these operations as a node makes them, its journal keeps them, and its parent takes them."""
    settings, eff = SessionSettings(name=session, schema="plain", uuid=bytes.fromhex(A)), 0.0
    for number, data in enumerate(bodies, 1):
        parsed = parse(data)
        eff = max(eff, parsed.timestamp)
        record = stream_record(settings, parsed, Kept(data, at_ms(number) * 1_000_000, bytes.fromhex(B)), eff)
        assert journal.is_sound(record)
        item, frames = to_item(record, bytes.fromhex(B))
        taken = to_record(item, frames, 1)
        assert isinstance(taken, StreamRecord)
        yield taken


def entered(source: str, number: int, points: int) -> bytes:
    """An operation of a bout: three sources in turn, each of which counts for itself in all jams."""
    head = f'<set period="1" jam="{number}" source="{source}" timestamp="{1795227300 + number + int(source[0], 16)}"'
    return f'{head} sequence="{number}"><attribute name="points-{source[0]}">{points}</attribute></set>'.encode()


BOUT = {source: [entered(source, number, number) for number in range(1, 6)] for source in (A, B, C)}
WINS, LOSES = sorted([entered(B, 2, 3), entered(B, 2, 4)], key=lambda body: sha256(body).digest())
BOUT[B][1] = WINS
TOLD_OF_BOUT = [BOUT[A], [BOUT[B][0], LOSES, *BOUT[B][2:]], BOUT[C]]
"""One of the operations is known under two bodies (GSP-011); the lake hears of the loser first."""
SPOKEN = list(carried(BODIES, "spoken"))
PLAYED = [record for bodies in TOLD_OF_BOUT for record in carried(bodies, "bout")]
REFUSED = [
    (operation(1, session="bad", eff=None), "missing-field"),
    (operation(2, session="bad", eff="soon"), "bad-number"),
    (operation(3, session="bad", eff=-1.0), "bad-number"),
    (operation(1, session="bad", said_by="x"), "bad-type"),
    (operation(4, session="bad", verb="v" * 2_000), "too-long"),
]


@pytest.fixture(scope="module")
def plot(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Plot:
    """Two nodes tell of a session; the second of part of it, and of another body under one number."""
    # The fleet knows its nodes; sources of documents are none of them.
    options = JobOptions(Rules(known_nodes=(B,)), gold_every_s=float("inf"), clock=lambda: NOW_NS)
    plot = Plot(tmp_path_factory.mktemp("documents") / "lake", spark, "documents", options)
    done = plot.take(*TOLD, *SPOKEN, *PLAYED, *[record for record, _ in REFUSED])
    assert (len(TOLD) + len(SPOKEN) + len(PLAYED), len(REFUSED), 1) == (
        done.outcome.silver,
        done.outcome.quarantined,
        done.missing,
    )
    again = operation(1, b"<set>1</set>", after_ns=9_000_000, at=5, **{"from": B})
    gave_up = LostRecord(Stream.DOCUMENTS, f"G5/{A}", None, 1, 2, "spool-full")
    third, fork = operation(3, b"<set>3</set>", said_by=B), operation(1, FIRST, said_by=B)
    forks = [fork, *[record for record in carried([BOUT[B][0], WINS], "bout") if record.sequence == 2]]
    done = plot.take(gave_up, third, again, again, *forks, drain=OTHER_DRAIN)
    assert (5, 1, 2, 2) == done.outcome[:4], "one is new, one was told before and is said twice, two have another body"
    assert 2 == done.missing, "A's third and B's second, whoever tells of the others"
    return plot


def ask(plot: Plot, text: str) -> list[tuple[Any, ...]]:
    with Lake(plot.lake.root) as lake:
        return [tuple(row.values()) for row in lake.query(text).to_pylist()]


@pytest.mark.proves("GSP-034", "PIP-030", "PIP-031", "PIP-032")
def test_an_operation_is_in_silver_once_whoever_tells_of_it_and_whatever_it_says(plot: Plot) -> None:
    columns = ("session", "source", "sequence", "eff", "verb", "reference", "by", "inert_reason", "outcome", "body")
    first, second = at_ms(1) / 1000, at_ms(2) / 1000
    about, malformed = "period=1 jam=3", "malformed"
    assert [
        ("G5", A, 1, first, "set", "", "joe", None, None, b"<set>1</set>"),
        ("G5", A, 2, second + 90 * DAY, "add", about, None, None, None, b"<add/>"),
        ("G5", A, 4, at_ms(4) / 1000, "remove", about, None, None, None, b"<remove/>"),
        ("G5", B, 1, first + 0.5, "v" * 1_000, about, None, malformed, f"inert:{malformed}", SECOND),
        ("G5", B, 3, at_ms(3) / 1000, "set", about, None, None, None, b"<set>3</set>"),
        ("G5", C, 1, 0.0, "set", about, None, None, None, b""),
        ("Jam's 2/b", A, 1, first, "set", "", None, None, None, b"<set/>"),
    ] == [row for row in plot.rows("silver.documents", *columns) if row[0] not in ("spoken", "bout")]
    more = ("timestamp_raw", "origsource", "origsequence", "signer", "received_from", "schema", "era")
    told = [row[1:] for row in plot.rows("silver.documents", "session", *more) if row[0] not in ("spoken", "bout")]
    assert (str(first), None, None, None, A, "derby", None) == told[0], "as it was told first"
    assert (B, 7) == told[1][1:3]
    assert ("never", None, None, None, B, None, None) == told[5]
    assert 7 == len(told)
    refused = {(record.sequence, reason) for record, reason in REFUSED} | {(1, "changed"), (2, "changed")}
    assert refused == set(plot.rows("quarantine.documents", "sequence", "reason"))
    verdict = Check(plot.lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences)


@pytest.mark.proves("GSP-034", "GSP-012")
def test_whatever_a_source_says_is_a_row_and_comes_out_as_it_was_said(plot: Plot) -> None:
    about = ("sequence", "verb", "reference", "by", "timestamp_raw", "eff")
    columns = (*about, "origsource", "origsequence", "inert_reason")
    last = 253_402_300_799.0
    assert [
        (1, "set", "period=1 jam=3", "joe", "1795227300.25", 1795227300.25, None, None, None),
        (2, "set", "", None, "never", 1795227300.25, None, None, "malformed"),
        (3, "add", "", None, "253402300799", last, B, 9, None),
        (4, "v" * 1_024, "", None, "1", last, None, None, parse(BODIES[3]).inert),
        (5, "set", f"period={'9' * 1_017}", "b" * 1_024, "1e400", last, None, None, None),
    ] == [row[1:] for row in plot.rows("silver.documents", "session", *columns) if row[0] == "spoken"]
    assert BODIES == [each.body for each in documents.operations_of(plot.lake.root, "spoken")]


@pytest.mark.proves("GSP-034", "PIP-053")
def test_a_document_made_of_the_lake_is_the_one_that_a_node_has(plot: Plot) -> None:
    """Both bodies of a fork are in the lake, and the one counts that counts everywhere."""
    schema = Schema.load("derby")
    live = Engine(schema)
    live.insert([parse(body) for bodies in BOUT.values() for body in bodies])
    rebuilt = fold(schema, [parse(each.body) for each in documents.operations_of(plot.lake.root, "bout")])
    assert live.digest() == rebuilt.digest() != Engine(schema).digest()
    assert "applied" == rebuilt.outcome(bytes.fromhex(B), 2)


def stored(source: str, number: int, body: bytes, heard_from: str | None, after_ms: int = 0) -> Stored:
    sender = None if heard_from is None else bytes.fromhex(heard_from)
    return Stored(bytes.fromhex(source), number, body, (at_ms(number) + after_ms) * 1_000_000, sender)


@pytest.mark.proves("GSP-034", "PIP-053")
def test_a_session_comes_out_of_the_lake_in_the_order_of_the_fold_without_what_lies_behind_a_gap(plot: Plot) -> None:
    assert [
        stored(C, 1, b"", B),
        stored(A, 1, b"<set>1</set>", A),
        stored(B, 1, FIRST, B),
        stored(A, 2, b"<add/>", A, -1_500),
    ] == list(documents.operations_of(plot.lake.root, "G5"))
    assert [stored(A, 1, b"<set/>", None)] == list(documents.operations_of(plot.lake.root, "Jam's 2/b"))
    bout = Session("bout", "plain", 15, 3, 0)
    spoken = Session("spoken", "plain", len(BODIES), 1, 0)
    assert [
        Session("G5", "derby", 4, 3, 2),
        Session("Jam's 2/b", "plain", 1, 1, 0),
        bout,
        spoken,
    ] == documents.sessions_in(plot.lake.root)


@pytest.mark.proves("PIP-053")
@pytest.mark.parametrize(("ms", "expected"), [(-1_000, []), (-1, []), (0, [(C, 1), (A, 1), (B, 1), (A, 2)])])
def test_what_was_seen_by_then_is_what_had_come_without_a_gap(plot: Plot, ms: int, expected: list[Any]) -> None:
    """A's second operation came half a second before its first."""
    seen = documents.operations_of(plot.lake.root, "G5", as_seen_ns=(at_ms(1) + ms) * 1_000_000)
    assert expected == [(each.source.hex(), each.sequence) for each in seen]


@pytest.mark.proves("PIP-053")
def test_a_session_can_be_asked_in_sql(plot: Plot) -> None:
    operations = (
        "SELECT place, source, sequence, body, epoch(\"at\") FROM document_operations WHERE session = 'G5' ORDER BY 1"
    )
    first = at_ms(1) / 1000
    assert [
        (1, C, 1, "", None),
        (2, A, 1, "<set>1</set>", first),
        (3, B, 1, SECOND.decode("latin-1").replace("\xff", r"\xFF").replace("\xfe", r"\xFE"), first + 0.5),
        (4, A, 2, "<add/>", at_ms(2) / 1000 + 90 * DAY),
    ] == ask(plot, operations)
    vector = "SELECT session, vector, first_eff, last_eff FROM document_sessions WHERE beyond > 0"
    assert [("G5", [(A, 2), (B, 1), (C, 1)], 0.0, at_ms(2) / 1000 + 90 * DAY)] == ask(plot, vector)


def test_what_is_not_in_the_lake_is_said_with_what_is(plot: Plot, tmp_path: Any) -> None:
    with pytest.raises(UserError, match=r"no session 'G6'(?s:.*)it has: G5, Jam's 2/b, bout, spoken$"):
        next(documents.operations_of(plot.lake.root, "G6"))
    with pytest.raises(UserError, match="there is no lake"):
        documents.sessions_in(tmp_path)
    (tmp_path / "lake.json").write_bytes(plot.lake.lake_json.read_bytes())
    with pytest.raises(UserError, match=r"no table(?s:.*)weft lake run"):
        documents.sessions_in(tmp_path)


BUGS = {
    "order without the effective time": ("OPERATIONS", "ORDER BY eff, source", "ORDER BY source"),
    "order of arrival": ("OPERATIONS", "ORDER BY eff, source", "ORDER BY received_at, source"),
    "behind a gap": ("OPERATIONS", "QUALIFY {prefix}", ""),
    "other sessions": ("OPERATIONS", "session = {session}", "true"),
    "whoever told first of a fork": ("FORKS", "reason = 'changed'", "false"),
}


def test_a_fork_s_loser_would_make_another_document(plot: Plot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "FORKS", documents.FORKS.replace("reason = 'changed'", "false"))
    with pytest.raises(AssertionError):
        test_a_document_made_of_the_lake_is_the_one_that_a_node_has(plot)


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_planted_bug_would_be_seen(bug: tuple[str, str, str], plot: Plot, monkeypatch: pytest.MonkeyPatch) -> None:
    name, right, wrong = bug
    text = getattr(documents, name)
    assert right in text
    monkeypatch.setattr(documents, name, text.replace(right, wrong))
    with pytest.raises(AssertionError):
        test_a_session_comes_out_of_the_lake_in_the_order_of_the_fold_without_what_lies_behind_a_gap(plot)
