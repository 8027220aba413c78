"""Configuration from one root: numbered there, replicated and passed on by all other nodes.

A replica never goes back to an older number without an event. Start with `states.py`, then `replica.py`; the root's
side is `root.py`.
"""
