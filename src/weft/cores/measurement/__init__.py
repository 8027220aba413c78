"""What this node measures, when, and under which numbers."""

from weft.cores.measurement.core import Measurement

__all__ = ["Measurement"]
