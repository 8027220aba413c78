"""Which of two changes of one entry wins, and why (STO-010, STO-011, STO-016)."""

from weft.base.changes import Event
from weft.base.errors import PeerError
from weft.wire.store.pack import LEFT_OUT, canonical, fuller, same_value


def judge(event: Event, current: Event) -> tuple[str, str]:
    """The outcome for a change that meets another one at its path, and the reason if it is a conflict (STO-011)."""
    is_greater = event.beats(current)
    is_covered = current.chain.covers(event.chain.links[0])
    covers = event.chain.covers(current.chain.links[0])
    if is_covered and not is_greater:
        return "stale", ""
    if covers and is_greater:
        return "newer", ""
    reason = "tock-regression" if covers or is_covered else "concurrent"
    return ("conflict-taken" if is_greater else "conflict-kept"), reason


def merged_twins(current: Event, event: Event) -> Event | None:
    """One change received twice, merged: `current` itself if nothing is new; None: the two differ.

    A different tock alone is no difference, nor is a float with lost precision (STO-016, COD-001).
    """
    if not _says_the_same(current.value, event.value):
        return None
    chain = max(current.chain, event.chain, key=lambda chain: (len(chain.links), not chain.is_cut))
    value = _fuller(current.value, event.value)
    at = current.at if current.at is not None else event.at
    until = current.until if current.until is not None else event.until
    merged = Event(chain, max(current.tock, event.tock), current.path, value, at, current.by or event.by, until)
    return current if merged == current else merged


def _fuller(value: bytes | None, other: bytes | None) -> bytes | None:
    """Of two decodings of one value, the one that lost no precision, in either order."""
    if value == other or not value or not other:
        return value or other
    return fuller(value, other)


def _says_the_same(value: bytes | None, other: bytes | None) -> bool:
    if value == other:
        return True
    if value is None or other is None:
        return False
    return LEFT_OUT in (value, other) or same_value(value, other)


def clash_order(event: Event) -> tuple[int, bool, bytes]:
    """Decides between two contents of one change: the tock, then the canonical bytes (STO-016)."""
    value = event.value
    return event.tock, value is not None, _canonical(value) if value else b""


def _canonical(value: bytes) -> bytes:
    try:
        return canonical(value)
    except PeerError:  # nested too deep to decode: raw bytes are an order too
        return value
