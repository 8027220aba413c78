"""Documents and logs as files: what is written is read again as the same, and what was changed on the way is seen."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.base.effects import Send, Source
from weft.base.errors import UserError
from weft.base.now import SECOND, Now
from weft.client.doc import exporting
from weft.client.doc.errors import BadFile, NotFound
from weft.client.doc.importing import Enter, entries_of, roster_of
from weft.client.doc.logfile import Entry, Header, LogFile, Tally, folded, in_order, lines_of, read_log
from weft.client.doc.replaying import Moment, instant_of, place_of, replay
from weft.cores.document.context import CLIENTS
from weft.cores.document.fold.engine import fold
from weft.cores.document.fold.schema import Schema
from weft.cores.document.messages import SessionSettings
from weft.cores.document.session import Session
from weft.wire.document.clients import Asked
from weft.wire.document.operations import Stamp, emit, parse
from weft.wire.document.xml import Payload, canonical, fragment_of, tree_of

VECTORS = Path(__file__).parents[1] / "vectors" / "document-sign.jsonl"
HOSTILE = VECTORS.with_name("hostile.jsonl")
NOW = Now(SECOND, 1_763_800_000 * SECOND)
HEADER = Header("Hall 5", "derby")
SOURCES = [UUID(int=number << 96 | 0x4000_8000_0000_0000_0000, version=4).bytes for number in (0xA0000000, 0xB0000000)]


def asked(session: Session, verb: str, /, **args: Any) -> Any:
    """What a session answers to a program."""
    session.receive(Asked(b"1", verb, "", args), Source(CLIENTS, b"p"), NOW)
    [answer] = [effect.message for effect in session.effects() if isinstance(effect, Send)]
    assert not answer.code, answer
    return answer.body


def session_of(number: int = 9) -> Session:
    return Session(SessionSettings(name="Hall 5", uuid=bytes([number]) * 16, mdns=False))


def entry(  # tidy: as an operation has them
    source: bytes, sequence: int, verb: str, reference: dict[str, str], payload: Payload, at: float
) -> Entry:
    body = emit(verb, reference, Stamp(source, at, sequence), payload)
    return Entry(parse(body), body, round(at) * SECOND, "")


# What people do, at random

TEXT = st.text(st.sampled_from("aä<&>\"'\r\n\t é\u2028"), max_size=6)
JAM = st.builds(lambda period, jam: {"period": str(period), "jam": str(jam)}, st.integers(1, 3), st.integers(1, 4))
PLACE = st.one_of(JAM, st.just({"team": "home"}), st.just({"path": "/"}), st.just({"path": "venue"}))
TAG = st.sampled_from(["penalty", "pass", "note", "person", "lead"])
ADDS = st.tuples(
    st.just("add"),
    PLACE,
    st.builds(lambda tag, n: fragment_of(f'<{tag} number="{n}"><x/></{tag}>'), TAG, st.integers(1, 3)),
)
SETS = st.tuples(st.just("set"), PLACE, st.builds(lambda value: Payload("", [], {"color": value}), TEXT))
TEXTS = st.tuples(st.just("set"), st.just({"path": "venue"}), TEXT.map(Payload))
REMOVES = st.tuples(st.just("remove"), JAM, st.just(Payload()))
DOINGS = st.lists(st.tuples(st.integers(0, 1), st.one_of(ADDS, SETS, TEXTS, REMOVES)), max_size=12)


def entries_made(doings: Sequence[tuple[int, tuple[str, dict[str, str], Payload]]]) -> list[Entry]:
    counts = [0, 0]
    made = []
    for place, (who, (verb, reference, payload)) in enumerate(doings):
        counts[who] += 1
        made.append(entry(SOURCES[who], counts[who], verb, reference, payload, 1_763_800_000.0 + place * 7 % 5))
    return made


@pytest.mark.proves("GSP-033", "JAM-040")
@given(DOINGS)
@settings(max_examples=40, deadline=None)
def test_an_exported_log_that_is_imported_has_the_same_check_and_the_same_digest(doings: Any) -> None:
    entries = entries_made(doings)
    read = read_log(lines_of(HEADER, entries))
    session = session_of()
    asked(session, "import", operations=[one.body for one in read.entries])
    told = asked(session, "digest")
    tally = Tally.of(entries)
    assert (tally.check, fold(Schema.load("derby"), [one.operation for one in entries]).digest(), len(entries)) == (
        told["check"],
        told["digest"],
        told["operations"],
    )
    assert [] == read.faults


@pytest.mark.proves("JAM-030")
@given(DOINGS)
@settings(max_examples=40, deadline=None)
def test_an_exported_document_that_is_imported_is_the_same_but_for_eids(doings: Any) -> None:
    root = folded(LogFile(HEADER, entries_made(doings), [])).root
    file = exporting.derbyxml(root)
    assert "eid=" not in file
    session = session_of()
    outcomes = {do(session, enter)["outcome"] for enter in entries_of(file, Schema.load("derby"))}
    assert outcomes <= {"applied"}
    assert canonical(root, eids=False) == canonical(session.engine.root, eids=False)


def do(session: Session, enter: Enter) -> Any:
    return asked(
        session,
        "edit",
        verb=enter.verb,
        reference=enter.reference,
        xml=enter.xml,
        attributes=enter.attributes,
        text=enter.text,
    )


def test_a_file_with_eids_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary: the file shows eids."""
    root = tree_of('<bout><note eid="e1"/></bout>')
    pretty = exporting.pretty
    assert "eid=" not in exporting.derbyxml(root)
    monkeypatch.setattr(exporting, "pretty", lambda root, *, eids: pretty(root, eids=True))
    assert "eid=" in exporting.derbyxml(root)


