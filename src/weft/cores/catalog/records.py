"""What a service says of itself: read, judged, changed, and where it can be reached (CAT-009, CAT-013..018; limits of 2.7)."""

import re
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any, Final, Literal, NamedTuple

import msgspec

from weft.base.now import MILLISECOND
from weft.cores.catalog import limits
from weft.cores.catalog.station import Refusal

Rewrite = Literal["loopback", "never", "always"]
canonical: Final = msgspec.json.Encoder(order="sorted").encode
"""JSON with sorted keys, no spaces, UTF-8: equal values give equal bytes (CAT-041)."""
_decode: Final = msgspec.json.Decoder().decode
HEALTHS: Final = ("passing", "unknown", "warning", "critical")
"""Best first (CAT-030, BEA-024)."""
WEIGHT_DEFAULT: Final = 1
RESERVED_KEY: Final = "_dbp"
SEED_FIELDS: Final = ("ip", "port", "function", "heartbeat")
"""What `strict` demands besides the name: the seed's own list (CAT-013)."""


class Address(NamedTuple):
    """Where a service can be reached, as answers say it."""

    ip: str
    port: int


class Registration(NamedTuple):
    """A record that may be entered (CAT-013)."""

    name: str
    id: str | None
    """As its sender gave it; None: it follows from the address."""
    record: dict[str, Any]
    """The sender's keys less `name`."""

    @property
    def interval_ns(self) -> int:
        return int(self.record.get("heartbeat", limits.INTERVAL_DEFAULT_MS)) * MILLISECOND

    @property
    def health(self) -> str:
        return str(self.record.get("health", "unknown"))

    def instance_id(self, observed_ip: str, rewrite: Rewrite = "loopback") -> str:
        """`id`, else the effective address, else the observed one (CAT-015)."""
        if self.id is not None:
            return self.id
        address = effective_address(self.record, observed_ip, rewrite)
        return f"{address.ip}:{address.port}" if address else f"{observed_ip}:0"


class Update(NamedTuple):
    """What an UPDATE asks for: whose record, and which of its keys (CAT-018)."""

    name: str | None
    """None: the one that is bound."""
    id: str | None
    """None: the bound one, else the only one."""
    changes: dict[str, Any]
    """Top-level keys less `name` and `id`; None deletes."""


# JSON


def parse_object(body: bytes) -> dict[str, Any]:
    """One JSON object, within the limits of CAT-009; raises Refusal `bad-json` for anything else."""
    raise NotImplementedError


# Judging


def registration(body: bytes, *, is_strict: bool = False) -> Registration:
    """The body of a registration; raises Refusal with the one code that says what is wrong (CAT-013, CAT-014)."""
    raise NotImplementedError


def update(body: bytes) -> Update:
    """The body of an UPDATE; whether it may be applied only `merge` can say."""
    raise NotImplementedError


def merge(name: str, record: dict[str, Any], changes: dict[str, Any], *, is_strict: bool = False) -> Registration:
    """The record with the changes laid over it, judged as a whole; `record` itself stays as it is (CAT-018)."""
    raise NotImplementedError


def is_same(record: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two records say the same: `1`, `1.0` and `true` do not, the order of keys does not matter."""
    return canonical(record) == canonical(other)


def is_name(name: str) -> bool:
    """Whether a service may be called so (CAT-014)."""
    raise NotImplementedError


# Addresses


def effective_address(record: dict[str, Any], observed_ip: str, rewrite: Rewrite = "loopback") -> Address | None:
    """Where to reach who registered this: as answers say it, so with the observed ip where that replaces another (CAT-016)."""
    raise NotImplementedError


def rewritten(record: dict[str, Any], observed_ip: str, rewrite: Rewrite) -> tuple[dict[str, Any], str | None]:
    """The record as answers show it, and the declared ip where another one stands in its place."""
    raise NotImplementedError
