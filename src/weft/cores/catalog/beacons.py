"""The beacon: where the broker is, said once a second to everybody (BEA-001, BEA-007)."""

from weft.base.now import Now
from weft.cores.catalog.station import Station


class Beacons:
    """Silent until the ports are known, and after `stop`."""

    def __init__(self, station: Station) -> None:
        self._station = station

    def open(self, now: Now) -> None:
        """The ports stand in the station: say them at once, and each interval from now on."""

    def wake(self, now: Now) -> None:
        """Time has passed."""

    def deadline(self) -> int | None:
        """When the next one is due."""
        return None

    def stop(self) -> None:
        """Say nothing more."""
