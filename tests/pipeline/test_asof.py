"""The configuration as it stood (PIP-052), out of tables that are written by hand: no Spark."""

from pathlib import Path

import pytest

from tests.pipeline.ground import A, B
from tests.pipeline.plain import Row, applied, instant, lake_of, put, wrote
from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.pipeline import configuration
from weft.pipeline.configuration import State, state_at
from weft.pipeline.tables import CONFIGURATION, EVENTS, STAGES

EPOCH = 1 << 40
WRITTEN = [
    wrote(1, "/app/a", "1"),
    wrote(2, "/app/b", "2"),
    wrote(3, "/app/a", "3"),
    wrote(4, "/app/b", None),
    wrote(5, "/ap", "5", by="ttl"),
]
CUT_OFF = [
    *(wrote(1, "/app/a", "1"), wrote(2, "/app/b", "2")),
    # The root of epoch 0 is cut off behind 2 and goes on writing until second 6; that of epoch 1 begins in second 4.
    *(wrote(3, "/app/a", '"lost"', 3), wrote(4, "/app/gone", '"lost"', 3.5), wrote(5, "/app/b", '"lost"', 6)),
    *(wrote(3, "/app/b", "4", 4, epoch=1), wrote(4, "/app/c", "5", 5, epoch=1)),
]
SAID = [
    applied("s1", 1.2, 1),
    applied("s1", 3.2, 3),
    applied("s2", 4, 4, origin=B),
    applied("s1", 6, 5, start=9, event="config.refused"),
    applied("s1", 4.5, 2, start=9),
]


def made(path: Path, rows: list[Row], said: list[Row] | None = None) -> Layout:
    lake = lake_of(path)
    put(lake, CONFIGURATION, *rows)
    if said is not None:
        put(lake, EVENTS, *said)
    return lake


def ns(second: float) -> int:
    return round(instant(second).timestamp() * 1_000_000) * 1_000


def pairs(state: State) -> dict[str, str]:
    return {each.key: each.value for each in state.settings}


def at(lake: Layout, second: float, node: str | None = None) -> tuple[int, dict[str, str]]:
    state = state_at(lake.root, ns(second), node=node)
    return state.number, pairs(state)


def check_instants(path: Path) -> None:
    lake = made(path, list(reversed(WRITTEN)))
    assert (1, {"/app/a": "1"}) == at(lake, 1) == at(lake, 1.9)
    assert (2, {"/app/a": "1", "/app/b": "2"}) == at(lake, 2)
    assert (3, {"/app/a": "3", "/app/b": "2"}) == at(lake, 3)
    assert (4, {"/app/a": "3"}) == at(lake, 4)
    assert (5, {"/app/a": "3", "/ap": "5"}) == at(lake, 99)


@pytest.mark.proves("PIP-052")
def test_of_each_key_the_last_write_until_then_counts(tmp_path: Path) -> None:
    check_instants(tmp_path)
    last = state_at(tmp_path)
    assert (5, ns(5), 0, 0) == (last.number, last.at_ns, last.missing, last.refused)
    assert [("/ap", 5, "5", "ttl", ns(5)), ("/app/a", 3, "3", "joe", ns(3))] == last.settings
    assert {"/app/a": "3"} == pairs(state_at(tmp_path, subtrees=("/app/",)))
    assert {"/ap": "5"} == pairs(state_at(tmp_path, subtrees=("/ap/", "/ap")))


@pytest.mark.proves("PIP-052")
def test_a_clock_that_is_set_back_shows_no_state_that_never_was(tmp_path: Path) -> None:
    lake = made(tmp_path, [wrote(1, "/a", "1", 1), wrote(2, "/b", "2", 50), wrote(3, "/a", "3", 10)])
    assert (3, {"/a": "3", "/b": "2"}) == at(lake, 20)


def check_cut_off(path: Path) -> None:
    lake = made(
        path, CUT_OFF, [applied("old", 6, 5), applied("new", 6, EPOCH + 4, origin=B), applied("new", 7, EPOCH + 9)]
    )
    lost = {"/app/a": '"lost"', "/app/b": "2", "/app/gone": '"lost"'}
    assert (4, lost) == at(lake, 3.9), "so it was, there, then"
    assert (EPOCH + 3, {"/app/a": "1", "/app/b": "4"}) == at(lake, 4)
    new = {"/app/a": "1", "/app/b": "4", "/app/c": "5"}
    assert (EPOCH + 4, new) == at(lake, 6) == at(lake, 6, "new")
    assert (5, lost | {"/app/b": '"lost"'}) == at(lake, 6, "old"), "who was cut off with it had all of it"
    assert 0 == state_at(path).missing
    ahead = state_at(path, node="new")
    assert (EPOCH + 9, None, 5, new) == (ahead.number, ahead.at_ns, ahead.missing, pairs(ahead)), "not in the lake yet"


@pytest.mark.proves("PIP-052", "CFG-003")
def test_what_a_root_that_was_cut_off_wrote_counts_until_there_is_another(tmp_path: Path) -> None:
    check_cut_off(tmp_path)


