"""What a mutant is: one small bug in one place of the product, planted by a rule over the syntax tree (FLD-044).

A rule looks at one node and says which text to put in whose place. What promises nothing is left out: docstrings and
other texts, messages of errors and asserts, `__repr__`, and calls that write a log.

Asserts are left out but where a docstring says that something is asserted: an assert holds in a correct program, so
nothing changes without it.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
SYNCS: Final = frozenset({"sync", "_sync", "sync_directory", "fsync", "fdatasync", "flush"})
WALLS: Final = frozenset({"Persist", "persist", "_persist", "keep", "_keep"}) | SYNCS
"""Calls in front of which something must not be said."""
LOGS: Final = frozenset({"debug", "info", "warning", "error", "exception", "print"})
PRESENTATION: Final = frozenset({"__repr__", "__str__", "describe"})
CLAIMS: Final = ("is_", "_is_", "has_", "_has_", "may_", "_may_", "can_", "_can_")
"""How functions begin whose answer is yes or no."""
RANGES: Final = frozenset({"ge", "gt", "le", "lt", "min_length", "max_length", "pattern"})
"""What `msgspec.Meta` holds a value to."""
OTHER: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
SHOWN_MAX: Final = 110  # characters of a change in the list of survivors: one line of text


class Edit(NamedTuple):
    """What stands from the first node to the last is replaced by a text."""

    first: ast.AST
    last: ast.AST
    text: str


class Mutant(NamedTuple):
    """One planted bug."""

    path: str
    """The file, from the root of the tree."""
    where: str
    """The function, or the name that is assigned, with its classes; empty: elsewhere in the module."""
    rule: str
    was: str
    now: str
    line: int
    text: str
    """The whole file with the bug."""

    @property
    def key(self) -> str:
        """What stays the same when lines move: how the list of survivors names it."""
        return f"`{self.path}` `{self.where}`, {self.rule}: `{self.was}` becomes `{self.now}`"


Rule = Callable[[ast.AST], Iterator[Edit]]


def drop_a_sync(node: ast.AST) -> Iterator[Edit]:
    if _is_call_alone(node) and _called(node) & SYNCS:
        yield Edit(node, node, "pass")


def swap_a_wall(node: ast.AST) -> Iterator[Edit]:
    """What is made durable, and what is said next, in the other order."""
    for first, last in _neighbours(node):
        if _is_wall(first) != _is_wall(last) and not _stored(first) & _used(last):
            yield Edit(first, last, "")
    if isinstance(node, ast.List) and len(node.elts) > 1 and _is_wall(node.elts[0]):
        yield Edit(node, node, f"[{', '.join(map(ast.unparse, [*node.elts[1:], node.elts[0]]))}]")
    if isinstance(node, ast.Call) and _name(node.func) == "insert" and len(node.args) == 2 and _is_wall(node.args[1]):
        yield Edit(node, node, f"{ast.unparse(node.func).removesuffix('insert')}append({ast.unparse(node.args[1])})")


def drop_an_assert(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, FUNCTIONS) and "assert" in (ast.get_docstring(node) or "").lower():
        yield from (Edit(one, one, "pass") for one in ast.walk(node) if isinstance(one, ast.Assert))


def drop_a_refusal(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Raise):
        yield Edit(node, node, "pass")


def skip_a_fence(node: ast.AST) -> Iterator[Edit]:
    if (
        isinstance(node, ast.If)
        and not node.orelse
        and isinstance(node.body[-1], ast.Return | ast.Continue | ast.Break)
    ):
        yield Edit(node, node, "pass")


def ignore_a_range(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Call) and _name(node.func) in ("Meta", "field"):
        for dropped in node.keywords:
            if dropped.arg in RANGES:
                kept = [
                    *map(ast.unparse, node.args),
                    *(ast.unparse(one) for one in node.keywords if one is not dropped),
                ]
                yield Edit(node, node, f"{ast.unparse(node.func)}({', '.join(kept)})")


def loosen_a_comparison(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            if type(operator) in OTHER:
                others = [*node.ops[:number], OTHER[type(operator)](), *node.ops[number + 1 :]]
                yield Edit(node, node, ast.unparse(ast.Compare(node.left, others, node.comparators)))


def loosen_a_bound(node: ast.AST) -> Iterator[Edit]:
    """A limit of a module, a thousand times as much and a thousandth."""
    if isinstance(node, ast.Module):
        for statement in node.body:
            name, value = _assigned(statement)
            if name.lstrip("_").isupper() and value is not None and _is_number(value):
                yield Edit(value, value, f"({ast.unparse(value)}) * 1000")
                yield Edit(value, value, f"({ast.unparse(value)}) // 1000")


def narrow_an_except(node: ast.AST) -> Iterator[Edit]:
    caught = node.type if isinstance(node, ast.ExceptHandler) else _assigned(node)[1]
    if isinstance(caught, ast.Tuple) and (isinstance(node, ast.ExceptHandler) or _are_errors(caught)):
        for dropped in caught.elts:
            kept = [ast.unparse(one) for one in caught.elts if one is not dropped]
            yield Edit(caught, caught, f"({', '.join(kept)},)")


def _are_errors(names: ast.Tuple) -> bool:
    return len(names.elts) > 1 and all(_name(one).endswith(("Error", "Fault", "Exception")) for one in names.elts)


def drop_a_not(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield Edit(node, node, _operand(node.operand))


def forget_a_condition(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.BoolOp):
        word = " and " if isinstance(node.op, ast.And) else " or "
        for dropped in node.values:
            kept = [_operand(one) for one in node.values if one is not dropped]
            yield Edit(node, node, f"({word.join(kept)})" if len(kept) > 1 else kept[0])


def drop_a_call(node: ast.AST) -> Iterator[Edit]:
    """A call whose outcome nobody uses, and what is counted."""
    if (_is_call_alone(node) and not _called(node) & (SYNCS | LOGS)) or isinstance(node, ast.AugAssign):
        yield Edit(node, node, "pass")


def lose_a_one(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and _is_one(node.right):
        yield Edit(node, node, _operand(node.left))


def say_yes(node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, FUNCTIONS) and node.name.startswith(CLAIMS):
        for one in ast.walk(node):
            if isinstance(one, ast.Return) and one.value is not None and not _is_true(one.value):
                yield Edit(one.value, one.value, "True")


RULES: Final[dict[str, Rule]] = {
    "drop a sync": drop_a_sync,
    "swap a wall": swap_a_wall,
    "drop an assert": drop_an_assert,
    "drop a refusal": drop_a_refusal,
    "skip a fence": skip_a_fence,
    "ignore a range": ignore_a_range,
    "loosen a comparison": loosen_a_comparison,
    "loosen a bound": loosen_a_bound,
    "narrow an except": narrow_an_except,
    "drop a not": drop_a_not,
    "forget a condition": forget_a_condition,
    "drop a call": drop_a_call,
    "lose a one": lose_a_one,
    "say yes": say_yes,
}


def mutants_of(path: str, text: str) -> list[Mutant]:
    """All mutants of a file, by line; two changes that read the same in one function are one."""
    tree, source = ast.parse(text), _Source(text)
    found: dict[str, Mutant] = {}
    for where, node in _places(tree, ""):
        for rule, edits_of in RULES.items():
            for edit in edits_of(node):
                here = where or _assigned(edit.first)[0] or _name_around(tree, edit.first)
                mutant = Mutant(path, here, rule, *source.changed(edit))
                found.setdefault(mutant.key, mutant)
    return sorted(found.values(), key=lambda one: (one.line, one.rule, one.now))


def read(root: Path, path: str) -> list[Mutant]:
    return mutants_of(path, (root / path).read_text("utf-8"))


def _places(node: ast.AST, where: str) -> Iterator[tuple[str, ast.AST]]:
    """Every node that may be mutated, with the function and the classes around it."""
    yield where, node
    for child in ast.iter_child_nodes(node):
        if not _is_silent(child) and not (isinstance(node, ast.Assert | ast.Raise) and isinstance(child, ast.expr)):
            named = isinstance(child, (*FUNCTIONS, ast.ClassDef)) and not _is_inner(where, node)
            yield from _places(child, f"{where}.{child.name}".lstrip(".") if named else where)  # type: ignore[attr-defined]  # a name: see `named`


def _is_inner(where: str, node: ast.AST) -> bool:
    return isinstance(node, FUNCTIONS) or (bool(where) and not isinstance(node, ast.ClassDef))


def _is_silent(node: ast.AST) -> bool:
    """Whether nothing in it is a promise: a text, a log line, a representation."""
    if isinstance(node, FUNCTIONS):
        return node.name in PRESENTATION
    return isinstance(node, ast.JoinedStr) or (_is_call_alone(node) and bool(_called(node) & LOGS))


def _neighbours(node: ast.AST) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and not isinstance(node, ast.Module | ast.ClassDef):
            yield from ((a, b) for a, b in pairwise(block) if _is_plain(a) and _is_plain(b))


def _is_plain(node: ast.stmt) -> bool:
    """Whether others may notice when it happens: a call, or what comes out of one that is a wall."""
    return _is_call_alone(node) or (isinstance(node, ast.Assign) and _is_wall(node))


def _stored(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _used(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _is_wall(node: ast.AST) -> bool:
    return bool(_called(node) & WALLS)


def _is_call_alone(node: ast.AST) -> bool:
    if not isinstance(node, ast.Expr):
        return False
    value = node.value.value if isinstance(node.value, ast.Await) else node.value
    return isinstance(value, ast.Call)


def _called(node: ast.AST) -> set[str]:
    """The last names of what is called in it."""
    return {_name(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _assigned(node: ast.AST) -> tuple[str, ast.expr | None]:
    """The one name that a statement gives, and the value."""
    if isinstance(node, ast.AnnAssign):
        return _name(node.target), node.value
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return _name(node.targets[0]), node.value
    return "", None


def _name_around(tree: ast.Module, node: ast.AST) -> str:
    """The name that a module gives in the statement around a node."""
    line = getattr(node, "lineno", 0)
    around = [one for one in tree.body if one.lineno <= line <= (one.end_lineno or one.lineno)]
    return next((getattr(one, "name", "") or _assigned(one)[0] for one in around), "")


def _is_number(node: ast.expr) -> bool:
    parts = list(ast.walk(node))
    numbers = [one.value for one in parts if isinstance(one, ast.Constant)]
    return (
        all(isinstance(one, ast.Constant | ast.BinOp | ast.operator | ast.UnaryOp | ast.unaryop) for one in parts)
        and all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers)
        and numbers != [0]
    )


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 1


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _operand(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Constant | ast.Subscript) else f"({text})"


class _Source:
    """A file, to be changed by the positions that the syntax tree gives: columns there count bytes of a line."""

    def __init__(self, text: str) -> None:
        self._bytes = text.encode()
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def changed(self, edit: Edit) -> tuple[str, str, int, str]:
        """What stood there, what stands there now, in short; the line; the whole text."""
        begin, end = self._span(edit.first)[0], self._span(edit.last)[1]
        was = self._bytes[begin:end]
        now = edit.text.encode() or self._swapped(edit)
        whole = self._bytes[:begin] + now + self._bytes[end:]
        return _short(was), _short(now), self._bytes.count(b"\n", 0, begin) + 1, whole.decode()

    def _swapped(self, edit: Edit) -> bytes:
        (a, b), (c, d) = self._span(edit.first), self._span(edit.last)
        return self._bytes[c:d] + self._bytes[b:c] + self._bytes[a:b]

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return (
            self._starts[node.lineno - 1] + node.col_offset,  # type: ignore[attr-defined]  # statements and expressions have it
            self._starts[node.end_lineno - 1] + node.end_col_offset,  # type: ignore[attr-defined]  # as above
        )


def _short(text: bytes) -> str:
    line = " ".join(text.decode().replace("`", "'").split())
    return line if len(line) <= SHOWN_MAX else line[:SHOWN_MAX] + "…"


def unparsable(mutants: Iterable[Mutant]) -> list[str]:
    """Keys of those that are no Python, which would count as killed: a defect of a rule."""
    broken = []
    for one in mutants:
        try:
            ast.parse(one.text)
        except SyntaxError:
            broken.append(one.key)
    return broken
