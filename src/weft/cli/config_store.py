"""Reads and changes the configuration of a running fleet through one of its nodes."""

import getpass
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

from weft.base.errors import UserError
from weft.cli import asking

PAGE: Final = 1_000
CONFIG: Final = "/CONFIG/"


class Entry(NamedTuple):
    """A pair, and the number of the write that made it."""

    key: str
    number: int
    value: str


class Past(NamedTuple):
    """A past write; an empty text: the key was absent."""

    number: int
    who: str
    at_ns: int
    key: str
    old: str
    new: str


class Outcome(NamedTuple):
    """The result of a write order; number 0: nothing had to change."""

    number: int
    writes: int
    is_confirmed: bool
    dead: Sequence[str] = ()
    """After a rollback: alerts that can never fire from then on, each as `key: sentence`."""


class Change(NamedTuple):
    """One changed key; an empty text: absent."""

    key: str
    old: str
    new: str


class Store(Protocol):
    """What the commands need from a fleet."""

    def entries(self, subtree: str) -> list[Entry]:
        """All pairs of a subtree, by key."""

    def write(self, key: str, value: str, ttl_s: float | None, if_number: int | None, ack: str = "") -> Outcome:
        """One write; an empty value deletes."""

    def load(self, pairs: Sequence[tuple[str, str]]) -> Outcome:
        """Make exactly these pairs exist under `/CONFIG/`."""

    def history(self, subtree: str, count: int) -> list[Past]:
        """The last writes, newest first."""

    def roll_back(self, number: int, subtree: str) -> Outcome:
        """Restore a subtree to its state just after a write."""


class Running:
    """The configuration of the fleet, through the node of this machine whose port block begins at `port`."""

    def __init__(self, port: int) -> None:
        self.port = port

    def entries(self, subtree: str) -> list[Entry]:
        """All pairs of a subtree, by key; page by page."""
        found: list[Entry] = []
        while True:
            after = found[-1].key if found else ""
            page = asking.order(self.port, "list", subtree=subtree, count=PAGE, after=after)
            found += [Entry(key, number, _text(value)) for key, number, value in page["pairs"]]
            if not page["is_more"]:
                return found

    def write(self, key: str, value: str, ttl_s: float | None, if_number: int | None, ack: str = "") -> Outcome:
        """One write; an empty value deletes."""
        wanted: dict[str, Any] = {"key": key, "if_number": if_number, "who": user_name(), "ack": ack}
        if value:
            wanted |= {"value": value, "ttl_s": ttl_s}
        try:
            return _outcome(asking.order(self.port, "set" if value else "delete", **wanted))
        except UserError as error:
            if error.code == "refused" and if_number is not None and " at number " in error.text:
                raise UserError(error.code, error.text, f"weft config get {key} --json, to see what is there") from None
            raise

    def load(self, pairs: Sequence[tuple[str, str]]) -> Outcome:
        """Make exactly these pairs exist under `/CONFIG/`, with as few writes as possible (CFG-022)."""
        return _outcome(asking.order(self.port, "load", pairs=dict(pairs), prefixes=[CONFIG], who=user_name()))

    def history(self, subtree: str, count: int) -> list[Past]:
        """The last writes, newest first (CFG-027)."""
        answer = asking.order(self.port, "history", subtree=subtree, count=count)
        return [
            Past(number, who, at_ns, key, _text(old), _text(new))
            for number, who, at_ns, key, old, new in answer["writes"]
        ]

    def roll_back(self, number: int, subtree: str) -> Outcome:
        """Restore a subtree to its state just after a write, with new writes (CFG-027)."""
        return _outcome(asking.order(self.port, "rollback", number=number, subtree=subtree, who=user_name()))


def changes(old: Iterable[tuple[str, str]], new: Iterable[tuple[str, str]]) -> list[Change]:
    """The differences, by key."""
    before, after = dict(old), dict(new)
    keys = sorted({*before, *after})
    found = [Change(key, before.get(key, ""), after.get(key, "")) for key in keys]
    return [change for change in found if change.old != change.new]


def follow(store: Store, subtrees: Sequence[str], ticks: Iterable[object]) -> Iterator[list[Change]]:
    """At every tick, what has changed since the one before; the first tick only reads the state."""
    known: list[tuple[str, str]] | None = None
    for _ in ticks:
        seen = [(entry.key, entry.value) for subtree in subtrees for entry in store.entries(subtree)]
        yield changes(known, seen) if known is not None else []
        known = seen


def _text(value: Any) -> str:
    """Values are text; a value of an application that is not text is shown as the node shows it."""
    return value if isinstance(value, str) else json.dumps(value)


def _outcome(answer: dict[str, Any]) -> Outcome:
    return Outcome(answer["number"], answer["count"], answer["is_confirmed"], answer.get("dead", []))


def user_name() -> str:
    """The name of the user who runs this command; empty: this machine has no name for that user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no write has that number
        return ""
