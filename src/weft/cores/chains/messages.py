"""What the chains core hears and says: orders and events. Clients of chains will bring the first wire messages."""

import msgspec

from weft.cores.chains.settings import FilterSpec
from weft.wire.samples import SampleBatch

__all__ = ["BatchFailed", "BatchPassed", "FiltersPlanned", "PassBatch", "PlanFilters", "RowsDropped", "SampleBatch"]


class PassBatch(msgspec.Struct, frozen=True):
    """Order: send a batch of samples down a chain."""

    direction: str
    """`in` or `out`."""
    type: str
    batch: SampleBatch
    origin: bytes | str = b""
    """Whose samples they are; empty: this node's own. Series of two origins are two series."""


class PlanFilters(msgspec.Struct, frozen=True):
    """Order: these are the filters from now on; one that keeps its kind, keys and window keeps its state (CHN-070)."""

    filters: tuple[FilterSpec, ...]


class BatchPassed(msgspec.Struct, frozen=True):
    """Event: what reached the bottom of a chain; the very batch that came in, if no filter took anything out."""

    direction: str
    type: str
    batch: SampleBatch
    origin: bytes | str = b""


class RowsDropped(msgspec.Struct, frozen=True, gc=False):
    """Event: a filter took samples out of a batch."""

    filter: str
    count: int


class BatchFailed(msgspec.Struct, frozen=True, gc=False):
    """Event: a filter with `on_error = "fail"` could not judge a batch, which ended there (`filter-failed`)."""

    filter: str
    count: int
    why: str


class FiltersPlanned(msgspec.Struct, frozen=True, gc=False):
    """Event: another set of filters is in force (`chains.config.applied`)."""

    count: int
