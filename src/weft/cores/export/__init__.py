"""Decides which samples of the journal go next to a monitoring system outside, and remembers what it has (MET-006).

The core holds numbers, not samples: it names a range of the journal, and the shell reads, converts and sends it. Start
with `states.py`, then `lane.py`.
"""
