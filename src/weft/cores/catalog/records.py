"""The record of a service: decoded, validated, merged, and the address in it (CAT-009, CAT-013..018; limits of 2.7)."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

import msgspec

from weft.base.endpoints import address_of
from weft.base.now import MILLISECOND
from weft.cores.catalog import limits
from weft.cores.catalog.refusals import Refusal

Rewrite = Literal["loopback", "never", "always"]
canonical: Final = msgspec.json.Encoder(order="sorted").encode
"""JSON with sorted keys, no spaces, UTF-8: equal values give equal bytes (CAT-041)."""
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
HEALTHS: Final = ("passing", "unknown", "warning", "critical")
"""Best first (CAT-030, BEA-024)."""
WEIGHT_DEFAULT: Final = 1
RESERVED_KEY: Final = "_dbp"
RESERVED_NAMES: Final = frozenset({"Error", RESERVED_KEY})
UNSPECIFIED: Final = frozenset({"", "*", "localhost"})
"""Texts that people write for "no particular address", besides `0.0.0.0` and `::`; and the loopback's name."""
_ABSENT: Final[Any] = object()
_PLACE: Final = ("ip", "port")
_INT64: Final = 1 << 63
_LONG_NUMBER: Final = re.compile(rb"\d{19}")
"""Without 19 digits in a row, no integer can exceed 64 bits."""
_NESTED: Final = (dict, list)
SEED_FIELDS: Final = ("ip", "port", "function", "heartbeat")
"""Fields that `strict` requires besides the name, from the seed's list (CAT-013)."""


class Address(NamedTuple):
    """Where a service can be reached, as answers state it."""

    ip: str
    port: int


class Registration(NamedTuple):
    """A valid record (CAT-013)."""

    name: str
    id: str | None
    """As the sender gave it; None: it follows from the address."""
    record: dict[str, Any]
    """The sender's keys without `name`."""

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
    """The request of an UPDATE: which instance, and which keys change (CAT-018)."""

    name: str | None
    """None: the bound instance."""
    id: str | None
    """None: the bound instance, else the only one of the name."""
    changes: dict[str, Any]
    """Top-level keys without `name` and `id`; None deletes a key."""


# JSON


def parse_object(body: bytes) -> dict[str, Any]:
    """Decode one JSON object within the limits of CAT-009; raises Refusal `bad-json` for anything else."""
    if not body:
        raise Refusal("bad-json", "there is no body")
    try:
        found = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal("bad-json", f"the body is no JSON object: {error}") from None
    if body.count(b"{") + body.count(b"[") > limits.DEPTH_MAX and not _is_shallow(found):
        raise Refusal("bad-json", f"the body is nested deeper than {limits.DEPTH_MAX} levels")
    if _LONG_NUMBER.search(body) and not _is_64_bit(found):
        raise Refusal("bad-json", "a whole number is beyond 64 bits")
    return found


def _is_shallow(found: dict[str, Any]) -> bool:
    level: list[Any] = [found]
    for _ in range(limits.DEPTH_MAX):
        level = [inner for outer in level for inner in _within(outer) if isinstance(inner, _NESTED)]
        if not level:
            return True
    return False


def _is_64_bit(found: dict[str, Any]) -> bool:
    """Whether all integers fit 64 bits; the value is known to be shallow."""
    level: list[Any] = [found]
    while level:
        level = [inner for outer in level for inner in _within(outer)]
        if any(type(value) is int and not -_INT64 <= value < _INT64 for value in level):
            return False
        level = [value for value in level if isinstance(value, _NESTED)]
    return True


