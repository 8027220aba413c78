"""What the root knows of the fleet: its nodes, the configuration number that each runs, and the voters (CFG-047, CFG-092).

The nodes come from the pairs under `/TOPO/`, the numbers from the nodes' events `config.applied`.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import asdict, astuple

from weft.base.errors import UNREADABLE
from weft.cores.topology.atlas import Located, NodeRecord
from weft.cores.topology.messages import Electorates

_PREFIX = "/TOPO/"
NODES_MAX = 10_000  # nodes of one fleet
ELECTORATES_MAX = 100  # earlier sets of voters that are remembered, because they could still elect a root
Removed = tuple[tuple[bytes, int], ...]
"""Voters, each with the number of the write that removed it."""
_decode_record = msgspec.json.Decoder(NodeRecord).decode


class Applied(msgspec.Struct, frozen=True, gc=False):
    """What a node has last reported."""

    number: int
    at: int
    """Wall-clock ns, by the node's own clock."""


class NumberReported(msgspec.Struct, frozen=True, gc=False):
    """Event, at the root: a node has reported which configuration number it runs.

    The record is already in the journal.
    """

    node: bytes
    number: int
    count: int = 0
    """How many configuration pairs it has at that number."""
    digest: str = ""
    """Digest of these pairs, hex; empty: an older node that does not report it, or one without a vote."""
    candidates: tuple[bytes, ...] = ()
    """Nodes that it may still elect as root of a later epoch."""


class _Report(msgspec.Struct):
    number: int
    count: int = 0
    digest: str = ""
    candidates: tuple[str, ...] = ()


def report_of(node: bytes, payload: bytes) -> NumberReported | None:
    """The report in an event `config.applied` of any node; None if it has no number."""
    try:
        report = msgspec.json.decode(payload, type=_Report)
        candidates = tuple([bytes.fromhex(each) for each in report.candidates])
    except (ValueError, *UNREADABLE):
        return None
    return NumberReported(node, report.number, report.count, report.digest, candidates)


