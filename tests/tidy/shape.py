"""What makes code readable at one sitting. These rules ask; `# tidy: <why>` on the line answers."""

import ast
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import Final

from tests.tidy.large import LARGE
from tests.tidy.tree import FUNCTIONS, Finding, Function, Source, head

FUNCTION_LINES_MAX: Final = 60
CLASS_METHODS_MAX: Final = 25
CLASS_LINES_MAX: Final = 300
MODULE_LINES_MAX: Final = 600
NESTING_MAX: Final = 3
PARAMETERS_MAX: Final = 5
ASSERTIONS_MAX: Final = 15
CHECKS_MAX: Final = 2
NESTING: Final = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
VERBS: Final = frozenset({"restore", "condense", "receive", "command", "wake", "deadline", "effects"})
"""What every core can do: the promise stands once, in base/effects.py."""
PLAIN_BASES: Final = frozenset({"Struct", "NamedTuple", "Enum", "IntEnum", "Protocol", "Exception"})
"""Bases that promise nothing about a method of one's own."""
WORD: Final = re.compile(r"\w+")


def unparsable(source: Source) -> Iterator[Finding]:
    """What does not parse is judged by nobody."""
    if source.path.endswith(".py") and source.tree is None:
        yield source.finding(1, "does not parse", "see what Python says")


def long_functions(source: Source) -> Iterator[Finding]:
    """Nine in ten functions are under 30 lines; none is over 60."""
    for node in source.functions:
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES_MAX and not source.is_answered(*head(node)):
            yield source.finding(
                node.lineno, f"`{node.name}` has {lines} lines", "split it by what it promises, or a table"
            )


def large_classes(source: Source) -> Iterator[Finding]:
    """A class has a limit as a function has (HSE-009); those that were larger before may only shrink."""
    for node in source.of(ast.ClassDef) if source.path.startswith("src/") else ():
        if not source.is_answered(node.lineno):
            methods = sum(isinstance(inner, FUNCTIONS) for inner in node.body)
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            known = f"{source.path.removeprefix('src/')}:{node.name}"
            methods_max, lines_max = LARGE.get(known, (CLASS_METHODS_MAX, CLASS_LINES_MAX))
            if methods > methods_max or lines > lines_max:
                yield source.finding(
                    node.lineno,
                    f"`{node.name}` has {methods} methods in {lines} lines",
                    f"at most {methods_max} and {lines_max}: a part with a name of its own",
                )


def long_modules(source: Source) -> Iterator[Finding]:
    """A module is read at one sitting."""
    count = len(source.lines)
    if source.tree is not None and count > MODULE_LINES_MAX and not source.is_answered(1, 5):
        yield source.finding(1, f"{count} lines", f"at most {MODULE_LINES_MAX}: split it by room")


def deep_nesting(source: Source) -> Iterator[Finding]:
    """What is nested deeper than three is a function without a name."""
    for node in source.functions:
        for line in _too_deep(node.body, 0):
            if not source.is_answered(line) and not source.is_answered(*head(node)):
                yield source.finding(
                    line, f"`{node.name}` nests deeper than {NESTING_MAX}", "return early, or name a part"
                )


def _too_deep(body: list[ast.stmt], depth: int) -> Iterator[int]:
    for statement in body:
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            continue
        inside = depth + isinstance(statement, NESTING)
        if inside > NESTING_MAX:
            yield statement.lineno
            continue
        for block in _blocks(statement):
            is_elif = isinstance(statement, ast.If) and block is statement.orelse and _is_elif(block)
            yield from _too_deep(block, depth if is_elif else inside)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(statement, name, None):
            yield block
    for part in [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]:
        yield part.body


def _is_elif(block: list[ast.stmt]) -> bool:
    return len(block) == 1 and isinstance(block[0], ast.If)


