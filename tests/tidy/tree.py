"""What tidy looks at: the text files of a tree, each parsed once, and what it found in them."""

import ast
import gc
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

ANSWER: Final = re.compile(r"#\s*tidy:\s*\S+")
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef

BELOW_THE_SHELL: Final = ("base", "wire", "cores", "node", "checks")

Node = TypeVar("Node", bound=ast.AST)
SMALL: Final = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
PASSED: Final = frozenset(
    {
        str,
        int,
        bytes,
        float,
        complex,
        bool,
        type(None),
        type(...),
        *(kind for of in SMALL for kind in of.__subclasses__()),
    }
)
"""Kinds of values below a node that are no nodes of their own: numbers, texts, contexts, operators."""


class Finding(NamedTuple):
    """One place, what is wrong with it, and what to do instead."""

    path: str
    line: int
    what: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}: {self.instead}"


class Parsed:
    """The syntax tree of a module, and its nodes by their kinds."""

    def __init__(self, text: str) -> None:
        was = gc.isenabled()
        gc.disable()
        try:
            self.tree = ast.parse(text)
        finally:
            gc.freeze()  # nodes live to the end, and are millions: no later look at what may go shall find them
            if was:
                gc.enable()

    @cached_property
    def _by_kind(self) -> dict[type[ast.AST], list[Any]]:
        by_kind: dict[type[ast.AST], list[Any]] = {}
        todo: list[ast.AST] = [self.tree]
        for node in todo:  # which grows
            by_kind.setdefault(type(node), []).append(node)
            for value in vars(node).values():
                if type(value) is list:
                    todo += [one for one in value if type(one) not in PASSED]
                elif type(value) not in PASSED:
                    todo.append(value)
        return by_kind

    def of(self, kind: type[Node]) -> list[Node]:
        """Every node of this kind, outer before inner; contexts and operators are not among the kinds."""
        return self._by_kind.get(kind, [])


@cache
def parsed(text: str) -> Parsed:
    """A module, parsed once however many tests look at it; SyntaxError: it is none."""
    return Parsed(text)


class Source:
    """One text file of the tree; `path` is relative, with slashes."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.lines = text.splitlines()

    @cached_property
    def _parsed(self) -> Parsed | None:
        if not self.path.endswith(".py"):
            return None
        try:
            return parsed(self.text)
        except SyntaxError:
            return None

    @property
    def tree(self) -> ast.Module | None:
        """The parsed module; None for what is not Python, or not yet."""
        return self._parsed.tree if self._parsed else None

    def of(self, kind: type[Node]) -> list[Node]:
        """Every node of this kind in the module, outer before inner."""
        return self._parsed.of(kind) if self._parsed else []

    @cached_property
    def functions(self) -> list[Function]:
        """Every function of the module."""
        return [*self.of(ast.FunctionDef), *self.of(ast.AsyncFunctionDef)]

    @cached_property
    def imports(self) -> list[ast.Import | ast.ImportFrom]:
        """Every import of the module, also those inside functions."""
        return [*self.of(ast.Import), *self.of(ast.ImportFrom)]

    @cached_property
    def comments(self) -> list[tuple[int, str]]:
        """Line and text of every comment of a Python file."""
        if self.tree is None:
            return []
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]

    @property
    def room(self) -> str:
        """The package below `src/weft`, empty elsewhere.

        >>> Source("src/weft/cores/topology/core.py", "").room
        'cores'
        """
        parts = self.path.split("/")
        return parts[2] if parts[:2] == ["src", "weft"] and len(parts) > 3 else ""

    @property
    def below_the_shell(self) -> bool:
        """Whether no clock, socket or chance may be here."""
        return self.room in BELOW_THE_SHELL

    def is_answered(self, first: int, last: int | None = None) -> bool:
        """Whether a `# tidy: <why>` stands on a line of `first..last`."""
        return any(ANSWER.search(line) for line in self.lines[first - 1 : last or first])

    def finding(self, line: int, what: str, instead: str) -> Finding:
        """A finding here."""
        return Finding(self.path, line, what, instead)


def head(function: Function) -> tuple[int, int]:
    """First and last line of a function's decorators and signature."""
    first = min([function.lineno, *(node.lineno for node in function.decorator_list)])
    return first, max(function.lineno, function.body[0].lineno - 1)


def sources(root: Path) -> Iterator[Source]:
    """Every text file under `root` that belongs to the project: what git tracks or would track."""
    for path in sorted(_paths(root)):
        try:
            text = path.read_text("utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # not text, or removed since it was listed
        yield Source(path.relative_to(root).as_posix(), text)


def _paths(root: Path) -> list[Path]:
    if not (root / ".git").exists():
        return [path for path in root.rglob("*") if path.is_file()]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    )
    return [root / name for name in listed.stdout.split("\0") if name]
