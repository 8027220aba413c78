"""What the tests of filters share: links from tables, messages from plain data."""

from collections.abc import Callable
from typing import Any

import msgspec

from weft.base.mail import Mail
from weft.base.now import Now
from weft.cores.chains.filters import NOWHERE, House
from weft.cores.chains.links import FilterLink
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.parcel import IN, Parcel
from weft.cores.chains.settings import parse_filters
from weft.cores.chains.states import Verdict

APP = "app.metric"
ORIGIN = b"\x0a" * 16
T0 = 1_795_000_000_000_000_000
ENCODE: dict[str, Callable[[Any], bytes]] = {"json": msgspec.json.encode, "msgpack": msgspec.msgpack.encode}
DECODE: dict[str, Callable[[bytes], Any]] = {"json": msgspec.json.decode, "msgpack": msgspec.msgpack.decode}


def at(ns: int) -> Now:
    return Now(ns, T0 + ns)


def link(house: House = NOWHERE, **table: Any) -> FilterLink:
    """The link of one filter over messages whose table has no mistake."""
    specs, mistakes = parse_filters([{"name": "f", "types": [APP], **table}])
    assert [] == mistakes
    return FilterLink(specs[0], house)


def parcel(payload: bytes, fmt: str = "json", *more: bytes, **mail: Any) -> Parcel:
    """A message with these bytes as its first frame."""
    said = {"origin": ORIGIN, "era": 1, "sequence": 1, "type": APP, "to": ("PARENTSOF",), "at": T0, **mail}
    return Parcel(1, IN, Mail(frames=(payload, *more), fmt=fmt, **said))


def view(content: Any, fmt: str = "json", *more: bytes, **mail: Any) -> MessageView:
    """A message that says this."""
    return MessageView(parcel(ENCODE[fmt](content), fmt, *more, **mail))


def passed(of: FilterLink, content: Any, now: Now | None = None, fmt: str = "json", **mail: Any) -> Any:
    """What a filter leaves of a message, decoded; None if nothing is left."""
    seen = view(content, fmt, **mail)
    verdict = of.offer(seen, now or at(0))
    if verdict in (Verdict.DROPPED, Verdict.FAILED):
        return None
    frames = seen.close()
    assert (frames is seen.parcel.frames) is (verdict is Verdict.PASSED)
    return DECODE[fmt](frames[0])
