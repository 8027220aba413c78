"""The beacon: where the broker is, said once a second to everybody (BEA-001, BEA-007)."""

from weft.base.effects import Send
from weft.base.now import Now
from weft.cores.catalog.queries import CAPS
from weft.cores.catalog.station import BEACON, Station
from weft.wire.catalog.beacon import sign
from weft.wire.catalog.messages import Beacon


class Beacons:
    """Silent until the ports are known, and after `stop`; where they go is the shell's affair (BEA-002)."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._said: Beacon | None = None
        self._next_at: int | None = None

    def open(self, now: Now) -> None:
        """The ports stand in the station: say them at once, and each interval from now on."""
        station = self._station
        if not station.settings.beacon_ns:
            return
        said = Beacon(
            port=station.settings.port,
            dbp=1,
            id=station.epoch,
            hb=station.beats_port,
            pub=station.events_port,
            caps=CAPS,
            net=station.settings.net,
        )
        key = station.settings.beacon_key
        self._said = sign(said, key.encode()) if key else said
        self._next_at = now.mono

    def wake(self, now: Now) -> None:
        """Say it, if it is time; what was missed is not made up for."""
        if self._said is not None and self._next_at is not None and now.mono >= self._next_at:
            self._station.effects.append(Send(BEACON, b"", self._said))
            self._station.count("beacons")
            self._next_at = now.mono + self._station.settings.beacon_ns

    def deadline(self) -> int | None:
        return self._next_at

    def stop(self) -> None:
        """Say nothing more."""
        self._next_at = None
