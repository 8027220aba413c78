"""What a root knows of its voters: which number a majority of them has, and whether most of them have a link to it."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from weft.base.now import Now
from weft.cores.configuration import limits
from weft.cores.configuration.context import Context
from weft.cores.configuration.messages import ConfigurationDiverged, NoteApplied, NoteVoters


class Report(NamedTuple):
    """What a voter has reported (CFG-047), and shown the digest of (FLD-003)."""

    number: int
    candidates: tuple[bytes, ...] = ()
    """Nodes that may still become root of a later epoch by its vote."""


class Majority:
    """The voters of a root, by their reports. Times are monotonic nanoseconds."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.nodes: dict[bytes, Report] = {}
        """Of voters alone: what a majority has costs no walk over all nodes."""
        self.voters = 1
        self._digests: OrderedDict[int, tuple[int, bytes]] = OrderedDict()
        """Count and digest of the store at recent numbers. The first of a plain dict is found only behind all that were deleted."""
        self._electorates: tuple[tuple[bytes, ...], ...] = ()
        self._alone_since: int | None = None
        """Since when fewer than a majority of the voters have a link to this root."""

    def begin(self) -> None:
        """This node becomes root, and has heard no voter yet."""
        self.nodes, self.voters, self._alone_since = {}, 1, None
        self._digests, self._electorates = OrderedDict(), ()
        self.note_digest()

    def note_applied(self, order: NoteApplied, now: Now) -> None:
        """A node has applied a number (CFG-047)."""
        self.nodes.pop(order.node, None)
        self.voters = max(order.voters, 1)
        if not order.is_voter or not self._is_shown(order):
            return
        if len(self.nodes) >= limits.NODES_MAX:
            del self.nodes[next(iter(self.nodes))]
        self.nodes[order.node] = Report(order.number, order.candidates)

    def note_digest(self) -> None:
        """Remember count and digest of the store at its present number."""
        store = self.context.store
        if len(self._digests) >= limits.DIGESTS_MAX:
            self._digests.popitem(last=False)
        self._digests[store.number] = store.tally.count, store.tally.digest

    def _is_shown(self, order: NoteApplied) -> bool:
        """Whether a node's digest matches its number; if not, an event is told (FLD-003)."""
        count, digest = self._digests.get(order.number, (0, b""))
        if not digest or not order.digest:
            return False
        if (order.count, order.digest) == (count, digest.hex()):
            return True
        there, here = (order.count, order.digest), (count, digest.hex())
        self.context.tell(ConfigurationDiverged(order.node.hex(), order.number, *here, *there, is_here=False))
        return False

    def note_voters(self, order: NoteVoters, now: Now) -> None:
        """Number of voters with a link; without a majority for D, no quorum is attempted (REC-015)."""
        self.voters, self._electorates = max(order.voters, 1), order.electorates
        if order.linked > self.voters // 2:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now.mono

    def is_alone(self, now: Now) -> bool:
        """Whether most voters have been out of reach for D."""
        return self._alone_since is not None and now.mono >= self._alone_since + self.context.dead_ns

    def confirmed(self) -> int:
        """The highest number that a majority of voters has, this root included.

        And so many of each earlier set of voters that the others of it can elect no root that lacks it (REC-012).
        """
        earlier = [self._number_of(self._among(voters), len(voters) // 2) for voters in self._electorates]
        return min([self._number_of(self.nodes.values(), self.voters // 2), *earlier])

    def _among(self, voters: tuple[bytes, ...]) -> list[Report]:
        return [self.nodes[node] for node in voters if node in self.nodes]

    def _number_of(self, reports: Iterable[Report], others: int) -> int:
        """The highest number that so many of these voters have, in addition to this root."""
        if not others:
            return self.context.store.number
        numbers = sorted(map(self._safe, reports), reverse=True)
        return numbers[others - 1] if len(numbers) >= others else 0

    def _safe(self, report: Report) -> int:
        """The number that a voter's report confirms (REC-012).

        With its vote a candidate may become root of a later epoch, now or already, and continues with what it has. So
        the report of a voter that has promised its vote confirms only what each of its candidates has reported too.
        """
        reported = [self._held(node) for node in report.candidates if node != self.context.node]
        return min([report.number, *reported])

    def _held(self, node: bytes) -> int:
        report = self.nodes.get(node)
        return report.number if report is not None else 0
