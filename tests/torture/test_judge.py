"""A judge is trusted when it has caught a lie: each promise broken in a recorded history, and the verdict that names it."""

from pathlib import Path
from typing import Any

import pytest

from weft.checks import Acknowledged, Complete, Delivered, Read, Saw, Sealed, judge
from weft.checks.history import Fact, Unknown, Violation
from weft.torture import judge as torture
from weft.torture.book import Book
from weft.torture.world import Process

ORIGIN = "0a" * 16 + "/7"


def fact(what: str, value: Any, node: str = "root", kind: str = "info") -> Fact:
    return Fact(0, node, 0, kind, what, value)


def asked(protocol: str, key: str, value: Any) -> Fact:
    return fact("put", [protocol, key, value], "client", "invoke")


def told(protocol: str, key: str, value: Any) -> Fact:
    return fact("put", [protocol, key, value], "client", "ok")


def replica(protocol: str, held: dict[str, Any], node: str = "root") -> Fact:
    return fact("replica", [protocol, held], node)


QUIET = fact("quiet", None)
WRITES = [
    asked("store", "a", 1), told("store", "a", 1), asked("store", "a", 2), told("store", "a", 2), asked("store", "a", 3),
    asked("store", "b", 1), told("store", "b", 1), asked("store", "b", None), told("store", "b", None),
]  # fmt: skip
"""`a`: 2 is acknowledged, 3 may have happened; `b` is deleted."""
SENT = [asked("messages", "m1", ""), told("messages", "m1", ""), asked("messages", "m2", "")]


def why(found: Violation | Unknown | None) -> str:
    return "" if found is None else found.why


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ({"a": 2}, ""),
        ({"a": 3}, ""),
        ({"a": 1}, "store: 1 acknowledged and lost at sensor-1: a"),
        ({}, "store: 1 acknowledged and lost at sensor-1: a"),
        ({"a": 2, "b": 1}, "store: 1 acknowledged and lost at sensor-1: b"),
        ({"a": 2, "c": 9}, "store: sensor-1 holds 9 at c, which nobody had asked for"),
    ],
)
def test_what_was_acknowledged_last_or_asked_for_since_is_what_stands_there(
    held: dict[str, Any], expected: str
) -> None:
    history = [*WRITES, replica("store", {"a": 2}), replica("store", held, "sensor-1"), QUIET]
    assert expected == why(judge(Acknowledged(), history))


def test_who_says_nothing_of_what_it_holds_is_no_proof() -> None:
    assert "nobody said what it holds of store" == why(judge(Acknowledged(), [*WRITES, QUIET]))
    assert "nobody said what it holds of messages" == why(judge(Delivered(), [*SENT, QUIET]))
    assert isinstance(judge(Acknowledged(), WRITES), Unknown)
    assert isinstance(judge(Delivered(), SENT), Unknown)


def test_an_acknowledgement_of_what_nobody_asked_for_is_told() -> None:
    history = [asked("store", "a", 1), told("store", "a", 2), replica("store", {"a": 1}), QUIET]
    assert "store: a was acknowledged as 2, which nobody had asked for" == why(judge(Acknowledged(), history))


@pytest.mark.parametrize(
    ("protocol", "counts", "expected"),
    [
        ("messages", {"m1": 1}, ""),
        ("messages", {"m1": 1, "m2": 1}, ""),
        ("messages", {"m2": 1}, "messages: 1 acknowledged and lost at lake: m1"),
        ("messages", {"m1": 2}, "messages: 1 doubled at lake: m1 (2 times)"),
        ("messages", {"m1": 1, "m3": 1}, "messages: lake holds what nobody sent: m3"),
        ("calls", {"m1": 2}, "calls: 1 doubled at lake: m1 (2 times)"),
        ("calls", {"m2": 1}, "calls: 1 acknowledged and lost at lake: m1"),
        ("readers", {"m1": 2}, ""),
        ("readers", {}, "readers: 1 acknowledged and lost at lake: m1"),
    ],
)
def test_a_message_arrives_once_and_a_reader_that_confirms_sees_it_at_least_once(
    protocol: str, counts: dict[str, int], expected: str
) -> None:
    sent = [Fact(0, "client", 0, each.kind, "put", [protocol, *each.value[1:]]) for each in SENT]
    assert expected == why(judge(Delivered(), [*sent, fact("delivered", [protocol, counts], "lake"), QUIET]))


