"""Events of alerts, with level, meaning and mend: rows of events.EVENTS (MET-004)."""

from typing import Final

from weft.cores.measurement import messages as measurement
from weft.node.securityevents import Event

ALERTS: Final[dict[type, Event]] = {
    measurement.AlertRaised: Event(
        "alert.raised",
        "warning",
        "A condition of `[alert.…]` has held for its span at one series of this node.",
        "See `text`.",
    ),
    measurement.AlertCleared: Event(
        "alert.cleared", "info", "It holds no longer, or can no longer be judged: `why`.", "Nothing."
    ),
    measurement.AlertsFiring: Event(
        "alert.firing",
        "info",
        "All that fires on this node, told to a new root and after the journal had no room.",
        "Nothing.",
    ),
}
