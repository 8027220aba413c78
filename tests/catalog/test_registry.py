"""Who may register what, and what an update does (CAT-013 to CAT-022, CAT-080, 2.7): through frames."""

from typing import Any, Final

import pytest

from tests.catalog.rig import Broker, Peer
from weft.base.now import SECOND
from weft.cores.catalog.messages import HoldBack
from weft.cores.catalog.states import On, State

A: Final = {"name": "A", "id": "t1", "ip": "127.0.0.1", "port": 9}
ONE, TWO = "10.0.0.1", "10.0.0.2"


def with_a(**settings: Any) -> Broker:
    """A of 10.0.0.1."""
    broker = Broker(**settings)
    broker.req(ONE).say(b"UwU", A)
    return broker


def denied(broker: Broker, peer: Peer, command: bytes, *body: Any) -> str:
    """The code; nothing has changed, and nothing is kept."""
    before = broker.state(), len(broker.journal), broker.core.context.index
    code = peer.code(command, *body)
    assert before == (broker.state(), len(broker.journal), broker.core.context.index)
    return code


# Registration


@pytest.mark.proves("CAT-015")
@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"id": "t1", "ip": "10.0.0.9", "port": 9}, "t1"),
        ({"ip": "10.0.0.9", "port": 9}, "10.0.0.9:9"),
        ({"interfaces": {"pub": {"ip": "10.0.0.9", "port": 8}, "router": {"ip": "10.0.0.9", "port": 7}}}, "10.0.0.9:7"),
        ({"interfaces": {"pub": {"ip": "10.0.0.9", "port": 8}}}, "10.0.0.9:8"),
        ({"ip": "127.0.0.1", "port": 9}, "10.0.0.1:9"),
        ({}, "10.0.0.1:0"),
    ],
)
def test_an_instance_is_called_by_its_id_else_by_where_it_is(record: dict[str, Any], expected: str) -> None:
    broker = Broker()
    (answer,) = broker.req(ONE).say(b"UwU", {"name": "A", **record})
    assert expected == answer.json["instance"] == broker.one("A").id


@pytest.mark.proves("CAT-015", "CAT-022")
def test_canary_16_two_hosts_that_declare_the_same_loopback_are_two_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"name": "A", "ip": "127.0.0.1", "port": 9}

    def registered() -> list[bytes]:
        broker = Broker()
        return [command for address in (ONE, TWO) for command in broker.req(address).commands(b"UwU", record)]

    assert [b"OwO", b"OwO"] == registered()
    monkeypatch.setattr("weft.cores.catalog.records._is_replaced", lambda *_: False)
    assert [b"OwO", b"(O_O)"] == registered()


@pytest.mark.proves("CAT-080")
@pytest.mark.parametrize(
    ("command", "body", "code"),
    [
        (b"UwU", b"{", "bad-json"),
        (b"UwU", {}, "missing-field"),
        (b"UwU", {"name": "dbp.x"}, "bad-name"),
        (b"UwU", {"name": "B", "port": 0}, "bad-field"),
        (b"UwU", {"name": "B", "_dbp": {}}, "reserved-key"),
        (b"UwU", {"name": "B", "x": "x" * 70_000}, "too-large"),
        (b"UwU", A, "name-taken"),
        (b"UoU", b"[]", "bad-json"),
        (b"UoU", {"port": 8}, "missing-field"),
        (b"UoU", {"name": "zz", "port": 8}, "not-registered"),
        (b"UoU", {"name": "A", "id": "t9", "port": 8}, "not-registered"),
        (b"UoU", {"name": "A", "port": 8}, "not-owner"),
        (b"UoU", {"name": "A", "id": "t1", "port": 8}, "not-owner"),
        (b"<\\3", b"", "not-authorised"),
        (b"o=o", b"{}", "unsupported"),
        (b"O_o", b"{}", "unsupported"),
        (b"u_U", b"dbp.deregister", "not-authorised"),
    ],
)
@pytest.mark.parametrize("kind", ["dealer", "req"])
def test_a_refusal_has_one_code_in_one_answer_and_changes_nothing(
    kind: str, command: bytes, body: Any, code: str
) -> None:
    broker = with_a()
    assert code == denied(broker, getattr(broker, kind)(TWO), command, body)