def _within(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


# Judging


def registration(body: bytes, *, is_strict: bool = False) -> Registration:
    """Decode a registration; raises Refusal with the code of the first error (CAT-013, CAT-014).

    >>> registration(b'{"name": "thermo", "ip": "10.0.0.4", "port": 5555}').instance_id("10.0.0.4")
    '10.0.0.4:5555'
    """
    record = _sized_object(body)
    name = record.pop("name", None)
    return _judged(name, record, is_strict=is_strict)


def of_another_network(name: str, body: bytes, hidden: Iterable[str]) -> dict[str, Any]:
    """Decode a record that another network's broker sent, without the keys in `hidden`; validated like a registration.

    Raises Refusal.
    """
    record = {key: value for key, value in _sized_object(body).items() if key not in hidden}
    return _judged(name, record, is_strict=False).record


def update(body: bytes) -> Update:
    """Decode an UPDATE; only `merge` can decide whether it is allowed."""
    changes = _sized_object(body)
    name, instance_id = changes.pop("name", _ABSENT), changes.pop("id", _ABSENT)
    for key, value in (("name", name), ("id", instance_id)):
        if value is None:
            raise Refusal("immutable-field", f"{key} cannot be deleted", fields=(key,))
    if name is not _ABSENT and not (isinstance(name, str) and is_name(name)):
        raise Refusal("bad-name", "no service can have this name", fields=("name",))
    if instance_id is not _ABSENT and not _is_id(instance_id):
        raise Refusal("bad-field", "no instance can have this id", fields=("id",))
    if RESERVED_KEY in changes:
        raise _reserved()
    return Update(None if name is _ABSENT else name, None if instance_id is _ABSENT else instance_id, changes)


def merge(name: str, record: dict[str, Any], changes: dict[str, Any], *, is_strict: bool = False) -> Registration:
    """The record with the changes applied, validated as a whole; `record` itself is not changed (CAT-018)."""
    merged = {**record, **changes}
    merged = {key: value for key, value in merged.items() if value is not None or key not in changes}
    if len(canonical(merged)) > limits.RECORD_BYTES_MAX:
        raise Refusal("too-large", f"the record would be longer than {limits.RECORD_BYTES_MAX} bytes", service=name)
    return _judged(name, merged, is_strict=is_strict)


def is_same(record: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two records are equal: `1`, `1.0` and `true` differ, the order of keys does not matter."""
    return canonical(record) == canonical(other)


def cost_of(record: dict[str, Any]) -> int:
    """Estimated maximum bytes of memory of an instance with this record (FLD-032). O(record)."""
    text = canonical(record)
    values = text.count(b",") + text.count(b"[") + text.count(b"{")
    return limits.INSTANCE_BYTES + limits.COPIES * len(text) + limits.TOKEN_BYTES * values


def is_name(name: str) -> bool:
    r"""Whether this is a valid name of a service (CAT-014).

    >>> [is_name(name) for name in ("door bell 2", "küche", "", "a@b", "Error", "_dbp", "dbp.x", "a\n")]
    [True, True, False, False, False, False, False, False]
    """
    return (
        0 < len(name) <= limits.NAME_BYTES_MAX
        and name.isprintable()
        and "@" not in name
        and name not in RESERVED_NAMES
        and not name.startswith("dbp.")
        and len(name.encode()) <= limits.NAME_BYTES_MAX
    )


def _sized_object(body: bytes) -> dict[str, Any]:
    if len(body) > limits.RECORD_BYTES_MAX:
        raise Refusal("too-large", f"a record has at most {limits.RECORD_BYTES_MAX} bytes")
    return parse_object(body)


def _reserved() -> Refusal:
    return Refusal("reserved-key", f"{RESERVED_KEY} is the broker's own key", fields=(RESERVED_KEY,))


def _judged(name: Any, record: dict[str, Any], *, is_strict: bool) -> Registration:
    """The record, if it is valid; otherwise the first check that fails gives the code of the Refusal."""
    if RESERVED_KEY in record:
        raise _reserved()
    _refuse_missing(name, record, is_strict=is_strict)
    if not isinstance(name, str) or not is_name(name):
        raise Refusal("bad-name", "no service can have this name", fields=("name",))
    wrong = tuple(key for key, value in record.items() if key in FIELDS and not FIELDS[key](value))
    if wrong:
        raise Refusal("bad-field", f"not what these fields hold: {', '.join(wrong)}", service=name, fields=wrong)
    _refuse_large(name, record)
    return Registration(name, record.get("id"), record)


def _refuse_missing(name: Any, record: dict[str, Any], *, is_strict: bool) -> None:
    missing = [] if name is not None else ["name"]
    if is_strict:
        router = _interfaces(record).get("router")
        elsewhere = router if isinstance(router, dict) else {}
        missing += [key for key in SEED_FIELDS if key not in record and not (key in _PLACE and key in elsewhere)]
    if missing:
        service = name if isinstance(name, str) and is_name(name) else ""
        raise Refusal("missing-field", f"missing: {', '.join(missing)}", service=service, fields=tuple(missing))


def _refuse_large(name: str, record: dict[str, Any]) -> None:
    tags, metadata = record.get("tags", ()), record.get("metadata", {})
    if len(tags) > limits.TAGS_MAX or any(len(tag.encode()) > limits.TAG_BYTES_MAX for tag in tags):
        text = f"at most {limits.TAGS_MAX} tags of {limits.TAG_BYTES_MAX} bytes"
        raise Refusal("too-large", text, service=name, fields=("tags",))
    longest = max((len(text.encode()) for pair in metadata.items() for text in pair), default=0)
    if len(metadata) > limits.METADATA_MAX or longest > limits.METADATA_BYTES_MAX:
        text = f"at most {limits.METADATA_MAX} metadata of {limits.METADATA_BYTES_MAX} bytes"
        raise Refusal("too-large", text, service=name, fields=("metadata",))


# Fields, each with its check


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and is_name(value)


def _is_host(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= limits.NAME_BYTES_MAX and (not value or value.isprintable())


def _is_port(value: Any) -> bool:
    return type(value) is int and 0 < value < 1 << 16


def _is_weight(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 16


def _is_interval(value: Any) -> bool:
    return type(value) is int and limits.INTERVAL_MS[0] <= value <= limits.INTERVAL_MS[1]


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _are_interfaces(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(interface, dict) and _is_host(interface.get("ip")) and _is_port(interface.get("port"))
        for interface in value.values()
    )


FIELDS: Final[dict[str, Callable[[Any], bool]]] = {
    "id": _is_id,
    "ip": _is_host,
    "port": _is_port,
    "function": _is_text,
    "heartbeat": _is_interval,
    "interfaces": _are_interfaces,
    "tags": _are_texts,
    "metadata": lambda value: isinstance(value, dict) and all(isinstance(text, str) for text in value.values()),
    "topics": lambda value: value is None or _are_texts(value),
    "version": _is_text,
    "weight": _is_weight,
    "health": lambda value: isinstance(value, str) and value in HEALTHS,
    "checks": lambda value: isinstance(value, list) and all(isinstance(check, dict) for check in value),
    "caps": _are_texts,
    "beacon": lambda value: isinstance(value, bool),
}
"""The known keys besides `name`; unknown ones are kept as they are (CAT-013)."""


# Addresses


def effective_address(record: dict[str, Any], observed_ip: str, rewrite: Rewrite = "loopback") -> Address | None:
    """The address of a service, as answers state it; the observed ip replaces a local one (CAT-016).

    >>> effective_address({"ip": "127.0.0.1", "port": 9}, "10.0.0.4")
    Address(ip='10.0.0.4', port=9)
    """
    interfaces = _interfaces(record)
    return _first_address((record, interfaces.get("router"), *islice(interfaces.values(), 1)), observed_ip, rewrite)


def calling_address(record: dict[str, Any], observed_ip: str, rewrite: Rewrite = "loopback") -> Address | None:
    """The address for calls; None: none. The first interface may be any socket, and a PUB answers nothing (BEA-016).

    >>> calling_address({"interfaces": {"pub": {"ip": "127.0.0.1", "port": 9}}}, "10.0.0.4") is None
    True
    """
    return _first_address((record, _interfaces(record).get("router")), observed_ip, rewrite)


def _first_address(places: Iterable[Any], observed_ip: str, rewrite: Rewrite) -> Address | None:
    for place in places:
        if isinstance(place, dict) and "ip" in place and "port" in place:
            ip = place["ip"]
            return Address(observed_ip if _is_replaced(ip, observed_ip, rewrite) else ip, place["port"])
    return None


def rewritten(record: dict[str, Any], observed_ip: str, rewrite: Rewrite) -> tuple[dict[str, Any], str | None]:
    """The record as answers show it, and the declared ip if the observed one replaces it. `record` is not changed."""
    declared: str | None = None
    shown = record
    interfaces = {}
    for key, interface in _interfaces(record).items():
        if _is_replaced(interface["ip"], observed_ip, rewrite):
            declared = declared or interface["ip"]
            interfaces[key] = {**interface, "ip": observed_ip}
    if interfaces:
        shown = {**shown, "interfaces": {**record["interfaces"], **interfaces}}
    if "ip" in record and _is_replaced(record["ip"], observed_ip, rewrite):
        declared = record["ip"]
        shown = {**shown, "ip": observed_ip}
    return shown, declared


def _interfaces(record: dict[str, Any]) -> dict[str, Any]:
    found = record.get("interfaces")
    return found if isinstance(found, dict) else {}


def _is_replaced(declared: str, observed_ip: str, rewrite: Rewrite) -> bool:
    """Whether answers state the observed ip instead. A client that came through the file system has no observed ip."""
    if rewrite == "never" or not observed_ip or declared == observed_ip:
        return False
    return rewrite == "always" or (is_local(declared) and not is_local(observed_ip))


@lru_cache(maxsize=4096)  # a few hosts state the same addresses again and again
def is_local(ip: str) -> bool:
    """Whether an address is valid only on its own machine: loopback, or no particular address.

    >>> [is_local(ip) for ip in ("127.8.0.1", "::1", "0.0.0.0", "*", "localhost", "10.0.0.4", "::ffff:127.0.0.1")]
    [True, True, True, True, True, False, True]
    """
    found = address_of(ip)
    return ip in UNSPECIFIED or (found is not None and (found.is_loopback or found.is_unspecified))
