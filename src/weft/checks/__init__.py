"""Histories in, verdicts out: each checker judges one promise (specs/07, section 3)."""

from weft.checks.bounded import Bounded
from weft.checks.checker import Broken, Checker, Suite, Verdict, judge, judge_all
from weft.checks.complete import Complete
from weft.checks.converged import Converged
from weft.checks.durable import Durable
from weft.checks.exactly_once import ExactlyOnce
from weft.checks.history import Fact, Unknown, Violation, read_lines, write_lines
from weft.checks.inert import Inert
from weft.checks.order import Order
from weft.checks.same import Same
from weft.checks.timely import Timely
from weft.checks.wall import Wall

CHECKERS: tuple[type[Checker], ...] = (Wall, ExactlyOnce, Order, Durable, Inert, Bounded, Timely, Converged, Complete)
"""All that run beside a simulation, in the order in which they are asked; `Same` needs two runs."""

__all__ = [
    "CHECKERS",
    "Bounded",
    "Broken",
    "Checker",
    "Complete",
    "Converged",
    "Durable",
    "ExactlyOnce",
    "Fact",
    "Inert",
    "Order",
    "Same",
    "Suite",
    "Timely",
    "Unknown",
    "Verdict",
    "Violation",
    "Wall",
    "judge",
    "judge_all",
    "read_lines",
    "write_lines",
]
