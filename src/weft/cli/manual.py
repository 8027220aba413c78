"""The help of all commands as one page: `weft man`, and docs/commands.md (OPS-004)."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from cyclopts import App

from weft import __version__
from weft.base.errors import EXIT_CODES
from weft.cli.kit.options import Flag

HOME: Final = Path("man1") / "weft.1"
ARGS: Final = re.compile(r"\n\s*(Args|Returns|Raises):\s*\n", re.MULTILINE)
STATUSES: Final = {
    "ok": "done",
    "violated": "not so: not found, a condition failed, a check found something",
    "usage": "wrong usage, or settings that cannot be used",
    "unavailable": "nobody answers",
    "refused": "refused",
    "unconfirmed": "unconfirmed, or void: it may have happened",
    "our-fault": "a fault of Weft; the details are in a file that is named",
    "storage-failed": "the disk failed, or output could not be written",
    "lease-held": "try again later: another process holds the lease, or memory was short",
    "lost-lease": "another process has taken the lease",
    "name-taken": "another node has this name",
    "no-java": "Java is missing",
}
"""What each exit status means. Several codes may share one; the first of them stands here."""
VARIABLES: Final = {
    "WEFT_LAKE": "the lake's directory, instead of --lake",
    "WEFT_NODE": "the node to ask: its name, its state directory, or the endpoint of its chains",
    "WEFT_STORE": "the node with the shared store: HOST:PORT",
    "WEFT_CATALOG": "the broker: HOST:PORT",
    "WEFT_DOC": "the node with the document: a name or a state directory",
    "WEFT_TRACEBACK": "if set, a fault of Weft is printed with its traceback",
    "XDG_STATE_HOME": "nodes keep their state in weft/FLEET/NAME below it; default: ~/.local/state",
}


class Option(NamedTuple):
    """One argument or option of a command."""

    name: str
    says: str
    is_word: bool
    """Whether it is given by position instead of by name."""


class Command(NamedTuple):
    """One command, by its whole name."""

    name: str
    says: str
    options: tuple[Option, ...]

    @property
    def usage(self) -> str:
        """The command with its positional arguments in order, and whether there are options."""
        words = [f"[{one.name}]" for one in self.options if one.is_word]
        return " ".join(("weft", self.name, *words, *(["[options]"] if len(words) < len(self.options) else [])))


def man(*, install: Flag = False) -> None:
    """Print the page of the manual, made from the help of all commands: `weft man | man -l -`.

    Args:
        install: write it to where `man weft` finds it, ~/.local/share/man/man1/weft.1, and print that path.
    """
    from weft.cli.nouns import app

    page = roff(list(commands(app)))
    if not install:
        print(page, end="")
        return
    place = Path.home() / ".local" / "share" / "man" / HOME
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(page, "utf-8")
    print(place)


def commands(room: App, *above: str) -> Iterator[Command]:
    """All commands that can be run, in the order of the help; aliases are left out."""
    seen: set[int] = set()
    for name in room:
        command = room[name]
        if name.startswith("-") or id(command) in seen:
            continue
        seen.add(id(command))
        if command.default_command is not None:
            yield Command(" ".join((*above, name)), _words(command.default_command), tuple(_options(command)))
        yield from commands(command, *above, name)


def _words(function: Any) -> str:
    """The docstring of a command without its list of arguments."""
    return ARGS.split((inspect.getdoc(function) or "") + "\n")[0].strip()


def _options(command: App) -> Iterator[Option]:
    for argument in command.assemble_argument_collection(parse_docstring=True):
        if argument.show:
            named = [name for name in argument.names if name.startswith("-")]
            name = ", ".join(named) if named else argument.name
            yield Option(name, " ".join((argument.parameter.help or "").split()), not named)


def roff(listed: list[Command]) -> str:
    """The page as roff, the format of `man`."""
    lines = [
        f'.TH WEFT 1 "" "Weft {__version__}" "User Commands"',
        ".SH NAME",
        r"weft \- weave a fleet of machines into one fabric, and query all of it",
        ".SH SYNOPSIS",
        r".B weft",
        r"\fICOMMAND\fR [\fIoptions\fR]",
        ".SH COMMANDS",
    ]
    for command in listed:
        lines += [".SS " + _plain(command.usage)]
        for paragraph in command.says.split("\n\n"):
            lines += _paragraph(paragraph)
        for option in command.options:
            lines += [".TP", f"\\fB{_plain(option.name)}\\fR", _plain(option.says) or r"\&"]
    lines += [".SH EXIT STATUS"]
    for code, says in STATUSES.items():
        lines += [".TP", f".B {EXIT_CODES[code]}", _plain(says)]  # tidy: the page of all of them
    lines += [".SH ENVIRONMENT"]
    for name, says in VARIABLES.items():
        lines += [".TP", f".B {name}", _plain(says)]
    return "\n".join(lines) + "\n"


def _paragraph(text: str) -> list[str]:
    """A paragraph; the lines of an indented text or of a transcript stay as they are."""
    rows = text.splitlines()
    if any(row.startswith((" ", "$")) for row in rows):
        return [".PP", ".nf", *map(_plain, rows), ".fi"]
    return [".PP", _plain(" ".join(rows))]


def _plain(text: str) -> str:
    r"""Text with escapes, so that `man` shows it unchanged.

    >>> _plain("weft up --name s1"), _plain(".5 of it"), _plain("a\\b")
    ('weft up \\-\\-name s1', '\\&.5 of it', 'a\\eb')
    """
    safe = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return rf"\&{safe}" if safe.startswith((".", "'")) else safe


def markdown(listed: list[Command]) -> str:
    """The same as Markdown, for docs/commands.md; it follows the hand-written beginning of that page."""
    lines: list[str] = []
    for command in listed:
        lines += ["", f"### weft {command.name}", "", f"`{command.usage}`", "", command.says]
        rows = [f"| `{one.name}` | {one.says.replace('|', chr(92) + '|')} |" for one in command.options]
        lines += ["", "| | |", "|---|---|", *rows] if rows else []
    return "\n".join(lines) + "\n"
