"""Which writes are allowed, and which are unnecessary (CFG-022)."""

from collections.abc import Iterable
from typing import Final

from weft.base.keys import bound_node
from weft.base.paths import is_key
from weft.cores.configuration import limits
from weft.cores.configuration.messages import OrderRefused, Write
from weft.cores.configuration.store import Store
from weft.wire.replication import CHAINS, MALFORMED, TIP, TOO_LARGE, UNSPECIFIED

RESERVED: Final = (TIP + "/", CHAINS + "/")


def is_unchanged(store: Store, write: Write) -> bool:
    """Whether a write would change nothing: the same bytes, and no time to live before or after (CFG-025)."""
    has_ttl = write.ttl_s is not None or write.key in store.expiries
    return store.value(write.key) == write.value and (not has_ttl or not write.value)


def refusal(store: Store, writes: tuple[Write, ...]) -> OrderRefused | None:
    """Why these writes are refused; None: they are allowed."""
    for write in writes:
        if refused := _fault(write) or _mismatch(store, write):
            return refused
    size = sum(len(write.key) + len(write.value) for write in writes)
    if size > limits.ORDER_BYTES_MAX:
        return OrderRefused(TOO_LARGE, f"{size} bytes in one order; at most {limits.ORDER_BYTES_MAX}")
    last = {write.key: write for write in writes}
    new = [key for key, write in last.items() if write.value and key not in store.pairs]
    grown = sum([store.grows_by(key, write.value) for key, write in last.items()])
    if (new and len(store.pairs) + len(new) > store.room.keys) or (grown and store.bytes + grown > store.room.bytes):
        return OrderRefused(TOO_LARGE, f"the store is full: {len(store.pairs)} keys, {store.bytes} bytes")
    return None


def refusal_of_dead(dead: tuple[str, ...]) -> OrderRefused | None:
    """Why writes are refused that would leave these alerts, each as `key: sentence`, dead; None: there are none."""
    if not dead:
        return None
    what = "an alert that can never fire" if len(dead) == 1 else f"{len(dead)} alerts that can never fire, the first"
    text = f"this would leave {what}: {dead[0]}"
    return OrderRefused(UNSPECIFIED, text, key=dead[0].partition(": ")[0], dead=dead[: limits.DEAD_MAX])


def growth(store: Store, write: Write) -> int:
    """By how many bytes of memory a write makes the store larger; negative: smaller."""
    before = store.pairs.get(write.key)
    was = limits.PAIR_COST + len(write.key) + len(before.value) if before is not None else 0
    return (limits.PAIR_COST + len(write.key) + len(write.value) if write.value else 0) - was


def _fault(write: Write) -> OrderRefused | None:
    key = write.key
    if not is_key(key) or key.startswith(RESERVED) or key.endswith("/HUGZ"):
        return OrderRefused(MALFORMED, f"{key[:80]!r} is no key", key=key[:80])
    if len(write.value) > limits.VALUE_BYTES_MAX:
        return OrderRefused(TOO_LARGE, f"a value of {len(write.value)} bytes", key=key)
    if write.ttl_s is not None and not 0 < write.ttl_s <= limits.TTL_MAX_S:
        return OrderRefused(MALFORMED, f"a time to live of {write.ttl_s} s", key=key)
    return None


def _mismatch(store: Store, write: Write) -> OrderRefused | None:
    if write.if_number is None:
        return None
    pair = store.pairs.get(write.key)
    number = pair.number if pair is not None else 0
    if number == write.if_number:
        return None
    return OrderRefused(UNSPECIFIED, f"{write.key} is at number {number}", key=write.key, number=number)


def smallest(store: Store, wanted: dict[str, bytes], prefixes: Iterable[str]) -> tuple[Write, ...]:
    """The smallest list of writes after which the subtrees contain exactly `wanted`, in key order.

    Bindings of keys to nodes are never changed by a file (SEC-024).
    """
    present = {key: None for prefix in prefixes for key in store.keys_under(prefix)}
    keys = sorted(key for key in {**present, **dict.fromkeys(wanted)} if bound_node(key) is None)
    writes = (Write(key, wanted.get(key, b"")) for key in keys)
    return tuple(write for write in writes if not is_unchanged(store, write))
