"""All alerts that fire in the fleet, as known at its root, and the notices about them to sinks outside (MET-004).

The core keeps the active alerts and a queue of notices per sink; it sends nothing itself and evaluates no metric. Start
with `core.py`, then `lane.py`.
"""