def check_nodes(path: Path) -> None:
    lake = made(path, WRITTEN, SAID)
    assert (1, {"/app/a": "1"}) == at(lake, 3, "s1")
    assert (3, {"/app/a": "3", "/app/b": "2"}) == at(lake, 4, "s1") == at(lake, 4, A)
    assert (2, {"/app/a": "1", "/app/b": "2"}) == at(lake, 5, "s1"), "started anew, without what it had"
    assert (4, {"/app/a": "3"}) == at(lake, 99, "s2")
    assert 2 == state_at(path, node="s1").number


@pytest.mark.proves("PIP-052", "CFG-047")
def test_a_node_had_what_it_said(tmp_path: Path) -> None:
    check_nodes(tmp_path)


@pytest.mark.proves("PIP-052")
def test_a_node_is_found_by_the_name_that_the_tree_gives_it(tmp_path: Path) -> None:
    """Events of a node need not say its name. Here its name went to another machine, later."""
    tree = [
        wrote(1, "/TOPO/root", f'{{"endpoint":"","epoch":0,"name":"top","uuid":"{B}"}}'),
        wrote(2, f"/TOPO/web/node/{A}", '{"endpoint":"","level":"leaf","name":"web-1"}'),
        wrote(3, "/TOPO/web/node/x", 'no JSON, and yet it says "name":"web-1"'),
        wrote(4, f"/TOPO/web/node/{A}", None),
        wrote(5, f"/TOPO/web/node/{'c' * 32}", '{"endpoint":"","level":"leaf","name":"web-1"}'),
    ]
    said = [applied(A, 2.5, 2), applied(B, 3.5, 3, origin=B), applied("c" * 32, 5.5, 5, origin="c" * 32, start=9)]
    lake = made(tmp_path, tree, said)
    assert [2, 3, 5, 2] == [at(lake, *asked)[0] for asked in ((5, "web-1"), (5, "top"), (6, "web-1"), (6, A))]
    assert "first reported" in refused(tmp_path, 2, "web-1").text
    assert refused(tmp_path, 6, "web").try_this.endswith("it knows of: web-1, top")


@pytest.mark.proves("PIP-052")
def test_writes_that_the_lake_does_not_have_are_counted(tmp_path: Path) -> None:
    lake = made(tmp_path, [row for row in WRITTEN if row["counter"] not in (1, 3)])
    put(lake, STAGES["configuration"].quarantine, {"sequence": 3, "reason": "too-long"})
    found = [state_at(tmp_path, ns(second)) for second in (2, 4)]
    assert [(2, 1, 1), (4, 2, 1)] == [(state.number, state.missing, state.refused) for state in found]


def refused(path: Path, second: float | None = None, node: str | None = None) -> UserError:
    with pytest.raises(UserError) as told:
        state_at(path, None if second is None else ns(second), node=node)
    return told.value


def test_what_cannot_be_answered_is_said_in_words(tmp_path: Path) -> None:
    assert "no-lake" == refused(tmp_path).code
    lake = lake_of(tmp_path)
    assert ("no-configuration", "weft lake run") == (refused(tmp_path).code, refused(tmp_path).try_this)
    put(lake, CONFIGURATION)
    assert "no write of the configuration yet" in refused(tmp_path).text
    put(lake, CONFIGURATION, *WRITTEN)
    early = refused(tmp_path, 0.5)
    first = instant(1).isoformat()
    assert ("too-early", f"--at {first}") == (early.code, early.try_this)
    assert f"the first write in the lake was made at {first}" in early.text
    assert "has events" in refused(tmp_path, node="s1").text
    put(lake, EVENTS, *SAID)
    early = refused(tmp_path, 1.1, "s1")
    assert ("too-early", f"--at {instant(1.2).isoformat()}") == (early.code, early.try_this)
    unknown = refused(tmp_path, 1.1, "s'9")
    assert ("no-node", True) == (unknown.code, unknown.try_this.endswith("it knows of: s1, s2"))


BUGS = {
    "the first write of a key": ("STATE", "ORDER BY number", "ORDER BY number DESC", check_instants),
    "a later one of the same second is left out": ("LAST", "<= {upto}", "< {upto}", check_instants),
    "the highest counter, whatever its epoch": ("LAST", "max(number)", "arg_max(number, counter)", check_cut_off),
    "lost writes count": ("STATE", "reigns.first <= writes.counter", "false", check_cut_off),
    "writes are lost before another root is there": ("STATE", "WHERE number <= {number}", "", check_cut_off),
    "what others ran": ("APPLIED", "(node = {node} OR origin IN ({origins}))", "true", check_nodes),
    "any number of any event": ("APPLIED", "event = 'config.applied'", "true", check_nodes),
    "the highest number ever": ("APPLIED", "ORDER BY era DESC, sequence DESC", "ORDER BY number DESC", check_nodes),
}


@pytest.mark.prove("a history for each bug")
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_would_be_seen(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, right, wrong, check = BUGS[bug]
    text = getattr(configuration, name)
    assert right in text
    monkeypatch.setattr(configuration, name, text.replace(right, wrong))
    with pytest.raises((AssertionError, UserError)):
        check(tmp_path)
