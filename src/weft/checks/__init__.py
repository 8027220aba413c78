"""Histories in, verdicts out: each checker judges one promise.

A checker knows no core and shares no code with what it judges. Start with `checker.py` and `history.py`, then any
rule, such as `order.py`.
"""

from weft.checks.bounded import Bounded
from weft.checks.bridges import BRIDGE_RULES, Tapped
from weft.checks.catalog import CATALOG_RULES
from weft.checks.chain_order import ChainOrder
from weft.checks.checker import Broken, Checker, Suite, Verdict, judge, judge_all
from weft.checks.complete import Complete
from weft.checks.converged import Converged
from weft.checks.documents import DOCUMENT_RULES, PrefixFold
from weft.checks.durable import Durable
from weft.checks.exactly_once import ExactlyOnce
from weft.checks.field import FIELD_RULES, Acknowledged, Delivered, Read, Saw
from weft.checks.fleet import Calm, Claimed, Kept, NeverBack, Numbers, OneRoot, Settled, Swift
from weft.checks.harm import HarmReported
from weft.checks.hints import Unmoved
from weft.checks.history import Fact, Unknown, Violation, read_lines, write_lines
from weft.checks.inert import Inert
from weft.checks.linearizable import Linearizable
from weft.checks.mail import MAIL_CHECKERS
from weft.checks.order import Order
from weft.checks.own_numbers import OwnNumbers
from weft.checks.same import Same
from weft.checks.sealed import Sealed
from weft.checks.sessions import Sessions
from weft.checks.store import STORE_RULES
from weft.checks.timely import Timely
from weft.checks.wall import Wall
from weft.checks.watched import Deregistered, Watched

CHECKERS: tuple[type[Checker], ...] = (
    *(Wall, ExactlyOnce, Order, Durable, Inert, Sealed, Bounded, Timely, Unmoved, HarmReported, Converged, Complete),
)
"""All checkers that run beside a simulation, in the order in which they are called; `Same` needs two runs."""

FLEET_CHECKERS: tuple[type[Checker], ...] = (
    *(kind for kind in CHECKERS if kind not in (Order, Timely)),
    OneRoot,
    Claimed,
    Numbers,
    OwnNumbers,
    Linearizable,
    Kept,
    NeverBack,
    Settled,
    Calm,
    Swift,
)
"""Checkers for fleets that place themselves.

If parents change, a resend may arrive by another way, after later records.
"""

STORE_CHECKERS: tuple[type[Checker], ...] = (Converged, *STORE_RULES, OwnNumbers, Sessions, Sealed, Inert, Bounded)
"""Checkers for the store; what its nodes send up is judged in the lake."""

CATALOG_CHECKERS: tuple[type[Checker], ...] = (Watched, Deregistered, *CATALOG_RULES)
"""Checkers for brokers, besides those for the nodes that they run on."""

SIMULATED: tuple[type[Checker], ...] = tuple(
    dict.fromkeys(
        (
            *(*CHECKERS, *FLEET_CHECKERS, *MAIL_CHECKERS, *STORE_CHECKERS),
            *(*CATALOG_CHECKERS, *BRIDGE_RULES, *DOCUMENT_RULES),
        )
    )
)
"""All checkers that judge simulations."""

FIELD_CHECKERS: tuple[type[Checker], ...] = (
    *FIELD_RULES,
    Linearizable,
    PrefixFold,
    Converged,
    Complete,
    Sealed,
    Tapped,
)
"""Checkers for a real fabric, whose history consists of answers to its clients and of its final state."""

__all__ = [
    "BRIDGE_RULES",
    "CATALOG_CHECKERS",
    "CATALOG_RULES",
    "CHECKERS",
    "DOCUMENT_RULES",
    "FIELD_CHECKERS",
    "FIELD_RULES",
    "FLEET_CHECKERS",
    "MAIL_CHECKERS",
    "SIMULATED",
    "STORE_CHECKERS",
    "STORE_RULES",
    "Acknowledged",
    "Bounded",
    "Broken",
    "Calm",
    "ChainOrder",
    "Checker",
    "Claimed",
    "Complete",
    "Converged",
    "Delivered",
    "Deregistered",
    "Durable",
    "ExactlyOnce",
    "Fact",
    "HarmReported",
    "Inert",
    "Kept",
    "Linearizable",
    "NeverBack",
    "Numbers",
    "OneRoot",
    "Order",
    "OwnNumbers",
    "PrefixFold",
    "Read",
    "Same",
    "Saw",
    "Sealed",
    "Sessions",
    "Settled",
    "Suite",
    "Swift",
    "Timely",
    "Unknown",
    "Unmoved",
    "Verdict",
    "Violation",
    "Wall",
    "Watched",
    "judge",
    "judge_all",
    "read_lines",
    "write_lines",
]
