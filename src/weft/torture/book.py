"""Requests of clients and the answers they got, as a history: in memory, and line by line in a file."""

import threading
import time
from pathlib import Path
from typing import Any

from weft.base.now import SECOND
from weft.checks.field import Writes
from weft.checks.history import Fact, write_lines


class Book:
    """The history of one run; any thread may write into it."""

    def __init__(self, path: Path) -> None:
        self.facts: list[Fact] = []
        self._lock = threading.Lock()
        self._file = path.open("ab")
        self._began = time.monotonic_ns()
        self.strange: list[str] = []
        """Wrong answers that clients have got, one sentence each."""

    def note(self, node: str, kind: str, what: str, value: Any = None) -> Fact:
        """Append one fact, with the current time."""
        with self._lock:
            fact = Fact(time.monotonic_ns() - self._began, node, 0, kind, what, value)
            self.facts.append(fact)
            self._file.write(write_lines([fact]))
        return fact

    def asks(self, node: str, protocol: str, key: str, value: Any) -> None:
        """A client is about to write."""
        self.note(node, "invoke", "put", [protocol, key, value])

    def acknowledge(self, node: str, protocol: str, key: str, value: Any) -> None:
        """A client got the acknowledgement of its write."""
        self.note(node, "ok", "put", [protocol, key, value])

    def acknowledged(self) -> dict[str, int]:
        """How many writes were acknowledged, by protocol."""
        with self._lock:
            answered = [fact.value[0] for fact in self.facts if (fact.kind, fact.what) == ("ok", "put")]
        return {protocol: answered.count(protocol) for protocol in sorted(set(answered))}

    def written(self, protocol: str) -> list[float]:
        """When each write was acknowledged, in order, in seconds since the beginning."""
        with self._lock:
            found = [
                fact for fact in self.facts if (fact.kind, fact.what) == ("ok", "put") and fact.value[0] == protocol
            ]
        return [fact.at / SECOND for fact in found]

    def possible(self, protocol: str) -> dict[str, list[Any]]:
        """The possible values of each key: the one acknowledged last (None: none yet), and those requested since."""
        with self._lock:
            facts = [fact for fact in self.facts if fact.what in ("put", "rewound")]
        writes = Writes()
        for fact in facts:
            if fact.what == "rewound" or fact.value[0] == protocol:
                writes.take(fact)
        return writes.possible.get(protocol, {})

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()