class Census:
    """The nodes of the fleet, what each runs, and which of them count as voters."""

    def __init__(self) -> None:
        self.records: dict[bytes, Located] = {}
        self.applied: dict[bytes, Applied] = {}
        self.linked: dict[bytes, None] = {}
        """Children with a live link."""
        self._leaving: dict[bytes, int] = {}
        """Removed voters that still count, each with the number of the write that removed it."""
        self._electorates: dict[int, tuple[tuple[bytes, str], ...]] = {}
        """Earlier sets of voters, with their endpoints, that may still elect a root; by the number of the write that ended
        each."""
        self._reported: tuple[Any, Any] = ((), ())
        """What `news_of_leaving` returned last."""
        self._heard: dict[bytes, int] = {}
        """The highest number that each node certainly has: see `note`."""

    def learn(self, pairs: Iterable[tuple[str, bytes | None]], number: int = 0) -> None:
        """Apply changed records `/TOPO/<group>/node/<uuid>`, written with `number`; an unreadable one changes nothing.

        A removed voter counts until a majority, including the root, has the write that removed it. Otherwise a root that is
        cut off could declare all other voters dead, and be a majority of one. It cannot outnumber them by new voters
        either: an earlier set of voters counts, too, until it can elect nobody any more.
        """
        changed = [pair for pair in pairs if pair[0].startswith(_PREFIX)]
        if not changed:
            return
        before = self._electors()
        self._learn(changed)
        for node in before:
            if not self.is_elector(node):
                self._leaving[node] = number
        for node in [node for node in self._leaving if self.is_elector(node)]:
            del self._leaving[node]
        if before and before.keys() != self._electors().keys() and len(self._electorates) < ELECTORATES_MAX:
            self._electorates.setdefault(number, tuple(before.items()))

    def _electors(self) -> dict[bytes, str]:
        """The first-level collectors according to the records, with their endpoints."""
        return {node: located.record.endpoint for node, located in self.records.items() if self.is_elector(node)}

    def news_of_leaving(self) -> tuple[Removed, Electorates] | None:
        """Removed voters and earlier sets of voters that still count; None: the same as at the last call."""
        news = tuple(sorted(self._leaving.items())), tuple(sorted(self._electorates.items()))
        if news == self._reported:
            return None
        self._reported = news
        return news

    def recall(self, voters: Removed, electorates: Electorates = ()) -> None:
        """After a restart of the root: these voters that it had removed, and these earlier sets, still count."""
        self._leaving.update({node: number for node, number in voters if not self.is_elector(node)})
        self._electorates = {**self._electorates, **dict(electorates)}

    def electorates(self, root: bytes) -> tuple[tuple[bytes, ...], ...]:
        """The earlier sets of voters that may still elect a root, each without the root."""
        return tuple(self._others(known, root) for known in self._electorates.values())

    def _others(self, known: Iterable[tuple[bytes, str]], root: bytes) -> tuple[bytes, ...]:
        return tuple(self._now_at(node, endpoint) for node, endpoint in known if node != root)

    def _now_at(self, node: bytes, endpoint: str) -> bytes:
        """The voter, or the node that has its address now: the same machine with a new disk, so the old one votes no more."""
        if node in self.records:
            return node
        return next((new for new, located in self.records.items() if located.record.endpoint == endpoint), node)

    def _learn(self, pairs: Iterable[tuple[str, bytes | None]]) -> None:
        for key, value in pairs:
            parts = key.split("/")
            if len(parts) != 5 or parts[3] != "node":
                continue
            try:
                node = bytes.fromhex(parts[4])
                record = _decode_record(value) if value else None
            except (ValueError, *UNREADABLE):
                continue
            if record is not None and len(self.records) < NODES_MAX:
                self.records[node] = Located(node, parts[2], record)
            elif node in self.records and self.records[node].group == parts[2]:
                del self.records[node]

    def note(self, node: bytes, number: int, at: int, candidates: tuple[bytes, ...] = ()) -> None:
        """Note that a node runs a number; a report with an earlier `at` does not change what is shown.

        For majorities a node counts as having a write only if all `candidates`, the nodes that it may still elect as root,
        have it, too (REC-012).
        """
        known = self.applied.get(node)
        if (known is None or at >= known.at) and (known is not None or len(self.applied) < NODES_MAX):
            self.applied[node] = Applied(number, at)
        if node in self._heard or len(self._heard) < NODES_MAX:
            safe = min([number, *(self._heard.get(each, 0) for each in candidates)])
            self._heard[node] = max(safe, self._heard.get(node, 0))

    def is_elector(self, node: bytes) -> bool:
        """Whether a node is a first-level collector according to the records."""
        located = self.records.get(node)
        return located is not None and located.record.level == "branch" and located.record.tier == 1

    def is_voter(self, node: bytes) -> bool:
        """Whether a node is a first-level collector, or counts as one until a majority has its removal (REC-010)."""
        return self.is_elector(node) or node in self._leaving

    def voters(self, root: bytes) -> int:
        """How many voters there are: first-level collectors, removed ones that still count, and the root."""
        voters = [node for node in (*self.records, *self._leaving) if node != root and self.is_voter(node)]
        count = len(dict.fromkeys(voters))
        self._end_electorates(root)
        if self._leaving:
            self._end_leaving([self._heard.get(node, 0) for node in dict.fromkeys(voters)])
        return 1 + count

    def _end_leaving(self, numbers: list[int]) -> None:
        """Stop counting removed voters whose removal has reached a majority that includes the root.

        `numbers`: what the other voters have.
        """
        needed = (len(numbers) + 1) // 2
        known = sorted(numbers, reverse=True)[needed - 1] if needed else 0
        self._leaving = {node: number for node, number in self._leaving.items() if number > known}

    def _end_electorates(self, root: bytes) -> None:
        """Forget a set of voters when those that do not know of its end, this root not among them, are no majority of it."""
        for number, known in list(self._electorates.items()):
            others = self._others(known, root)
            if sum(self._heard.get(node, 0) >= number for node in others) >= len(others) // 2:
                del self._electorates[number]

    def linked_voters(self, root: bytes) -> int:
        """Voters with an open link, and the root."""
        return 1 + sum(node != root and self.is_voter(node) for node in self.linked)

    def rows(self) -> list[dict[str, Any]]:
        """All nodes with the numbers that they run, for display."""
        rows = []
        for node, group, record in sorted(map(astuple, self.records.values()), key=lambda row: (row[2].tier, row[0])):
            applied = self.applied.get(node)
            known = {"number": applied.number, "at": applied.at} if applied else {"number": None, "at": None}
            rows.append({"node": node.hex(), **asdict(record), "group": group, **known})
        return rows
