"""Configuration from one root: numbered there, replicated, followed and served onward by everybody else.

A replica never goes back to an older number without an event that says so. Start with `states.py`, then `replica.py`;
the root's side is `root.py`.
"""

from weft.cores.configuration.core import Configuration

__all__ = ["Configuration"]