def test_what_two_roots_have_drained_is_there_once_and_two_identities_are_two() -> None:
    first, again = ("0a", 1, 1), ("0a", 1, 2)
    rows = [torture.Row("m1", first, "one"), torture.Row("m1", first, "two")]
    assert {"m1": 1} == torture.counted(rows)
    assert {"m1": 2} == torture.counted([*rows, torture.Row("m1", again, "two")])
    assert {"m1": 2} == torture.counted([rows[0], rows[0]])


def line(at: int, node: str, kind: str, what: str, value: Any) -> Fact:
    return Fact(at, node, 1, kind, what, value)


def put(at: int, node: str, protocol: str, key: str, value: Any) -> list[Fact]:
    """A write that was acknowledged at once."""
    return [line(at, node, kind, "put", [protocol, key, value]) for kind in ("invoke", "ok")]


REWOUND = line(100, "sensor-1", "info", "rewound", ["lost", 30])
"""What `sensor-1` has answered since 70 may be gone."""


@pytest.mark.proves(
    "FLT-001", part="the judge excuses what a node alone had acknowledged when it lost its disk, and nothing else"
)
@pytest.mark.parametrize(
    ("node", "at", "protocol", "is_lost"),
    [
        ("sensor-1", 80, "store", False),
        ("sensor-1", 80, "documents", False),
        ("sensor-1", 60, "store", True),
        ("sensor-1", 110, "store", True),
        ("sensor-2", 80, "store", True),
        ("sensor-1", 80, "configuration", True),
    ],
)
def test_what_a_node_answered_just_before_it_lost_its_disk_may_be_gone(
    node: str, at: int, protocol: str, is_lost: bool
) -> None:
    before, last = put(10, node, protocol, "a", "1"), put(at, node, protocol, "a", "2")
    history = sorted([*before, *last, REWOUND], key=lambda each: each.at)
    judged = judge(Acknowledged(), [*history, replica(protocol, {"a": "1"}), QUIET])
    assert is_lost is (judged is not None)
    assert judge(Acknowledged(), [*history, replica(protocol, {"a": "2"}), QUIET]) is None
    gone = judge(Acknowledged(), [*history, replica(protocol, {}), QUIET])
    assert f"{protocol}: 1 acknowledged and lost at root: a" == why(gone), "the first was there long before"


@pytest.mark.proves(
    "FLT-001", part="the judge excuses what a node alone had acknowledged when it lost its disk, and nothing else"
)
@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"early": 1, "unanswered": 2}, ""),
        ({"unanswered": 1}, "messages: 1 acknowledged and lost at lake: early"),
        ({"early": 1, "late": 2}, "messages: 1 doubled at lake: late (2 times)"),
        ({"early": 2}, "messages: 1 doubled at lake: early (2 times)"),
    ],
)
def test_a_message_may_go_with_the_disk_and_one_without_an_answer_may_come_twice(
    counts: dict[str, int], expected: str
) -> None:
    sent = [*put(10, "sensor-1", "messages", "early", ""), *put(80, "sensor-1", "messages", "late", "")]
    asks = line(90, "sensor-1", "invoke", "put", ["messages", "unanswered", ""])
    told = line(105, "sensor-1", "ok", "put", ["messages", "unanswered", ""])
    history = [*sent, asks, REWOUND, told, line(200, "lake", "info", "delivered", ["messages", counts]), QUIET]
    assert expected == why(judge(Delivered(), history if "unanswered" in counts else [*sent, REWOUND, *history[-2:]]))


