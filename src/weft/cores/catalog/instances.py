"""One running copy of a service, as the broker knows it."""

from typing import Any

import msgspec

from weft.cores.catalog.states import State


class Instance(msgspec.Struct, eq=False, gc=False):
    """Shared by reference. Only `Registry` changes the fields above `heard_at`, only `Liveness` those from there on.

    Nothing in it leads back to it, so Python need not look for cycles through ten thousand of them (CAT-081).
    """

    name: str
    id: str
    owner: str
    """The observed address; with keys, the key."""
    observed_ip: str
    record: dict[str, Any] = {}
    """The sender's keys without `name`, and nothing else."""
    cost: int = 0
    """Estimated bytes of memory; set by `Book.weigh`."""
    state: State = State.ACTIVE
    reason: str = ""
    """Why it is INACTIVE: `silent`, `left`."""
    health: str = "unknown"
    since: float = 0.0
    """Unix seconds when its state last changed."""
    index: int = 0
    """Index of its last change."""
    interval_ns: int = 0
    net: str = ""
    is_imported: bool = False
    """It belongs to another network: its state follows what that network's broker reports (BRI-005)."""
    bound: bytes = b""
    """The routing id of its DEALER; empty: none."""
    # Liveness; never persisted
    heard_at: int = 0
    via: str = "tcp"
    """How it was last heard: `udp`, `tcp` or `probe`."""
    due_at: int = 0
    probe_at: int = 0
    probes: int = 0
    seq: int | None = None
    udp_in_row: int = 0
    path_told: str = ""
    is_restored: bool = False

    key: tuple[str, str] = ("", "")
    """Name and id, one object for all tables."""

    def __post_init__(self) -> None:
        self.key = self.name, self.id

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
