"""The straight way of a send comes to the same as the way through walk and inbox."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chains.rig import Rig
from weft.base.effects import Reply
from weft.cores.chains import straight
from weft.cores.chains.messages import ShowChains
from weft.cores.chains.roster import Chain
from weft.cores.chains.straight import Straight

TREE = {"A": "B", "B": None}
Step = tuple[Any, ...]
regs = st.tuples(
    st.just("reg"),
    st.sampled_from("AB"),
    st.sampled_from("xy"),
    st.integers(0, 5),
    st.fixed_dictionaries(
        {
            "dir": st.sampled_from(["in", "out"]),
            "type": st.sampled_from(["t", "u", "*"]),
            "noself": st.booleans(),
            "at": st.sampled_from(["after-all", "before-all", 7]),
        },
        optional={"access": st.just("rw")},
    ),
)
sends = st.tuples(
    st.just("send"),
    st.sampled_from("AB"),
    st.sampled_from("xy"),
    st.sampled_from(
        [["DIRECT"], ["PARENTSOF"], ["PARENTSOF", None, 0], ["NEARESTCOORD"], ["CHILDRENOF"], ["DIRECT", "B"]]
    ),
    st.sampled_from(["t", "u"]),
    st.fixed_dictionaries(
        {}, optional={"want": st.sampled_from(["none", "dest"]), "keep": st.just("memory"), "fmt": st.just("json")}
    ),
)
drops = st.tuples(st.just("unreg"), st.sampled_from("AB"), st.sampled_from("xy"), st.integers(0, 5))


def played(steps: list[Step]) -> list[Any]:
    """Everything that can be seen of it: what clients were told, what stands in the journals, what was counted."""
    rig = Rig(TREE)
    for tag, (what, node, client, *rest) in enumerate(steps):
        if what == "reg":
            number, options = rest
            rig.reg(node, client, number, options)
            rig.auto(node, client, number, "pass")
        elif what == "unreg":
            rig.unreg(node, client, rest[0])
        else:
            to, kind, more = rest
            rig.send(node, client, tag, f"m{tag}", to, None, kind, **more)
    seen: list[Any] = [rig.events]
    for site in rig.sites.values():
        site.core.command(ShowChains(1), rig.now)
        (shown,) = [effect.answer for effect in site.core.effects() if isinstance(effect, Reply)]
        for chain in shown["chains"]:
            for link in chain["links"]:
                link["counters"].pop("waited_ns", None)
                link.pop("latency", None)
        seen += [site.journal, sorted(shown["chains"], key=lambda chain: (chain["direction"], chain["type"]))]
    return seen


def is_the_same(steps: list[Step]) -> bool:
    fast = played(steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Straight, "take", lambda *_: False)
        return fast == played(steps)


@pytest.mark.proves("CHN-013", "CHN-030", "CHN-082")
@given(st.lists(st.one_of(sends, sends, regs, drops), max_size=24))
def test_the_straight_way_comes_to_the_same(steps: list[Step]) -> None:
    assert is_the_same(steps)


def show_it_to_its_sender(patch: pytest.MonkeyPatch) -> None:
    here = Straight._here

    def loud(self: Straight, session: Any, item: Any, frames: Any, now: Any) -> Any:
        for link in self._roster.chain("in", item.type).links:
            link.noself = False
        return here(self, session, item, frames, now)

    patch.setitem(straight.WAYS, "local", loud)


def count_nothing(patch: pytest.MonkeyPatch) -> None:
    def blind(_: Chain) -> None:
        pass

    patch.setattr(straight, "_count", blind)


def spool_what_is_for_memory(patch: pytest.MonkeyPatch) -> None:
    up = Straight._up

    def keen(self: Straight, session: Any, item: Any, frames: Any, now: Any) -> Any:
        return up(self, session, type(item)(tag=item.tag, type=item.type, to=item.to, fmt=item.fmt), frames, now)

    patch.setitem(straight.WAYS, "up", keen)


READER = ("reg", "B", "x", 1, {"dir": "in", "type": "t", "noself": True, "at": 7})
DIALOGUES: list[tuple[Callable[[pytest.MonkeyPatch], None], list[Step]]] = [
    (show_it_to_its_sender, [READER, ("send", "B", "x", ["PARENTSOF"], "t", {})]),
    (count_nothing, [("send", "A", "x", ["PARENTSOF"], "t", {})]),
    (spool_what_is_for_memory, [("send", "A", "x", ["PARENTSOF"], "t", {"keep": "memory"})]),
]


@pytest.mark.parametrize("plant, steps", DIALOGUES, ids=[plant.__name__ for plant, _ in DIALOGUES])
def test_a_straight_way_that_is_another_is_seen(plant: Callable[[pytest.MonkeyPatch], None], steps: list[Step]) -> None:
    assert is_the_same(steps)
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert not is_the_same(steps)
