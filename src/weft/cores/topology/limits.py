"""The numbers of the topology core, each with unit and reason."""

from typing import Final

from weft.base.now import SECOND

BEACON_YOUNG_NS: Final = 1 * SECOND  # a fleet that is being started should find itself within a second
BEACON_NS: Final = 5 * SECOND  # later one small datagram per 5 s is enough to find a newcomer's parent
BEACONS_YOUNG: Final = 10  # how many go out at the young rate
KNOWN_MAX: Final = 10_000  # beacons remembered: the nodes of one fleet (specs/01, 3.5)
KNOWN_NS: Final = 4 * BEACON_NS  # three lost beacons are weather

assert BEACON_YOUNG_NS <= BEACON_NS, "a young node speaks more often, not less"
