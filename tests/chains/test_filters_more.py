"""Filters that send, keep, show, or call a function: `route`, `absorb`, `stdout`, `python` (CHN-068, CHN-069)."""

import json
import os
from typing import Any

import msgspec
import pytest

from tests.chains.test_aggregate import alone, arrive, letter, specs
from weft.base.effects import Perform, Tell
from weft.base.errors import UserError
from weft.base.mail import OUTBOX, of_record
from weft.base.records import Stream, StreamRecord
from weft.cores.chains import limits
from weft.cores.chains.messages import MailPosted, Placed, ShowLine
from weft.cores.chains.settings import parse_filters
from weft.cores.chains.trial import parse_trials, play
from weft.node.functions import functions_of
from weft.shell.showing import LINE_BYTES_MAX, Showing


def mails(site: Any, stream: int = OUTBOX) -> list[StreamRecord]:
    return [one for one in site.journal if isinstance(one, StreamRecord) and one.stream == stream]


# route


@pytest.mark.proves("CHN-068", part="route on `out` sets the destination")
def test_on_out_a_route_sets_the_destination_of_what_it_sees() -> None:
    route = {"name": "r", "kind": "route", "types": ["t"], "where": {"v": 1}, "to": "direct:D"}
    rig, site = alone(route)
    rig.parents["D"] = "B"
    site.core.command(Placed("collector", "C", ((b"D" * 16, "D"),)), rig.now)
    for tag, value in ((1, 1), (2, 2)):
        rig.sites["B"].core.engine.accept(*sending(rig, tag, {"v": value}))
    told = [one.event for one in site.core.effects() if isinstance(one, Tell)]
    posted = [event.mail for event in told if isinstance(event, MailPosted)]
    assert [("DIRECT", "D")] == [mail.to for mail in posted]


def sending(rig: Any, tag: int, content: Any) -> tuple[Any, ...]:
    from weft.wire import clients

    item = clients.SendItem(tag=tag, type="t", to=["PARENTSOF"], fmt="json")
    return rig.sites["B"].session("s"), item, (json.dumps(content).encode(),), rig.now


@pytest.mark.proves("CHN-068", part="route on `in` sends a copy")
def test_on_in_a_route_sends_a_copy_one_deeper_and_the_message_goes_on() -> None:
    route = {"name": "r", "kind": "route", "types": ["t"], "dir": "in", "to": "parentsof"}
    rig, site = alone(route)
    seen = rig.reg("B", "reader", 1, {})
    arrive(rig, site, letter(rig, 7, {"v": 1}, fmt="json"))
    assert [(7, 1)] == [(mail.sequence, mail.depth) for mail in map(of_record, mails(site))]
    assert 1 == len([event for event in rig.events if event[0] == "rec" and event[2] == seen.name])
    arrive(rig, site, letter(rig, 8, {"v": 1}, depth=limits.DEPTH_MAX, fmt="json"))
    assert (1, 1) == (len(mails(site)), site.core.counters.links["r"].failed)


RULES: list[dict[str, Any]] = [
    {"where": {"total": {"ge": 1000}}, "to": "direct:D"},
    {"where": {"total": {"ge": 100}}, "to": "direct:E"},
]


@pytest.mark.proves("CHN-068")
@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [("DIRECT", "D"), ("DIRECT", "E")]),
        ({"to": "direct:F"}, [("DIRECT", "D"), ("DIRECT", "E"), ("DIRECT", "F")]),
    ],
)
def test_of_several_rules_of_a_route_the_first_that_fits_decides(more: Any, expected: Any) -> None:
    rig, site = alone({"name": "r", "kind": "route", "types": ["t"], "rules": RULES, **more})
    rig.parents |= dict.fromkeys("DEF", "B")
    site.core.command(Placed("collector", "C", tuple([(name.encode() * 16, name) for name in "DEF"])), rig.now)
    for tag, total in enumerate((5000, 200, 1), 1):
        site.core.engine.accept(*sending(rig, tag, {"total": total}))
    told = [one.event for one in site.core.effects() if isinstance(one, Tell)]
    assert expected == [event.mail.to for event in told if isinstance(event, MailPosted)]


def test_a_message_whose_fields_cannot_be_read_fits_no_rule() -> None:
    rig, site = alone({"name": "r", "kind": "route", "types": ["t"], "dir": "in", "rules": RULES})
    record = letter(rig, 7, {"total": 5000}, fmt="json")
    arrive(rig, site, msgspec.structs.replace(record, payload=b"no json"))
    assert ([], 1) == (mails(site), site.core.counters.links["r"].passed)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], "E04 chains.filter[0].rules: must be 1 to 64 tables"),
        ("all", "E04 chains.filter[0].rules: must be 1 to 64 tables"),
        ([{"to": "local"}], "E03 chains.filter[0].rules[0].where: is missing"),
        ([{"where": {}, "to": "local"}], "E03 chains.filter[0].rules[0].where: without conditions"),
        ([{"where": {"v": 1}}], "E03 chains.filter[0].rules[0].to: is missing"),
        ([{"where": {"v": 1}, "to": "up"}], "E04 chains.filter[0].rules[0].to: 'up' is no destination"),
        ([{"where": {"v": {"is": 1}}, "to": "local"}], "E02 chains.filter[0].rules[0].where.v.is"),
        ([{"where": {"v": 1}, "to": "local", "when": "x"}], "E02 chains.filter[0].rules[0].when"),
        (["x"], "E04 chains.filter[0].rules[0]: must be a table"),
    ],
)
def test_a_rule_that_is_none_is_refused_with_its_place(rules: Any, expected: str) -> None:
    _, mistakes = parse_filters([{"name": "r", "kind": "route", "types": ["t"], "rules": rules}])
    assert mistakes[0].startswith(expected), mistakes


