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
        "The condition of an `[alert.…]` has held for its time in one series of this node.",
        "See `text`; weft alerts shows what fires.",
    ),
    measurement.AlertCleared: Event(
        "alert.cleared", "info", "The condition holds no longer, or can no longer be judged: `why`.", "Nothing."
    ),
    alerts.AlertNotSent: Event(
        "alert.not-sent",
        "warning",
        "A webhook, mail or command failed. The alert is sent again later, or given up (`is_given_up`).",
        "See `why`, and [notify] in the root's file. weft alerts shows what waits.",
    ),
    measurement.AlertsFiring: Event(
        "alert.firing",
        "info",
        "All alerts that fire on this node: sent to a new root, and when the journal has room again.",
        "Nothing.",
    ),
}

EXPORTS: Final[dict[type, Event]] = {
    export.ExportFailing: Event(
        "export.failing",
        "warning",
        "A receiver of `[export.…]` takes no samples: they wait in the journal. Or it has refused some finally.",
        "See `why`, and [export] in the node's file.",
    ),
    export.ExportBack: Event("export.back", "info", "The receiver takes samples again.", "Nothing."),
    export.ExportGaveUp: Event(
        "export.gave-up",
        "error",
        "A receiver was away for so long that the journal needed the room: it will not get these records.",
        "The lake has them. With more [journal] megabytes a receiver may be away for longer.",
    ),
}
