"""Drawn messages of peers, and frames that are nearly some."""

from ipaddress import IPv4Address, IPv6Address

from hypothesis import strategies as st

from tests.document.wire.vectors import CAPTURED, WIRE, frames
from weft.wire.document import endpoints
from weft.wire.document.messages import Beat, Bout, Chat, Gbye, Gsip, Helo, PeerAt, Progress, Time, Xmsg, Xpak

UUIDS = st.binary(min_size=16, max_size=16)
NUMBERS = st.integers(0, (1 << 53) - 1)
HASHES = st.integers(0, (1 << 32) - 1)
HOSTS = st.builds(IPv4Address, st.integers(0, (1 << 32) - 1)) | st.builds(IPv6Address, st.integers(0, (1 << 128) - 1))
ENDPOINTS = st.builds(lambda host, port: endpoints.join(str(host), port), HOSTS, st.integers(1, 65_535))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
SESSIONS = TEXTS.map(lambda text: text.encode()[:256].decode("utf-8", "ignore").rstrip(" \t\r\n\v\f\0"))
CAPS = st.lists(st.text("abz019", min_size=1, max_size=4), max_size=4).map(tuple)
BEATS = st.just(Beat()) | st.builds(Beat, NUMBERS) | st.builds(Beat, NUMBERS, HASHES, HASHES, CAPS)
MESSAGES = st.one_of(
    st.builds(Helo, ENDPOINTS),
    st.builds(PeerAt, ENDPOINTS),
    st.builds(Bout, SESSIONS),
    st.builds(Gbye, SESSIONS),
    st.builds(Chat, TEXTS),
    BEATS,
    st.builds(Time, st.none() | st.floats(0, 253_402_300_799)),
    st.builds(Gsip, st.lists(st.builds(Progress, UUIDS, NUMBERS), min_size=1, max_size=4).map(tuple)),
    st.builds(Xmsg, st.binary(max_size=60)),
    st.builds(Xpak, st.lists(st.binary(min_size=1, max_size=60), min_size=1, max_size=4).map(tuple)),
)
REAL = [frames(line) for line in [*WIRE.values(), *CAPTURED.values()] if "frames" in line]
WORDS = st.sampled_from([b"HELO", b"PEER", b"BOUT", b"GBYE", b"CHAT", b"BEAT", b"TIME", b"GSIP", b"XMSG", b"XPAK", b""])
BODIES = st.binary(max_size=80) | st.sampled_from([real[-1] for real in REAL])
FORMED = st.builds(lambda sender, word, rest: [sender, word, *rest], UUIDS, WORDS, st.lists(BODIES, max_size=2))
"""An identity and a type that there is, and any bodies."""
ANY_FRAMES = st.lists(st.binary(max_size=60), max_size=6) | st.sampled_from(REAL) | FORMED
