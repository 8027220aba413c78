"""Adds exports to a process, and limits how much of the journal an absent receiver may keep (MET-006)."""

from collections.abc import Callable
from typing import Any

from weft.cores.export.limits import HOLD_PERCENT
from weft.cores.export.messages import NAME, GiveWay, SendRange
from weft.node.settings import NodeSettings
from weft.shell.runner import Runner


def export_performers(runner: Runner, settings: NodeSettings) -> dict[type, Callable[[Any], None]]:
    """The function that sends values to monitoring systems outside; none if the node's file names no receiver."""
    if NAME not in runner.node.cores:
        return {}
    from weft.shell.exporting import Exporting  # imports a client of HTTP, which few nodes need

    return {SendRange: Exporting(runner.order, settings.exports, runner.journal.read).send}


def make_room(runner: Runner) -> None:
    """Give up the oldest segment, if an absent receiver keeps more than its share of the journal.

    Only a segment that no other reader needs: records on their way to the parent or the lake stay.
    """
    journal, released = runner.journal, runner.node.released
    if NAME not in runner.node.cores or journal.bytes_used * 100 <= journal.limits.budget_bytes * HOLD_PERCENT:
        return
    others = min((upto for reader, upto in released.items() if reader != NAME), default=0)
    if released.get(NAME, 0) < others:
        runner.order(NAME, GiveWay(min(others, journal.oldest_spans()[0])))