@pytest.mark.proves("CAT-013")
def test_one_denial_lists_all_that_strict_misses() -> None:
    (answer,) = Broker(strict=True).req().say(b"UwU", {"name": "A", "ip": "1.2.3.4"})
    assert ("missing-field", ["port", "function", "heartbeat"]) == (answer.json["code"], answer.json["fields"])


def test_strict_holds_for_the_whole_record_after_an_update() -> None:
    broker = Broker(strict=True)
    req = broker.req()
    req.say(b"UwU", A | {"function": "read", "heartbeat": 1000})
    assert "missing-field" == denied(broker, req, b"UoU", {"name": "A", "function": None})


def test_registering_the_same_again_is_no_change() -> None:
    broker = with_a()
    assert [b"OwO"] == broker.req(ONE).commands(b"UwU", dict(reversed(A.items())))
    assert [("register", "A")] == broker.changes
    assert [b"OwO"] == broker.req(ONE).commands(b"UwU", A | {"port": 10})
    assert [("register", "A")] * 2 == broker.changes


def test_what_was_left_behind_may_be_taken_over_and_is_not_told_anything_as_its_former_owner() -> None:
    broker = Broker()
    former = broker.dealer(ONE)
    former.say(b"UwU", A)
    broker.move("A", On.LEFT)
    assert [b"OwO"] == broker.req(TWO).commands(b"UwU", A)
    assert (TWO, TWO, b"") == (broker.one("A").owner, broker.one("A").observed_ip, broker.one("A").bound)
    assert [b"</3"] == former.commands(b"<3")


@pytest.mark.proves("CAT-022")
def test_a_unique_name_is_had_by_one_that_is_there() -> None:
    broker = with_a(unique_names=True)
    second = broker.req(TWO)
    other = A | {"id": "t2"}
    assert "name-taken" == denied(broker, second, b"UwU", other)
    broker.move("A", On.SILENT, On.OVERDUE)
    assert [b"OwO"] == second.commands(b"UwU", other)
    former = broker.dealer(ONE)
    assert [b"</3"] == former.commands(b"<3", b"A", b"t1")
    assert "name-taken" == denied(broker, broker.req(ONE), b"UoU", {"name": "A", "id": "t1", "port": 8})
    broker.datagram(b"<3 1795227299 A\tid=t1", ONE)
    assert State.INACTIVE is broker.one("A", "t1").state


# Limits


@pytest.mark.parametrize("limit", ["instances_max", "per_name_max", "per_owner_max"])
def test_one_too_many_is_refused_and_what_is_known_may_still_register(limit: str) -> None:
    few: dict[str, Any] = {limit: 2}
    broker = Broker(**few)
    req = broker.req(ONE)
    for number in ("t1", "t2"):
        assert [b"OwO"] == req.commands(b"UwU", A | {"id": number})
    assert "limit" == denied(broker, req, b"UwU", A | {"id": "t3"})
    assert [b"OwO"] == req.commands(b"UwU", A | {"port": 10})


def test_who_has_enough_may_not_take_over_more() -> None:
    broker = Broker(per_owner_max=1)
    broker.req(ONE).say(b"UwU", A)
    broker.req(TWO).say(b"UwU", A | {"id": "t2"})
    broker.move("A/t1", On.LEFT)
    assert "limit" == denied(broker, broker.req(TWO), b"UwU", A)


