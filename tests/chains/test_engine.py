"""Registrations, sends and their statuses, routing, tags, the end of a node."""

from typing import Any

import pytest

from tests.chains.rig import ERA, Recorder, Rig, Site
from weft.base.effects import Effect, Persist, Reply, Tell
from weft.base.mail import OUTBOX, of_record
from weft.base.records import StreamRecord
from weft.cores.chains import limits
from weft.cores.chains.messages import (
    FiltersRefused,
    LinkStood,
    MailPosted,
    Placed,
    PlanFilters,
    PostFailed,
    PostReached,
    ShowChains,
    Stop,
)
from weft.cores.chains.settings import parse_filters
from weft.wire import clients

TREE: dict[str, str | None] = {"A": "B", "B": "C", "C": None}


def statuses(rig: Rig, node: str = "A", name: str = "s") -> list[tuple[int, bool, str]]:
    return [event[3:] for event in rig.events if event[:3] == ("status", node, name)]


def whys(rig: Rig, node: str = "A") -> list[str]:
    return [why for *_, why in statuses(rig, node)]


def payloads(rig: Rig, node: str, name: str) -> list[str]:
    return [event[5] for event in rig.events if event[:3] == ("rec", node, name)]


def alone(level: str = "sensor", parent: str = "", **settings: Any) -> tuple[Rig, Site]:
    """One node, and nobody to whom its effects go."""
    rig = Rig({"A": None}, **settings)
    rig.sites["A"].core.command(Placed(level, parent), rig.now)
    return rig, rig.sites["A"]


# Registrations


@pytest.mark.proves("CHN-002", "CHN-010", "CHN-019")
@pytest.mark.parametrize(
    "said, why",
    [
        ({"type": "Upper"}, "bad-type"),
        ({"type": ""}, "bad-type"),
        ({"type": "a" * 65}, "bad-type"),
        ({"type": "a" * 63 + ".*"}, "bad-type"),
        ({"type": "a*"}, "bad-type"),
        ({"type": ".*"}, "bad-type"),
        ({"type": "-a"}, "bad-type"),
        ({"at": 0}, "bad-position"),
        ({"at": 4_294_967_295}, "bad-position"),
        ({"at": "first"}, "bad-position"),
        ({"dir": "up"}, "bad-position"),
        ({"dir": "out", "confirm": True}, "confirm-on-out"),
        ({"access": "rx"}, "denied"),
        ({"fail": "never"}, "denied"),
        ({"access": "rw", "type": "weft.metric"}, "denied"),
        ({"confirm": True, "type": "weft.*"}, "denied"),
        ({"access": "rw", "confirm": True}, "denied"),
    ],
)
def test_a_registration_that_means_nothing_is_refused(said: dict[str, Any], why: str) -> None:
    rig, site = alone()
    session = rig.reg("A", "c", 1, said)
    assert ([clients.Error(about="reg", why=why, reg=1)], {}) == (session.said, session.links)
    assert {why: 1} == site.core.context.counters.errors
    assert 0 == site.core.roster.count


def test_a_number_stands_for_one_registration_and_leaving_needs_one() -> None:
    rig, _ = alone()
    session = rig.reg("A", "c", 1, {})
    rig.reg("A", "c", 1, {"type": "u"})
    rig.unreg("A", "c", 2)
    rig.unreg("A", "c", 1)
    rig.reg("A", "c", 1, {"type": "u"})
    expected = [
        clients.Done("reg", 1, 1, 1),
        clients.Error(about="reg", why="duplicate-reg", reg=1),
        clients.Error(about="unreg", why="unknown-reg", reg=2),
        clients.Done("unreg", 1),
        clients.Done("reg", 1, 1, 1),
    ]
    assert expected == session.said


def test_places_are_said_and_registrations_told() -> None:
    rig, site = alone()
    rig.reg("A", "a", 1, {"at": 20})
    session = rig.reg("A", "b", 1, {"at": 10, "access": "rw"})
    wild = rig.reg("A", "w", 1, {"type": "*"})
    assert [clients.Done("reg", 1, 1, 2)] == session.said
    assert [clients.Done("reg", 1)] == wild.said, "one that stands on many chains has many places"
    assert LinkStood("b", "in", "t", "10", "rw") in site.told


