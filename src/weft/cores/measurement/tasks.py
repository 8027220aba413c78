"""One metric of the plan, and its lines of samples."""

from collections.abc import Iterable

from weft.base.calculated import Point
from weft.cores.measurement.details import DETAILS
from weft.cores.measurement.gates import Gate
from weft.cores.measurement.lines import Line
from weft.cores.measurement.settings import MetricSpec
from weft.cores.measurement.states import Phase
from weft.wire.samples import Labels


class Task:
    """The state of one metric."""

    __slots__ = (
        "due_at",
        "gate",
        "is_refused",
        "is_unsupported",
        "issued",
        "late_at",
        "lines",
        "origin",
        "phase",
        "place",
        "spec",
        "told_why",
        "type",
    )

    def __init__(self, spec: MetricSpec, origin: int, gate: Gate | None, due_at: int | None) -> None:
        self.spec, self.origin, self.gate, self.due_at = spec, origin, gate, due_at
        detail = DETAILS[spec.detail]
        self.type, self.place = detail.type, detail.place
        self.phase = Phase.WAITING
        self.issued = 0
        """Number of the `Measure` under way."""
        self.late_at: int | None = None
        self.lines: dict[Labels, Line] = {}
        self.told_why = ""
        self.is_unsupported = False
        """Told already; `is_refused` is the same for a series beyond a limit."""
        self.is_refused = False

    def deadlines(self) -> Iterable[int | None]:
        """When this metric needs to be woken."""
        yield self.due_at
        yield self.late_at
        if self.gate is not None and self.gate.opens_at is not None:
            yield self.gate.opens_at + self.spec.timeout_ns

    def latest(self) -> Iterable[tuple[Line, Point]]:
        """The last sample of every line."""
        return ((line, line.last) for line in self.lines.values() if line.last is not None)
