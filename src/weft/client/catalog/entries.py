"""The data that a catalog returns: services, published values, changes."""

from typing import Any, Literal, NamedTuple

import msgspec

State = Literal["active", "suspect", "inactive"]


class Address(NamedTuple):
    """The address of a listener."""

    ip: str
    port: int

    @property
    def endpoint(self) -> str:
        """As ZeroMQ's endpoint: `tcp://ip:port`."""
        return f"tcp://[{self.ip}]:{self.port}" if ":" in self.ip else f"tcp://{self.ip}:{self.port}"

    def __str__(self) -> str:
        """As people type it: `ip:port`, with brackets around an IPv6 address."""
        return f"[{self.ip}]:{self.port}" if ":" in self.ip else f"{self.ip}:{self.port}"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One instance of a service, as the broker knows it (CAT-017)."""

    name: str
    instance: str = ""
    record: dict[str, Any] = {}
    """What the service has registered, without its name."""
    facts: dict[str, Any] = {}
    """What the broker adds: the record's `_dbp`."""
    is_stale: bool = False
    """Whether it comes from a cache while the broker cannot be reached."""

    @property
    def address(self) -> Address | None:
        """The address for calls: top-level `ip` and `port`, else `interfaces.router`, else the first interface with one."""
        interfaces = _table(self.record.get("interfaces"))
        for place in (self.record, interfaces.get("router"), *interfaces.values()):
            if (found := _address(place)) is not None:
                return found
        return None

    def interface(self, kind: str) -> Address | None:
        """The address of one of its interfaces, e.g. `pub`, where it publishes; None if it has none."""
        return _address(_table(self.record.get("interfaces")).get(kind))

    @property
    def state(self) -> str:
        """`active`, `suspect`, `inactive`; `active` if the broker does not say."""
        return str(self.facts.get("state", "active"))

    @property
    def health(self) -> str:
        """`passing`, `warning`, `critical`, `unknown`."""
        return str(self.facts.get("health", self.record.get("health", "unknown")))

    @property
    def weight(self) -> int:
        """Its share when instances are picked by weight."""
        weight = self.record.get("weight", 1)
        return weight if isinstance(weight, int) and weight >= 0 else 1

    @property
    def index(self) -> int:
        """The broker's index of its last change; 0: unknown."""
        index = self.facts.get("index", 0)
        return index if isinstance(index, int) else 0

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags."""
        tags = self.record.get("tags")
        return tuple(map(str, tags)) if isinstance(tags, list) else ()

    @property
    def is_usable(self) -> bool:
        """Whether it is available and not critical (CAT-030)."""
        return self.state in ("active", "suspect") and self.health != "critical"


class Change(NamedTuple):
    """One change of a watch: `register update suspect active inactive health remove enter leave`, or `resync`."""

    op: str
    name: str
    instance: str
    entry: Entry | None
    """None on `remove`, `leave` and `resync`."""
    index: int = 0  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    at: float = 0.0
    """Unix seconds by the broker's clock; 0: unknown."""


class Value(NamedTuple):
    """A published value."""

    topic: str
    frames: tuple[bytes, ...]
    """The frames after the topic."""
    publisher: str = ""
    instance: str = ""
    received: float | None = None
    """Unix seconds when the broker received it; None: it came directly from the publisher."""
    is_stale: bool = False
    """Whether the publisher is gone: this was its last value (LVC-007)."""

    @property
    def is_live(self) -> bool:
        """Whether it was published just now."""
        return self.received is None


def entry_of(name: str, answer: dict[str, Any], *, is_stale: bool = False) -> Entry:
    """An instance from a record in an answer."""
    facts = _table(answer.get("_dbp"))
    record = {key: value for key, value in answer.items() if key not in ("_dbp", "instances", "more")}
    return Entry(name=name, instance=str(facts.get("instance", "")), record=record, facts=facts, is_stale=is_stale)


def entries_of(name: str, answer: dict[str, Any]) -> list[Entry]:
    """All instances of a name in an answer, the best one first (CAT-030)."""
    listed = answer.get("instances")
    is_list = isinstance(listed, list) and listed and all(isinstance(one, dict) for one in listed)
    return [entry_of(name, one) for one in listed] if listed and is_list else [entry_of(name, answer)]


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _address(place: Any) -> Address | None:
    if not isinstance(place, dict):
        return None
    ip, port = place.get("ip"), place.get("port")
    return Address(ip, port) if isinstance(ip, str) and isinstance(port, int) and port else None
