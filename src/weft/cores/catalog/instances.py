"""One running copy of a service, as the broker knows it."""

from typing import Any

import msgspec

from weft.cores.catalog.states import State


class Instance:
    """Shared by reference; only `Registry` changes what stands above `heard_at`, only `Liveness` what stands below."""

    __slots__ = (
        "bound",
        "cost",
        "due_at",
        "health",
        "heard_at",
        "id",
        "index",
        "interval_ns",
        "is_imported",
        "is_restored",
        "name",
        "net",
        "observed_ip",
        "owner",
        "path_told",
        "probe_at",
        "probes",
        "reason",
        "record",
        "seq",
        "since",
        "state",
        "udp_in_row",
        "via",
    )

    def __init__(self, name: str, instance_id: str, owner: str, observed_ip: str) -> None:
        self.name, self.id = name, instance_id
        self.owner = owner
        """The observed address; a key, once there are keys."""
        self.observed_ip = observed_ip
        self.record: dict[str, Any] = {}
        """The sender's keys less `name`, and only those."""
        self.cost = 0
        """Bytes of memory that it takes, about; kept by `Book.weigh`."""
        self.state = State.ACTIVE
        self.reason = ""
        """Why it is INACTIVE: `silent`, `left`."""
        self.health = "unknown"
        self.since = 0.0
        """Unix seconds of its last change of state."""
        self.index = 0
        """Of its last change."""
        self.interval_ns = 0
        self.net = ""
        self.is_imported = False
        """It is of another network: it lives by what is said of it there (BRI-005)."""
        self.bound = b""
        """The routing id of its DEALER; empty: none."""
        # Liveness, never kept
        self.heard_at = 0
        self.via = "tcp"
        """What it was heard by last: `udp`, `tcp` or `probe`."""
        self.due_at = 0
        self.probe_at = 0
        self.probes = 0
        self.seq: int | None = None
        self.udp_in_row = 0
        self.path_told = ""
        self.is_restored = False

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.id

    @property
    def is_live(self) -> bool:
        """Whether it is counted as there."""
        return self.state in (State.ACTIVE, State.SUSPECT)


class Change(msgspec.Struct, frozen=True, gc=False):
    """One indexed change of an instance (CAT-040)."""

    index: int
    op: str
    """`register update suspect active inactive health remove`."""
    instance: Instance
    """As it is after the change; of `remove`, as it was."""
    ts: float
    """Unix seconds."""
    reason: str = ""
