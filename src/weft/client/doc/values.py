"""The data that a node returns about documents, and references as people type them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

Reference = str | Sequence[str] | Mapping[str, Any]
"""A place in a document: `"period=1 jam=3"`, the same words in a list, or `{"period": 1, "jam": 3}`. Where the schema has no
such keys: `path=…` or `eid=…` (DOC-020)."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an entry of this program. The entry is durable, and on its way to all peers."""

    source: str
    sequence: int
    outcome: str
    """`applied`, `applied-but-hidden`, `parked` (its target is not known yet), or `inert:REASON` (DOC-035)."""
    hidden_by: str = ""
    """`SOURCE:N` of a later write that overrides this one (GSP-003); with `force=True` this one overrides that."""
    hidden_value: str = ""
    undoes: str = ""
    """`SOURCE:N` of the entry that it undoes."""
    resolved: bool = False
    """Whether it closes a conflict."""
    eids: list[str] = []
    """The eids of the elements that were added."""

    @property
    def is_applied(self) -> bool:
        """Whether the document shows it."""
        return self.outcome == "applied" and not self.hidden_by


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the log."""

    source: str
    sequence: int
    eff: float
    """Its effective time, which decides its place in the document's order, in Unix seconds (DOC-010)."""
    verb: str
    reference: str
    """The place, as people type it: `period=1 jam=3`."""
    by: str = ""
    outcome: str
    received_at: int
    """Time of receipt here, Unix nanoseconds."""
    received_from: str
    """The node it came from; equal to `source` if it was entered here."""
    body: bytes
    """The XML, as its source has written it."""


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
    """The slot as people type it, if the schema has keys for it: `period=1 jam=3`."""
    shown: tuple[str, str] = ("", "")
    """If the values are eids: what these elements are, e.g. `lead team=home`."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What has changed since the last report: new operations, and their effect on the document.

    A slow reader gets several changes in one. `is_whole`: earlier changes were not reported; read the whole document.
    """

    check: str
    """Check of the log (PEE-022): equal checks mean equal documents."""
    operations: list[Operation] = []
    """The new operations, or the first of them."""
    more: int = 0
    """Number of further new operations."""
    added: list[str] = []
    """Slots, as in `removed` and `changed`: `eid:…`, or a path such as `/period[1]/jam[3]`."""
    removed: list[str] = []
    changed: list[str] = []
    events: list[dict[str, Any]] = []
    """Events around the document, each with its fields: `peer.active`, `peer.gone`, `doc.conflict`, `chat`, …."""
    is_whole: bool = False
    catching_up: bool = False
    """True while a long refold runs: until then the document is the last complete one (DOC-053)."""


def reference_of(where: Reference) -> dict[str, str]:
    """A reference in the form that the node expects.

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
