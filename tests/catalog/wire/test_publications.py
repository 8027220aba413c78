"""What goes over the XPUB, and what publishers say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.wire.vectors import COMPUTED, PEERS, frames, group
from weft.base.errors import PeerError
from weft.wire.catalog import publications
from weft.wire.catalog.messages import Publication, Subscription, Taken

FRAMES = st.lists(st.binary(max_size=9), min_size=1, max_size=64)


@pytest.mark.proves("CAT-040")
@pytest.mark.parametrize("name", group("event-"))
def test_event_is_read_and_written_byte_for_byte(name: str) -> None:
    said = frames(COMPUTED[name])
    found = publications.decode_publication(said)
    assert Publication(said[0], (said[1], said[2])) == found
    assert said == publications.encode(found)


def test_subscription_is_read_as_libzmq_says_it() -> None:
    line = PEERS["xpub-sub"]
    assert Subscription(is_on=True, topic=line["means"]["topic"].encode()) == publications.decode(frames(line))
    assert Subscription(is_on=False, topic=b"") == publications.decode([b"\0"])


@pytest.mark.proves("LVC-002")
@pytest.mark.parametrize("name", [*[name for name in PEERS if name.startswith("pubhandler")], "log-record"])
def test_words_of_a_publisher_are_taken_verbatim(name: str) -> None:
    said = frames((PEERS | COMPUTED)[name])
    assert Taken(tuple(said)) == publications.decode_taken(said)


@given(FRAMES)
def test_any_frames_are_taken_and_come_back(said: list[bytes]) -> None:
    assert said == list(publications.decode_taken(said).frames)
    assert said == publications.encode(publications.decode_publication(said))


@given(st.booleans(), st.binary(max_size=300))
def test_subscription_comes_back(is_on: bool, topic: bytes) -> None:  # drawn
    said = Subscription(is_on, topic)
    assert said == publications.decode(publications.encode_subscription(said))


@given(st.lists(st.binary(max_size=3), max_size=3))
def test_what_a_subscriber_says_is_a_subscription_or_refused(said: list[bytes]) -> None:
    try:
        found = publications.decode(said)
    except PeerError as error:
        assert "malformed" == error.code
        assert len(said) != 1 or said[0][:1] not in (b"\0", b"\1")
    else:
        assert said == publications.encode_subscription(found)


@pytest.mark.parametrize("count", [0, 65])
def test_message_without_frames_or_of_too_many_is_refused(count: int) -> None:
    for decode in (publications.decode_taken, publications.decode_publication):
        with pytest.raises(PeerError) as refused:
            decode([b"x"] * count)
        assert "malformed" == refused.value.code