@pytest.mark.parametrize(
    ("reader", "is_wrong"), [("sensor-1", False), ("watcher at sensor-1", False), ("sensor-2", True)]
)
def test_whoever_reads_at_a_node_with_another_disk_begins_anew(reader: str, is_wrong: bool) -> None:
    writes = [*put(10, "sensor-3", "store", "a", "1"), *put(20, "sensor-3", "store", "a", "2")]
    kind, what = (Saw, "saw") if reader.startswith("watcher") else (Read, "got")
    seen = [line(at, reader, "ok", what, ["store", "a", value]) for at, value in ((30, "2"), (120, "1"))]
    assert is_wrong is (judge(kind(), [*writes, seen[0], REWOUND, seen[1]]) is not None)
    assert judge(kind(), [*writes, *seen]) is not None


@pytest.mark.parametrize(
    ("stream", "facts", "is_told"),
    [
        (7, [REWOUND], False),
        (7, [], True),
        (7, [line(100, "sensor-2", "info", "rewound", ["lost", 30])], True),
        (2, [REWOUND], True),
    ],
)
def test_numbers_of_a_store_may_be_missing_that_only_a_lost_disk_had(
    stream: int, facts: list[Fact], is_told: bool
) -> None:
    taken = [fact("taken", [stream, "sensor-1", first, last], "d", "durable") for first, last in ((1, 45), (48, 90))]
    claims = [["sensor-1", 1, 45], ["sensor-1", 48, 90]]
    history = [*facts, *taken, fact("segment", [stream, 1, claims, [], []], "d", "durable"), QUIET]
    says = "the completeness table calls 46-47 of sensor-1 missing, which is not so"
    assert (says if is_told else "") == why(judge(Complete(), history))


def test_what_a_reader_need_not_see_any_more_is_not_waited_for(tmp_path: Path) -> None:
    book = Book(tmp_path / "history.jsonl")
    for kind in (book.asks, book.acknowledge):
        kind("sensor-1", "readers", "sensor-1 1", "")
    assert {"sensor-1 1": [""]} == book.possible("readers")
    book.note("sensor-1", "info", "rewound", ["lost", 10**12])
    assert {"sensor-1 1": [None, ""]} == book.possible("readers")
    book.close()


def verdict(*facts: Fact) -> list[str]:
    return [line.splitlines()[0] for line in torture.verdict([MEMBERS, *facts, fact("healed", None), *LAST])]


LAST = [QUIET]
MEMBERS = fact("members", {"0a" * 16: "torture", "d": "torture", "sensor-1": "torture", "root": "torture"}, "")
TAKEN = fact("taken", [1, ORIGIN, 1, 9], ORIGIN, "durable")


def segment(*claims: tuple[int, int]) -> Fact:
    return fact("segment", [1, 1, [[ORIGIN, first, last] for first, last in claims], [], []], "d", "durable")


def test_what_stands_in_journals_and_not_in_the_lake_is_missing() -> None:
    assert [] == verdict(TAKEN, segment((1, 9)))
    assert [f"complete: 9 of {ORIGIN} (stream 1) never came, and nobody named them"] == verdict(TAKEN, segment((1, 8)))
    assert [f"complete: 4-5 of {ORIGIN} (stream 1) never came, and nobody named them"] == verdict(
        TAKEN, segment((1, 3), (6, 9))
    )


@pytest.mark.proves("CHK-021", part="of a real fabric: whose rows are in the lake, and who stands in its tree")
def test_rows_of_a_stranger_and_a_stranger_in_the_tree_are_told(tmp_path: Path) -> None:
    states = {name: tmp_path / name for name in ("root", "sensor-1")}
    for name, state in states.items():
        state.mkdir()
        (state / "node.json").write_text(f'{{"node": "{name[0] * 32}"}}', "utf-8")
    book = Book(tmp_path / "history")
    torture.note_members(book, states, {"root": ["sensor-1"]})
    drain = "r" * 32
    rows = [row("sensor-1/7", drain), row("root", drain)]
    assert None is judge(Sealed(), [*book.facts, *rows])
    torture.note_members(book, states, {"root": ["sensor-1", "evil"]})
    book.close()
    strange = [Sealed(), Sealed()]
    assert [
        f"evil, who is none of the fabric, has rows in the lake at {drain}",
        "evil, who is none of the fabric, has joined at root",
    ] == [why(judge(strange.pop(), each)) for each in ([*book.facts[:2], row("evil/7", drain)], book.facts)]


