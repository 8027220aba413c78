"""What the demonstrations do, without socket, clock or terminal: their runner hands in messages and ticks.

    Detector      is in no chain; every period it sends a report (DEM-001)
    Responder     shows each message and lets it pass; or holds some, to be killed with them (DEM-002)
    Aggregator    makes one report of all that arrive in a period; if asked, also of its own node's (DEM-003)
    Rewriter      of every two reports, tags the first and deletes the second (DEM-004)

A link says where in a chain a program registers; `take` decides about a message there, `tick` returns what to send.
"""

from collections import Counter
from typing import Any, Final, NamedTuple, Protocol

from weft.base.errors import PeerError
from weft.cli.demos import report

IN, OUT = "in", "out"
READS, REWRITES = "ro", "rw"
PARENTS_OF: Final = ("PARENTSOF",)
HOLD_MS: Final = 600_000  # so long that the time for an answer does not end before the program is killed
ANSWER_MS: Final = 5_000
REPORTS_MAX: Final = 10_000
"""The most reports that an aggregator keeps until its next tick; each has at most `BYTES_MAX` bytes."""
KEPT_BYTES_MAX: Final = 8 << 20


class Link(NamedTuple):
    """Where in the chain of reports a program registers."""

    on: str
    access: str = READS
    at: int | str = "after-all"
    holds: int = 0
    """How many messages it holds without answering."""

    @property
    def timeout_ms(self) -> int:
        """How long it may take to answer."""
        return HOLD_MS if self.holds else ANSWER_MS


class Heard(NamedTuple):
    """A message at one of a program's links."""

    on: str
    frames: tuple[bytes, ...]
    own: bool = False
    """Whether this program has sent it itself."""


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
        """Decide about a message; at a read-only link the answer is ignored."""
        ...

    def tick(self) -> list[bytes]:
        """A period has passed; returns the reports to send now."""
        ...

    def settled(self, why: str) -> None:
        """One of its reports has got its final status."""
        ...


class Silent:
    """The base of all programs: sends nothing, lets everything pass, and never ends."""

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
    """Sends a report at every tick, numbered from 0 (DEM-001)."""

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
    """Shows what passes (DEM-002); if it may rewrite, it holds the first `hold` messages."""

    def __init__(self, on: str = IN, at: int | str = "after-all", access: str = READS, hold: int = 0) -> None:
        super().__init__()
        self.hold = hold
        self._link = Link(on, access, at, hold)

    @property
    def links(self) -> tuple[Link, ...]:
        return (self._link,)

    def take(self, _: Heard) -> Verdict:
        """Let the message pass, or hold it."""
        self.counts["seen"] += 1
        if self.counts["held"] < self.hold:
            self.counts["held"] += 1
            return Hold()
        return PASS


class Aggregator(Silent):
    """Makes one report of all that have come in a period (DEM-003).

    It reads arriving reports, except its own. With `outbound` it also takes its node's reports out of the outgoing chain,
    so that they go up together with those of the children.
    """

    def __init__(self, name: str, *, outbound: bool = False) -> None:
        super().__init__()
        self.name = name
        self.links = (Link(IN), Link(OUT, REWRITES)) if outbound else (Link(IN),)
        self._kept: list[bytes] = []
        self._kept_bytes = 0

    def take(self, heard: Heard) -> Verdict:
        """Keep a report until the next tick; in the outgoing chain, delete it then."""
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
        """One accumulated report, if there are any reports; several, if one would be too large to read."""
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
        """The report to accumulate, without what surrounds it in the payload; None: it is not wanted."""
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
    """Deletes every second report and appends its tag to the others; the first one passes (DEM-004)."""

    def __init__(self, address: str, pid: int, at: int | str = "after-all") -> None:
        super().__init__()
        self.address, self.pid = address, pid
        self.links = (Link(OUT, REWRITES, at),)

    def take(self, heard: Heard) -> Verdict:
        """Tag it or delete it; a message that is no report passes unchanged and does not count."""
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
