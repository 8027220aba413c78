"""The recorder's mind: when which records of the journal become a segment of the lake (LAK-001..007)."""

from weft.cores.drain.core import Drain

__all__ = ["Drain"]
