"""What this node measures, when, and under which numbers.

It reads no meter itself: it orders a measurement and takes what comes. Start with `states.py`, then `core.py`.
"""

from weft.cores.measurement.core import Measurement

__all__ = ["Measurement"]