# Logs that were changed on the way

A, B = SOURCES
LOG = [
    entry(A, 1, "add", {"period": "1", "jam": "3"}, fragment_of("<penalty/>"), 10.0),
    entry(B, 1, "set", {"period": "1", "jam": "3"}, Payload("", [], {"duration": "90"}), 20.0),
    entry(A, 2, "set", {"period": "1", "jam": "3"}, Payload("", [], {"duration": "95"}), 30.0),
]
LINES = list(lines_of(HEADER, LOG))


@pytest.mark.proves("GSP-033")
def test_the_lines_of_a_log_say_what_the_specification_says() -> None:
    head, first, *_, trailer = map(json.loads, LINES)
    genesis = "a66c84e620d9dc68362785de4dd7847223e4594948d81231b02002ba86e7cc5f"
    assert {
        "format": "weft-log-1",
        "session": "Hall 5",
        "schema": "derby",
        "fold": 1,
        "genesis_sha256": genesis,
    } == head
    assert {"source", "sequence", "eff", "received_at", "received_from", "body"} == set(first)
    assert {
        "operations": 3,
        "check": Tally.of(LOG).check,
        "document": folded(LogFile(HEADER, LOG, [])).digest(),
    } == trailer


@pytest.mark.proves("PEE-022")
def test_the_check_of_a_log_is_that_of_the_vectors() -> None:
    [told] = [row for row in map(json.loads, VECTORS.read_text("utf-8").splitlines()) if row["id"] == "S06"]
    entries = [Entry(parse(body), body, 0, "") for body in map(bytes.fromhex, told["frames"])]
    assert told["means"]["check"] == Tally.of(entries).check


@pytest.mark.proves("GSP-033")
@pytest.mark.parametrize(
    "lines",
    [
        [],
        LINES[1:],
        LINES[:-1],
        [*LINES[:2], *LINES[3:]],
        [*LINES[:1], *LINES[2:]],
        [LINES[0], LINES[1].replace("penalty", "expulsion"), *LINES[2:]],
        [LINES[0], LINES[1].replace('"sequence":1', '"sequence":7'), *LINES[2:]],
        [*LINES[:-1], LINES[-1].replace('"operations":3', '"operations":4')],
        [*LINES[:-1], '{"operations":3,"check":"00000000","document":""}'],
        [*LINES, LINES[1]],
        [LINES[0].replace("a66c", "b66c"), *LINES[1:]],
        [LINES[0].replace('"fold":1', '"fold":2'), *LINES[1:]],
        [*LINES[:2], "{", *LINES[2:]],
        ["<bout/>"],
        [LINES[0], "[" * 100_000, *LINES[1:]],
        [LINES[0], LINES[1].replace('"received_at":', '"received_at":1e999,"was":'), *LINES[2:]],
        [LINES[0].replace("Hall 5", "Hall \\ud800"), *LINES[1:]],
    ],
)
def test_a_log_that_is_not_what_its_trailer_says_is_refused(lines: list[str]) -> None:
    with pytest.raises(BadFile):
        read_log(lines)


