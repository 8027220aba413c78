"""Drawn paths, values and messages of the store, and bytes that are nearly some."""

from typing import Any

from hypothesis import strategies as st

from weft.base.changes import Chain, Event
from weft.base.ranges import RangeSet
from weft.wire.store import actor, pack
from weft.wire.store.messages import Info, Ping, Update

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INTEGERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.integers(1 << 64, 1 << 200) | st.integers(-40, 300)
FLOATS = st.floats(allow_nan=False)
ELEMENTS = TEXTS | st.sampled_from(["a", ":", ".", " ", "12", "t", ":t", ""]) | st.binary(max_size=12) | INTEGERS
SEED_PATHS = st.lists(ELEMENTS | st.booleans(), max_size=6).map(tuple)
PATHS = SEED_PATHS | SEED_PATHS.map(lambda path: (None, *path))
ANY_PATHS = st.lists(ELEMENTS | st.booleans() | FLOATS, max_size=6).map(tuple)
"""Of both kinds of keys, None aside."""
KEYS = st.none() | TEXTS | INTEGERS | st.binary(max_size=6) | PATHS.map(pack.PathValue)
SCALARS = KEYS | st.booleans() | FLOATS
EXTENSIONS = st.builds(pack.ext, st.sampled_from([-1, -128, 0, 1, 4, 5, 6, 127]), st.binary(max_size=20))
YAML_VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
VALUES = st.recursive(
    SCALARS | EXTENSIONS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(["n1", "n2", "n3", "zürich", "a" * 64]) | st.text("abcé-_.", min_size=1, max_size=9)
TICKS = st.integers(1, 30) | st.integers(1, (1 << 63) - 1)
TOCKS = st.integers(0, (1 << 63) - 1)
LINKS = st.tuples(NAMES, TICKS)
CHAINS = st.builds(
    Chain, st.lists(LINKS, min_size=1, max_size=7, unique_by=lambda link: link[0]).map(tuple), st.booleans()
)
PING_CHAINS = st.builds(
    Chain, st.lists(st.tuples(NAMES, st.just(0) | TICKS), min_size=1, max_size=6).map(tuple), st.booleans()
)
SETS = st.lists(st.tuples(TICKS, st.integers(0, 9)), min_size=1, max_size=5).map(
    lambda spans: RangeSet((first, min(first + more, (1 << 63) - 1)) for first, more in spans)
)
TICK_SETS = st.none() | st.dictionaries(NAMES, SETS, max_size=3)
EVENTS = st.builds(
    Event,
    CHAINS,
    TOCKS,
    PATHS,
    st.none() | VALUES.map(pack.pack),
    st.none() | st.floats(-1e10, 1e10),
    st.just("") | st.sampled_from(["joe", "älice"]),
)
UPDATES = st.builds(Update, EVENTS, st.none() | st.tuples(NAMES, st.just(0) | TICKS)) | st.builds(
    Update, EVENTS, st.none(), st.booleans()
)
INFOS = st.builds(
    Info,
    node=NAMES,
    tick=st.just(0) | TICKS,
    tock=TOCKS,
    ticks=st.none() | st.dictionaries(NAMES, st.just(0) | TICKS, max_size=3),
    missing=TICK_SETS,
    known=TICK_SETS,
    deleted=TICK_SETS,
    have=TICK_SETS,
    node_drop=st.none() | st.lists(NAMES, max_size=3).map(tuple),
    reason=st.none() | PING_CHAINS,
    prev=st.none() | PING_CHAINS,
)
PINGS = st.builds(Ping, PING_CHAINS, TOCKS)
SPANS = st.floats(0.1, 1e5)
COUNTS = st.integers(1, 50)
READY = st.none() | st.tuples(TOCKS, TOCKS)
ACTORS = (
    st.builds(actor.Init, NAMES)
    | st.builds(actor.Vers, NAMES, TICKS, SPANS, SPANS, COUNTS, COUNTS, COUNTS, st.booleans(), st.just("") | NAMES)
    | st.tuples(NAMES, READY, st.lists(NAMES, max_size=3)).map(
        lambda drawn: actor.Pinged(drawn[0], drawn[1], (drawn[0], *drawn[2]))
    )
    | st.builds(actor.Hist, READY, st.lists(NAMES, max_size=4).map(tuple))
)


@st.composite
def spoilt(draw: st.DrawFn, payloads: st.SearchStrategy[bytes]) -> bytes:
    """Bytes that were a message: some of them others, gone, doubled or strange."""
    data = bytearray(draw(payloads))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        with_what = draw(st.sampled_from(STRANGE) | st.binary(max_size=3))
        data[at : at + draw(st.integers(0, 3))] = with_what
    return bytes(data)


STRANGE = [
    b"\xc1",
    b"\xc0",
    b"\x80",
    b"\x90",
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xa1\xff",
    b"\xd4\xff\x00",
    b"\xd5\x03\x91\xc0",
]
ANY = st.binary(max_size=60)


def some(messages: st.SearchStrategy[Any], encode: Any) -> st.SearchStrategy[bytes]:
    """Bytes of messages, nearly such bytes, and any."""
    whole = messages.map(encode)
    return ANY | spoilt(whole) | st.lists(whole, min_size=2, max_size=3).map(b"".join)
