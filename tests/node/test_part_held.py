"""A node that holds a part of the configuration says so to the tree, until it has the rest."""

from typing import Any

import pytest

from weft.base.now import SECOND, Now
from weft.cores.configuration.messages import ConfigurationApplied, PairsChanged
from weft.node.assembly import build_node
from weft.node.node import Node
from weft.node.settings import NodeSettings, NodeTable, Role

NOW = Now(SECOND, 1_795_000_000 * SECOND)
PAIRS = (("/CONFIG/all/members", b'["*"]'),)
DIGEST = b"d" * 16


def collector(digest: bytes) -> Node:
    """A first-level collector whose configuration shows that digest."""
    settings = NodeSettings(node=NodeTable(name="p"), follows=True, role=Role("collector", 4))
    node = build_node(settings, b"p" * 16, 2, "seed")
    node.tell(PairsChanged(PAIRS, 3, digest=digest), NOW)
    return node


def is_partial(node: Node) -> bool:
    topology: Any = node.cores["topology"]
    return bool(topology.context.atlas.is_partial)


@pytest.mark.proves("FLD-002")
def test_a_digest_says_that_nothing_is_missing() -> None:
    node = collector(b"")
    assert [True, False] == [is_partial(node), is_partial(collector(DIGEST))]
    node.tell(ConfigurationApplied(3, "snapshot", 1, DIGEST.hex()), NOW)
    assert not is_partial(node)