def many_parameters(source: Source) -> Iterator[Finding]:
    """Five are remembered; flags of a command are read, not remembered."""
    for node in source.functions:
        taken = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        if source.room != "cli":
            taken += [argument.arg for argument in node.args.kwonlyargs]
        taken = [name for name in taken if name not in ("self", "cls")]
        if len(taken) > PARAMETERS_MAX and not source.is_answered(*head(node)):
            yield source.finding(node.lineno, f"`{node.name}` takes {len(taken)} parameters", "a Struct with a name")


def missing_docstrings(source: Source) -> Iterator[Finding]:
    """A public function says what it promises, unless it is one line or one of the verbs of a core."""
    if source.tree is None or not source.path.startswith("src/"):
        return
    for node in _public(source, source.tree.body):
        rows = source.room == "checks" and node.name.startswith("note_")  # told in checks/checker.py
        if ast.get_docstring(node) or source.is_answered(*head(node)) or _is_told_elsewhere(node) or rows:
            continue
        yield source.finding(node.lineno, f"`{node.name}` has no docstring", "promise, units, errors, requirement")


def several_stories(source: Source) -> Iterator[Finding]:
    """A test is one story: it has at most 15 assertions, and is no chain of other checks (HSE-022)."""
    asserts = sorted(node.lineno for node in source.of(ast.Assert))
    for node in source.functions if source.path.startswith("tests/") else ():
        if not node.name.startswith("test_") or source.is_answered(*head(node)):
            continue
        asserted = bisect_right(asserts, node.end_lineno or node.lineno) - bisect_left(asserts, node.lineno)
        called = sum(_is_a_check(statement) for statement in node.body)
        if asserted > ASSERTIONS_MAX or called > CHECKS_MAX:
            yield source.finding(
                node.lineno,
                f"`{node.name}` asserts {asserted} times, calls {called} checks",
                "a test per point, or a table",
            )


def _is_a_check(statement: ast.stmt) -> bool:
    if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
        return False
    name = ast.unparse(statement.value.func).rpartition(".")[2].lstrip("_")
    return name.startswith(("check_", "assert_", "expect_", "test_"))


SENTENCE: Final = re.compile(r"[.)](?:\s|$)")
SENTENCES_MIN: Final = 3


def packages_without_a_word(source: Source) -> Iterator[Finding]:
    """A package says in three sentences what it is for, what it never does, and where to start reading (HSE-011)."""
    if source.tree is None or not (source.path.startswith("src/weft/") and source.path.endswith("/__init__.py")):
        return
    said = len(SENTENCE.findall(ast.get_docstring(source.tree) or ""))
    if said < SENTENCES_MIN and source.path != "src/weft/__init__.py":
        yield source.finding(1, f"a package with {said} sentences", "what for, what never, where to start")


def _public(source: Source, body: list[ast.stmt]) -> Iterator[Function]:
    """Public functions and methods of public classes, not those inside functions, nor overrides of a base's promise."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            overrides = any(ast.unparse(base).rpartition(".")[2] not in PLAIN_BASES for base in node.bases)
            if not (node.name.startswith("_") or overrides or source.is_answered(node.lineno)):
                yield from _public(source, node.body)
        elif isinstance(node, FUNCTIONS) and not node.name.startswith("_"):
            yield node


def _is_told_elsewhere(node: Function) -> bool:
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    return len(node.body) == 1 or node.name in VERBS or bool(decorators & {"override", "overload", "setter"})


def dead_code(files: list[Source]) -> Iterator[Finding]:
    """A function of src whose name stands nowhere else, not even in a table, is never called."""
    said: Counter[str] = Counter()
    for source in files:
        if source.path.endswith((".py", ".toml")):
            said.update(WORD.findall(source.text))
    for source in files:
        if source.path.startswith("src/weft/"):
            yield from _never_called(source, said)


def _never_called(source: Source, said: Counter[str]) -> Iterator[Finding]:
    for node in source.functions:
        magic = node.name.startswith("__") and node.name.endswith("__")
        if magic or node.decorator_list or said[node.name] > 1 or source.is_answered(*head(node)):
            continue
        yield source.finding(node.lineno, f"`{node.name}` is never called", "delete it, or test it")
