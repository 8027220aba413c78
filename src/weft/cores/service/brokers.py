"""Which broker a service calls: its seeds in turn, or one found by beacon (BEA-004, BEA-005, BEA-007)."""

from enum import Enum

from weft.base.now import Now
from weft.cores.service import limits
from weft.cores.service.messages import ServiceSettings
from weft.wire.catalog import beacon as codec
from weft.wire.catalog.messages import Beacon


class Voice(Enum):
    """What a beacon means to a service."""

    IGNORED = "not of its network, not signed, or late"
    OTHER = "a broker that it is not with"
    OURS = "its own broker is there"
    BACK = "its own broker is there again, after a silence"
    RESTARTED = "its own broker is there, in another run"


class Broker:
    """A broker found by beacon."""

    __slots__ = ("epoch", "hb", "heard_at", "is_f64")

    def __init__(self) -> None:
        self.epoch = ""
        self.hb = 0
        self.heard_at = 0
        self.is_f64 = False
        """It accepts times of eight bytes (CAT-011)."""


class Brokers:
    """The brokers that may be called, and the one that is called."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.endpoint = ""
        """`host:port` of the called broker; empty: none yet."""
        self.epoch = ""
        """Epoch of its run, as far as known."""
        self.hb = 0
        """Its UDP port for beats; 0: it has none."""
        self.heard_at: int | None = None
        """When its last beacon came."""
        self._settings = settings
        self._heard: dict[str, Broker] = {}
        self._ours: set[str] = set()
        """Endpoints whose beacons carried the epoch of the called broker, which has several addresses."""
        self._past: dict[str, None] = {}

    @property
    def is_f64(self) -> bool:
        """Whether the called broker accepts times of eight bytes."""
        known = self._heard.get(self.endpoint)
        return known is not None and known.is_f64

    @property
    def beats_at(self) -> str:
        """The address for beats: `host:port`."""
        return f"{self.endpoint.rpartition(':')[0]}:{self.hb}"

    def is_heard(self, now: Now, within_ns: int) -> bool:
        """Whether its beacon came recently."""
        return self.heard_at is not None and now.mono - self.heard_at <= within_ns

    def approve(self, epoch: str, hb: int) -> None:
        """The broker itself has stated its epoch and its port for beats."""
        self.begin_epoch(epoch)
        self.hb = hb or self.hb

    def hear(self, beacon: Beacon, ip: str, now: Now) -> Voice:
        """Note a beacon. O(1)."""
        if not self._counts(beacon):
            return Voice.IGNORED
        endpoint = f"{'127.0.0.1' if ip == '0.0.0.0' else ip}:{beacon.port}"  # noqa: S104  # BEA-003: it means this machine
        self._note(endpoint, beacon, now)
        if not self._is_ours(endpoint, beacon.id):
            return Voice.OTHER
        was_silent = not self.is_heard(now, self._settings.beacon_ns * limits.DEAF_TENTHS // 10)
        self.heard_at = now.mono
        if beacon.id and self.epoch and beacon.id != self.epoch:
            self.begin_epoch(beacon.id)
            return Voice.RESTARTED
        self.begin_epoch(beacon.id)
        if endpoint == self.endpoint:  # anyone can copy an epoch: only the called broker says where beats go
            self.hb = beacon.hb or self.hb
        if len(self._ours) < limits.BROKERS_MAX:
            self._ours.add(endpoint)
        return Voice.BACK if was_silent else Voice.OURS

    def begin_epoch(self, epoch: str) -> None:
        """The broker is in this run; late messages of the run before are ignored."""
        if epoch and epoch != self.epoch:
            if self.epoch:
                self._past[self.epoch] = None
            if len(self._past) > limits.EPOCHS_MAX:
                del self._past[next(iter(self._past))]
            self._past.pop(epoch, None)
            self.epoch = epoch

    def choose(self, now: Now) -> str:
        """The broker to call: the same until `turn`; empty if none is known."""
        if not self.endpoint:
            self._take(next(iter(self._candidates(now)), ""))
        return self.endpoint

    def turn(self, now: Now) -> None:
        """The called broker does not answer: take the next one, if there is another."""
        known = self._candidates(now)
        at = known.index(self.endpoint) + 1 if self.endpoint in known else 0
        if known:
            self._take(known[at % len(known)])

    def _is_ours(self, endpoint: str, epoch: str) -> bool:
        """Whether it is the called broker, which may have several addresses but has one epoch."""
        if not self.endpoint:
            return False
        return endpoint == self.endpoint or endpoint in self._ours or (epoch != "" and epoch == self.epoch)

    def _take(self, endpoint: str) -> None:
        if endpoint == self.endpoint:
            return
        known = self._heard.get(endpoint, Broker())
        self.endpoint, self.epoch, self.hb = endpoint, known.epoch, known.hb
        self.heard_at = known.heard_at or None
        self._ours.clear()

    def _candidates(self, now: Now) -> list[str]:
        if self._settings.seeds:
            return list(self._settings.seeds)
        return [at for at, known in self._heard.items() if now.mono - known.heard_at <= limits.BEACON_NS]

    def _counts(self, beacon: Beacon) -> bool:
        settings = self._settings
        if settings.net and beacon.net != settings.net:
            return False
        if settings.beacon_key and not codec.is_signed(beacon, codec.secret_of(settings.beacon_key)):
            return False
        return beacon.id not in self._past

    def _note(self, endpoint: str, beacon: Beacon, now: Now) -> None:
        known = self._heard.get(endpoint)
        if known is None:
            if len(self._heard) >= limits.BROKERS_MAX:
                del self._heard[min(self._heard, key=lambda at: self._heard[at].heard_at)]
            known = self._heard[endpoint] = Broker()
        known.epoch, known.hb, known.heard_at = beacon.id, beacon.hb, now.mono
        known.is_f64 = "f64" in beacon.caps
