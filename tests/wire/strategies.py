"""Drawn messages of the configuration protocols, and drawn frames that are nearly some."""

from typing import Any

from hypothesis import strategies as st

from tests.wire.strict import LINES, Frames, frames_of
from weft.wire.discovery import COMMANDS, IWIN, MARCO, WUTUP, Announcement, Control, group_key
from weft.wire.replication import Bundle, ICanHaz, KThxBai, KvPub, KvSync, Wtf, pack

SEGMENTS = st.text("abcXYZ019._:@%+=~[]-", min_size=1, max_size=20)
KEYS = (
    st.lists(SEGMENTS, min_size=1, max_size=5)
    .map(lambda parts: "/" + "/".join(parts))
    .filter(lambda key: not key.endswith("/HUGZ"))
)
SUBTREES = st.just("") | KEYS | KEYS.map(lambda key: key + "/") | st.just("/") | KEYS.map(lambda key: f"/.tip{key}/")
NUMBERS = st.integers(1, (1 << 63) - 1)
UUIDS = st.binary(min_size=16, max_size=16)
VALUES = st.binary(min_size=1, max_size=40)
TTLS = st.floats(0, 1e9, exclude_min=True, exclude_max=True) | st.integers(1, 999_999_999).map(float)

KVPUBS = st.builds(
    KvPub,
    key=KEYS,
    number=NUMBERS,
    uuid=UUIDS | st.just(b""),
    value=VALUES | st.just(b""),
    prev=st.none() | st.integers(0, (1 << 63) - 1),
    ttl=st.none() | TTLS,
    is_more=st.booleans(),
)
ASKS = st.builds(ICanHaz, SUBTREES, st.booleans(), takes_packs=st.booleans()) | st.builds(
    ICanHaz, SUBTREES, dialect=st.just("chp")
)
KVSYNCS = st.builds(KvSync, KEYS | KEYS.map(lambda key: "/.chains" + key), st.just(0) | NUMBERS, VALUES)
KTHXBAIS = st.builds(KThxBai, SUBTREES.map(lambda text: text or None), st.just(0) | NUMBERS)
WTFS = st.builds(Wtf, st.integers(0, (1 << 32) - 1), st.text("abc é", max_size=60))
BUNDLES = st.builds(Bundle, st.lists(KVSYNCS, min_size=1, max_size=4).map(tuple), KTHXBAIS)
PACKS = st.dictionaries(KEYS, st.tuples(st.just(0) | NUMBERS, VALUES), min_size=1, max_size=5).map(
    lambda pairs: pack([KvSync(key, *pairs[key]) for key in sorted(pairs)])
)
ANSWERS = KVSYNCS | KTHXBAIS | WTFS | BUNDLES | PACKS
ENVELOPES = st.just(()) | st.just((b"",)) | st.binary(min_size=4, max_size=4).map(lambda number: (number, b""))

COUNTS = st.integers(0, (1 << 63) - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
LABELS = st.dictionaries(st.text("abcé", max_size=8), TEXTS, max_size=4)
ENDPOINTS = st.sampled_from(["10.0.0.1:27500", "[2001:db8::7]:1", "web-1.lab:65526"])
CONTENTS = st.fixed_dictionaries(
    {},
    optional={
        "fleet": TEXTS,
        "count": COUNTS,
        "epoch": st.integers(0, (1 << 23) - 1),
        "holds": st.lists(COUNTS, min_size=2, max_size=2),
        "labels": LABELS,
        "acting": st.booleans(),
        "alternates": st.lists(ENDPOINTS, max_size=3),
        "whatever": st.none() | st.booleans() | st.integers() | TEXTS | st.lists(TEXTS, max_size=3),
    },
)
GROUPS = st.text("abcAZ09_", min_size=1, max_size=9).filter(lambda name: name not in ("global", "root"))
ANNOUNCEMENTS = st.builds(
    Announcement, st.sampled_from([MARCO, WUTUP, IWIN]) | GROUPS.map(group_key), ENDPOINTS, UUIDS, CONTENTS
)
CONTROLS = st.builds(Control, st.sampled_from(COMMANDS), ENDPOINTS, UUIDS, CONTENTS)

WORDS = st.sampled_from(
    [b"", b"ICANHAZ", b"ICANHAZ?", b"KTHXBAI", b"HUGZ", b"WTF", b"polo", b"assignment", b"/MARCO"]
) | (
    st.sampled_from(
        [b"/a", b"/a/HUGZ", bytes(8), b"0" * 8, bytes(7) + b"\x07", b"\xff" * 8, bytes(4), bytes(16), b"{}"]
    )
    | st.sampled_from([b"ttl=5\n", b'{"prev":7}', b'{"ttl":NaN}', b'{"prev":1,"prev":1}', b"[" * 40, b'{"level":[]}'])
    | st.sampled_from([b'{"a":"\\ud800"}', b"10.0.0.1:27500", b'{"type":"HUGZ"}', b'{"level":["str","sensor"]}'])
)
KNOWN = [frames_of(line) for line in LINES.values()]


@st.composite
def damaged(draw: st.DrawFn) -> Frames:
    """A vector with something wrong."""
    frames = list(draw(st.sampled_from(KNOWN)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(frames) - 1))
        data = bytearray(frames[at])
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
        frames[at] = draw(WORDS | st.just(bytes(data)))
    return frames if draw(st.booleans()) else [b"", *frames]


ANY_FRAMES: st.SearchStrategy[Any] = st.lists(WORDS | st.binary(max_size=40), max_size=12) | damaged()
