"""`when`: one expression in the Common Expression Language, over the facts and fields of a message (CHN-061).

    when = 'type == "app.alert" && f.level > 3 && has(f.host)'

Variables: `type`, `dir`, `origin` (the node's id in hex), `size` (payload bytes), `depth`, `ts` (nanoseconds since
1970), `f` (the fields of the record). The library parses when configured, and evaluates without loops of its own; what
could still take long is bounded here: length, brackets, macros, and how many elements a macro may go through. A result
other than true or false is an error, and so is an evaluation that fails.
"""

import re
import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, Final

from weft.base.settings import nearest
from weft.cores.chains import limits
from weft.cores.chains.viewed import Viewed

VARIABLES: Final = ("type", "dir", "origin", "size", "depth", "ts", "f")
MACROS: Final = frozenset({"all", "exists", "exists_one", "map", "filter"})

_TOKEN: Final = re.compile(
    r"//[^\n]*"
    r'|[rR]?[bB]?[rR]?(?:"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|[A-Za-z_][A-Za-z0-9_]*|[.()\[\]{}]|[^\sA-Za-z_.()\[\]{}\"']+"
)


@cache
def engine() -> Any:
    """The compiled part of the library, without its command line; loaded with the first expression.

    `import cel` would load a prompt, a terminal library and an option parser: 8 MB in 0.4 s. The extension module alone
    takes 20 ms. It is registered where the package would put it, since it can be initialised only once.
    """
    name = "cel.cel"
    if name not in sys.modules:
        package = find_spec("cel")
        places = package.submodule_search_locations if package else None
        spec = PathFinder.find_spec(name, list(places or ()))
        assert spec is not None, "common-expression-language is a dependency"
        assert spec.loader is not None, spec
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def mistakes(source: str) -> list[str]:
    """The errors of an expression, each as code and sentence."""
    size = len(source.encode("utf-8", "replace"))
    if size > limits.EXPRESSION_BYTES_MAX:
        return [f"E04 is {size} bytes long, {limits.EXPRESSION_BYTES_MAX} at most"]
    tokens = _tokens(source)
    depth = _depth(tokens)
    if depth > limits.EXPRESSION_DEPTH_MAX:
        return [f"E04 has {depth} brackets open at once, {limits.EXPRESSION_DEPTH_MAX} at most"]
    count = len(_macros(tokens))
    if count > limits.MACROS_MAX:
        return [f"E04 has {count} of {', '.join(sorted(MACROS))}; {limits.MACROS_MAX} at most"]
    try:
        names = engine().compile(source).variables()
    except BaseException as error:  # noqa: BLE001  # what the library raises when it panics is no Exception
        _let_pass(error)
        return [f"E04 is no expression: {str(error).splitlines()[0][:160]}"]
    known = (*VARIABLES, *_bound_names(tokens))
    return [f"E02 {name!r} is no variable{nearest(name, VARIABLES)}" for name in names if name not in known]


def _let_pass(error: BaseException) -> None:
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        raise error


def _tokens(source: str) -> list[str]:
    return [token for token in _TOKEN.findall(source) if not token.startswith("//")]


def _depth(tokens: list[str]) -> int:
    depth = most = 0
    for token in tokens:
        if token in ("(", "[", "{"):
            depth += 1
            most = max(most, depth)
        elif token in (")", "]", "}"):
            depth -= 1
    return most


def _macros(tokens: list[str]) -> list[int]:
    """Positions of macros: `.name(`."""
    triples = zip(tokens, tokens[1:], tokens[2:], strict=False)
    return [at for at, (dot, name, bracket) in enumerate(triples) if dot == "." and name in MACROS and bracket == "("]


def _bound_names(tokens: list[str]) -> list[str]:
    """Variables that a macro defines: the first word after its bracket."""
    return [tokens[at + 3] for at in _macros(tokens) if at + 3 < len(tokens)]


def _fields(tokens: list[str]) -> tuple[str, ...] | None:
    """The fields used as `f.NAME`; None if `f` is used as a whole, so that all fields are needed."""
    found: dict[str, None] = {}
    for at, word in enumerate(tokens):
        if word != "f" or (at and tokens[at - 1] == "."):
            continue
        following = tokens[at + 1 : at + 4]
        is_field = len(following) > 1 and following[0] == "." and following[1].isidentifier()
        if not is_field or (len(following) > 2 and following[1] in MACROS and following[2] == "("):
            return None
        found[following[1]] = None
    return tuple(found)


class Expression:
    """A compiled expression; evaluating it raises nothing."""

    def __init__(self, source: str, direction: str) -> None:
        tokens = _tokens(source)
        names = engine().compile(source).variables()
        self._program = engine().compile(source)
        self._context = engine().Context(variables={"dir": direction})
        self._names = tuple([name for name in VARIABLES if name in names and name not in ("dir", "f")])
        self._fields = _fields(tokens)
        self.reads_fields = "f" in names
        """Whether it uses the fields of the record."""
        self._has_macro = bool(_macros(tokens))

    def parted(self, view: Viewed, seen: list[int]) -> tuple[list[int], list[int]]:
        """The records of `seen` for which it is true, and those for which it gives no answer."""
        if view.is_one and not self.reads_fields and seen:
            answer = self._answer(view, seen[0])
            return (seen, []) if answer else ([], seen if answer is None else [])
        true, erred = [], []
        for index in seen:
            answer = self._answer(view, index)
            if answer:
                true.append(index)
            elif answer is None:
                erred.append(index)
        return true, erred

    def _answer(self, view: Viewed, index: int) -> bool | None:
        facts = view.facts(index, self._names)
        if self.reads_fields:
            record = view.record(index)
            wanted = self._fields
            if wanted is not None:
                record = {name: record[name] for name in wanted if name in record}
            if self._has_macro and not _is_bounded(record):
                return None
            facts["f"] = record
        try:
            self._context.update(facts)
            answer = self._program.execute(self._context)
        except BaseException as error:  # noqa: BLE001  # what the library raises when it panics is no Exception
            _let_pass(error)
            return None
        return answer if answer is True or answer is False else None


def _is_bounded(value: Any) -> bool:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict | list):
            if len(found) > limits.EXPRESSION_LIST_MAX:
                return False
            waiting += found.values() if isinstance(found, dict) else found
    return True
