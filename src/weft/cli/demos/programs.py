"""What the demonstrations do, without socket, clock or terminal: who runs them hands in messages and ticks.

    Detector      stands in no chain; every period it has something to report (DEM-001)
    Responder     shows what passes it, and lets it pass; or keeps some in hand, to be killed with them (DEM-002)
    Aggregator    makes one report of all that arrive in a period; takes those of its own node, too, if told (DEM-003)
    Rewriter      tags every first of two reports, deletes every second (DEM-004)

A link says where a program wants to stand; `take` says what becomes of a message there, `tick` what is due to be sent.
"""

from collections import Counter
from typing import Any, Final, NamedTuple, Protocol

from weft.base.errors import PeerError
from weft.cli.demos import report

IN, OUT = "in", "out"
READS, REWRITES = "ro", "rw"
PARENTS_OF: Final = ("PARENTSOF",)
HOLD_MS: Final = 600_000  # who holds must not be overtaken by the time for an answer
ANSWER_MS: Final = 5_000
REPORTS_MAX: Final = 10_000
"""Reports that an aggregator keeps at most until its next tick; with `BYTES_MAX` each they are bounded."""
KEPT_BYTES_MAX: Final = 8 << 20


class Link(NamedTuple):
    """Where a program stands in the chain of reports."""

    on: str
    access: str = READS
    at: int | str = "after-all"
    holds: int = 0
    """How many messages it keeps in hand."""

    @property
    def timeout_ms(self) -> int:
        """How long it may take to answer."""
        return HOLD_MS if self.holds else ANSWER_MS


class Heard(NamedTuple):
    """A message at one of a program's links."""

    on: str
    frames: tuple[bytes, ...]
    own: bool = False
    """Whether this very program has sent it."""


class Pass(NamedTuple):
    """The message goes on, with another payload if there is one."""

    payload: bytes | None = None


class Drop(NamedTuple):
    """The message is deleted."""

    why: str


class Hold(NamedTuple):
    """The message is not handed back."""


Verdict = Pass | Drop | Hold
PASS: Final = Pass()


class Program(Protocol):
    """One demonstration."""

    counts: Counter[str]

    @property
    def is_done(self) -> bool:
        """Whether it has nothing more to do."""
        ...

    @property
    def links(self) -> tuple[Link, ...]: ...
    def take(self, heard: Heard, /) -> Verdict:
        """What becomes of it; of a read-only link the answer is not asked for."""
        ...

    def tick(self) -> list[bytes]:
        """A period has passed: the reports to be sent now."""
        ...

    def settled(self, why: str) -> None:
        """The final status of one of them."""
        ...


class Silent:
    """What all programs share: most send nothing, and never end."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    @property
    def is_done(self) -> bool:
        return False

    def take(self, _: Heard) -> Verdict:
        """Let it pass."""
        self.counts["seen"] += 1
        return PASS

    def tick(self) -> list[bytes]:
        """Nothing."""
        return []

    def settled(self, why: str) -> None:
        """Counted by reason."""
        self.counts[why] += 1


class Detector(Silent):
    """Detects demonstrations, which it assumes are going on if it runs; numbers its reports from 0 (DEM-001)."""

    links: tuple[Link, ...] = ()

    def __init__(self, name: str, count: int | None = None) -> None:
        super().__init__()
        self.name, self.count = name, count
        self._number = 0

    @property
    def is_done(self) -> bool:
        """Whether it has sent as many as it was told to."""
        return self.count is not None and self._number >= self.count

    def tick(self) -> list[bytes]:
        """The next report."""
        if self.is_done:
            return []
        self.counts["sent"] += 1
        self._number += 1
        return [report.leaf(self.name, self._number - 1)]


class Responder(Silent):
    """Shows what passes (DEM-002); the first `hold` messages it keeps in hand, if it may rewrite."""

    def __init__(self, on: str = IN, at: int | str = "after-all", access: str = READS, hold: int = 0) -> None:
        super().__init__()
        self.hold = hold
        self._link = Link(on, access, at, hold)

    @property
    def links(self) -> tuple[Link, ...]:
        return (self._link,)

    def take(self, _: Heard) -> Verdict:
        """Seen; it goes on."""
        self.counts["seen"] += 1
        if self.counts["held"] < self.hold:
            self.counts["held"] += 1
            return Hold()
        return PASS


class Aggregator(Silent):
    """Makes one report of all that have come in a period (DEM-003).

    It reads what arrives, and leaves out what is its own. With `outbound` it takes the reports of its own node out of
    the outgoing chain as well, so that they go up with those of the children.
    """

    def __init__(self, name: str, *, outbound: bool = False) -> None:
        super().__init__()
        self.name = name
        self.links = (Link(IN), Link(OUT, REWRITES)) if outbound else (Link(IN),)
        self._kept: list[bytes] = []
        self._kept_bytes = 0

    def take(self, heard: Heard) -> Verdict:
        """Keep a report until the next tick; on the way out, what is kept is deleted."""
        self.counts["seen"] += 1
        if heard.own and heard.on == OUT:
            return PASS
        if (found := self._report_of(heard)) is None:
            return PASS
        if self._kept_bytes + len(found) > KEPT_BYTES_MAX or len(self._kept) >= REPORTS_MAX:
            self.counts["overflowed"] += 1
            return PASS
        self.counts["accepted"] += 1
        self._kept.append(found)
        self._kept_bytes += len(found)
        return Drop("aggregated")

    def tick(self) -> list[bytes]:
        """One accumulated report if there is any; more of them, if one would be larger than others may read."""
        sent: list[bytes] = []
        room = report.ACCUMULATED_BYTES_MAX - len(report.accumulated(self.name, []))
        kept, size = list[bytes](), 0
        for one in self._kept:
            if kept and size + len(one) > room:
                sent.append(report.accumulated(self.name, kept))
                kept, size = [], 0
            kept.append(one)
            size += len(one)
        if kept:
            sent.append(report.accumulated(self.name, kept))
        self._kept, self._kept_bytes = [], 0
        self.counts["sent"] += len(sent)
        return sent

    def _report_of(self, heard: Heard) -> bytes | None:
        """The report that is to be accumulated, without what stands around it."""
        try:
            found = report.read(_document(heard))
        except PeerError:
            self.counts["refused"] += 1
            return None
        if found.name != "report" or (heard.on == IN and not self._is_wanted(found.attributes)):
            self.counts["passed over"] += 1
            return None
        return heard.frames[0][found.start : found.end]

    def _is_wanted(self, attributes: dict[str, Any]) -> bool:
        return attributes.get("type") == report.LEAF or attributes.get("origin") != self.name


class Rewriter(Silent):
    """Appends its tag to a report, deletes every second one; the first passes (DEM-004)."""

    def __init__(self, address: str, pid: int, at: int | str = "after-all") -> None:
        super().__init__()
        self.address, self.pid = address, pid
        self.links = (Link(OUT, REWRITES, at),)

    def take(self, heard: Heard) -> Verdict:
        """Tag it or delete it; what is no report passes as it is, and is not one of two."""
        self.counts["seen"] += 1
        try:
            tagged = report.visited(_document(heard), self.address, self.pid)
        except PeerError:
            self.counts["refused"] += 1
            return PASS
        if (self.counts["tagged"] + self.counts["deleted"]) % 2:
            self.counts["deleted"] += 1
            return Drop("every second")
        self.counts["tagged"] += 1
        return Pass(tagged)


def _document(heard: Heard) -> bytes:
    if len(heard.frames) != 1:
        raise PeerError("report", "frames", heard.frames[0])
    return heard.frames[0]
