"""What stood when in the store and in the configuration, and what was not taken, out of plain tables: no Spark."""

import json
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.canaries import planted
from tests.pipeline.ground import A, B
from tests.pipeline.plain import Row, applied, instant, lake_of, put, wrote
from tests.store.rig import DELETE, Node
from weft.base.chance import Chance
from weft.base.errors import UserError
from weft.cli import store_lake
from weft.cli.doc_files import log_of_lake
from weft.client.doc.replaying import Moment, replay
from weft.cores.document.fold.engine import fold
from weft.cores.document.fold.schema import Schema
from weft.lake.layout import Layout
from weft.pipeline.configuration import state_at
from weft.pipeline.sql import Lake
from weft.pipeline.stored import entry_at, history_of
from weft.pipeline.tables import CONFIGURATION, DOCUMENTS, EVENTS, STAGES, STORE, VIEWS
from weft.wire.document.operations import parse
from weft.wire.store.pack import PathValue

pytestmark = pytest.mark.prove("whole batches in Spark")

COUNTER = 1 << 40


def ask(lake: Layout, text: str) -> list[tuple[Any, ...]]:
    with Lake(lake.root) as asked:
        return [tuple(row.values()) for row in asked.query(text).to_pylist()]


def ns(second: float) -> int:
    return round(instant(second).timestamp() * 1_000_000) * 1_000


def seconds(stamp: datetime | None) -> float | None:
    return None if stamp is None else (stamp - instant(0)).total_seconds()


# The store


def changed(node: str, tick: int, tock: int, value: str | None, at: float, **more: Any) -> Row:
    """A row of `silver.store`."""
    who = {"origin": node, "sequence": tick, "node": node, "tick": tick, "tock": tock, "path_text": "a.b", "chain": []}
    said = {"value": value, "deleted": value is None, "at": instant(at), "received": instant(more.pop("seen", at))}
    return who | said | more


def check_store(path: Path, seeds: range) -> None:
    """At every instant what the greatest of the changes made until then says; all of them in any order of arrival."""
    for seed in seeds:
        chance = Chance(f"store {seed}")
        rows = [
            changed(node, tick, chance.randint(1, 6), chance.choice((str(tick), None)), chance.randint(1, 9), seen=chance.randint(1, 9))
            for node in ("n1", "n2") for tick in range(1, 6)
        ]  # fmt: skip
        chance.shuffle(rows)
        lake = lake_of(path / str(seed))
        put(lake, STORE, *rows)
        history = ask(lake, "SELECT node, tick, valid_from, valid_to, stood FROM gold.store_history")
        assert 10 == len(history)
        for second in range(11):
            best = None
            for seen in (4, 99):
                made = [row for row in rows if row["at"] <= instant(second) and row["received"] <= instant(seen)]
                best = max(made, key=lambda row: (row["tock"], row["tick"], row["node"] == "n1"), default=None)
                found = entry_at(lake.root, "a.b", at_ns=ns(second), as_seen_ns=ns(seen))
                wanted = None if best is None else (best["node"], best["tick"], best["value"], best["deleted"])
                assert wanted == (found and (found.node, found.tick, found.text, found.deleted)), (seed, second, seen)
            stood = [
                (node, tick) for node, tick, first, last, there in history
                if there and first <= instant(second) and (last is None or instant(second) < last)
            ]  # fmt: skip
            assert ([] if best is None else [(best["node"], best["tick"])]) == stood, (seed, second)


@pytest.mark.proves("PIP-051")
def test_an_entry_is_at_every_instant_what_the_greatest_change_until_then_says(tmp_path: Path, soak: bool) -> None:
    check_store(tmp_path, range(40 if soak else 4))


BUGS_OF_STORE = {
    "winner by arrival": ("ORDER BY tock, tick, node DESC", "ORDER BY received, node"),
    "names the other way round": ("node DESC", "node"),
    "until the next change, not the first greater one": ("1 FOLLOWING AND UNBOUNDED FOLLOWING", "1 FOLLOWING AND 1 FOLLOWING"),
}  # fmt: skip


