"""What tidy looks at: the text files of a tree, each parsed once, and what it found in them."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

ANSWER: Final = re.compile(r"#\s*tidy:\s*\S+")
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef

BELOW_THE_SHELL: Final = ("base", "wire", "cores", "node", "checks")


class Finding(NamedTuple):
    """One place, what is wrong with it, and what to do instead."""

    path: str
    line: int
    what: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}: {self.instead}"


class Source:
    """One text file of the tree; `path` is relative, with slashes."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.lines = text.splitlines()

    @cached_property
    def tree(self) -> ast.Module | None:
        """The parsed module; None for what is not Python, or not yet."""
        if not self.path.endswith(".py"):
            return None
        try:
            return ast.parse(self.text)
        except SyntaxError:
            return None

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the module, outer before inner."""
        return list(ast.walk(self.tree)) if self.tree else []

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
