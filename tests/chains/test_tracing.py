"""What the links of a chain do to single messages is told to who asks, and touches nobody else (CHN-084)."""

from typing import Any

import pytest

from tests.chains.rig import Rig, Site
from weft.base.effects import Persist, Reply, Tell
from weft.cores.chains.messages import PlanFilters, TraceChains
from weft.cores.chains.settings import parse_filters

DROP = {"name": "no", "kind": "match", "types": ["t"], "dir": "in", "place": 5, "when": "size > 1"}


class Asked(Rig):
    """A rig that keeps what orders are answered."""

    def __init__(self) -> None:
        self.replies: dict[int, Any] = {}
        super().__init__({"a": "b", "b": None})

    def trace(self, node: str, ticket: int = 7, **wanted: Any) -> None:
        self.sites[node].core.command(TraceChains(ticket, **{"type": "t", **wanted}), self.now)
        self.settle()

    def _take(self, site: Site) -> bool:
        effects = site.core.effects()
        for effect in effects:
            if isinstance(effect, Persist):
                for record in effect.records:
                    self._keep(site, record)
            elif isinstance(effect, Tell):
                self._hear(site, effect.event)
            elif isinstance(effect, Reply):
                self.replies[effect.ticket] = effect.answer
        return bool(effects)

    def steps(self, ticket: int = 7) -> list[Any]:
        return [
            (
                row["direction"],
                [(step["link"], step["verdict"], step["us"]) for step in row["steps"]],
                row["end"],
                row["us"],
            )
            for row in self.replies[ticket]["messages"]
        ]


@pytest.mark.proves("CHN-084")
def test_each_link_that_a_message_came_past_is_told_with_what_it_said_and_when() -> None:
    rig = Asked()
    rig.reg("b", "look", 1, {"at": 1})
    rig.reg("b", "hold", 1, {"at": 2, "access": "rw", "fail": "open"})
    rig.trace("b", direction="in")
    rig.send("a", "s", 1, "y")
    rig.advance(30)
    assert {} == rig.replies, "it is under way"
    rig.next("b", "hold", 1, rig.sites["b"].session("hold").offers[0][1])
    assert [
        ("in", [("look", "read", 0), ("hold", "handed back", 30_000)], "bottom", 30_000),
    ] == rig.steps()


@pytest.mark.proves("CHN-084", part="trace: how it ended")
def test_a_message_that_a_filter_deletes_ends_there_and_one_that_nobody_holds_comes_to_the_bottom() -> None:
    rig = Asked()
    specs, wrong = parse_filters([DROP])
    assert not wrong, wrong
    rig.sites["b"].core.command(PlanFilters(tuple(specs)), rig.now)
    rig.trace("b", count=2)
    rig.send("a", "s", 1, "x", fmt="text")
    rig.send("a", "s", 2, "zz", fmt="text")
    told = rig.steps()
    assert [("in", [("no", "dropped", 0)], "deleted", 0), ("in", [("no", "passed", 0)], "bottom", 0)] == told
    assert ["a" + "-" * 15] * 2 == [bytes.fromhex(row["mid"][0]).decode() for row in rig.replies[7]["messages"]]


@pytest.mark.proves("CHN-084", part="trace: bounded, one at a time")
def test_a_trace_ends_when_its_time_is_over_and_a_second_one_is_told_to_wait() -> None:
    rig = Asked()
    rig.trace("a", type="other.*", span_ms=1_000)
    rig.trace("a", ticket=8)
    assert {8: {"messages": [], "is_busy": True}} == rig.replies
    rig.send("a", "s", 1, "x")
    rig.advance(999)
    assert [8] == list(rig.replies)
    rig.advance(1)
    assert {"messages": []} == rig.replies[7]
    rig.trace("a", ticket=9, direction="out", count=2, span_ms=10)
    rig.send("a", "s", 2, "x")
    rig.send("b", "s", 1, "x")
    rig.advance(10)
    assert [("out", [], "bottom", 0)] == rig.steps(9)


@pytest.mark.proves("CHN-084", part="trace: what is under way")
def test_what_has_not_ended_when_time_is_over_is_told_as_it_stands_and_goes_on() -> None:
    rig = Asked()
    rig.reg("b", "hold", 1, {"access": "rw", "fail": "wait"})
    rig.trace("b", span_ms=50)
    rig.send("a", "s", 1, "x")
    rig.advance(60)
    assert [("in", [("hold", "held", 0)], "under way", 0)] == rig.steps()
    rig.next("b", "hold", 1, rig.sites["b"].session("hold").offers[0][1])
    flow = rig.sites["b"].core.roster.chain("in", "t").flow
    assert (1, 1, 0) == (flow.accepted, flow.delivered, flow.in_flight)
