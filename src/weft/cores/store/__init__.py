"""Shared state that both halves of a split network can write (docs/store.md).

A stale change never overwrites a newer one, and a deleted entry never comes back. Start with `replica.py`; `core.py`
lists the parts.
"""
