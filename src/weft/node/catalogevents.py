"""The events of the catalog as they are journaled: level, meaning and mend (CAT-083)."""

from typing import Final

from weft.cores.catalog import messages as catalog
from weft.node.securityevents import Event

CATALOG: Final[dict[type, Event]] = {
    catalog.CatalogOpened: Event(
        "catalog.opened", "info", "The broker serves; instances registered before get time to send a beat.", "Nothing."
    ),
    catalog.RequestDenied: Event(
        "catalog.denied",
        "warning",
        "A registration, an update or an order was refused; nothing has changed.",
        "docs/catalog.md says what each `code` means, and what to do.",
    ),
    catalog.PeerMalformed: Event(
        "catalog.malformed", "warning", "A peer sent bytes that are no message of the protocol.", "See who it is."
    ),
    catalog.PeerIgnored: Event(
        "catalog.ignored",
        "warning",
        "A peer sent so many malformed messages that it is ignored for a minute.",
        "Mend or stop that program.",
    ),
    catalog.Paused: Event(
        "catalog.pause",
        "warning",
        "The broker stood still for a while. All deadlines were moved, so that no instance counts as gone because of that.",
        "Find out what stopped the process: memory, the disk, a suspended machine.",
    ),
    catalog.EvictionsHeld: Event(
        "catalog.held",
        "warning",
        "So many services are silent at once that the fault may be here: none counts as gone for now. Or that is over.",
        "Look at the network of this machine.",
    ),
    catalog.PathChanged: Event(
        "catalog.path",
        "info",
        "The beats of a service come by TCP now, because UDP loses them; or by UDP again.",
        "If it is `tcp`: let UDP pass to the port for beats.",
    ),
    catalog.CatalogExposed: Event(
        "catalog.insecure",
        "warning",
        "The catalog is open to other machines without authentication.",
        "Bind it to loopback, or trust everybody on that network.",
    ),
    catalog.LogsLost: Event(
        "catalog.logs-lost",
        "warning",
        "Log records of a service are lost: it could not send them again. `first` and `last` are their numbers.",
        "Nothing.",
    ),
    catalog.TapStarted: Event(
        "tap.start", "info", "Messages of a service are copied, because `by` asked for it.", "weft catalog tap --list"
    ),
    catalog.TapEnded: Event(
        "tap.stop", "info", "A tap has ended; the counts say how many messages it has copied.", "Nothing."
    ),
    catalog.BridgeUp: Event(
        "bridge.up", "info", "A bridge to another network is up: both brokers have what the other exports.", "Nothing."
    ),
    catalog.BridgeDown: Event(
        "bridge.down",
        "warning",
        "A bridge to another network is down: its services are unreachable, unless there is another way.",
        "Look at the network between both. The dialling broker tries again by itself.",
    ),
    catalog.BridgeRefused: Event(
        "bridge.refused",
        "warning",
        "Another broker, or this one, refused a bridge: both have the same `net`, or too many bridges.",
        "Give each network a name of its own: [catalog] net.",
    ),
}
