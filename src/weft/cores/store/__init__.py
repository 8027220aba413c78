"""Shared state that survives network splits (docs/store.md)."""

from weft.cores.store.core import Store

__all__ = ["Store"]
