"""Finds the line of a key in a TOML text, for error messages (CFG-071).

The standard library's parser gives no line numbers. This scanner reads text that the parser has accepted, so it only needs
to know headers, keys, strings and brackets. Keys inside an inline table have the line of that table.
"""

import re
from typing import Final

_WORD: Final = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_RUN: Final = re.compile(r"[^][{}\"'#,\s]+|[ \t]+")
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"""+|\'\'\'.*?\'\'\'+|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'',
    re.DOTALL,
)


def lines_of(text: str) -> dict[str, int]:
    r"""The line, from 1, of every table (`group.web`), key (`group.web.metrics`) and item of a list (`…metrics[2]`).

    >>> lines_of('[group.web]\nmembers = ["a",\n  "b"]')
    {'group.web': 1, 'group': 1, 'group.web.members': 2, 'group.web.members[0]': 2, 'group.web.members[1]': 3}
    """
    scan = _Scan(text)
    while scan.position < len(text):
        scan.statement()
    return scan.lines


def line_at(lines: dict[str, int], path: str) -> int:
    """The line of `path`, or of its nearest enclosing table; 1 if there is none."""
    while path:
        if path in lines:
            return lines[path]
        path = path[: path.rindex("[")] if path.endswith("]") and "[" in path else path.rpartition(".")[0]
    return 1


class _Scan:
    def __init__(self, text: str) -> None:
        self.text, self.position, self.line = text, 0, 1
        self.lines: dict[str, int] = {}
        self._table = ""
        self._counts: dict[str, int] = {}

    def statement(self) -> None:
        """Read one header, one key with its value, or an empty line."""
        self._blank()
        head = self.text[self.position : self.position + 1]
        if head == "[":
            self._header()
        elif head and head not in "\n#":
            path = self._key()
            self._note(f"{self._table}.{path}".lstrip("."))
            self._value(f"{self._table}.{path}".lstrip("."))
        self._rest_of_line()

    def _blank(self) -> None:
        while self.text[self.position : self.position + 1] in (" ", "\t", "\r"):
            self.position += 1

    def _rest_of_line(self) -> None:
        end = self.text.find("\n", self.position)
        self.position = len(self.text) if end < 0 else end + 1
        self.line += 1

    def _header(self) -> None:
        is_list = self.text.startswith("[[", self.position)
        self.position += 2 if is_list else 1
        path = self._key()
        if is_list:
            self._counts[path] = self._counts.get(path, -1) + 1
            self._note(path)
            path = f"{path}[{self._counts[path]}]"
        self._table = path
        self._note(path)
        while "." in path:
            path = path.rpartition(".")[0]
            self._note(path)

    def _note(self, path: str) -> None:
        self.lines.setdefault(path, self.line)

    def _key(self) -> str:
        """Read a dotted key."""
        parts: list[str] = []
        while True:
            self._blank()
            match = _WORD.match(self.text, self.position) or _QUOTED.match(self.text, self.position)
            if match is None:
                return ".".join(parts)
            self.position = match.end()
            parts.append(match[0].strip("\"'"))
            self._blank()
            if not self.text.startswith(".", self.position):
                return ".".join(parts)
            self.position += 1

    def _value(self, path: str) -> None:
        """Read a value, and note the lines of a list's items."""
        depth, count, is_due = 0, 0, False
        self._blank()
        if self.text.startswith("=", self.position):
            self.position += 1
        self._blank()
        is_list = self.text.startswith("[", self.position)
        while self.position < len(self.text):
            mark = self.text[self.position]
            if mark == "\n" and depth == 0:
                return
            if is_due and mark not in " \t\r\n#,]":
                self._note(f"{path}[{count}]")
                count, is_due = count + 1, False
            depth += (mark in "[{") - (mark in "]}")
            if is_list and depth == 1 and mark in "[,":
                is_due = True
            self._step(mark)

    def _step(self, mark: str) -> None:
        """Skip one punctuation mark, one string, one comment, or a run of other characters."""
        run = _RUN.match(self.text, self.position)
        end = run.end() if run else self.position + 1
        if mark in "\"'" and (string := _STRING.match(self.text, self.position)):
            end = string.end()
        elif mark == "#":
            found = self.text.find("\n", self.position)
            end = len(self.text) if found < 0 else found
        self.line += self.text.count("\n", self.position, end)
        self.position = end
