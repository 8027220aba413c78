"""Where a process and its exports meet: who sends, and how much of the journal a receiver that is away may keep (MET-006)."""

from collections.abc import Callable
from typing import Any

from weft.cores.export.limits import HOLD_PERCENT
from weft.cores.export.messages import NAME, GiveWay, SendRange
from weft.node.settings import NodeSettings
from weft.shell.runner import Runner


def export_performers(runner: Runner, settings: NodeSettings) -> dict[type, Callable[[Any], None]]:
    """Who sends values to monitoring systems outside; nobody where the file names none."""
    if NAME not in runner.node.cores:
        return {}
    from weft.shell.exporting import Exporting  # a client of HTTP, which few nodes need

    return {SendRange: Exporting(runner.order, settings.exports, runner.journal.read).send}


def make_room(runner: Runner) -> None:
    """A receiver that is away for long may keep a share of the journal, and no more: the oldest segment is given up.

    Only if it alone holds it: what goes up or into the lake is there in any case.
    """
    journal, released = runner.journal, runner.node.released
    if NAME not in runner.node.cores or journal.bytes_used * 100 <= journal.limits.budget_bytes * HOLD_PERCENT:
        return
    others = min((upto for reader, upto in released.items() if reader != NAME), default=0)
    if released.get(NAME, 0) < others:
        runner.order(NAME, GiveWay(min(others, journal.oldest_spans()[0])))
