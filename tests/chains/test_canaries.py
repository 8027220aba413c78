"""Planted bugs, each caught by the check that is there for it."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chains import test_engine_properties as properties
from tests.chains import test_inbox as inboxes
from tests.chains import test_policies as policies
from tests.chains.rig import Rig, by_client
from weft.cores.chains import engine, holding, sending
from weft.cores.chains.clientlink import ClientLink, HeldMessage, HolderLink
from weft.cores.chains.engine import Engine
from weft.cores.chains.holding import Holding
from weft.cores.chains.inbox import Inbox
from weft.cores.chains.order import after_all
from weft.cores.chains.parcel import Parcel
from weft.cores.chains.roster import Chain
from weft.cores.chains.sending import Sending
from weft.cores.chains.walk import Walker
from weft.wire import clients

VECTORS = Path(__file__).parent.parent / "vectors"
SCENARIOS = {
    scenario["id"]: scenario["means"]
    for scenario in map(json.loads, (VECTORS / "chains-scenarios.jsonl").read_text("utf-8").splitlines())
}
Patch = pytest.MonkeyPatch


def plays(name: str) -> None:
    """A scenario of the vectors."""
    means = SCENARIOS[name]
    assert by_client(means["expect"]) == by_client(Rig().play(means["steps"]))


def interleaves() -> None:
    """Two hundred lives of two nodes; with a planted bug an invariant breaks in one of them."""
    for seed in range(200):
        world = properties.World()
        properties.run(world, random.Random(seed).choices(range(10_001), k=300))
        properties.end(world)


# The bugs


def follow_a_stored_next(patch: Patch) -> None:
    """1: where a message goes on is remembered when it is offered, not looked up when it goes on."""
    offer = Holding.offer
    nexts: dict[int, Any] = {}

    def remember(self: Holding, link: HolderLink, held: HeldMessage, now: Any) -> bool:
        chain = self._road._roster.chain(link.direction, held.parcel.type)  # type: ignore[attr-defined]  # the walker
        if link in chain.links:
            nexts[held.parcel.id] = chain.links[chain.links.index(link) + 1 :]
        return offer(self, link, held, now)

    def resume(self: Walker, parcel: Parcel, after: Any, now: Any) -> None:
        self._walk(parcel, nexts[parcel.id], now)
        self._bottoms[parcel.direction].after(parcel, [])

    patch.setattr(Holding, "offer", remember)
    patch.setattr(Walker, "resume", resume)


def forget_what_the_last_link_held(patch: Patch) -> None:
    """2: a message that was held by the last link of a chain vanishes with it."""
    resume = Walker.resume

    def vanish(self: Walker, parcel: Parcel, after: Any, now: Any) -> None:
        if self._roster.chain(parcel.direction, parcel.type).links:
            resume(self, parcel, after, now)

    patch.setattr(Walker, "resume", vanish)


def ask_nobody_who_holds_it(patch: Patch) -> None:
    """3: whoever names a message may hand it back."""
    answer = Engine._answer

    def believe(self: Engine, session: Any, about: tuple[str, int, int], said: Any, now: Any) -> None:
        for link in self._holders:
            if about[2] in link.pending:
                answer(self, link.session, (about[0], link.reg, about[2]), said, now)
                return
        answer(self, session, about, said, now)

    patch.setattr(Engine, "_answer", believe)


def count_deadlines_from_parking(patch: Patch) -> None:
    """4: the deadline of a message in line runs already."""
    line_up, offer = Holding.line_up, Holding.offer
    parked: dict[int, int] = {}

    def park(self: Holding, link: HolderLink, held: HeldMessage, now: Any) -> bool:
        parked[held.parcel.id] = now.mono
        return line_up(self, link, held, now)

    def offer_late(self: Holding, link: HolderLink, held: HeldMessage, now: Any) -> bool:
        goes_on = offer(self, link, held, now)
        if held.parcel.id in parked:
            held.due = link.armed_at = parked[held.parcel.id] + link.timeout_ns
            link.armed_at = None
            self._arm(link)
        return goes_on

    patch.setattr(Holding, "line_up", park)
    patch.setattr(Holding, "offer", offer_late)


def refill_after_next_only(patch: Patch) -> None:
    """5: a message that is deleted does not make room for one in line."""
    follow = Holding._follow
    delete = Holding._delete
    deleted: list[Any] = []

    def note(self: Holding, link: HolderLink, held: HeldMessage, now: Any) -> None:
        deleted.append(link)
        delete(self, link, held, now)

    def skip(self: Holding, link: HolderLink, now: Any) -> None:
        if link in deleted:
            deleted.remove(link)
        else:
            follow(self, link, now)

    patch.setitem(holding.ANSWERS, "drop", note)
    patch.setattr(Holding, "_follow", skip)


def wait_for_a_reader(patch: Patch) -> None:
    """11: a reader is asked before the message goes on, as if it were a rewriter."""

    def hold(session: Any, reg: clients.Reg, attach: int) -> ClientLink:
        return HolderLink(session, reg, after_all(attach))

    patch.setattr(engine, "_link", hold)


def confirm_on_offering(patch: Patch) -> None:
    """12: a message counts as dealt with when a confirming client has been handed it."""
    offer = Holding.offer

    def confirm(self: Holding, link: HolderLink, held: HeldMessage, now: Any) -> bool:
        goes_on = offer(self, link, held, now)
        if link.confirms:
            link.take(held.parcel.id)
            held.parcel.unconfirmed -= 1
        return goes_on

    patch.setattr(Holding, "offer", confirm)


def order_filters_by_arrival(patch: Patch) -> None:
    """15: filters of one place stand in the order in which the configuration came."""
    seen: dict[Chain, list[str]] = {}

    def insert(self: Chain, link: Any) -> None:
        came = seen.setdefault(self, [])
        came.append(link.name)
        link.key = (*link.key[:3], f"{came.index(link.name):05}")
        at = sum([key < link.key for key in self.keys])
        self.links.insert(at, link)
        self.keys.insert(at, link.key)

    patch.setattr(Chain, "insert", insert)


def answer_twice(patch: Patch) -> None:
    """16: the sender hears of a message at the bottom, and again when it has been acknowledged."""
    send_up = Sending._send_up

    def again(self: Sending, parcel: Parcel, way: Any, now: Any) -> None:
        send_up(self, parcel, way, now)
        parcel.sender.answer(parcel.tag, True, "delivered")

    patch.setitem(sending.WAYS, "up", again)


def forget_who_sent_it(patch: Patch) -> None:
    """17: what a node delivers to itself has no sender any more."""
    receive_own = Inbox.receive_own

    def anonymous(self: Inbox, sent: Parcel, by: Any, now: Any) -> None:
        sender, sent.sender = sent.sender, None
        receive_own(self, sent, by, now)
        sent.sender = sender

    patch.setattr(Inbox, "receive_own", anonymous)


# Their checks


def a_sender_behind_a_holder_hears_nothing_of_itself() -> None:
    """As in noself-root, with somebody who may hold the message, so that it does not go straight."""
    rig = Rig({"C": None})
    rig.reg("C", "s", 1, {"noself": True})
    rig.reg("C", "h", 1, {"access": "rw"})
    rig.send("C", "s", 1, "m1")
    assert [("h", 2)] == [(event[2], event[4]) for event in rig.events if event[0] == "rec"]


def a_stalled_tap_delays_nobody() -> None:
    """A reader that takes nothing changes nothing of what a rewriter behind it is offered, and when."""
    rig = Rig({"A": "B", "B": None})
    rig.reg("A", "tap", 1, {"dir": "out", "timeout": 3_600_000})
    rig.reg("A", "h", 1, {"dir": "out", "access": "rw"})
    for tag in range(1, 100):
        rig.send("A", "s", tag, f"m{tag}")
        assert [tag] == [number for _, number, _ in rig.sites["A"].sessions["h"].offers[-1:]], "not at once"
        rig.next("A", "h", 1, tag)
    assert ["spooled"] * 99 == [event[5] for event in rig.events if event[0] == "status"]


def sick_backlog_takes_its_time() -> None:
    """The scenario, with a look at every 100 ms of it: one deadline after another, not all at once."""
    plays("sick-backlog")
    *steps, _ = SCENARIOS["sick-backlog"]["steps"]
    rig = Rig()
    rig.play(steps)
    offered = []
    for _ in range(5):
        offered.append(len(rig.sites["A"].sessions["h"].offers))
        rig.advance(100)
    assert [1, 2, 3, 4, 5] == offered


def filters_stand_alike_however_they_came() -> None:
    """Two orders of the same tables, and reloads of either."""
    tables: list[dict[str, Any]] = [
        {"name": name, "kind": "rate-limit", "count": 1, "dir": "in"} for name in ("b", "a", "c")
    ]
    orders: list[list[str]] = []
    for order in (tables, tables[::-1]):
        rig, site = inboxes.node(*order)
        inboxes.plan(rig, site, *order[1:])
        inboxes.plan(rig, site, *order)
        orders.append([link.name for link in site.core.chain("in", "t")])
    assert orders[0] == orders[1]


def a_crash_of_the_confirming_client_loses_nothing() -> None:
    policies.test_who_vanishes_without_confirming_gets_it_again_and_what_came_meanwhile()
    inboxes.test_a_confirming_client_gets_again_what_it_had_not_confirmed_when_the_node_ended(False)


CANARIES: list[tuple[int, Callable[[Patch], None], Callable[[], None]]] = [
    (1, follow_a_stored_next, lambda: plays("die-two-links")),
    (2, forget_what_the_last_link_held, lambda: plays("demo-7")),
    (3, ask_nobody_who_holds_it, lambda: plays("hijack")),
    (4, count_deadlines_from_parking, sick_backlog_takes_its_time),
    (4, count_deadlines_from_parking, policies.test_deadlines_are_counted_from_offering_and_not_from_parking),
    (5, refill_after_next_only, interleaves),
    (11, wait_for_a_reader, a_stalled_tap_delays_nobody),
    (12, confirm_on_offering, a_crash_of_the_confirming_client_loses_nothing),
    (15, order_filters_by_arrival, filters_stand_alike_however_they_came),
    (16, answer_twice, interleaves),
    (17, forget_who_sent_it, a_sender_behind_a_holder_hears_nothing_of_itself),
]


@pytest.mark.prove("a life for each bug")
@pytest.mark.parametrize("number, plant, check", CANARIES, ids=[f"{n}-{plant.__name__}" for n, plant, _ in CANARIES])
def test_a_planted_bug_is_caught(number: int, plant: Callable[[Patch], None], check: Callable[[], None]) -> None:
    check()
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        with pytest.raises((AssertionError, KeyError)):
            check()
    check()
