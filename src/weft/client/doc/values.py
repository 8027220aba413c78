"""The data that a node returns about documents, and references as people type them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

Reference = str | Sequence[str] | Mapping[str, Any]
"""Where: `"period=1 jam=3"`, the same words in a list, or `{"period": 1, "jam": 3}`; of a document without chains `path=…` and `eid=…` (DOC-020)."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an own entry; it is durable, and on its way to all peers."""

    source: str
    sequence: int
    outcome: str
    """`applied`, `applied-but-hidden`, `parked` (its target is not there yet), or `inert:REASON` (DOC-035)."""
    hidden_by: str = ""
    """`SOURCE:N` of a later write that overrides it (GSP-003); `force=True` overrides that one."""
    hidden_value: str = ""
    undoes: str = ""
    """`SOURCE:N` of the entry that it undoes."""
    resolved: bool = False
    """Whether it closes a conflict."""
    eids: list[str] = []
    """References to the elements that were added."""

    @property
    def is_applied(self) -> bool:
        """Whether the document shows it."""
        return self.outcome == "applied" and not self.hidden_by


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the log."""

    source: str
    sequence: int
    eff: float
    """The instant it counts as of, Unix seconds (DOC-010)."""
    verb: str
    reference: str
    """The place as it is typed: `period=1 jam=3`."""
    by: str = ""
    outcome: str
    received_at: int
    """Time of receipt here, Unix nanoseconds."""
    received_from: str
    """The node it came from; `source` itself where it was entered here."""
    body: bytes
    """The XML that its source made."""


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Two sources wanted different values in one place (DOC-040)."""

    id: str
    kind: str
    """`set-set`, `lost-edit`, `duplicate-key`, `single`."""
    slot: str
    attr: str
    first: tuple[str, int, str]
    """Source, sequence, value."""
    second: tuple[str, int, str]
    open: bool
    where: str = ""
    """The slot by the chains of the schema, if it has such a name: `period=1 jam=3`."""
    shown: tuple[str, str] = ("", "")
    """What the values are, where these are eids: `lead team=home`."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What has changed since the one before: operations that became known, and what that did to the document.

    Who reads slowly gets several in one. `is_whole`: what came before is not told; read the document anew.
    """

    check: str
    """Check of the log (PEE-022): equal checks mean equal documents."""
    operations: list[Operation] = []
    """Operations known since; of very many only the number is given."""
    more: int = 0
    """Number of further operations."""
    added: list[str] = []
    """Slots: `eid:…`, else a path such as `/period[1]/jam[3]`."""
    removed: list[str] = []
    changed: list[str] = []
    events: list[dict[str, Any]] = []
    """Events around the document: `peer.active`, `peer.gone`, `doc.conflict`, `chat`, …, each with its facts."""
    is_whole: bool = False
    catching_up: bool = False
    """True while a long refold runs: the document shown is the last complete one (DOC-053)."""


def reference_of(where: Reference) -> dict[str, str]:
    """A reference as the node takes it.

    >>> reference_of("period=1 jam=3"), reference_of({"eid": "x"}), reference_of("venue")
    ({'period': '1', 'jam': '3'}, {'eid': 'x'}, {'path': 'venue'})
    """
    import shlex

    if isinstance(where, Mapping):
        return {str(name): str(value) for name, value in where.items()}
    words = shlex.split(where) if isinstance(where, str) else where
    pairs = [word.partition("=") for word in words]
    if len(words) == 1 and not pairs[0][1]:
        return {"path": words[0]}
    return {name: value for name, _, value in pairs}
