"""What was refused can be looked at, and takes little room (CFG-093)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.node.test_node import BEACON, HEARD, NOW, Scripted, assembled
from weft.base.effects import Source
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cli.quarantine import lines_of
from weft.node.quarantine import Quarantine
from weft.wire.beacon import encode


@pytest.mark.proves("CFG-093")
def test_malformed_and_forbidden_messages_are_kept_and_sound_ones_are_not() -> None:
    topology = Scripted("topology")
    node = assembled(topology)
    node.receive(HEARD, [b"garbage"], NOW)
    node.receive(HEARD, encode(BEACON), NOW)
    topology.refusal = PeerError("other-fleet", "lab")
    later = Now(NOW.mono + SECOND, NOW.wall + SECOND)
    node.receive(HEARD, encode(BEACON), later)
    (said,) = encode(BEACON)
    second, first = node.quarantine.rows()
    assert {
        "at": later.wall,
        "channel": "beacon",
        "peer": "127.0.0.1",
        "code": "other-fleet",
        "why": "lab",
        "count": 1,
        "frames": [{"bytes": len(said), "hex": said.hex()}],
    } == second
    assert ("bad-beacon", NOW.wall, "67617262616765") == (first["code"], first["at"], first["frames"][0]["hex"])


@pytest.mark.proves("CFG-093")
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["up", "down", "serve", "data", "control"]),
            st.sampled_from(["a", "b", "c"]),
            st.lists(st.integers(0, 2_000), max_size=20),
        ),
        max_size=300,
    )
)
def test_room_is_bounded_whatever_is_refused(said: list[tuple[str, str, list[int]]]) -> None:
    kept = Quarantine()
    for at, (channel, code, sizes) in enumerate(said):
        frames = [b"\xff" * size for size in sizes]
        kept.keep(Source(channel, b"p" * 1_000), frames, PeerError(code, "w" * 1_000), Now(at, at))
        assert len(kept) <= 100
        assert sum(message.bytes for message in kept) == kept.bytes <= 64 << 10
        assert at == next(iter(kept)).at, "the last one is there"
    times = [message.at for message in kept]
    assert sorted(times, reverse=True) == times


@pytest.mark.proves("CFG-093")
def test_a_flood_of_one_kind_leaves_the_others_to_be_seen() -> None:
    kept = Quarantine()
    kept.keep(Source("serve", b"\x01"), [b"rare"], PeerError("uuid"), NOW)
    for at in range(1_000):
        kept.keep(Source("data", b""), [b"flood"], PeerError("time"), Now(at, at))
    assert [*["time"] * 25, "uuid"] == [message.code for message in kept]
    assert 999 == next(iter(kept)).at


@pytest.mark.proves("CFG-093")
def test_people_read_hex_and_letters_and_no_terminal_obeys_a_frame() -> None:
    kept = Quarantine()
    frames = [b"", b"KVPUB\x1b[2J" + bytes(10), b"x" * 300]
    kept.keep(Source("serve", b"\x00\x1b"), frames, PeerError("key", "not \x1b a key"), Now(0, 5 * SECOND))
    (row,) = kept.rows()
    lines = list(lines_of(row))
    assert [
        "1970-01-01 00:00:05.000000 UTC  serve from 001b  key: not \\x1b a key",
        "  frame 1 of 3, 0 bytes",
        "  frame 2 of 3, 19 bytes",
        "    0000  4b 56 50 55 42 1b 5b 32 4a 00 00 00 00 00 00 00  KVPUB.[2J.......",
        f"    0010  {'00 00 00':47}  ...",
        "  frame 3 of 3, 300 bytes, the first 256 shown",
    ] == lines[:6]
    assert 16 == len(lines[6:])
    assert all(" " <= letter <= "~" for line in lines for letter in line)
