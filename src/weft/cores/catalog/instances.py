"""One running copy of a service, as the broker knows it."""

from typing import Any

import msgspec

from weft.cores.catalog.states import State


class Instance:
    """Shared by reference. Only `Registry` changes the fields above `heard_at`, only `Liveness` those from there on."""

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
        """The observed address; with keys, the key."""
        self.observed_ip = observed_ip
        self.record: dict[str, Any] = {}
        """The sender's keys without `name`, and nothing else."""
        self.cost = 0
        """Estimated bytes of memory; set by `Book.weigh`."""
        self.state = State.ACTIVE
        self.reason = ""
        """Why it is INACTIVE: `silent`, `left`."""
        self.health = "unknown"
        self.since = 0.0
        """Unix seconds when its state last changed."""
        self.index = 0
        """Index of its last change."""
        self.interval_ns = 0
        self.net = ""
        self.is_imported = False
        """It belongs to another network: its state follows what that network's broker reports (BRI-005)."""
        self.bound = b""
        """The routing id of its DEALER; empty: none."""
        # Liveness; never persisted
        self.heard_at = 0
        self.via = "tcp"
        """How it was last heard: `udp`, `tcp` or `probe`."""
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
        """Whether it is ACTIVE or SUSPECT."""
        return self.state in (State.ACTIVE, State.SUSPECT)


class Change(msgspec.Struct, frozen=True, gc=False):
    """One indexed change of an instance (CAT-040)."""

    index: int
    op: str
    """`register update suspect active inactive health remove`."""
    instance: Instance
    """As it is after the change; for `remove`, as it was before."""
    ts: float
    """Unix seconds."""
    reason: str = ""
