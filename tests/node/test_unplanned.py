"""A node takes nothing from others before it knows the filters of its group: a role is a start (docs/decisions/0007)."""

from typing import Any

import pytest

from weft.base.effects import Persist, Source
from weft.base.mail import OUTBOX
from weft.base.now import SECOND, Now
from weft.base.records import StreamRecord
from weft.cores.chains.settings import parse_filters
from weft.cores.configuration.messages import ConfigurationApplied, PairsChanged
from weft.cores.topology.messages import PlaceAssigned, RootTaken
from weft.node.assembly import build_node
from weft.node.node import Node
from weft.node.settings import NodeSettings, NodeTable, Role
from weft.wire import hop

NOW = Now(SECOND, 1_795_000_000 * SECOND)
ME, CHILD = b"p" * 16, b"c" * 16
FROM = Source("down", b"child")
FORWARD = b'{"kind":"forward","dir":"in","types":["*"]}'
PAIRS = (("/CONFIG/all/filter/up", FORWARD),)
(JOURNAL,), _ = parse_filters([{"name": "j", "kind": "journal", "dir": "in", "types": ["*"]}])
PLACE: dict[str, Any] = {
    "parent": "127.0.0.1:27500",
    "parent_name": "r",
    "root": "127.0.0.1:27500",
    "level": "collector",
    "group": "all",
    "tier": 1,
    "epoch": 4,
    "topics": ("/",),
}


def former_root(*, follows: bool = True) -> Node:
    """What an elected node becomes when the root is back: a collector, without a place as yet."""
    settings = NodeSettings(node=NodeTable(name="p"), follows=follows, role=Role("collector", 4))
    return build_node(settings, ME, 2, "seed")


def mail_of_child(node: Node) -> int:
    """The child greets, and sends one message to its parents: how many records are in the outbox then."""
    for message in (
        hop.Hello(v=1, role="node", name="c", id=CHILD, era=7, first=1, next=2),
        hop.Hop(
            7,
            1,
            [hop.HopItem(mid=(CHILD, 7, 1), type="t", to=["PARENTSOF"], via=(CHILD,), depth=0, ts=NOW.wall)],
            [b"x"],
        ),
    ):
        node.receive(FROM, hop.seal(message), NOW)
    records = [record for effect in node.effects() if isinstance(effect, Persist) for record in effect.records]
    return len([record for record in records if isinstance(record, StreamRecord) and record.stream == OUTBOX])


def counted(node: Node) -> tuple[int, int]:
    """Messages of children that were not taken, and that were."""
    counters: Any = node.cores["carrier"]
    return counters.counters.held_back, counters.counters.accepted


@pytest.mark.proves("CHN-033")
def test_a_former_root_takes_no_mail_before_it_has_a_place_and_forwards_it_then() -> None:
    node = former_root()
    node.tell(PairsChanged(PAIRS, 3), NOW)
    assert (0, (1, 0)) == (mail_of_child(node), counted(node))
    node.tell(PlaceAssigned(**PLACE), NOW)
    assert (1, (1, 1)) == (mail_of_child(node), counted(node))


def test_a_group_of_which_the_configuration_says_nothing_waits_for_that_word_only() -> None:
    node = former_root()
    node.tell(PlaceAssigned(**PLACE), NOW)
    assert (0, (1, 0)) == (mail_of_child(node), counted(node))
    node.tell(ConfigurationApplied(3, "snapshot", 0, ""), NOW)
    assert (0, (1, 1)) == (mail_of_child(node), counted(node))


def test_without_a_place_the_configuration_of_a_former_root_may_be_an_old_one() -> None:
    node = former_root()
    node.tell(PairsChanged(PAIRS, 3), NOW)
    node.tell(ConfigurationApplied(3, "root", 1, ""), NOW)
    assert (0, (1, 0)) == (mail_of_child(node), counted(node))


def test_a_root_goes_by_its_file_where_the_configuration_says_nothing() -> None:
    settings = NodeSettings(node=NodeTable(name="p"), follows=True, role=Role("root", 4), filters=(JOURNAL,))
    node = build_node(settings, ME, 2, "seed")
    node.tell(ConfigurationApplied(3, "root", 0, ""), NOW)
    chains: Any = node.cores["chains"]
    assert (False, ["j"]) == (chains.context.awaits_filters, [link.name for link in chains.chain("in", "t")])


@pytest.mark.proves("CHN-033")
@pytest.mark.parametrize("pairs", [PAIRS, (("/CONFIG/other/filter/up", FORWARD),), ()])
def test_a_root_that_started_again_and_wrote_nothing_took_nothing_for_ever(
    pairs: tuple[tuple[str, bytes], ...],
) -> None:
    """Nothing of its configuration had changed, so nothing was reported to be in force; no group wants its machine."""
    settings = NodeSettings(node=NodeTable(name="p"), follows=True, role=Role("root", 4), filters=(JOURNAL,))
    node = build_node(settings, ME, 2, "seed")
    node.tell(PairsChanged(pairs, 3), NOW)
    node.tell(RootTaken(4, False, 1, 1), NOW)
    chains: Any = node.cores["chains"]
    assert (False, ["j"]) == (chains.context.awaits_filters, [link.name for link in chains.chain("in", "t")])


def test_a_node_with_filters_of_its_own_file_waits_for_nobody() -> None:
    node = former_root(follows=False)
    assert (0, (0, 1)) == (mail_of_child(node), counted(node))