@pytest.mark.parametrize("name, most", [("LINKS_MAX", 2), ("CHAINS_MAX", 2)])
def test_there_are_so_many_links_and_chains_and_no_more(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, name, most)
    rig, site = alone(links_per_client=3)
    session = site.session("c")
    for reg in range(most + 1):
        rig.reg("A", "c", reg, {"type": f"t{reg}"})
    assert clients.Error(about="reg", why="limit", reg=most) == session.said[-1]
    assert most == site.core.roster.count
    rig.unreg("A", "c", 0)
    rig.reg("A", "c", most, {"type": "new"})
    assert clients.Done("reg", most, 1, 1) == session.said[-1]


def test_one_client_has_so_many_links_and_no_more() -> None:
    rig, site = alone(links_per_client=2)
    session = site.session("c")
    for reg in range(3):
        rig.reg("A", "c", reg, {})
    assert clients.Error(about="reg", why="limit", reg=2) == session.said[-1]


@pytest.mark.proves("CHN-002")
def test_a_pattern_stands_on_present_and_future_chains_at_one_place() -> None:
    rig, _ = alone()
    rig.reg("A", "late", 1, {"type": "app.x"})
    rig.reg("A", "all", 1, {"type": "*", "at": "before-all"})
    rig.reg("A", "app", 1, {"type": "app.*"})
    rig.reg("A", "x", 1, {"type": "app.x"})
    rig.reg("A", "y", 1, {"type": "app.y", "at": "before-all"})
    for tag, kind in enumerate(("app.x", "app.y", "appx", "app"), 1):
        rig.send("A", "s", tag, kind, ["DIRECT"], None, kind)
    order = [(event[2], event[5]) for event in rig.events if event[0] == "rec"]
    expected = {
        "app.x": ["all", "late", "app", "x"],
        "app.y": ["y", "all", "app"],
        "appx": ["all"],
        "app": ["all"],
    }
    assert expected == {kind: [name for name, seen in order if seen == kind] for kind in expected}
    rig.unreg("A", "all", 1)
    rig.unreg("A", "app", 1)
    rig.send("A", "s", 9, "later", ["DIRECT"], None, "app.y")
    assert ["app.y", "later"] == payloads(rig, "A", "y")
    assert ["app.x", "app.y"] == payloads(rig, "A", "app")


def test_who_rewrites_everything_does_not_rewrite_wefts_own() -> None:
    rig, site = alone()
    rig.reg("A", "rw", 1, {"type": "*", "access": "rw"})
    rig.reg("A", "ro", 1, {"type": "*"})
    assert ["ro"] == [link.name for link in site.core.chain("in", "weft.metric")]
    assert ["rw", "ro"] == [link.name for link in site.core.chain("in", "demo")]


def test_a_chain_that_nobody_registered_for_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHAINS_MAX", 3)
    rig, site = alone("root")
    rig.reg("A", "mine", 1, {"type": "mine"})
    for number in range(10):
        rig.send("A", "s", number, "x", None, None, f"t{number}")
    rig.reg("A", "mine", 2, {"type": "too"})
    core = site.core
    assert 3 == len(core.roster)
    counted = sum([chain.flow.accepted for chain in core.roster]) + sum(
        [others.accepted for others in core.roster.others.values()]
    )
    assert 20 == counted, "ten on out, ten on in; none of them forgotten"