def row(origin: str, drain: str) -> Fact:
    return fact("segment", [1, 1, [[origin, 1, 9]], [], []], drain, "durable")


def test_two_replicas_that_differ_are_told_though_nothing_was_acknowledged() -> None:
    states = [
        Fact(0, node, 0, "info", "state", ["store", torture.digest(held)])
        for node, held in (("root", {"a": 1}), ("sensor-1", {"a": 2}))
    ]
    assert ["converged: root and sensor-1 hold different store"] == [
        line.splitlines()[0] for line in torture.verdict([fact("healed", None), *states, QUIET])
    ]


def test_who_is_behind_a_bridge_has_to_be_listed_on_this_side_too() -> None:
    written = [asked("bridged", "s-1", "active"), told("bridged", "s-1", "active")]
    far = replica("bridged", {"s-1": "active"}, "collector-2")
    assert "" == why(judge(Acknowledged(), [*written, far, replica("bridged", {"s-1": "active"}), QUIET]))
    assert "bridged: 1 acknowledged and lost at root: s-1" == why(
        judge(Acknowledged(), [*written, far, replica("bridged", {}), QUIET])
    )


def test_a_tap_that_repeats_a_copy_or_does_not_count_what_it_leaves_out_is_told() -> None:
    copied, again = fact("copied", ["0a", "1", 4, ""]), fact("copied", ["0a", "1", 4, ""])
    assert [] == verdict(copied, fact("tapped", ["0a", "1", 16, 4, 0, 12]), fact("untapped", ["0a", 16, 4, 0, 12]))
    assert ["tapped: copy 4 of 1 comes again, or late"] == verdict(copied, again)
    assert ["tapped: of 16 messages 14 were copied, dropped or left out"] == verdict(
        fact("tapped", ["0a", "1", 16, 4, 0, 10])
    )


def test_a_note_that_stands_twice_in_a_log_is_doubled(tmp_path: Path) -> None:
    book = Book(tmp_path / "history")
    torture.note_replicas(book, {"documents": {"root": {"n1": 2, "n2": 1}}})
    book.close()
    assert ["documents: root holds 1 notes more than once: {'n1': 2}"] == book.strange


ENTERED = b'<add path="/" source="6aa3" timestamp="1.5" sequence="12"><note eid="f" n="sensor-4-8504"/></add>'
ADOPTED = (
    b'<add path="/" source="d73d" timestamp="1.5" sequence="196" by="sensor-4" origsource="6aa3" origsequence="12">'
    b'<note eid="f" n="sensor-4-8504"/></add>'
)
ENTERED_AGAIN = b'<add path="/" source="d73d" timestamp="1.5" sequence="197"><note eid="g" n="sensor-4-8504"/></add>'


def counted(*bodies: bytes) -> dict[str, int]:
    notes = torture.Notes()
    for body in bodies:
        notes.take({"body": body, "reference": "path=/"})
    return dict(notes.counts)


def test_an_entry_that_was_adopted_while_its_author_was_away_counts_once() -> None:
    assert {"sensor-4-8504": 1} == counted(ADOPTED, ENTERED)
    assert {"sensor-4-8504": 1} == counted(ENTERED, ADOPTED)


def test_an_entry_that_was_entered_by_two_authors_counts_twice() -> None:
    assert {"sensor-4-8504": 2} == counted(ENTERED, ADOPTED, ENTERED_AGAIN)


def test_the_note_in_an_operation_is_found_whatever_else_it_says() -> None:
    body = b'<add path="/" sequence="1"><note eid="f" n="sensor-1-7"/></add>'
    assert ["sensor-1-7"] == list(torture.notes_in({"body": body, "reference": "path=/", "sequence": 1}))
    assert [] == list(torture.notes_in({"body": b"<set/>"}))