def test_a_route_to_the_node_itself_sends_nothing_in_circles() -> None:
    route = {"name": "r", "kind": "route", "types": ["t"], "dir": "in", "to": "parentsof"}
    rig, site = alone(route, level="root")
    arrive(rig, site, letter(rig, 7, {"v": 1}))
    assert ([], 1) == (mails(site), site.core.counters.links["r"].passed)


# absorb


@pytest.mark.proves("CHN-068", part="absorb: ends here, as a row of the lake")
@pytest.mark.proves("CHN-033", part="(d): what absorb takes on `out` is durable before `deleted`")
@pytest.mark.parametrize("direction", ["in", "out"])
def test_what_is_absorbed_ends_here_and_stands_in_the_journal_once(direction: str) -> None:
    absorb = {"name": "a", "kind": "absorb", "types": ["t"], "dir": direction, "where": {"v": 1}}
    rig, site = alone(absorb)
    reader = rig.reg("B", "reader", 1, {"dir": direction})
    for number, value in enumerate((1, 2), 1):
        if direction == "in":
            arrive(rig, site, letter(rig, number, {"v": value}, fmt="json"))
        else:
            rig.send("B", "s", number, json.dumps({"v": value}), fmt="json")
    assert [(1, "t")] == [(one.sequence, one.key) for one in mails(site, Stream.MESSAGES)]
    assert 1 == len([event for event in rig.events if event[0] == "rec" and event[2] == reader.name])
    statuses = [event[5] for event in rig.events if event[0] == "status"]
    assert (["deleted", "spooled"] if direction == "out" else []) == statuses


# stdout


@pytest.mark.proves("CHN-068", part="stdout")
def test_what_passes_a_stdout_filter_is_shown_and_goes_on() -> None:
    rig, site = alone({"name": "s", "kind": "stdout", "types": ["t"], "dir": "in", "where": {"v": 1}})
    shown = []
    for number, value in enumerate((1, 2), 1):
        site.core.screen(letter(rig, number, {"v": value}), rig.now)
        shown += [one.work for one in site.core.effects() if isinstance(one, Perform)]
    assert [("s", "in", "t", b"\x81\xa1v\x01")] == [(one.filter, one.direction, one.type, one.payload) for one in shown]


@pytest.mark.prove("a very long line")
def test_a_line_is_json_however_long_and_strange_and_nobody_is_waited_for() -> None:
    reading, writing = os.pipe()
    try:
        showing = Showing(writing)
        showing.show(ShowLine("s", "in", "t", b"A" * 16, b"\x1b[2J\xff"))
        first = json.loads(os.read(reading, 1 << 16))
        assert ("\x1b[2J\\xff", "t") == (first["payload"], first["type"])
        long = ShowLine("s", "in", "t", b"A" * 16, b"\xff" * 100_000)
        for _ in range(100):
            showing.show(long)
        lines = os.read(reading, 1 << 20).splitlines()
        assert all(len(line) < LINE_BYTES_MAX and json.loads(line)["cut"] == 100_000 for line in lines)
        showing.show(long)
        assert 100 - len(lines) == json.loads(os.read(reading, 1 << 16))["left_out"] > 0
    finally:
        os.close(reading)
        os.close(writing)


# python


def half(record: dict[str, Any]) -> Any:
    """What a test's filter does."""
    if record["v"] == 0:
        return None
    if record["v"] < 0:
        return "no record"
    if record["v"] % 2 == 0:
        record["v"] //= 2
    return record


PYTHON = {"name": "p", "kind": "python", "types": ["t"], "call": f"{__name__}:half"}


@pytest.mark.proves(
    "CHN-069", part="a function sees, changes or deletes each record; what it raises is left to on_error"
)
@pytest.mark.parametrize(
    "on_error, left", [("keep", [{"v": 3}, {"v": 2}, {"v": -1}, {}]), ("drop", [{"v": 3}, {"v": 2}])]
)
def test_a_function_sees_changes_or_deletes_each_record(on_error: str, left: list[dict[str, Any]]) -> None:
    test = {"name": "t", "type": "t", "passes": [], "send": [[{"v": 3}, {"v": 4}, {"v": 0}, {"v": -1}, {}]]}
    filters, trials, mistakes = parse_trials({"chains": {"filter": [{**PYTHON, "on_error": on_error}], "test": [test]}})
    assert ([], [left]) == (mistakes, play(filters, trials[0], functions_of(filters)).found["passes"])


@pytest.mark.parametrize("call", ["nowhere.at_all:f", f"{__name__}:nothing", f"{__name__}:PYTHON"])
def test_a_function_that_is_not_there_ends_the_start_with_a_reason(call: str) -> None:
    filters, _, _ = parse_trials({"chains": {"filter": [{**PYTHON, "call": call}]}})
    with pytest.raises(UserError) as refused:
        functions_of(filters)
    assert ("bad-settings", True) == (refused.value.code, call in str(refused.value))


def test_the_helpers_of_this_file_make_filters() -> None:
    assert "route" == specs({"name": "r", "kind": "route", "types": ["t"], "to": "local"})[0].kind