def test_while_the_journal_is_full_nothing_is_registered_or_updated() -> None:
    broker = with_a()
    req = broker.req(ONE)
    broker.core.command(HoldBack(is_full=True), broker.now)
    assert "limit" == denied(broker, req, b"UwU", A | {"id": "t2"})
    assert "limit" == denied(broker, req, b"UoU", {"name": "A", "port": 8})
    assert ["A"] == list(req.ask(b"A"))
    broker.core.command(HoldBack(is_full=False), broker.now)
    assert [b"u.u"] == req.commands(b"UoU", {"name": "A", "port": 8})


# Update


@pytest.mark.proves("CAT-018")
def test_an_update_without_effect_is_acknowledged_and_no_change() -> None:
    broker = with_a()
    assert [b"u.u"] == broker.req(ONE).commands(b"UoU", {"name": "A", "port": 9, "x": None})
    assert [("register", "A")] == broker.changes


@pytest.mark.proves("CAT-018")
def test_an_update_merges_top_level_keys_only() -> None:
    broker = with_a()
    req = broker.req(ONE)
    req.say(b"UoU", {"name": "A", "metadata": {"room": "1", "floor": "2"}})
    req.say(b"UoU", {"name": "A", "metadata": {"room": "3"}, "topics": None, "x": {"y": None}})
    assert A | {"metadata": {"room": "3"}, "x": {"y": None}} == {"name": "A"} | broker.one("A").record


@pytest.mark.proves("CAT-018")
def test_on_a_bound_dealer_an_update_needs_no_name_and_keeps_the_id() -> None:
    broker = Broker()
    dealer = broker.dealer(ONE)
    assert "missing-field" == denied(broker, dealer, b"UoU", {"port": 8})
    dealer.say(b"UwU", A)
    broker.req(ONE).say(b"UwU", A | {"id": "t2"})
    assert [b"u.u"] == dealer.commands(b"UoU", {"port": 8})
    assert [b"u.u"] == dealer.commands(b"UoU", {"name": "A", "id": "t1", "port": 7})
    assert (7, 9) == (broker.one("A", "t1").record["port"], broker.one("A", "t2").record["port"])
    assert "immutable-field" == denied(broker, dealer, b"UoU", {"name": "A", "id": "t2"})
    assert "immutable-field" == denied(broker, dealer, b"UoU", {"id": None})


@pytest.mark.proves("CAT-018")
def test_among_several_own_instances_an_update_says_which() -> None:
    broker = with_a()
    req = broker.req(ONE)
    req.say(b"UwU", A | {"id": "t2"})
    broker.req(TWO).say(b"UwU", A | {"id": "t3"})
    assert "missing-field" == denied(broker, req, b"UoU", {"name": "A", "port": 8})
    assert [b"u.u"] == req.commands(b"UoU", {"name": "A", "id": "t2", "port": 8})
    assert [b"u.u"] == broker.req(TWO).commands(b"UoU", {"name": "A", "port": 7})
    assert [9, 8, 7] == [broker.one("A", number).record["port"] for number in ("t1", "t2", "t3")]


def test_an_update_that_is_wrong_as_a_whole_changes_nothing() -> None:
    broker = with_a()
    req = broker.req(ONE)
    assert "bad-field" == denied(broker, req, b"UoU", {"name": "A", "port": 8, "weight": -1})
    assert "reserved-key" == denied(broker, req, b"UoU", {"name": "A", "_dbp": None})
    assert "too-large" == denied(broker, req, b"UoU", {"name": "A", "tags": ["x"] * 65})


def test_another_interval_counts_at_once() -> None:
    broker = Broker()
    req = broker.req(ONE)
    req.say(b"UwU", A | {"heartbeat": 3_600_000})
    req.say(b"UoU", {"name": "A", "heartbeat": 500})
    broker.pass_time(0.8)
    assert State.SUSPECT is broker.one("A").state


def test_a_change_of_health_shows_in_the_next_lookup() -> None:
    broker = with_a()
    req = broker.req(ONE)
    req.ask(b"A")
    req.say(b"UoU", {"name": "A", "health": "critical"})
    assert "critical" == req.ask(b"A")["state"]


