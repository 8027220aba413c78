"""Cores tell and count, and one place makes lines of it (OBS-001): what could write one, by name, and where it does."""

import ast
from collections.abc import Iterator

import pytest

from tests.house.places import places_of

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
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names) if is_silent:
                yield from (name.name for name in names if name.name.partition(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module)) if is_silent and module.partition(".")[0] in MODULES:
                yield module
            case ast.Name(id="to_stderr" | "print" as name):
                yield name
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