@pytest.mark.proves("GSP-033")
def test_a_log_that_was_cut_off_is_taken_in_part_and_says_what_is_missing() -> None:
    cut = read_log([LINES[0], LINES[2], LINES[3][:40]], partial=True)
    assert (1, 2) == (len(cut.entries), len(cut.faults))
    gap = read_log([LINES[0], LINES[3], LINES[2]], partial=True)
    assert ["missing numbers of a0000000-0000-4000-8000-000000000000: 1", True] == [
        gap.faults[0],
        "trailer" in gap.faults[1],
    ]


def test_a_log_with_a_number_of_sixteen_digits_is_looked_at_without_counting_up_to_it() -> None:
    far = entry(A, (1 << 53) - 1, "set", {"path": "venue"}, Payload("x"), 5.0)
    [gap] = Tally.of([far]).gaps()
    assert "a0000000-0000-4000-8000-000000000000: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …" == gap


def test_a_log_is_brought_in_so_that_no_source_is_turned_round_and_nothing_is_late() -> None:
    late = entry(B, 2, "set", {"path": "venue"}, Payload("x"), 5.0)
    expected = [(A, 1), (B, 1), (B, 2), (A, 2)]
    assert expected == [one.pair for one in in_order([LOG[1], late, LOG[0], LOG[2]])]


def test_a_body_that_is_no_text_comes_through() -> None:
    body = LOG[0].body.replace(b"<penalty", b"<pen\xff")
    odd = Entry(parse(body), body, 0, "")
    [read] = read_log(lines_of(HEADER, [odd])).entries
    assert (body, "malformed") == (read.body, read.operation.inert)


# As it stood


@pytest.mark.proves("GSP-032")
@pytest.mark.parametrize(
    ("moment", "duration"),
    [
        (Moment(), "95"),
        (Moment(at=25.0), "90"),
        (Moment(at=10.0), None),
        (Moment(until=(B, 1)), "90"),
        (Moment(as_seen=25.0), "90"),
        (Moment(as_seen=5.0), "gone"),
    ],
)
def test_the_document_is_shown_as_it_stood(moment: Moment, duration: str | None) -> None:
    jam = replay(Schema.load("derby"), LOG, moment).find({"period": "1", "jam": "3"})
    assert duration == ("gone" if jam is None else jam.attributes.get("duration"))


@pytest.mark.proves("GSP-032")
def test_as_seen_is_what_came_by_then_whatever_its_own_time_is() -> None:
    late = [LOG[1]._replace(received_ns=100 * SECOND), LOG[0], LOG[2]]
    schema = Schema.load("derby")
    place = {"period": "1", "jam": "3"}
    seen, true = (
        replay(schema, late, Moment(as_seen=25.0)).find(place),
        replay(schema, late, Moment(at=25.0)).find(place),
    )
    assert seen is not None
    assert true is not None
    assert (None, "90") == (seen.attributes.get("duration"), true.attributes.get("duration"))


@pytest.mark.proves("GSP-032")
@given(DOINGS)
@settings(max_examples=30, deadline=None)
def test_until_each_operation_is_the_fold_of_all_up_to_it(doings: Any) -> None:
    entries, schema = entries_made(doings), Schema.load("derby")
    keys = list(fold(schema, [one.operation for one in entries]).order())
    by_pair = {one.pair: one.operation for one in entries}
    for place, key in enumerate(keys):
        kept = [by_pair[one.source, one.sequence] for one in keys[: place + 1]]
        actual = replay(schema, entries, Moment(until=(key.source, key.sequence)))
        assert fold(schema, kept).digest() == actual.digest()


def test_instants_are_read_as_people_type_them() -> None:
    now = time.time()  # tidy: the day it is
    midnight = time.localtime(instant_of("00:00", now))
    assert (0, 0, 0) == midnight[3:6]
    assert 20 * 3600 + 15 * 60 + 30 == instant_of("20:15:30", now) - instant_of("00:00", now) or time.daylight
    assert instant_of("2026-11-22T20:15:00+01:00", now) == instant_of("2026-11-22T19:15:00Z", now)
    for word in ("soon", "25:00", "", "nan"):
        with pytest.raises(UserError):
            instant_of(word, now)


def test_an_operation_is_named_by_the_beginning_of_its_source() -> None:
    assert (A, 2) == place_of("a0:2", LOG)
    assert (B, 1) == place_of("b0000000-0000:1", LOG)
    for word in ("a0:9", "c0:1"):
        with pytest.raises(NotFound):
            place_of(word, LOG)
    with pytest.raises(UserError):
        place_of("2", LOG)


# Files of others


