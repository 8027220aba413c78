"""The root's knowledge of the nodes in the fleet, and of the configuration number that each runs (CFG-047, CFG-092).

The tree is in the pairs under `/TOPO/`; the numbers come in the nodes' events `config.applied`.
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
ELECTORATES_MAX = 100  # earlier sets of voters of which too few know that they have ended
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


class _Said(msgspec.Struct):
    number: int
    count: int = 0
    digest: str = ""
    candidates: tuple[str, ...] = ()


def report_of(node: bytes, payload: bytes) -> NumberReported | None:
    """The report in an event `config.applied` of any node; None if it has no number."""
    try:
        said = msgspec.json.decode(payload, type=_Said)
        candidates = tuple([bytes.fromhex(each) for each in said.candidates])
    except (ValueError, *UNREADABLE):
        return None
    return NumberReported(node, said.number, said.count, said.digest, candidates)


class Census:
    """Records of nodes by UUID, and the numbers that they run."""

    def __init__(self) -> None:
        self.records: dict[bytes, Located] = {}
        self.applied: dict[bytes, Applied] = {}
        self.linked: dict[bytes, None] = {}
        """Children with a live link."""
        self._leaving: dict[bytes, int] = {}
        """Voters whose record went with that number, of which no majority has heard yet."""
        self._electorates: dict[int, tuple[tuple[bytes, str], ...]] = {}
        """Earlier sets of voters that may still elect a root, with their endpoints, by the number of the write that ended each."""
        self._told: tuple[Any, Any] = ((), ())
        self._heard: dict[bytes, int] = {}
        """The highest number that each has reported."""

    def learn(self, pairs: Iterable[tuple[str, bytes | None]], number: int = 0) -> None:
        """Apply changed records `/TOPO/<group>/node/<uuid>`; what cannot be read changes nothing.

        A root cannot shrink its own majority: a voter counts until a majority, including the root, has the write that
        removed it. Otherwise a root that is cut off could declare all others dead, and be a majority of one. Neither can
        it add voters to outnumber them: an earlier set of voters counts, too, until it can elect nobody any more.
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
        """The endpoints of all that the records call first-level collectors."""
        return {node: located.record.endpoint for node, located in self.records.items() if self.is_elector(node)}

    def news_of_leaving(self) -> tuple[Removed, Electorates] | None:
        """Removed voters and earlier sets of voters that still count; None: the same as at the last call."""
        news = tuple(sorted(self._leaving.items())), tuple(sorted(self._electorates.items()))
        if news == self._told:
            return None
        self._told = news
        return news

    def recall(self, voters: Removed, electorates: Electorates = ()) -> None:
        """A root has started again: these voters, which it had removed, still count, if they are none again."""
        self._leaving.update({node: number for node, number in voters if not self.is_elector(node)})
        self._electorates = {**self._electorates, **dict(electorates)}

    def electorates(self, root: bytes) -> tuple[tuple[bytes, ...], ...]:
        """The earlier sets of voters that may still elect a root, each without the root."""
        return tuple(self._others(known, root) for known in self._electorates.values())

    def _others(self, known: Iterable[tuple[bytes, str]], root: bytes) -> tuple[bytes, ...]:
        return tuple(self._now_at(node, endpoint) for node, endpoint in known if node != root)

    def _now_at(self, node: bytes, endpoint: str) -> bytes:
        """A voter, or the node that has its address now: its machine with a new disk, which cannot vote as the former one."""
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
        """Note that a node runs a number, reported at `at`; an older report changes nothing.

        A node counts as having a write only if the nodes that it may elect as root have it too (REC-012).
        """
        known = self.applied.get(node)
        if (known is None or at >= known.at) and (known is not None or len(self.applied) < NODES_MAX):
            self.applied[node] = Applied(number, at)
        if node in self._heard or len(self._heard) < NODES_MAX:
            safe = min([number, *(self._heard.get(each, 0) for each in candidates)])
            self._heard[node] = max(safe, self._heard.get(node, 0))

    def is_elector(self, node: bytes) -> bool:
        """Whether the records say that a node is a first-level collector."""
        located = self.records.get(node)
        return located is not None and located.record.level == "branch" and located.record.tier == 1

    def is_voter(self, node: bytes) -> bool:
        """Whether a node is a first-level collector, or counts as one until a majority has its removal (REC-010)."""
        return self.is_elector(node) or node in self._leaving

    def voters(self, root: bytes) -> int:
        """First-level collectors and the root."""
        voters = [node for node in (*self.records, *self._leaving) if node != root and self.is_voter(node)]
        count = len(dict.fromkeys(voters))
        self._end_electorates(root)
        if self._leaving:
            self._let_go([self._heard.get(node, 0) for node in dict.fromkeys(voters)])
        return 1 + count

    def _let_go(self, numbers: list[int]) -> None:
        """Stop counting voters whose removal has reached a majority that includes the root."""
        needed = (len(numbers) + 1) // 2
        known = sorted(numbers, reverse=True)[needed - 1] if needed else 0
        self._leaving = {node: number for node, number in self._leaving.items() if number > known}

    def _end_electorates(self, root: bytes) -> None:
        """Forget the sets of which so many know of their end, this root included, that the others are no majority."""
        for number, known in list(self._electorates.items()):
            others = self._others(known, root)
            if sum(self._heard.get(node, 0) >= number for node in others) >= len(others) // 2:
                del self._electorates[number]

    def linked_voters(self, root: bytes) -> int:
        """Voters with an open link, and the root."""
        return 1 + sum(node != root and self.is_voter(node) for node in self.linked)

    def rows(self) -> list[dict[str, Any]]:
        """Every node with what it runs, for display."""
        rows = []
        for node, group, record in sorted(map(astuple, self.records.values()), key=lambda row: (row[2].tier, row[0])):
            applied = self.applied.get(node)
            known = {"number": applied.number, "at": applied.at} if applied else {"number": None, "at": None}
            rows.append({"node": node.hex(), **asdict(record), "group": group, **known})
        return rows
