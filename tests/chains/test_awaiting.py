"""Before the configuration has said which filters there are, nothing goes down an `in` chain (docs/decisions/0008)."""

from collections.abc import Iterable

import pytest

from tests.chains.rig import ERA, Rig, Site
from tests.chains.test_inbox import FORWARD, letter, parse_all
from weft.base.mail import INBOX, OUTBOX
from weft.base.records import Record, StreamRecord
from weft.cores.chains.messages import Placed, PlanFilters


def awaiting(entries: Iterable[Record] = (), era: int = ERA + 1) -> tuple[Rig, Site]:
    """A node that has started with this journal, and knows no filters yet."""
    rig = Rig()
    rig.parents = {"B": None}
    site = rig.sites["B"] = Site(rig, "B", era, awaits_filters=True)
    site.core.command(Placed("collector", "C"), rig.now)
    site.core.restore(list(enumerate(entries, 1)), rig.now)
    return rig, site


def outbox(site: Site) -> list[int]:
    """The numbers of what `forward` has taken."""
    return [one.sequence for one in site.journal if isinstance(one, StreamRecord) and one.stream == OUTBOX]


@pytest.mark.proves("CHN-034")
def test_what_an_earlier_run_had_left_ended_at_a_chain_that_had_no_filters_yet() -> None:
    rig, site = awaiting([letter(1), letter(2)])
    rig.advance(60_000)
    assert (2, []) == (len(site.core.inbox), outbox(site))
    site.core.command(PlanFilters(parse_all(FORWARD)), rig.now)
    rig.settle()
    assert ([1, 2], 0) == (outbox(site), len(site.core.inbox))


@pytest.mark.proves("CHN-033")
def test_what_a_program_sent_to_its_own_node_ended_at_a_chain_that_had_no_filters_yet() -> None:
    rig, site = awaiting()
    rig.reg("B", "reader", 1, {})
    for tag in (1, 2):
        rig.send("B", "program", tag, "x", ["DIRECT"])
    assert ["local", "local"] == [event[5] for event in rig.events if event[0] == "status"]
    assert ([INBOX, INBOX], 2) == ([getattr(one, "stream", 0) for one in site.journal], len(site.core.inbox))
    assert [] == [event for event in rig.events if event[0] == "rec"]
    rig, site = awaiting(site.journal, ERA + 2)
    rig.reg("B", "reader", 1, {})
    rig.send("B", "program", 3, "x", ["DIRECT"])
    site.core.command(PlanFilters(parse_all(FORWARD)), rig.now)
    rig.settle()
    assert ([1, 2, 1], 0) == (outbox(site), len(site.core.inbox))
    rig.send("B", "program", 4, "x", ["DIRECT"])
    assert [1, 2, 1, 2] == outbox(site)


def test_a_message_without_a_promise_does_not_wait_for_the_filters() -> None:
    rig, site = awaiting()
    rig.reg("B", "reader", 1, {})
    rig.send("B", "program", 1, "x", ["DIRECT"], keep="memory")
    assert (["rec", "status"], []) == ([event[0] for event in rig.events], site.journal)
