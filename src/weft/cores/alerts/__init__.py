"""What fires in the whole fleet, as its root knows it, and who is told outside (MET-004).

The core keeps what is active and a queue of notices per sink; it sends nothing itself and judges no value. Start with
`core.py`, then `lane.py`.
"""

from weft.cores.alerts.core import Alerts

__all__ = ["Alerts"]
