"""When a metric may do what (MEA-003..006).

A metric waits for its tick, is measured, and waits again. It is never measured twice at once: a tick that finds it busy
is skipped, so a metric that hangs costs only itself. An answer that is not expected, because the plan has changed or
because it came before, is counted and has no effect.
"""

from typing import Final, NamedTuple

from weft.base.tablekeys import TableKey


class State(TableKey):
    """States of the whole core."""

    PLANNED = "the plan waits for the first wake"
    RUNNING = "metrics are measured by their ticks"
    STOPPED = "nothing is measured any more"


class Phase(TableKey):
    """States of one metric."""

    WAITING = "for its next tick, or for being asked"
    MEASURING = "the shell is at work"
    OVERDUE = "the shell is at work for longer than the timeout"


class On(TableKey):
    DUE = "a tick has come, or the metric is asked for"
    READ = "samples"
    FAILED = "an error"
    UNSUPPORTED = "no source"
    TIMED_OUT = "no answer within the timeout"


class Cell(NamedTuple):
    do: str  # a method of core.Measurement
    then: Phase


TABLE: Final[dict[tuple[Phase, On], Cell]] = {
    (Phase.WAITING, On.DUE): Cell("measure", Phase.MEASURING),
    (Phase.MEASURING, On.DUE): Cell("skip_tick", Phase.MEASURING),
    (Phase.MEASURING, On.READ): Cell("take", Phase.WAITING),
    (Phase.MEASURING, On.FAILED): Cell("report_failure", Phase.WAITING),
    (Phase.MEASURING, On.UNSUPPORTED): Cell("report_unsupported", Phase.WAITING),
    (Phase.MEASURING, On.TIMED_OUT): Cell("report_failure", Phase.OVERDUE),
    (Phase.OVERDUE, On.DUE): Cell("skip_tick", Phase.OVERDUE),
    (Phase.OVERDUE, On.READ): Cell("take", Phase.WAITING),
    (Phase.OVERDUE, On.FAILED): Cell("report_failure", Phase.WAITING),
    (Phase.OVERDUE, On.UNSUPPORTED): Cell("report_unsupported", Phase.WAITING),
}
