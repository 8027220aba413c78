"""State tables as data: found in the cores, checked, drawn.

A core's own test walks its table with `pairs`: every state with every input, so that none is forgotten.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import Any, NamedTuple

import weft.cores

HEAD = """\
# State tables

Written by `make docs` from the `states.py` of every core (and others that end so). What is not drawn has no row: it cannot happen, or it is
refused or ignored without effect, as the text of the table says.
"""


SHARED = ("kit",)
"""Packages beside the cores that are none."""


class Table(NamedTuple):
    """One table of a core: rows by (state, input), and the class whose methods the rows name."""

    core: str
    name: str
    rows: dict[tuple[Enum, Enum], Any]
    module: ModuleType

    @property
    def title(self) -> str:
        of = self.module.__name__.rpartition(".")[2].removesuffix("states")
        part = self.name.removesuffix("TABLE").removesuffix("_").lower() or of
        return f"{self.core}, {part}" if part else self.core

    @property
    def states(self) -> list[Enum]:
        """All states of the table's enum, in the order of the source."""
        return list(type(next(iter(self.rows))[0]))

    @property
    def inputs(self) -> list[Enum]:
        """All inputs of the table's enum, in the order of the source."""
        return list(type(next(iter(self.rows))[1]))


def tables() -> list[Table]:
    """Every table of every core: the dicts of its `*states.py` whose keys are pairs of enum members."""
    return [
        Table(package, name, value, module)
        for package in sorted(info.name for info in pkgutil.iter_modules(weft.cores.__path__) if info.ispkg)
        if package not in SHARED
        for module in _modules_of_states(package)
        for name, value in vars(module).items()
        if _is_table(value)
    ]


def _modules_of_states(core: str) -> list[ModuleType]:
    package = importlib.import_module(f"weft.cores.{core}")
    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__) if info.name.endswith("states"))
    assert "states" in names, f"{core} has no states.py"
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]


def _is_table(value: object) -> bool:
    if not isinstance(value, dict) or not value:
        return False
    return all(
        isinstance(key, tuple) and len(key) == 2 and all(isinstance(part, Enum) for part in key) for key in value
    )


def pairs(table: dict[tuple[Any, Any], Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Every state with every input and its cell, None where there is no row: what an exhaustive walk goes through."""
    states, inputs = type(next(iter(table))[0]), type(next(iter(table))[1])
    for state in states:
        for on in inputs:
            yield state, on, table.get((state, on))


def doers(table: Table) -> list[type]:
    """Classes of the core that have a method for every row."""
    package = importlib.import_module(f"weft.cores.{table.core}")
    modules = [
        importlib.import_module(f"{package.__name__}.{info.name}") for info in pkgutil.iter_modules(package.__path__)
    ]
    names = {cell.do for cell in table.rows.values()}
    return [
        thing
        for module in modules
        for thing in vars(module).values()
        if inspect.isclass(thing) and thing.__module__ == module.__name__ and names <= set(dir(thing))
    ]


def reachable(table: Table) -> list[Enum]:
    """States that some way through the table leads to; the first one of the enum is where it starts."""
    seen = [table.states[0]]
    for state in seen:
        seen += [cell.then for (before, _), cell in table.rows.items() if before is state and cell.then not in seen]
    return list(dict.fromkeys(seen))


def draw(found: list[Table]) -> str:
    """The page docs/states.md: per table its text, a diagram, and what states and inputs mean."""
    return "\n".join([HEAD, *(_draw_one(table) for table in found)])


def _draw_one(table: Table) -> str:
    drawn = [f"    {state.name}" for state in table.states]
    arrows: dict[tuple[str, str], list[str]] = {}
    for (state, on), cell in table.rows.items():
        arrows.setdefault((state.name, cell.then.name), []).append(on.name)
    drawn += [f"    {a} --> {b}: {', '.join(inputs)}" for (a, b), inputs in arrows.items()]
    lines = [f"## {table.title}", "", inspect.getdoc(table.module) or "", "", "```mermaid", "stateDiagram-v2"]
    lines += [f"    [*] --> {table.states[0].name}", *drawn, "```", ""]
    lines += ["| state or input | meaning |", "|---|---|"]
    lines += [f"| {member.name} | {_meaning(member)} |" for member in (*table.states, *table.inputs)]
    lines += ["", "| in | on | does | then |", "|---|---|---|---|"]
    lines += [
        f"| {state.name} | {on.name} | `{cell.do}` | {cell.then.name} |" for (state, on), cell in table.rows.items()
    ]
    return "\n".join([*lines, ""])


def _meaning(member: Enum) -> str:
    return member.value if isinstance(member.value, str) else ""
