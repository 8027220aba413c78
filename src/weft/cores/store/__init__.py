"""Shared state that survives network splits (specs/03)."""

from weft.cores.store.core import Store

__all__ = ["Store"]
