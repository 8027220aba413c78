"""Loads the Python functions that filters in a node's own file name (CHN-069).

A function is looked up once, when the node starts. Replicated filters cannot name functions: else the right to write the
configuration would be the right to run programs on every machine.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from weft.base.errors import UserError
from weft.cores.chains.options import PythonOptions
from weft.cores.chains.settings import FilterSpec

Function = Callable[[dict[Any, Any]], Any]


def functions_of(filters: Iterable[FilterSpec]) -> dict[str, Function]:
    """The functions that these filters name; UserError `bad-settings` for one that cannot be loaded."""
    calls = [spec.options.call for spec in filters if isinstance(spec.options, PythonOptions)]
    return {call: _function(call) for call in calls}


def _function(call: str) -> Function:
    module, _, name = call.partition(":")
    try:
        found = getattr(import_module(module), name)
    except Exception as error:  # noqa: BLE001 - a module may raise anything during its import
        raise _refusal(call, f"{type(error).__name__}: {error}") from None
    if not callable(found):
        raise _refusal(call, "it is not a function")
    made: Function = found
    return made


def _refusal(call: str, why: str) -> UserError:
    text = f"the filter's {call!r} cannot be used: {why}"
    return UserError("bad-settings", text, "PYTHONPATH=DIRECTORY weft up …, with the directory of its module")