def test_since_is_the_last_change_of_state() -> None:
    broker = with_a()
    at = broker.one("A").since
    broker.pass_time(0.5)
    broker.req(ONE).say(b"UoU", {"name": "A", "port": 8})
    assert at == broker.one("A").since
    broker.pass_time(2)
    assert State.SUSPECT is broker.one("A").state
    assert at + 2 == broker.one("A").since


# Administrators


def test_an_administrator_may_do_what_the_owner_may_and_the_owner_stays_the_owner() -> None:
    broker = with_a()
    admin = broker.admin()
    assert [b"u.u"] == admin.commands(b"UoU", {"name": "A", "port": 8})
    assert [b"OwO"] == admin.commands(b"UwU", A | {"port": 7})
    assert ONE == broker.one("A").owner
    assert [b"u.u"] == broker.dealer(ONE).commands(b"<3", b"A")


@pytest.mark.proves("CAT-034")
def test_an_administrator_removes_an_instance_for_good() -> None:
    broker = with_a()
    dealer = broker.dealer(ONE)
    dealer.say(b"<3", b"A")
    admin = broker.admin()
    assert {"name": "A", "instance": "t1", "index": 2} == admin.ask(b"dbp.deregister", b"A", b"t1")
    assert [("register", "A"), ("remove", "A")] == broker.changes
    assert [b"</3"] == dealer.commands(b"<3")
    assert "unknown" == admin.ask(b"A")["state"]
    assert [] == broker.restart().state()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((b"zz",), "not-registered"),
        ((b"A", b"t9"), "not-registered"),
        ((b"A",), "bad-argument"),
        ((), "bad-argument"),
        ((b"",), "bad-argument"),
        ((b"\xff",), "bad-argument"),
        ((b"A", b"t1", b"x"), "bad-argument"),
    ],
)
def test_who_is_to_be_removed_must_be_said(arguments: tuple[bytes, ...], code: str) -> None:
    broker = with_a()
    broker.req(TWO).say(b"UwU", A | {"id": "t2"})
    assert code == broker.admin().ask(b"dbp.deregister", *arguments)["code"]
    assert 2 == len(broker.state())


# Beats


@pytest.mark.proves("CAT-021", "BEA-011")
def test_a_beat_means_exactly_one_own_instance() -> None:
    broker = with_a()
    broker.req(ONE).say(b"UwU", A | {"name": "B"})
    broker.req(ONE).say(b"UwU", A | {"name": "B", "id": "t2"})
    broker.req(TWO).say(b"UwU", A | {"name": "B", "id": "t3"})
    registry = broker.core.registry
    asked = [("A", None), ("A", "t1"), ("A", "t9"), ("B", None), ("B", "t2"), ("B", "t3"), ("", None), ("zz", None)]
    found = [registry.of_beat(name, number, ONE) for name, number in asked]
    assert [("A", "t1"), ("A", "t1"), None, None, ("B", "t2"), None, None, None] == [one and one.key for one in found]
    registry.leave(broker.one("B", "t2"))
    beat = registry.of_beat("B", None, ONE)
    assert beat is broker.one("B", "t1")


def test_canary_9_a_beat_by_udp_registers_nobody() -> None:
    broker = with_a()
    broker.datagram(b"<3 1795227299 zz", ONE)
    assert [("register", "A")] == broker.changes


def test_a_life_of_one_that_goes_and_comes() -> None:
    broker = Broker()
    dealer = broker.dealer(ONE)
    dealer.say(b"UwU", A)
    broker.pass_time(3.5)
    assert [b"<3"] * len(told := dealer.heard()) == [answer.command for answer in told]
    assert told
    assert [b"u.u"] == dealer.commands(b"<3")
    assert ["register", "suspect", "inactive", "active"] == [op for op, _ in broker.changes]
    assert 1 == broker.counted("evictions", "silent")
    assert 3 * SECOND < broker.now.mono
