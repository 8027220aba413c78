"""The service's side of the catalog (CAT-023): it registers, beats, and registers again by itself.

It never gives up, unless it was refused for good. Start with `states.py`, then `core.py`.
"""
