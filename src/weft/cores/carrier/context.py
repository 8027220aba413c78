"""State that both sides of a carrier share: its identity, counters, and the outbox of effects."""

from typing import Final

import msgspec

from weft.base.budget import Budget
from weft.base.now import MILLISECOND
from weft.cores.carrier.messages import CarrierSettings
from weft.cores.kit.outbox import Outbox

REFUSED: Final = "refused"
MAIL_ENDS: Final = frozenset(
    {
        "bad-record",
        "bad-type",
        "empty",
        "expired",
        "loop",
        "no-route",
        "overload",
        "too-big",
        "ttl",
        "unimplemented",
        "unreachable",
    }
)
"""Reasons why mail ends before it arrives, as counted here; any other word of a peer is counted as `refused`."""


class Counters(msgspec.Struct):
    """Counts since the start, and a few current values.

    Of what came from children, and of mail from the parent: `received` = `accepted` + `repeated` + `ahead` + `known` +
    `expired` + `turned_away` + `held_back`.
    """

    sent: int = 0
    """Hop messages sent for the first time."""
    resent: int = 0
    held: int = 0
    """Hop messages that the parent has acknowledged."""
    safe: int = 0
    """Hop messages that are durable at the root."""
    batches: int = 0
    fetches: int = 0
    dropped: int = 0
    """Records given up because the spool was full."""
    uncarriable: int = 0
    """Records of this node that fit into no hop; announced as lost."""
    refused_above: int = 0
    """Hop messages that a parent refused for good."""
    spool_records: int = 0
    """Records not yet safe (an estimate after damage of the journal)."""
    spool_bytes: int = 0
    """Bytes of them on disk, estimated."""
    oldest_at: int = 0
    """Origin's time, wall ns, of the oldest record that is not safe; 0: none, or none in memory."""
    children: int = 0
    """Live links to children."""
    received: int = 0
    accepted: int = 0
    repeated: int = 0
    """Hop numbers that this node already had (CHN-032)."""
    ahead: int = 0
    """Hop numbers after a gap; discarded."""
    known: int = 0
    """Records and mail with identities that were here already (MEA-027, CHN-036)."""
    expired: int = 0
    turned_away: int = 0
    """Hop messages that this node refused for good."""
    held_back: int = 0
    """Hop messages discarded because this node is full or has no filters yet; the child sends them again."""
    unsure: int = 0
    """Records whose identities are too old to be checked; kept (CHN-035)."""
    lake_unread: int = 0
    """At a new root: how often its lake was asked what it holds, and could not be read (LAK-007)."""
    refused: dict[str, int] = {}
    """Everything refused, by code."""

    def refuse(self, code: str, count: int = 1) -> None:
        """Count a refusal."""
        self.refused[code] = self.refused.get(code, 0) + count

    def lose_mail(self, why: str) -> None:
        """Count mail that ended here before it arrived: `mail-` and the reason."""
        self.refuse(f"mail-{why if why in MAIL_ENDS else REFUSED}")


class Context(Outbox):
    """What both sides of a carrier share."""

    __slots__ = (
        "awaits_filters",
        "beat_ns",
        "budget",
        "counters",
        "dead_ns",
        "era",
        "node",
        "root",
        "settings",
    )

    def __init__(self, settings: CarrierSettings, node: bytes, era: int) -> None:
        super().__init__()
        self.settings, self.node, self.era = settings, node, era
        self.counters = Counters()
        self.budget = Budget()
        self.root: tuple[bytes, int] | None = None
        """The root of record: node id and epoch; None: not known yet."""
        self.awaits_filters = settings.awaits_filters
        """While true, nothing is taken from other nodes."""
        self.beat_ns = settings.beat_ms * MILLISECOND
        self.dead_ns = settings.dead_ms * MILLISECOND

    def believes(self, root: tuple[bytes, int] | None) -> bool:
        """Whether records that are safe at `root` may be forgotten here (FLD-012). `None`: the parent names no root.

        A parent that a person configured by its address may run an older version, or other software, that does not name
        it.
        """
        if root is None or self.root is None:
            return self.settings.trusts_parent
        return root == self.root