def test_memory_that_goes_on_growing_is_told_and_a_cache_that_fills_is_not() -> None:
    mebi = 1 << 20
    steady = [(float(at), 200 * mebi) for at in range(0, 3_600, 2)]
    grows = [(float(at), (100 + at // 6) * mebi) for at in range(0, 3_600, 2)]
    filled = [(float(at), min(300, 100 + at // 6) * mebi) for at in range(0, 3_600, 2)]
    restarted = [(float(at), (40 if at % 1_800 < 600 else 170) * mebi) for at in range(0, 3_600, 2)]
    assert [False, True, False, False] == [torture.grows(each) for each in (steady, grows, filled, restarted)]
    written = [at / 24 for at in range(86_400)]  # 24 a second, 2,500 bytes each
    document = [(float(at), 40 * mebi + 60_000 * at) for at in range(0, 3_600, 2)]
    twice = [(float(at), 40 * mebi + 130_000 * at) for at in range(0, 3_600, 2)]
    assert [True, True] == [torture.grows(each) for each in (document, twice)]
    assert [False, True, True] == [torture.grows(each, written) for each in (document, twice, grows)]
    assert not torture.grows(grows[:300]), "too short to tell"
    assert not torture.grows([])
    assert not torture.grows(grows[::20]), "too few to tell"


def test_memory_of_a_process_that_still_warms_up_is_shown_and_not_judged(tmp_path: Path) -> None:
    process = Process("pipeline", [], tmp_path / "log", (), "")
    process.words = ["sleep", "60"]
    process.warms_up_s = 3_600.0
    process.start()
    try:
        process.note_memory(1.0)
        assert ([1.0], []) == ([at for at, _ in process.memory], process.warm)
        process.warms_up_s = 0.0
        process.note_memory(2.0)
        assert [2.0] == [at for at, _ in process.warm]
        assert 0 < process.warm[0][1]
    finally:
        process.kill()


def test_the_book_counts_what_was_acknowledged_and_keeps_every_line(tmp_path: Path) -> None:
    book = Book(tmp_path / "history")
    book.asks("root", "store", "a", 1)
    book.acknowledge("root", "store", "a", 1)
    book.asks("root", "store", "a", 2)
    book.close()
    assert {"store": 1} == book.acknowledged()
    assert ([], 1) == (book.written("documents"), len(book.written("store")))
    assert 0 < book.written("store")[0] < 600
    assert 3 == len((tmp_path / "history").read_bytes().splitlines())


def got(key: str, value: Any, what: str = "got", who: str = "sensor-1") -> Fact:
    return Fact(0, who, 0, "ok", what, ["store", key, value])


def call(client: str, number: int, *operation: Any) -> Fact:
    return Fact(0, "", 0, "invoke", "call", [client, number, "/app/shared/0", list(operation)])


def answer(client: str, number: int, result: Any) -> Fact:
    return Fact(0, "", 0, "ok", "call", [client, number, result])


@pytest.mark.proves("CHK-008", part="clients of a real store never miss their own write, and never read backwards")
def test_a_store_that_reads_backwards_is_told() -> None:
    ends = [replica("store", {"a": 2})]
    assert [] == verdict(*WRITES, got("a", 2), got("a", 2), *ends)
    assert ["causal: store: sensor-1 reads 1 at a, an older value, and knows 2"] == verdict(
        *WRITES, got("a", 2), got("a", 1), *ends
    )
    assert ["causal: store: client reads None at a, an older value, and knows 2"] == verdict(
        *WRITES, got("a", None, who="client"), *ends
    )


@pytest.mark.proves("CHK-011", part="clients of a real store are not shown again what they had read as deleted")
def test_an_entry_that_comes_back_is_told() -> None:
    ends = [replica("store", {"a": 2})]
    assert ["causal: store: sensor-1 reads 1 at b, an older value, which was deleted"] == verdict(
        *WRITES, got("b", 1), got("b", None), got("b", 1), *ends
    )


@pytest.mark.proves("CHK-017", part="watchers of a real store see nothing twice out of order, and the final state")
def test_a_watcher_that_is_shown_an_older_value_or_never_the_last_is_told() -> None:
    ends = [replica("store", {"a": 2}), replica("store", {"a": 2}, "watcher at sensor-1")]
    assert [] == verdict(*WRITES, got("a", 1, "saw"), got("a", 2, "saw"), *ends)
    assert ["watched: store: sensor-1 reads 1 at a, an older value, and knows 2"] == verdict(
        *WRITES, got("a", 2, "saw"), got("a", 1, "saw"), *ends
    )
    assert ["acknowledged: store: 1 acknowledged and lost at watcher at sensor-1: a"] == verdict(
        *WRITES, replica("store", {"a": 2}), replica("store", {"a": 1}, "watcher at sensor-1")
    )


@pytest.mark.proves("CHK-014", part="orders with a condition, at whoever is the root of a real fabric")
def test_two_who_replace_one_value_are_told_and_one_who_was_not_answered_is_not() -> None:
    first = [call("a", 1, "swap", None, "a 1"), answer("a", 1, True)]
    second = [call("b", 1, "swap", None, "b 1"), answer("b", 1, True)]
    last = [call("reader", 1, "get"), answer("reader", 1, "b 1")]
    assert [] == verdict(*first, call("b", 1, "swap", "a 1", "b 1"), *last)
    assert ["linearizable: no order of the calls on /app/shared/0 explains the last answer"] == verdict(
        *first, *second, *last
    )
    assert ["linearizable: no order of the calls on /app/shared/0 explains the last answer"] == verdict(*first, *last)


@pytest.mark.proves("CHK-015", part="logs and documents that nodes of a real fabric show")
def test_a_log_with_a_hole_and_two_documents_of_one_log_are_told(tmp_path: Path) -> None:
    def shown(node: str, document: str, ranges: list[list[int]]) -> list[Fact]:
        book = Book(tmp_path / f"{node} {document}")
        values = {torture.BODIES: "log", torture.SHOWN: document, torture.NUMBERS: {"p": ranges}}
        torture.note_document(book, "documents", node, values)
        book.close()
        return book.facts

    assert [] == verdict(*shown("root", "d", [[1, 9]]), *shown("sensor-1", "d", [[1, 9]]))
    assert ["prefix_fold: sensor-1 shows operations of p in torture behind a hole"] == verdict(
        *shown("root", "d", [[1, 9]]), *shown("sensor-1", "d", [[1, 3], [5, 9]])
    )
    assert ["prefix_fold: root and sensor-1 have one log of torture, and two documents"] == verdict(
        *shown("root", "d", [[1, 9]]), *shown("sensor-1", "e", [[1, 9]])
    )


def test_what_readers_of_shared_values_find_is_one_more_call(tmp_path: Path) -> None:
    book = Book(tmp_path / "history")
    torture.note_replicas(book, {"registers": {"root": {"/app/shared/0": "a 1"}}})
    book.close()
    assert [
        ("info", "state"),
        ("invoke", "call"),
        ("ok", "call"),
    ] == [(fact.kind, fact.what) for fact in book.facts]
    assert ["linearizable: no order of the calls on /app/shared/0 explains the last answer"] == verdict(*book.facts)


@pytest.mark.proves("FLD-040", part="nodes that call each other dead although no fault was played are named")
def test_a_node_that_calls_another_one_dead_for_nothing_is_named(tmp_path: Path) -> None:
    quiet, loud = tmp_path / "sensor-1.log", tmp_path / "root.log"
    quiet.write_text('weft: OPEN\n{"event": "node.started", "node": "sensor-1"}\n', "utf-8")
    left = '{"event": "topo.left", "node": "root", "fields": {"name": "collector-1", "why": "dead"}}\n'
    loud.write_text(f'{left}{left}{{"event": "topo.joined", "node": "root"}}\n{{"cut', "utf-8")
    assert [] == torture.unrest([quiet])
    assert ["calm: root reported topo.left 2 times, and no fault was played"] == torture.unrest([quiet, loud])