@pytest.mark.proves("CHN-070", part="a set without room for all of it is refused whole, and the set before it stands")
def test_a_filter_for_which_there_is_no_place_is_named_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan beyond the limits ended the node, and the next start of it, too."""
    monkeypatch.setattr(limits, "CHAINS_MAX", 1)
    rig, site = alone()
    wide = {"name": "f", "kind": "forward", "types": ["a", "b"], "dir": "in"}
    small = {**wide, "name": "g", "types": ["a"]}
    site.core.command(PlanFilters(tuple(parse_filters([small])[0])), rig.now)
    site.core.effects()
    kept = site.core.chain("in", "a")[0]
    specs, _ = parse_filters([{**small, "name": "a"}, wide, small])
    site.core.command(PlanFilters(tuple(specs)), rig.now)
    refused = [e.event for e in site.core.effects() if isinstance(e, Tell) and type(e.event) is FiltersRefused]
    assert [FiltersRefused(("f: 1 chains at most",), 1)] == refused
    assert [kept] == site.core.chain("in", "a")


# Sends


@pytest.mark.proves("CHN-030", "RTE-002")
@pytest.mark.parametrize(
    "said, why",
    [
        ({"to": ["MULTICAST"]}, "unimplemented"),
        ({"to": ["DIRECTBACKUP"]}, "unimplemented"),
        ({"to": ["BROADCAST"]}, "unimplemented"),
        ({"to": ["NOWHERE"]}, "bad-destination"),
        ({"to": []}, "bad-destination"),
        ({"to": "PARENTSOF"}, "bad-destination"),
        ({"to": None}, "bad-destination"),
        ({"to": {"PARENTSOF": 1}}, "bad-destination"),
        ({"to": [["DIRECT"]]}, "bad-destination"),
        ({"to": [3]}, "bad-destination"),
        ({"to": ["DIRECT", 7]}, "bad-destination"),
        ({"to": ["DIRECT", b"short"]}, "bad-destination"),
        ({"to": ["DIRECT", ""]}, "bad-destination"),
        ({"to": ["DIRECT", None, 256]}, "bad-destination"),
        ({"to": ["DIRECT", None, True]}, "bad-destination"),
        ({"to": ["DIRECT", None, 1, 1]}, "bad-destination"),
        ({"type": "Upper"}, "bad-type"),
        ({"type": "weft.metric"}, "denied"),
        ({"want": "more"}, "unimplemented"),
        ({"keep": "tape"}, "unimplemented"),
        ({"fmt": "yaml"}, "unimplemented"),
    ],
)
def test_a_send_that_no_node_could_deliver_is_refused_at_once(said: dict[str, Any], why: str) -> None:
    rig, site = alone()
    session = site.session("s")
    item = clients.SendItem(**{"tag": 5, "type": "t", "to": ["PARENTSOF"], **said})
    site.core.engine.accept(session, item, (b"x",), rig.now)
    assert [(5, False, why)] == statuses(rig)
    assert {why: 1} == site.core.context.counters.refused
    assert [] == [chain.type for chain in site.core.roster if chain.flow.accepted]


@pytest.mark.proves("CHN-007", "CHN-030")
def test_payloads_have_bytes_and_not_too_many() -> None:
    rig, site = alone("root")
    session = site.session("s")
    rig.reg("A", "r", 1, {})
    half = b"x" * (1 << 19)
    for tag, frames in enumerate(((), (b"",), (b"", b""), (half, half), (half, half, b"x"), (b"", b"y")), 1):
        site.core.engine.accept(session, clients.SendItem(tag=tag, type="t", to=["DIRECT"]), frames, rig.now)
    rig.settle()
    assert ["empty", "empty", "empty", "local", "too-big", "local"] == whys(rig)


@pytest.mark.proves("CHN-004", "CHN-005", "CHN-033")
def test_what_goes_up_is_durable_before_its_sender_hears_so() -> None:
    rig, site = alone("sensor", "B")
    session = site.session("s")
    core = site.core
    for tag in (1, 2):
        core.engine.accept(session, clients.SendItem(tag=tag, type="t", to=["PARENTSOF"]), (b"x",), rig.now)
    (effect,) = core.effects()
    assert isinstance(effect, Persist)
    records = [record for record in effect.records if isinstance(record, StreamRecord)]
    assert [(OUTBOX, site.id, ERA, 1), (OUTBOX, site.id, ERA, 2)] == [
        (record.stream, record.origin, record.era, record.sequence) for record in records
    ]
    assert [[session.id, 1], [session.id, 2]] == [record.attributes["by"] for record in records]
    assert (("PARENTSOF",), (b"x",), 0, ()) == (
        of_record(records[0]).to,
        of_record(records[0]).frames,
        records[0].attributes.get("depth", 0),
        of_record(records[0]).via,
    )
    assert ["spooled", "spooled"] == whys(rig)


def posts(effects: list[Effect]) -> list[MailPosted]:
    return [effect.event for effect in effects if isinstance(effect, Tell) and isinstance(effect.event, MailPosted)]


@pytest.mark.proves("CHN-031", "RTE-001", "RTE-002")
def test_where_a_message_goes_is_decided_by_where_the_node_stands() -> None:
    child = (b"c" * 16, "C1")
    cases: list[tuple[Placed, list[Any], str, str]] = [
        (Placed("sensor", ""), ["PARENTSOF"], "disk", "spooled"),
        (Placed("sensor", ""), ["PARENTSOF"], "memory", "no-parent"),
        (Placed("sensor", "B"), ["PARENTSOF"], "memory", "posted"),
        (Placed("root", ""), ["PARENTSOF"], "disk", "local"),
        (Placed("sensor", "B"), ["NEARESTCOORD"], "disk", "spooled"),
        (Placed("collector", "B", (child,)), ["NEARESTCOORD"], "disk", "local"),
        (Placed("root", ""), ["NEARESTCOORD"], "disk", "local"),
        (Placed("collector", "B", (child,)), ["CHILDRENOF"], "disk", "posted C1"),
        (Placed("collector", "B"), ["CHILDRENOF"], "disk", "delivered"),
        (Placed("sensor", "B"), ["DIRECT"], "disk", "local"),
        (Placed("sensor", "B"), ["DIRECT", "A"], "disk", "local"),
        (Placed("sensor", "B"), ["DIRECT", b"A".ljust(16, b"-")], "disk", "local"),
        (Placed("collector", "B", (child,)), ["DIRECT", "C1"], "disk", "posted C1"),
        (Placed("collector", "B", (child,)), ["DIRECT", b"c" * 16], "disk", "posted C1"),
        (Placed("collector", "B", (child,)), ["DIRECT", "X"], "disk", "posted"),
        (Placed("collector", "B", (child,)), ["PARENTSOF", "X"], "disk", "unimplemented"),
        (Placed("sensor", "B"), ["PARENTSOF", None, 0], "disk", "ttl"),
        (Placed("sensor", "B"), ["PARENTSOF", None, 0], "memory", "ttl"),
        (Placed("sensor", "B"), ["DIRECT", None, 0], "disk", "local"),
    ]
    for placed, to, keep, expected in cases:
        rig, site = alone()
        site.core.command(placed, rig.now)
        session = site.session("s")
        site.core.engine.accept(session, clients.SendItem(tag=1, type="t", to=to, keep=keep), (b"x",), rig.now)
        posted = posts(site.core.effects())
        actual = whys(rig) or ["posted" + (" C1" if post.nodes == (child[0],) else "") for post in posted]
        assert [expected] == actual, (placed, to, keep)


@pytest.mark.proves("CHN-030")
@pytest.mark.parametrize(
    "answer, expected",
    [
        (PostReached(1, 3), (True, "delivered", 3, 0)),
        (PostReached(1, 2, 1), (False, "partial", 2, 1)),
        (PostFailed(1, "unreachable"), (False, "unreachable", None, 0)),
    ],
)
def test_a_post_is_answered_once_by_what_the_carrier_says(answer: Any, expected: tuple[Any, ...]) -> None:
    rig, site = alone("sensor", "B")
    heard: list[Any] = []
    session = site.session("s")
    session.answer = lambda tag, *status: heard.append(status)  # type: ignore[method-assign]  # to see all of it
    item = clients.SendItem(tag=1, type="t", to=["PARENTSOF"], keep="memory")
    site.core.engine.accept(session, item, (b"x",), rig.now)
    flow = site.core.roster.chain("out", "t").flow
    assert ([], 1) == (heard, flow.in_flight)
    site.core.command(answer, rig.now)
    site.core.command(answer, rig.now)
    assert ([expected], 0) == ([(*status, None, 0)[:4] for status in heard], flow.in_flight)


def test_an_expired_message_goes_nowhere() -> None:
    rig, _ = alone("sensor", "B")
    rig.send("A", "s", 1, "x", exp=rig.now.wall)
    rig.send("A", "s", 2, "x", exp=rig.now.wall + 1)
    assert ["expired", "spooled"] == whys(rig)


@pytest.mark.proves("RTE-005")
def test_messages_that_bring_one_another_about_end_at_depth_16() -> None:
    rig, site = alone("root")
    session = rig.reg("A", "echo", 1, {})
    rig.send("A", "echo", 0, "m0")
    for tag in range(1, 20):
        last = [event[4] for event in rig.events if event[0] == "rec"][-1]
        rig.send("A", "echo", tag, f"m{tag}", None, last)
    assert ["local"] * 17 + ["loop"] * 3 == whys_of(rig, session)
    assert {"loop": 3} == site.core.context.counters.refused


def whys_of(rig: Rig, session: Recorder) -> list[str]:
    return [event[5] for event in rig.events if event[:3] == ("status", session.node, session.name)]


@pytest.mark.proves("CHN-004", "CHN-005")
def test_a_message_has_one_identity_on_all_nodes_and_a_number_on_each() -> None:
    rig = Rig(TREE)
    shown: list[tuple[Any, ...]] = []
    session = rig.reg("B", "r", 1, {})
    session.copy = lambda reg, parcel: shown.append((parcel.id, parcel.origin, parcel.era, parcel.sequence, parcel.via))  # type: ignore[method-assign]  # to see all of it
    rig.sites["B"].sessions["r"].links[1].copy = session.copy
    rig.send("A", "s", 1, "m1", None, None, "other")
    rig.send("A", "s", 2, "m2")
    a = rig.sites["A"].id
    assert [(2, a, ERA, 2, (a,))] == shown


# Tags


@pytest.mark.proves("CHN-042")
def test_a_tag_sent_again_gets_its_status_again_and_sends_nothing() -> None:
    rig = Rig(TREE)
    rig.reg("B", "seen", 1, {})
    for _ in range(3):
        rig.send("A", "s", 1, "m1")
    rig.send("A", "other", 1, "m1 of another")
    assert ["spooled"] * 3 == whys(rig)
    assert ["m1", "m1 of another"] == payloads(rig, "B", "seen")
    assert 2 == rig.sites["A"].core.context.counters.repeated_tags


@pytest.mark.proves("CHN-030", "CHN-042")
def test_a_client_that_comes_back_hears_the_status_of_what_was_under_way() -> None:
    rig = Rig(TREE)
    rig.reg("A", "h", 1, {"dir": "out", "access": "rw"})
    rig.send("A", "s", 1, "m1")
    rig.die("A", "s")
    rig.send("A", "s", 1, "m1")
    assert [] == whys(rig)
    rig.next("A", "h", 1, 1)
    assert ["spooled"] == whys(rig)
    assert 1 == rig.sites["A"].core.roster.chain("out", "t").flow.accepted


def test_a_window_of_tags_forgets_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TAGS_MAX", 2)
    monkeypatch.setattr(limits, "TAGGED_CLIENTS_MAX", 2)
    rig = Rig(TREE)
    for tag in (1, 2, 3, 1, 3):
        rig.send("A", "s", tag, f"m{tag}")
    assert 4 == rig.sites["A"].core.context._last_sequence
    for name in ("t", "u"):
        rig.send("A", name, 1, "x")
    rig.send("A", "s", 3, "m3")
    assert 7 == rig.sites["A"].core.context._last_sequence


@pytest.mark.proves("CHN-030")
def test_who_wants_no_status_is_answered_for_its_credit_and_may_use_one_tag() -> None:
    rig = Rig(TREE)
    rig.reg("B", "seen", 1, {})
    for number in range(3):
        rig.send("A", "s", 0, f"m{number}", want="none")
    assert (["m0", "m1", "m2"], 3) == (payloads(rig, "B", "seen"), len(whys(rig)))
    assert not any("by" in record.attributes for record in rig.sites["A"].journal if isinstance(record, StreamRecord))


# Looking, stopping


@pytest.mark.proves("CHN-082")
def test_chains_are_shown_in_order_with_what_they_have_counted() -> None:
    rig = Rig(TREE)
    specs, wrong = parse_filters([{"name": "fwd", "kind": "forward", "types": ["t"], "dir": "in", "place": 5}])
    assert [] == wrong
    core = rig.sites["B"].core
    core.command(PlanFilters(tuple(specs)), rig.now)
    rig.reg("B", "h", 1, {"access": "rw", "at": 7, "fail": "drop"})
    rig.reg("B", "r", 1, {"type": "*"})
    for tag in (1, 2):
        rig.send("A", "s", tag, "m")
    rig.next("B", "h", 1, 1)
    core.command(ShowChains(7), rig.now)
    (reply,) = [effect for effect in core.effects() if isinstance(effect, Reply)]
    chain = next(chain for chain in reply.answer["chains"] if (chain["direction"], chain["type"]) == ("in", "t"))
    assert (7, 2, 1, 1) == (reply.ticket, chain["accepted"], chain["delivered"], chain["in_flight"])
    links = [(link["name"], link["kind"], link["place"]) for link in chain["links"]]
    assert [("fwd", "forward", "5"), ("h", "client", "7"), ("r", "client", "after-all")] == links
    assert (2, 2) == (chain["links"][0]["counters"]["offered"], chain["links"][0]["counters"]["passed"])
    shown = chain["links"][1]
    assert ("rw", "OPEN", "drop", 1, 0, 2, 1) == (
        shown["access"],
        shown["state"],
        shown["policy"],
        shown["pending"],
        shown["backlog"],
        shown["counters"]["offered"],
        shown["counters"]["passed"],
    )
    assert (1, {"entries": 1, "bytes": 1}) == (reply.answer["parked"], reply.answer["inbox"])


@pytest.mark.proves("CHN-043")
def test_an_orderly_stop_waits_for_answers_and_then_applies_the_policies() -> None:
    rig = Rig(TREE)
    rig.reg("A", "h", 1, {"dir": "out", "access": "rw"})
    rig.reg("A", "w", 1, {"dir": "out", "access": "rw", "type": "u", "fail": "wait"})
    rig.reg("B", "seen", 1, {})
    for tag, kind in ((1, "t"), (2, "t"), (3, "u")):
        rig.send("A", "s", tag, f"m{tag}", None, None, kind)
    core = rig.sites["A"].core
    core.command(Stop(), rig.now)
    rig.settle()
    assert (True, False) == (core.context.is_stopping, core.sessions.is_stopped)
    rig.next("A", "h", 1, 1, "in time")
    rig.advance(1_999)
    assert ["spooled"] == whys(rig)
    rig.advance(1)
    assert ["spooled", "spooled", "filter-failed"] == whys(rig)
    assert (["in time", "m2"], True, 0) == (payloads(rig, "B", "seen"), core.sessions.is_stopped, core.engine.parked)


@pytest.mark.proves("CHN-043")
def test_a_stop_with_nothing_parked_is_over_at_once_and_one_that_waits_ends_with_the_last_answer() -> None:
    rig = Rig(TREE)
    rig.sites["B"].core.command(Stop(), rig.now)
    assert rig.sites["B"].core.sessions.is_stopped
    rig.reg("A", "h", 1, {"dir": "out", "access": "rw"})
    rig.send("A", "s", 1, "m1")
    rig.sites["A"].core.command(Stop(), rig.now)
    rig.next("A", "h", 1, 1)
    assert rig.sites["A"].core.sessions.is_stopped


# Cost


def test_what_a_message_costs_does_not_depend_on_other_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain is found by one look into a table: no link of another chain is asked whether it covers the type."""
    rig, site = alone("root")
    asked: list[str] = []
    for client in range(20):
        for reg in range(10):
            rig.reg("A", f"c{client}", reg, {"type": f"t{client}.{reg}"})
    rig.reg("A", "mine", 1, {"type": "t"})
    for chain in site.core.roster:
        for link in chain.links:
            monkeypatch.setattr(type(link), "covers", lambda self, kind: asked.append(kind))
    rig.send("A", "s", 1, "m1")
    assert (["m1"], []) == (payloads(rig, "A", "mine"), asked)
