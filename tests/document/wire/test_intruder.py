"""Any frames, heard by a whole session: nothing raises, one counter moves, and it goes on (PEE-006)."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.document.wire.strategies import ANY_FRAMES, MESSAGES, REAL, UUIDS
from tests.document.wire.vectors import SENDER, lines
from weft.base.effects import Perform, Source
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.document.messages import Begin, Garbled, Opened, SessionSettings
from weft.cores.document.session import Session
from weft.wire.document import frames
from weft.wire.document.messages import Bout, Helo

US = bytes.fromhex("f0000000000040008000000000000009")
OPERATIONS = [
    [SENDER, b"XMSG", bytes.fromhex(body)]
    for line in lines("document-fold.jsonl").values()
    for body in line["frames"]
    if len(body) < 2_000
]
TYPES = {"HELO", "PEER", "BOUT", "GBYE", "CHAT", "BEAT", "TIME", "GSIP", "XMSG", "XPAK"}
UNREAD = {"unknown_type", "bad_identity", "bad_frames", "bad_body", "bad_sum"}
SAID = st.lists(
    st.one_of(
        ANY_FRAMES,
        st.sampled_from(OPERATIONS),
        st.builds(lambda message: [SENDER, *frames.encode(message)], MESSAGES),
        st.builds(lambda said, sender: [sender, *said[1:]], st.sampled_from(REAL), UUIDS | st.just(SENDER)),
    ),
    min_size=1,
    max_size=30,
)


class Hearing:
    """One session that is said things to, a second apart."""

    def __init__(self) -> None:
        self.session = Session(SessionSettings(name="S", uuid=US, mdns=False))
        self.now = Now(10 * SECOND, 1_763_800_000 * SECOND)
        self.session.command(Begin(), self.now)
        assert any(isinstance(effect, Perform) for effect in self.session.effects())
        self.session.command(Opened("S", "127.0.0.1:50009"), self.now)
        for message in (Helo("127.0.0.1:50002"), Bout("S")):
            self.hear([SENDER, *frames.encode(message)])

    def hear(self, said: list[bytes]) -> Counter[str]:
        """What is counted of it."""
        before = Counter(self.session.context.counters)
        self.now = Now(self.now.mono + SECOND, self.now.wall + SECOND)
        source = Source("document", said[0] if said else b"", None, "127.0.0.1")
        try:
            self.session.receive(frames.decode(said), source, self.now)
        except PeerError as error:
            self.session.command(Garbled("document", source.peer, error.code), self.now)
        self.session.wake(self.now)
        self.session.effects()
        moved = Counter(self.session.context.counters) - before
        return Counter({name.removeprefix("mesh.rx."): n for name, n in moved.items() if name.startswith("mesh.rx.")})


@pytest.mark.proves("PEE-006")
@given(said=SAID)
def test_whatever_is_said_moves_one_counter_and_the_session_goes_on(said: list[list[bytes]]) -> None:
    hearing = Hearing()
    for each in said:
        moved = hearing.hear(each)
        assert 1 == sum(moved[name] for name in TYPES | UNREAD), (each, moved)
        assert moved.keys() - TYPES - UNREAD <= {"before_helo", "not_active", "bad_body"}, (each, moved)
    assert 64 == len(hearing.session.engine.digest())


@pytest.mark.proves("GSP-012")
def test_every_operation_of_the_vectors_is_counted_once_by_what_became_of_it() -> None:
    hearing = Hearing()
    for each in OPERATIONS:
        hearing.hear(each)
    counters = hearing.session.context.counters
    became = ("ops", "fork", "duplicate", "no_header", "own_source")  # none stands behind a gap
    assert len(OPERATIONS) == counters["mesh.rx.XMSG"] == sum(counters[f"log.{what}"] for what in became)