@pytest.mark.parametrize("bug", planted(BUGS_OF_STORE))
def test_a_planted_bug_of_the_store_would_be_seen(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view = VIEWS["gold.store_history"]
    assert BUGS_OF_STORE[bug][0] in view.sql
    monkeypatch.setitem(VIEWS, "gold.store_history", view._replace(sql=view.sql.replace(*BUGS_OF_STORE[bug])))
    with pytest.raises(AssertionError):
        check_store(tmp_path, range(4))


@pytest.mark.proves("PIP-051")
@pytest.mark.proves("STO-033", part="history is a read model: the lake")
def test_what_the_lake_shows_of_an_instant_is_what_the_nodes_answered_then(tmp_path: Path) -> None:
    """Two nodes of a store that hear each other; each second one writes, and both are asked."""
    chance, nodes = Chance("as of"), [Node("a"), Node("b")]
    rows, answers = [], []
    for second in range(1, 30):
        writer, other = chance.choice((nodes, nodes[::-1]))
        path = chance.choice(("x", "x.y", "z"))
        value = chance.choice((DELETE, second, {"at": [second, None]}, b"\xff", 1 << 70, PathValue(("p", second))))
        event = writer.write(path, value).event
        other.hear(event)
        link = event.chain.head
        text = None if event.value is None else canonical_of(event.value)
        rows.append(changed(link[0], link[1], event.tock, text, second, path_text=path))
        answers.append({path: node.value(path) for path in ("x", "x.y", "z") for node in nodes if has(node, path)})
    lake = lake_of(tmp_path)
    put(lake, STORE, *chance.sample(rows, len(rows)))
    for second, answer in enumerate(answers, 1):
        found = {path: entry_at(lake.root, path, at_ns=ns(second + 0.5)) for path in ("x", "x.y", "z")}
        told = {path: DELETE if at.deleted else at.value for path, at in found.items() if at is not None}
        assert answer == told, second
    assert rows[-1]["tick"] == history_of(lake.root, rows[-1]["path_text"], limit=1)[0].tick


def canonical_of(packed: bytes) -> str:
    from weft.lake.changes import _value

    return _value(packed)


def has(node: Node, path: str) -> bool:
    try:
        node.value(path)
    except KeyError:
        return False
    return True


def test_people_are_told_what_stood_and_what_never_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = lake_of(tmp_path)
    with pytest.raises(UserError, match="no table of the lake"):
        store_lake.get("a.b", lake=tmp_path)
    put(
        lake, STORE, changed("n1", 1, 10, "1", 1), changed("n2", 1, 10, "2", 5, by="joe"), changed("n1", 2, 12, None, 9)
    )
    assert 0 == store_lake.get("a.b", at=instant(4).isoformat(), lake=tmp_path)
    assert 1 == store_lake.get("a.b", lake=tmp_path)
    assert 1 == store_lake.get("a.c", lake=tmp_path)
    assert 0 == store_lake.history("a.b", lake=tmp_path)
    assert 1 == store_lake.history("a.c", lake=tmp_path)
    assert 0 == store_lake.get("a.b", at=instant(4).isoformat(), json=True, lake=tmp_path)
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert ("1", 5) == (lines[0], len(lines))
    assert ["deleted  # n1:2", "1  # n1:1", "2  # n2:1 by joe  never stood"] == [line[21:] for line in lines[1:4]]
    told = json.loads(lines[4])
    assert (1, "n1", ns(1), ns(9)) == (told["value"], told["node"], told["from"], told["to"])
    assert ["it had been deleted" in err, "none had been written" in err, "no change of a.c" in err] == [True] * 3


# Documents


def entered(source: str, number: int, second: int, points: int) -> bytes:
    """An entry: points in a jam."""
    head = f'<set period="1" jam="{number}" source="{source}" sequence="{number}" timestamp="{eff(second)}">'
    return f'{head}<attribute name="points-{source[0]}">{points}</attribute></set>'.encode()


def eff(second: int) -> float:
    return instant(second).timestamp()


@pytest.mark.proves("PIP-053", "GSP-032")
def test_a_document_that_the_lake_makes_of_an_instant_is_what_a_node_showed_then(tmp_path: Path) -> None:
    """Three sources enter, some of it arrives late and behind gaps; at each second the node is asked."""
    chance, arrivals = Chance("document"), []
    for source in (A, B, "c" * 32):
        for number in range(1, 7):
            second = 3 * number + chance.randint(0, 2)
            arrivals.append(
                (
                    second + chance.choice((0, 0, 1, 9)),
                    source,
                    number,
                    entered(source, number, second, chance.randint(0, 9)),
                )
            )
    schema, live = Schema.load("derby"), {}
    for second in range(1, 33):
        live[second] = fold(schema, [parse(body) for at, _, _, body in sorted(arrivals) if at <= second]).digest()
    rows = [
        {"origin": f"bout/{source}", "sequence": number, "session": "bout", "source": source, "eff": parse(body).timestamp,
         "received_at": instant(at), "body": body, "schema": "derby", "verb": "set", "reference": ""}
        for at, source, number, body in arrivals
    ]  # fmt: skip
    lake = lake_of(tmp_path)
    put(lake, DOCUMENTS, *chance.sample(rows, len(rows)))
    log = log_of_lake(lake.root, "bout", "")
    assert 18 == len(log.entries)
    for second, digest in live.items():
        assert digest == replay(schema, log.entries, Moment(as_seen=eff(second))).digest(), second
        true = [parse(body) for _, _, _, body in arrivals if parse(body).timestamp <= eff(second)]
        assert fold(schema, true).digest() == replay(schema, log.entries, Moment(at=eff(second))).digest(), second
    assert len(set(live.values())) > 9, "it has changed all the time"


# The configuration


def world(chance: Chance) -> list[Row]:
    """Writes of three roots; each goes on where an earlier one was, who may have written on meanwhile."""
    rows: list[Row] = []
    at, counter = 0.0, 0
    for epoch in range(3):
        counter = max(0, counter - chance.randint(0, 3)) if epoch else 0
        for _ in range(chance.randint(2, 6)):
            counter, at = counter + 1, at + chance.choice((1, 1, 2, -3))
            value = chance.choice((None, f"{epoch}.{counter}"))
            rows.append(wrote(counter, chance.choice(("/a", "/b")), value, at, epoch=epoch))
    return rows


def check_configuration(path: Path, seeds: range) -> None:
    """At every instant what `weft config show --at` says, which has its own oracle."""
    for seed in seeds:
        chance = Chance(f"configuration {seed}")
        rows = world(chance)
        lake = lake_of(path / str(seed))
        put(lake, CONFIGURATION, *chance.sample(rows, len(rows)))
        history = ask(lake, "SELECT key, number, valid_from, valid_to, value FROM gold.configuration_history")
        for second in sorted({row["at"] for row in rows}):
            state = state_at(lake.root, ns((second - instant(0)).total_seconds()))
            found = [
                (key, number, value) for key, number, first, last, value in history
                if value is not None and first <= second and (last is None or second < last)
            ]  # fmt: skip
            assert [each[:3] for each in state.settings] == sorted(found), (seed, second)


@pytest.mark.proves("PIP-052")
def test_a_value_is_in_force_when_the_root_had_it(tmp_path: Path, soak: bool) -> None:
    check_configuration(tmp_path, range(80 if soak else 8))


BUGS_OF_CONFIGURATION = {
    "lost writes count": ("reigns.first <= writes.counter", "false"),
    "clocks count": ("ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "ROWS BETWEEN CURRENT ROW AND CURRENT ROW"),
    "a lost write goes, and nothing comes back": ("UNION SELECT key, reign FROM lost", ""),
    "lost before another root is there": ("AND lost.reign <= step", ""),
}


@pytest.mark.parametrize("bug", planted(BUGS_OF_CONFIGURATION))
def test_a_planted_bug_of_the_configuration_would_be_seen(
    bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = VIEWS["gold.configuration_history"]
    right, wrong = BUGS_OF_CONFIGURATION[bug]
    assert right in view.sql
    monkeypatch.setitem(VIEWS, "gold.configuration_history", view._replace(sql=view.sql.replace(right, wrong)))
    with pytest.raises(AssertionError):
        check_configuration(tmp_path, range(8))


CUT_OFF = [
    *(wrote(1, "/a", "1"), wrote(2, "/b", "2", by="sue"), wrote(3, "/a", '"lost"', 3), wrote(4, "/c", '"lost"', 3.5)),
    *(wrote(3, "/b", "3", 4, epoch=1), wrote(4, "/d", "4", 5, epoch=1)),
]


def test_a_version_says_who_ran_it_and_whether_it_was_lost(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    put(lake, CONFIGURATION, *CUT_OFF)
    said = [applied("s1", 1.2, 1), applied("s1", 3.2, 3), applied("s2", 4, 4, origin=B)]
    put(lake, EVENTS, *said, applied("s2", 9, COUNTER + 4, origin=B), applied("s2", 11, COUNTER + 4, origin=B))
    rows = ask(
        lake,
        "SELECT number, valid_from, valid_to, was_lost, nodes FROM gold.configuration_history WHERE key = '/a' ORDER BY 2",
    )
    ran = [{node["node"]: (seconds(node["first"]), seconds(node["last"])) for node in row[4]} for row in rows]
    assert [{"s1": (1.2, 1.2)}, {"s1": (3.2, 3.2), "s2": (4, 4)}, {"s2": (9, 11)}] == ran
    spans = [(number, seconds(first), seconds(last), lost) for number, first, last, lost, _ in rows]
    assert [(1, 1, 3, False), (3, 3, 4, True), (1, 4, None, False)] == spans


# Conflicts

FIRST, SECOND, THIRD = sorted([b"<set>1", b"<set>2", b"<set>\xff"], key=lambda body: sha256(body).digest())


def found_by(node: str, at: float, origin: str, event: str, /, **fields: Any) -> Row:
    """An event with fields."""
    who = {"origin": origin, "era": 1, "sequence": round(at * 100), "node": node, "event": event, "at": instant(at)}
    return who | {"fields": json.dumps(fields)}


def check_conflicts(path: Path) -> None:
    """Each stands once, whoever has told of it, with what was kept and what was lost."""
    lake = lake_of(path)
    put(lake, CONFIGURATION, *CUT_OFF)
    kept, lost = {"node": "n1", "tick": 1, "tock": 9, "value": 1}, {"node": "n2", "tick": 4, "tock": 9, "deleted": True}
    told: dict[str, Any] = {"path": "a.b", "reason": "concurrent", "kept": kept, "lost": lost}
    both = [
        found_by("s1", 7, A, "store.conflict", number=3, **told),
        found_by("s2", 6, B, "store.conflict", number=1, **told),
    ]
    other = found_by("s1", 8, A, "store.conflict", number=4, **told | {"lost": lost | {"tick": 5}})
    shown = found_by("s1", 9, A, "doc.conflict", session="G5", id="c1", kind="set", slot="period=1", attribute="points")
    put(lake, EVENTS, *both, other, shown, found_by("s1", 9.5, A, "doc.opened", session="G5"))
    name = {"origin": f"G5/{A}", "sequence": 7}
    put(lake, DOCUMENTS, name | {"session": "G5", "source": A, "reference": "jam=3", "body": SECOND})
    forks = [name | {"reason": "changed", "raw": raw, "drain": drain, "received_ns": ns(at)}
             for raw, drain, at in ((THIRD, "d2", 3), (FIRST, "d1", 2), (FIRST, "d3", 1), (FIRST, "d4", 8))]  # fmt: skip
    put(lake, STAGES["documents"].quarantine, *forks, name | {"reason": "bad-type", "raw": b"x"})
    rows = ask(lake, "FROM gold.conflicts ORDER BY kind, place, lost")
    assert [
        ("/a", "lost-write", "1", "joe", '"lost"', "joe", "root", 4),
        ("/c", "lost-write", None, None, '"lost"', "joe", "root", 4),
    ] == [(*row[2:], seconds(row[1])) for row in rows if row[0] == "configuration"]
    who = f"{A}:7"
    text = {body: body.decode("utf-8", "replace").replace("\ufffd", "\\xFF") for body in (FIRST, SECOND, THIRD)}
    assert sorted(
        [("G5 jam=3", "fork", text[FIRST], who, text[lost], who, "d3", 1) for lost in (SECOND, THIRD)]
        + [("G5 period=1 points", "conflict", None, None, None, None, "s1", 9)],
        key=str,
    ) == sorted([(*row[2:], seconds(row[1])) for row in rows if row[0] == "document"], key=str)
    of_store = [(row[2], row[3], json.loads(row[4]), row[5], json.loads(row[6])["tick"], row[7], row[8], seconds(row[1]))
                for row in rows if row[0] == "store"]  # fmt: skip
    assert [
        ("a.b", "concurrent", kept, "n1", 4, "n2", "s2", 6),
        ("a.b", "concurrent", kept, "n1", 5, "n2", "s1", 8),
    ] == of_store


def test_what_was_not_taken_stands_once_with_what_was(tmp_path: Path) -> None:
    check_conflicts(tmp_path)


BUGS_OF_CONFLICTS = {
    "each teller counts": ("GROUP BY place, reason, kept_by", 'GROUP BY "at", place, reason, kept_by'),
    "the greater hash counts": ("arg_min(body, sha256(body))", "arg_max(body, sha256(body))"),
    "other reasons are forks": ("WHERE reason = 'changed'", ""),
    "losers that won": ("lost.reign <= step", "false"),
}


@pytest.mark.parametrize("bug", BUGS_OF_CONFLICTS)
def test_a_planted_bug_of_conflicts_would_be_seen(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view = VIEWS["gold.conflicts"]
    right, wrong = BUGS_OF_CONFLICTS[bug]
    assert right in view.sql
    monkeypatch.setitem(VIEWS, "gold.conflicts", view._replace(sql=view.sql.replace(right, wrong)))
    with pytest.raises(AssertionError):
        check_conflicts(tmp_path)
