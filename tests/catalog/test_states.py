"""The state tables of instances and of connections, walked: every state with every input, through what peers say and what time does."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.catalog.rig import Broker, Peer
from tests.tables.tables import pairs
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.registry import Registry
from weft.cores.catalog.serving import Serving
from weft.cores.catalog.states import LINK_TABLE, TABLE, Heard, Link, On, State

RECORD: Final = {"name": "A", "id": "t1", "ip": "127.0.0.1", "port": 9}
OWNER, OTHER = "10.0.0.1", "10.0.0.2"

# Instances

Outcome = tuple[State, list[str], str]
"""The state behind it, the events, and the answer: a command, a code, or nothing."""
SAME: Final[tuple[str, list[str], str]] = ("", [], "")
"""A dash of the table: nothing happens."""
S = State

# As it is specified: rows are inputs, columns NONE, ACTIVE, SUSPECT, INACTIVE. An untouched state is "".
SPEC: Final[dict[On, tuple[Any, Any, Any, Any]]] = {
    On.REGISTERED: (
        (S.ACTIVE, ["register"], "OwO"),
        (S.ACTIVE, ["register"], "OwO"),
        (S.ACTIVE, ["register"], "OwO"),
        (S.ACTIVE, ["register"], "OwO"),
    ),
    On.CLAIMED: (
        (S.ACTIVE, ["register"], "OwO"),  # nobody has it: it is new
        ("", [], "name-taken"),
        ("", [], "name-taken"),
        (S.ACTIVE, ["register"], "OwO"),
    ),
    On.UPDATED: (
        ("", [], "not-registered"),
        (S.ACTIVE, ["update"], "u.u"),
        (S.ACTIVE, ["update", "active"], "u.u"),
        (S.ACTIVE, ["active"], "u.u"),
    ),
    On.MEDDLED: (
        ("", [], "not-registered"),
        ("", [], "not-owner"),
        ("", [], "not-owner"),
        ("", [], "not-owner"),
    ),
    On.BEAT: (("", [], "</3"), ("", [], "u.u"), (S.ACTIVE, ["active"], "u.u"), (S.ACTIVE, ["active"], "u.u")),
    On.PROBED: (SAME, SAME, (S.ACTIVE, ["active"], ""), (S.ACTIVE, ["active"], "")),
    On.AFTERWARDS: (SAME, SAME, SAME, SAME),
    On.SILENT: (SAME, (S.SUSPECT, ["suspect"], ""), SAME, SAME),
    On.OVERDUE: (SAME, SAME, (S.INACTIVE, ["inactive"], ""), SAME),
    On.LEFT: (
        ("", [], "u.u"),
        (S.INACTIVE, ["inactive"], "u.u"),
        (S.INACTIVE, ["inactive"], "u.u"),
        (S.INACTIVE, ["inactive"], "u.u"),
    ),
    On.GOODBYE: (SAME, (S.SUSPECT, ["suspect"], ""), SAME, SAME),
    On.REAPED: (
        ("", [], "not-registered"),
        (S.NONE, ["remove"], ""),
        (S.NONE, ["remove"], ""),
        (S.NONE, ["remove"], ""),
    ),
}


def instance_in(broker: Broker, state: State) -> Instance:
    """A of 10.0.0.1, brought there by its own doing, or by silence."""
    broker.req(OWNER).say(b"UwU", RECORD)
    instance = broker.one("A")
    moves = {State.NONE: [On.REAPED], State.SUSPECT: [On.SILENT], State.INACTIVE: [On.SILENT, On.OVERDUE]}
    for on in moves.get(state, []):
        broker.core.registry.move(instance, on)
    broker.turn()
    assert state is instance.state
    return instance


def said(peer: Peer, command: bytes, *body: Any) -> str:
    """The code of the answer, else its command."""
    (answer,) = peer.say(command, *body)
    return str(answer.json["code"]) if answer.command == b"(O_O)" else answer.command.decode()


def deregistered(broker: Broker) -> str:
    (answer,) = broker.admin().say(b"u_U", b"dbp.deregister", b"A")
    return str(json.loads(answer.body[0]).get("code", ""))


def moved(broker: Broker, instance: Instance, on: On) -> str:
    broker.core.registry.move(instance, on)
    broker.turn()
    return ""


def through_frames(broker: Broker, on: On) -> str | None:
    """What peers can say themselves."""
    changed = RECORD | {"port": 10}
    drives: dict[On, Callable[[], str]] = {
        On.REGISTERED: lambda: said(broker.req(OWNER), b"UwU", changed),
        On.CLAIMED: lambda: said(broker.req(OTHER), b"UwU", changed),
        On.UPDATED: lambda: said(broker.req(OWNER), b"UoU", {"name": "A", "id": "t1", "port": 10}),
        On.MEDDLED: lambda: said(broker.req(OTHER), b"UoU", {"name": "A", "id": "t1", "port": 10}),
        On.BEAT: lambda: said(broker.dealer(OWNER), b"<3", b"A", b"t1"),
        On.LEFT: lambda: said(broker.req(OWNER), b"</3", b"A", b"t1"),
        On.REAPED: lambda: deregistered(broker),
    }
    return drives[on]() if on in drives else None


def outcome(state: State, on: On) -> tuple[Outcome, Outcome]:
    """What the specification says, and what was."""
    broker = Broker()
    instance = instance_in(broker, state)
    before = len(broker.changes)
    answer = through_frames(broker, on)
    if answer is None:
        answer = moved(broker, instance, on)
    found = broker.core.book.get("A", "t1")
    then, events, expected = SPEC[on][list(State).index(state)]
    actual = (found.state if found else State.NONE, [op for op, _ in broker.changes[before:]], answer)
    return (then or state, events, expected), actual


@pytest.mark.parametrize(("state", "on"), [(state, on) for state, on, _ in pairs(TABLE)], ids=lambda part: part.name)
@pytest.mark.proves("CAT-020")
def test_an_instance_does_what_the_specification_says(state: State, on: On) -> None:
    expected, actual = outcome(state, on)
    assert expected == actual


def test_what_the_table_has_no_row_for_changes_nothing() -> None:
    for state, on, cell in pairs(TABLE):
        then, events, _ = SPEC[on][list(State).index(state)]
        if cell is None and on not in (On.CLAIMED, On.MEDDLED):  # of NONE: there is no other owner
            assert ("", []) == (then, events), (state, on)


def test_canary_10_an_update_that_nobody_asks_the_owner_for_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.cores.catalog.registry.owns", lambda asker, instance: True)
    expected, actual = outcome(State.ACTIVE, On.MEDDLED)
    assert expected != actual


def test_the_rows_that_deny_only_raise() -> None:
    denying = sorted({cell.do for cell in TABLE.values() if cell.do.startswith("deny_")})
    assert ["deny_foreign", "deny_taken", "deny_unknown"] == denying
    for name in denying:
        with pytest.raises(Refusal):
            getattr(Registry, name)(None, Instance("A", "t1", OWNER, OWNER), None)


# Connections

Closing = tuple[Link, list[bytes]]
L = Link
DROP: Final[tuple[str, list[bytes]]] = ("", [])

# Columns NEW, BOUND, CLOSED, IGNORED; a name stays where it is if the link says "".
LINK_SPEC: Final[dict[Heard, tuple[Any, Any, Any, Any]]] = {
    Heard.REGISTERED: ((L.BOUND, [b"OwO"]), (L.CLOSED, [b"</3"]), DROP, DROP),
    Heard.ASKED: (("", [b"(O_O)"]), ("", [b"(O_O)"]), DROP, DROP),
    Heard.BEAT: ((L.BOUND, [b"u.u"]), ("", [b"u.u"]), DROP, DROP),
    Heard.STRAY: ((L.CLOSED, [b"</3"]), (L.CLOSED, [b"</3"]), DROP, DROP),
    Heard.AWK: (DROP, DROP, DROP, DROP),
    Heard.LEFT: ((L.CLOSED, []), (L.CLOSED, []), DROP, DROP),
    Heard.MISPLACED: ((L.CLOSED, [b"</3"]), (L.CLOSED, [b"</3"]), DROP, DROP),
    Heard.FLOODED: ((L.IGNORED, []), (L.IGNORED, []), DROP, DROP),
    Heard.MINUTE: (DROP, DROP, DROP, (L.NEW, [b"o_O"])),
}
MISPLACED: Final = (b"o_O", b"OwO", b"(O_O)", b"OmO", b"ping", b"pong")


def dealer_in(broker: Broker, link: Link) -> Peer:
    dealer = broker.dealer(OWNER)
    if link is Link.BOUND:
        dealer.say(b"UwU", RECORD)
    elif link is Link.CLOSED:
        dealer.say(b"</3")
    elif link is Link.IGNORED:
        flood(dealer)
    assert link is broker.core.connections.state_of(dealer.identity)
    return dealer


def flood(peer: Peer) -> list[Any]:
    return [answer for _ in range(20) for answer in peer.send([b"no message"])]


def after_a_minute(dealer: Peer) -> list[Any]:
    dealer.broker.pass_time(60)
    return dealer.say(b"u_U")


HEARD: Final[dict[Heard, Callable[[Peer], list[Any]]]] = {
    Heard.REGISTERED: lambda dealer: dealer.say(b"UwU", RECORD | {"id": "t2"}),
    Heard.ASKED: lambda dealer: dealer.say(b"UwU", {"name": "@"}),
    Heard.BEAT: lambda dealer: dealer.say(b"<3", b"B"),
    Heard.STRAY: lambda dealer: dealer.say(b"<3", b"C"),
    Heard.AWK: lambda dealer: dealer.say(b"u.u"),
    Heard.LEFT: lambda dealer: dealer.say(b"</3"),
    Heard.MISPLACED: lambda dealer: dealer.say(b"OwO", b""),
    Heard.FLOODED: flood,
}


def link_outcome(link: Link, heard: Heard) -> tuple[Closing, Closing]:
    broker = Broker(liveness=1000)
    broker.req(OWNER).say(b"UwU", RECORD | {"name": "B"})
    broker.req(OTHER).say(b"UwU", RECORD | {"name": "C"})
    dealer = dealer_in(broker, link)
    if heard is Heard.MINUTE:
        answers = after_a_minute(dealer) if link is Link.IGNORED else []
    else:
        answers = HEARD[heard](dealer)
    then, commands = LINK_SPEC[heard][list(Link).index(link)]
    return (then or link, commands), (
        broker.core.connections.state_of(dealer.identity),
        [answer.command for answer in answers],
    )


@pytest.mark.parametrize(
    ("link", "heard"), [(link, heard) for link, heard, _ in pairs(LINK_TABLE)], ids=lambda part: part.name
)
@pytest.mark.proves("CAT-020")
def test_a_connection_does_what_the_specification_says(link: Link, heard: Heard) -> None:
    expected, actual = link_outcome(link, heard)
    assert expected == actual


@pytest.mark.parametrize("command", MISPLACED)
@pytest.mark.parametrize("link", [Link.NEW, Link.BOUND])
def test_what_only_a_broker_says_closes_a_connection(link: Link, command: bytes) -> None:
    dealer = dealer_in(Broker(), link)
    assert [b"</3"] == dealer.commands(command, b"")
    assert [] == dealer.say(b"u_U")


def test_every_answer_that_opens_nothing_leaves_the_connection_as_it_is() -> None:
    for command in (b"u_U", b"UoU", b"<\\3", b"^o^", b"o=o", b"O_o"):
        for link in (Link.NEW, Link.BOUND):
            dealer = dealer_in(Broker(), link)
            assert 1 == len(dealer.say(command, b"{}"))
            assert link is dealer.broker.core.connections.state_of(dealer.identity)


# Peers that are no DEALER: as if NEW, silence is `u.u`


@pytest.mark.parametrize(
    ("say", "expected"),
    [
        ((b"UwU", RECORD), b"OwO"),
        ((b"UwU", {"name": "@"}), b"(O_O)"),
        ((b"UoU", {"name": "zz"}), b"(O_O)"),
        ((b"<3", b"B"), b"u.u"),
        ((b"<3", b"C"), b"</3"),
        ((b"</3",), b"u.u"),
        ((b"</3", b"B"), b"u.u"),
        ((b"</3", b"C"), b"u.u"),
        ((b"u_U",), b"o_O"),
        ((b"OwO", b""), b"</3"),
        ((b"u.u",), None),
    ],
)
@pytest.mark.proves("CAT-006")
def test_a_req_gets_one_answer_to_each_valid_command_and_none_to_an_awk(
    say: tuple[Any, ...], expected: bytes | None
) -> None:
    broker = Broker()
    broker.req(OWNER).say(b"UwU", RECORD | {"name": "B"})
    broker.req(OTHER).say(b"UwU", RECORD | {"name": "C"})
    req = broker.req(OWNER)
    for _ in range(2):
        answers = req.say(*say)
        assert ([] if expected is None else [expected]) == [answer.command for answer in answers]
        assert [] == [answer for answer in answers if not answer.body], "existing nodes need a body"
        assert Link.NEW is broker.core.connections.state_of(req.identity)
    assert State.ACTIVE is broker.one("C").state


def test_canary_18_an_answer_to_who_is_closed_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.cores.catalog.serving.NOBODY", (Link.IGNORED,))
    monkeypatch.setitem(LINK_TABLE, (Link.CLOSED, Heard.ASKED), LINK_TABLE[Link.NEW, Heard.ASKED])
    expected, actual = link_outcome(Link.CLOSED, Heard.ASKED)
    assert expected != actual


def test_every_command_has_somebody_who_hears_it() -> None:
    from weft.cores.catalog.serving import HEARERS
    from weft.wire.catalog.messages import COMMANDS

    assert COMMANDS == HEARERS.keys()
    assert {name for cell in LINK_TABLE.values() for name in [cell.do]} <= set(dir(Serving))
