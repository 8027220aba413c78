"""Cores learn nothing of keys: what reaches them is `Source.proved`, and one question that topology asks (SEC-002, SEC-012).

So a core is the same on an open fabric, where nobody has proved anything, and one that believed who somebody says that he
is would be seen here.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.house.requirements import ROOT
from tests.tidy.tree import Parsed, parsed
from weft.node.assembly import build_node
from weft.node.settings import settings_of

CORES = ROOT / "src" / "weft" / "cores"
GIVES_OUT = "enrolment/"
"""The core that makes bindings: it has to know what one is."""
HEARS_WHO = {
    "carrier/child.py",  # its parent is the node that it was welcomed by
    "carrier/parent.py",  # a link is of the node whose key it was opened with
    "catalog/serving.py",  # whether anybody was proved at all
    "chains/rights.py",  # whose rules apply (CHN-080)
    "topology/beaconing.py",  # an older node of our name
}
KNOWS_OF_KEYS = {
    "chains/rights.py": {"Holder", "Role"},  # whose key it is and what its role may; the node tells it (CHN-080)
    "configuration/root.py": {"bound_node"},  # a binding is no value that people write
    "configuration/writes.py": {"bound_node"},
}
OTHER_WORDS = {"gatekeeper", "credentials", "trust", "key_table"}


def _modules() -> Iterator[tuple[str, Parsed]]:
    for path in sorted(CORES.rglob("*.py")):
        yield path.relative_to(CORES).as_posix(), parsed(path.read_text("utf-8"))


def hears_who(module: Parsed) -> bool:
    """Whether a module looks at `source.proved`."""
    return any(node.attr == "proved" and _name_of(node.value) == "source" for node in module.of(ast.Attribute))


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def taken_from_keys(module: Parsed) -> set[str]:
    """What a module imports of roles, verbs, bindings and tables."""
    froms = [node for node in module.of(ast.ImportFrom) if node.module == "weft.base.keys"]
    whole = [name.name for node in module.of(ast.Import) for name in node.names]
    return {name.name for node in froms for name in node.names} | {name for name in whole if name == "weft.base.keys"}


def other_words(module: Parsed) -> set[str]:
    """What would be another way in."""
    return {_name_of(node).lower() for node in [*module.of(ast.Name), *module.of(ast.Attribute)]} & OTHER_WORDS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if source.proved: pass", (True, set(), set())),
        ("if heard.source.proved is None: pass", (True, set(), set())),
        ("if link.proved: pass", (False, set(), set())),
        ("from weft.base.keys import KeyTable, may", (False, {"KeyTable", "may"}, set())),
        ("import weft.base.keys", (False, {"weft.base.keys"}, set())),
        ("self.context.credentials.owner(x)", (False, set(), {"credentials"})),
    ],
)
def test_what_is_looked_for_is_found(text: str, expected: tuple[bool, set[str], set[str]]) -> None:
    module = parsed(text)
    assert expected == (hears_who(module), taken_from_keys(module), other_words(module))


@pytest.mark.proves("SEC-002", part="nothing but `Source.proved` and one hook reaches cores")
def test_cores_know_of_keys_what_a_source_says_and_nothing_else() -> None:
    modules = [(name, module) for name, module in _modules() if not name.startswith(GIVES_OUT)]
    assert HEARS_WHO == {name for name, module in modules if hears_who(module)}
    assert KNOWS_OF_KEYS == {name: taken for name, module in modules if (taken := taken_from_keys(module))}
    assert {} == {name: words for name, module in modules if (words := other_words(module))}


@pytest.mark.proves("SEC-002", part="who has no keys asks for none: every verb is everybody's")
def test_on_an_open_fabric_nobody_is_asked() -> None:
    settings = settings_of({"node": {"name": "a", "level": "root"}})
    node = build_node(settings, b"n" * 16, 1, "seed", b"s" * 32)
    topology = node.cores["topology"]
    assert (None, True) == (node.authority, topology.may(b"x" * 16, "serve"))  # type: ignore[attr-defined]  # of topology
