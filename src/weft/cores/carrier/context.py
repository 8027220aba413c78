"""What both sides of a carrier share: who we are, what we count, and what we want done."""

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
"""Why mail ends before it has arrived, as counted here; a peer may say anything else, and that is `refused`."""


class Counters(msgspec.Struct):
    """Plain counts since the start, and a few present values; rates are for others to derive.

    Of what came from children, and of mail from the parent: `received` = `accepted` + `repeated` + `ahead` + `known` + `expired` + `turned_away`
    + `held_back`.
    """

    sent: int = 0
    """Hop messages sent for the first time."""
    resent: int = 0
    held: int = 0
    """Hop messages that a parent has acknowledged."""
    safe: int = 0
    """Hop messages that are durable at the root."""
    batches: int = 0
    fetches: int = 0
    dropped: int = 0
    """Records given up because the spool was full."""
    uncarriable: int = 0
    """Own records that no hop can carry, announced as lost."""
    refused_above: int = 0
    """Hop messages that a parent refused for good."""
    spool_records: int = 0
    """Records not yet safe (an estimate after damage of the journal)."""
    spool_bytes: int = 0
    """Bytes of them on disk, estimated."""
    oldest_at: int = 0
    """When the oldest record that is not safe was made, wall ns by its origin; 0: none, or none in memory."""
    children: int = 0
    """Live links to children."""
    received: int = 0
    accepted: int = 0
    repeated: int = 0
    """Hop numbers that were here already (CHN-032)."""
    ahead: int = 0
    """Hop numbers behind a gap, discarded."""
    known: int = 0
    """Identities that were here already (MEA-027, CHN-036)."""
    expired: int = 0
    turned_away: int = 0
    """Hop messages that we refused for good."""
    held_back: int = 0
    """Hop messages discarded because we are full, or know no filters yet; they come again."""
    unsure: int = 0
    """Identities too old to be compared, kept (CHN-035)."""
    refused: dict[str, int] = {}
    """Everything refused, by code."""

    def refuse(self, code: str, count: int = 1) -> None:
        """Count a refusal."""
        self.refused[code] = self.refused.get(code, 0) + count

    def lose_mail(self, why: str) -> None:
        """Count mail that has ended here without having arrived: `mail-` and the reason."""
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
        """Nothing is taken from other nodes yet."""
        self.beat_ns = settings.beat_ms * MILLISECOND
        self.dead_ns = settings.dead_ms * MILLISECOND

    def believes(self, root: tuple[bytes, int] | None) -> bool:
        """Whether what is safe at `root` may be forgotten here (FLD-012). `None`: the parent does not say which root.

        A parent whose address a person has written down may be older than this key, or of another make.
        """
        if root is None or self.root is None:
            return self.settings.trusts_parent
        return root == self.root
