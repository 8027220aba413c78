"""The beacon: a broadcast of where the broker is, once a second (BEA-001, BEA-007)."""
# tidy: a part of the core, with a deadline of its own

from weft.base.now import Now
from weft.cores.catalog.context import BEACON, Context
from weft.cores.catalog.queries import CAPS
from weft.wire.catalog.beacon import secret_of, sign
from weft.wire.catalog.messages import Beacon


class Beacons:
    """Silent until the ports are known, and after `stop`. The shell decides where beacons are sent (BEA-002)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._beacon: Beacon | None = None
        self._next_at: int | None = None

    def open(self, now: Now) -> None:
        """The context has the ports now: send a beacon at once, then one per interval."""
        context = self._context
        if not context.settings.beacon_ns:
            return
        beacon = Beacon(
            port=context.settings.port,
            dbp=1,
            id=context.epoch,
            hb=context.beats_port,
            pub=context.events_port,
            caps=CAPS,
            net=context.settings.net,
        )
        key = context.settings.beacon_key
        self._beacon = sign(beacon, secret_of(key)) if key else beacon
        self._next_at = now.mono

    def wake(self, now: Now) -> None:
        """Send a beacon if one is due; missed beacons are not made up for."""
        if self._beacon is not None and self._next_at is not None and now.mono >= self._next_at:
            self._context.send(BEACON, b"", self._beacon)
            self._context.count("beacons")
            self._next_at = now.mono + self._context.settings.beacon_ns

    def deadline(self) -> int | None:
        return self._next_at

    def stop(self) -> None:
        """Stop sending beacons."""
        self._next_at = None
