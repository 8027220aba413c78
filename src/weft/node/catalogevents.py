"""The events of the catalog as they are journaled: level, meaning and mend (CAT-083)."""

from typing import Final

from weft.cores.catalog import messages as catalog
from weft.node.securityevents import Event

CATALOG: Final[dict[type, Event]] = {
    catalog.CatalogOpened: Event(
        "catalog.opened", "info", "The broker serves; what was registered before is given time to speak.", "Nothing."
    ),
    catalog.RequestDenied: Event(
        "catalog.denied",
        "warning",
        "A registration, an update or an order was refused; nothing has changed.",
        "By `code`: docs/catalog.md says what each wants.",
    ),
    catalog.PeerMalformed: Event(
        "catalog.malformed", "warning", "A peer said what is no message of the protocol.", "See who it is."
    ),
    catalog.PeerIgnored: Event(
        "catalog.ignored",
        "warning",
        "A peer said so much that is no message that it is not heard for a minute.",
        "Mend or stop that program.",
    ),
    catalog.Paused: Event(
        "catalog.pause",
        "warning",
        "The broker stood still; all deadlines were moved, so that nobody counts as gone by that.",
        "Look what held the process: memory, disk, a stopped machine.",
    ),
    catalog.EvictionsHeld: Event(
        "catalog.held",
        "warning",
        "So many services are silent at once that the fault may be here: none is called dead for now; or that is over.",
        "Look at the network of this machine.",
    ),
    catalog.PathChanged: Event(
        "catalog.path",
        "info",
        "Beats of a service are lost by UDP and come by TCP, or come by UDP again.",
        "If it is `tcp`: let UDP pass to the port of beats.",
    ),
    catalog.CatalogExposed: Event(
        "catalog.insecure",
        "warning",
        "The catalog listens beyond this machine and asks nobody who they are.",
        "Bind it to loopback, or know everybody on that network.",
    ),
    catalog.LogsLost: Event(
        "catalog.logs-lost",
        "warning",
        "Log records of a service are missing, and it could not say them again.",
        "Nothing; `first` and `last` name them.",
    ),
    catalog.TapStarted: Event(
        "tap.start", "info", "Messages of a service are copied, since `by` asked for it.", "weft catalog tap --list"
    ),
    catalog.TapEnded: Event(
        "tap.stop", "info", "Messages of a service are copied no more; the counts say how many were.", "Nothing."
    ),
    catalog.BridgeUp: Event(
        "bridge.up", "info", "A bridge to another network is up: both brokers have what the other exports.", "Nothing."
    ),
    catalog.BridgeDown: Event(
        "bridge.down",
        "warning",
        "A bridge to another network is down: its services are unreachable, unless there is another way.",
        "Look at the network between both; the dialling broker tries again by itself.",
    ),
    catalog.BridgeRefused: Event(
        "bridge.refused",
        "warning",
        "Another broker, or this one, refused a bridge: both have the same `net`, or too many bridges.",
        "Give each network a name of its own: [catalog] net.",
    ),
}
