"""Cores tell and count, and one place makes lines of it (OBS-001): what could write one, by name, and where it does."""

import ast
from collections.abc import Iterator

import pytest

from tests.house.places import places_of
from tests.tidy.tree import parsed

MODULES = {"logging", "structlog", "syslog", "warnings", "sys"}
SILENT = ("base", "wire", "cores", "node", "checks")
"""Rooms below the shell."""
EXPECTED = {
    "weft/cores/chains/expression.py": {"sys"},  # whether a library is loaded already
    "weft/shell/log.py": {"to_stderr"},
    "weft/shell/serve.py": {"to_stderr"},  # why a node does not start, or ends
    "weft/shell/telemetry.py": {"log.write"},  # of every event that is told
}


def speaking(text: str, *, is_silent: bool) -> Iterator[str]:
    """What of a module writes lines; below the shell also what it imports to do so."""
    module = parsed(text)
    imported = [name.name for node in module.of(ast.Import) for name in node.names]
    imported += [node.module or "" for node in module.of(ast.ImportFrom)]
    yield from (name for name in imported if is_silent and name.partition(".")[0] in MODULES)
    yield from (node.id for node in module.of(ast.Name) if node.id in ("to_stderr", "print"))
    for node in module.of(ast.Attribute):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr="write") if is_silent:
                yield "os.write"
            case ast.Attribute(value=ast.Attribute(attr="log"), attr="write"):
                yield "log.write"
            case _:
                continue


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import logging.config", {"logging.config"}),
        ("from sys import stderr", {"sys"}),
        ("print(1)", {"print"}),
        ("os.write(2, b'')", {"os.write"}),
        ("self.log.write('info', 'x', {})", {"log.write"}),
        ("context.tell(Started())\nself.log.append(1)", set()),
    ],
)
def test_what_writes_a_line_is_found(text: str, expected: set[str]) -> None:
    assert expected == set(speaking(text, is_silent=True))


@pytest.mark.proves("OBS-001")
def test_no_core_writes_a_line_and_one_place_makes_those_of_events() -> None:
    silent = places_of(lambda text: speaking(text, is_silent=True), *SILENT)
    assert EXPECTED == silent | places_of(lambda text: speaking(text, is_silent=False), "shell")