@pytest.mark.proves("SEC-045", part="the score sheet of a document")
def test_a_text_that_a_spreadsheet_would_run_is_not_written_as_such() -> None:
    [told] = [row for row in map(json.loads, HOSTILE.read_text("utf-8").splitlines()) if row["id"] == "c-csv"]
    text = bytes.fromhex(told["payload"]).decode()
    side = {"jammer": text, "points": -1}
    row = {"period": 1, "jam": 1, "begin": None, "duration": None, "home": side, "away": side}
    line = exporting.score_sheet([row]).splitlines()[1]
    assert ("'=HYPERLINK", "-1") == (line.split(",")[3].strip('"')[:11], line.split(",")[4])


@pytest.mark.proves("JAM-030")
def test_a_roster_adds_who_is_new_changes_who_is_not_and_leaves_who_is_the_same() -> None:
    document = tree_of(
        '<bout><team id="home"><person number="1" name="Ann"/><person number="2" name="B"/></team></bout>'
    )
    rows = ["team,number,name", "home,1,Ann", "home,2,Bea", "away,1,Cleo", ""]
    assert [
        Enter("set", {"team": "home", "person": "2"}, attributes={"name": "Bea"}),
        Enter("add", {"team": "away"}, '<person number="1" name="Cleo"/>'),
    ] == list(roster_of(rows, document))
    assert list(roster_of(rows[1:], document)) == list(roster_of(rows, document))
    for bad in (["team,name", "home,Ann"], ["home,1"]):
        with pytest.raises(BadFile):
            list(roster_of(bad, document))


@pytest.mark.proves("JAM-030")
def test_an_element_that_is_too_large_for_one_entry_is_entered_in_several() -> None:
    notes = "".join(f"<note>{number}{'x' * 9_000}</note>" for number in range(10))
    file = f'<bout ruleset="MAR2014"><period number="1"><jam number="3" duration="90">{notes}</jam></period></bout>'
    entries, session = list(entries_of(file, Schema.load("derby"))), session_of()
    for enter in entries:
        do(session, enter)
    jam = session.engine.find({"period": "1", "jam": "3"})
    assert jam is not None
    assert (11, 10, "90") == (len(entries), len(jam.children), jam.attributes["duration"])


@pytest.mark.parametrize(
    "xml",
    [
        "",
        "<bout>",
        "<doc/>",
        "<!DOCTYPE bout><bout/>",
        "<bout><step>Boil <b>water</b> well.</step></bout>",
        f"<bout><note>{'x' * 60_001}</note></bout>",
    ],
)
def test_a_document_that_is_none_of_this_schema_is_refused(xml: str) -> None:
    with pytest.raises(BadFile):
        list(entries_of(xml, Schema.load("derby")))


@pytest.mark.proves("JAM-030")
def test_derbyjson_has_a_place_for_elements_whose_tag_means_something_else_there() -> None:
    root = tree_of('<bout ruleset="x"><teams a="1"/><ruleset/><venue>Hall 5</venue><elements/></bout>')
    told = json.loads(exporting.derbyjson(root))
    assert ["teams", "ruleset", "elements"] == [element["tag"] for element in told["elements"]]
    assert ([{"text": "Hall 5"}], {}, "x") == (told["venue"], told["teams"], told["ruleset"])


def test_derbyjson_has_periods_jams_and_events() -> None:
    root = tree_of(
        '<bout ruleset="MAR2014"><team id="home"><person number="1" eid="e1"/></team><venue>Hall</venue>'
        '<period number="1"><jam number="1" duration="90"><pass team="home" points="4" eid="e2"/></jam></period></bout>'
    )
    told = json.loads(exporting.derbyjson(root))
    [period] = told["periods"]
    [jam] = period["jams"]
    assert ({"persons": [{"number": "1"}]}, [{"text": "Hall"}]) == (told["teams"]["home"], told["venue"])
    assert (90, [{"event": "pass", "team": "home", "points": 4}]) == (jam["duration"], jam["events"])


@pytest.mark.proves("JAM-030")
def test_the_score_sheet_has_a_line_for_each_jam_and_team() -> None:
    session = session_of()
    for words in (["period=1", "jam=1", "pass", "team=home", "points=4"], ["period=1", "jam=1", "lead", "team=home"]):
        asked(session, "edit", verb="add", words=words)
    sheet = exporting.score_sheet(asked(session, "board")["board"]["rows"])
    assert [
        "period,jam,team,jammer,points,lead,lost,called,starpass,begin,duration",
        "1,1,home,,4,yes,,,,,",
        "1,1,away,,0,,,,,,",
    ] == sheet.splitlines()
