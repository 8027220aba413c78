"""Drawn messages, beats and beacons, and frames that are nearly some."""

from hypothesis import strategies as st

from weft.wire.catalog.messages import COMMANDS, Beacon, Beat, Message

FRAMES = st.binary(max_size=6) | st.sampled_from([b"", *sorted(COMMANDS), b"x" * 255, b"x" * 256])
ANY_FRAMES = st.lists(FRAMES, max_size=12)
TIMES = st.sampled_from([b"", b"now", bytes.fromhex("fd01d64e"), bytes.fromhex("0000c0a83fc0da41")]) | st.binary(
    max_size=20
)
BODIES = st.lists(st.binary(max_size=9), min_size=1, max_size=4).map(tuple)
ENVELOPES = st.lists(st.binary(min_size=1, max_size=5), max_size=8).map(tuple)
MESSAGES = st.builds(Message, st.sampled_from(sorted(COMMANDS)), TIMES, BODIES, ENVELOPES)
NAMES = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=12).filter(
    str.isprintable
) | st.sampled_from(["thermo", "door bell 2", "a" * 255, "köln", "<3", "Rohan <3"])
SECONDS = st.floats(0, 4e9).map(lambda seconds: round(seconds, 3))
PORTS = st.integers(1, 65_535)
BEATS = st.builds(
    Beat,
    st.sampled_from([b"<3", b"</3", b"u.u"]),
    NAMES,
    SECONDS,
    st.none() | NAMES,
    st.none() | st.integers(0, (1 << 63) - 1),
)
CAPS = st.lists(st.sampled_from(["f64", "lvc", "log", "mon", "bri"]), max_size=5).map(tuple)
NETS = st.text("abcz09-", max_size=32)
EPOCHS = st.just("") | st.text("0123456789abcdef", min_size=16, max_size=16)
OPTIONAL_PORTS = st.just(0) | PORTS
BEACONS = st.builds(Beacon, PORTS, st.sampled_from([0, 1]), EPOCHS, OPTIONAL_PORTS, OPTIONAL_PORTS, CAPS, NETS)
KEYS = st.binary(min_size=1, max_size=40)


@st.composite
def spoilt(draw: st.DrawFn, texts: st.SearchStrategy[bytes]) -> bytes:
    """Bytes that were a datagram: some of them others, gone or doubled."""
    data = bytearray(draw(texts))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(len(data) - 1, 0)))
        piece = draw(st.sampled_from([b"", b" ", b"\t", b"\n", b"=", b"mac=", b"\tid=", b"0", b"\xff"]))
        data[start : start + draw(st.integers(0, 3))] = piece
    return bytes(data)
