"""A client never sees an older version of a key than its own last write or its last read (CHK-008).

Versions are those of the protocol, and only grow: a configuration's number, the order of a change in the store. A client
that moves to another node may see an older version there; so it begins a new session, which is a line of its own.
"""

from typing import ClassVar

from weft.checks.checker import Checker
from weft.checks.history import Fact


class Sessions(Checker):
    """A session reads its own writes, and never an older version than it has read before."""

    rule = "causal"
    HEARS: ClassVar = {
        ("ok", "session"): "note_session",
        ("ok", "wrote-version"): "note_version",
        ("ok", "read-version"): "note_read",
    }

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], Fact] = {}
        """Per client and key: the fact by which it knows the highest version."""

    def note_session(self, fact: Fact) -> None:
        client = fact.value[0]
        self.seen = {key: known for key, known in self.seen.items() if key[0] != client}

    def note_version(self, fact: Fact) -> None:
        client, key, version = fact.value
        known = self.seen.get((client, key))
        if known is not None and version <= known.value[2]:
            self.broken(f"{client} wrote {key} as version {version}, and had seen {known.value[2]}", known, fact)
        self.seen[client, key] = fact

    def note_read(self, fact: Fact) -> None:
        client, key, version = fact.value
        known = self.seen.get((client, key))
        if known is not None and version < known.value[2]:
            self.broken(f"{client} reads {key} as version {version}, and had seen {known.value[2]}", known, fact)
        self.seen[client, key] = fact
