"""A root's file founds a fleet once; a file that says otherwise later is not read, and that is said."""

from weft.base.effects import Tell
from weft.base.now import Now
from weft.cores.configuration.messages import PairsChanged
from weft.node.assembly import build_node
from weft.node.events import FileDiffers
from weft.node.node import Node
from weft.node.settings import NodeSettings, NodeTable

NOW = Now(1, 1)
FILE = (("/CONFIG/all/metric/cpu", b'{"rate":1}'), ("/CONFIG/all/members", b'["*"]'))


def root() -> Node:
    table = NodeTable(name="root", level="root", runs=("chains", "carrier"))
    return build_node(NodeSettings(node=table, pairs=FILE, follows=True), bytes(16), 1, "seed")


def told(held: tuple[tuple[str, bytes], ...]) -> list[FileDiffers]:
    node = root()
    node.tell(PairsChanged(held, 3), NOW)
    return [e.event for e in node.effects() if isinstance(e, Tell) and isinstance(e.event, FileDiffers)]


def test_a_root_says_which_keys_of_its_file_are_not_in_force() -> None:
    held = (("/CONFIG/all/metric/cpu", b'{"rate":2}'), ("/CONFIG/all/members", b'["*"]'), ("/CONFIG/x/y", b"1"))
    assert [FileDiffers(("/CONFIG/all/metric/cpu",), 1)] == told(held)


def test_a_root_whose_file_is_in_force_or_founds_the_fleet_says_nothing() -> None:
    assert [] == told(FILE) == told(())
