"""Events of alerts and of exports, with level, meaning and mend: rows of events.EVENTS (MET-004, MET-006)."""

from typing import Final

import msgspec

from weft.cores.alerts import messages as alerts
from weft.cores.export import messages as export
from weft.cores.measurement import messages as measurement
from weft.node.securityevents import Event


class AlertReported(msgspec.Struct, frozen=True, gc=False):
    """Event, at the root: a node has reported its alerts. The record is already in the journal."""

    origin: bytes
    key: str
    payload: bytes


ALERTS: Final[dict[type, Event]] = {
    measurement.AlertRaised: Event(
        "alert.raised",
        "warning",
        "A condition of `[alert.…]` has held for its span at one series of this node.",
        "See `text`; weft alerts shows what fires.",
    ),
    measurement.AlertCleared: Event(
        "alert.cleared", "info", "It holds no longer, or can no longer be judged: `why`.", "Nothing."
    ),
    alerts.AlertNotSent: Event(
        "alert.not-sent",
        "warning",
        "Somebody outside could not be told of an alert; it waits for the next try, or is given up (`is_given_up`).",
        "See `why`, and [notify] in the root's file. weft alerts shows what waits.",
    ),
    measurement.AlertsFiring: Event(
        "alert.firing",
        "info",
        "All that fires on this node, told to a new root and after the journal had no room.",
        "Nothing.",
    ),
}

EXPORTS: Final[dict[type, Event]] = {
    export.ExportFailing: Event(
        "export.failing",
        "warning",
        "A receiver of `[export.…]` takes no samples, which wait in the journal, or has refused some for good.",
        "See `why`, and [export] in the node's file.",
    ),
    export.ExportBack: Event("export.back", "info", "It takes samples again.", "Nothing."),
    export.ExportGaveUp: Event(
        "export.gave-up",
        "error",
        "A receiver was away for so long that the journal needed the room; these records it will not get.",
        "Nothing brings them back there; the lake has them. More [journal] megabytes last longer.",
    ),
}
