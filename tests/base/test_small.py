"""The small parts of the base: identity, paths, chance, errors, records, effects."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.base.strategies import ORIGINS
from weft.base.chance import Chance
from weft.base.effects import Connect, Disconnect, Perform, Persist, Reply, Send, Tell
from weft.base.errors import EXIT_CODES, OurFault, PeerError, StorageFailed, UserError, WeftError, exit_code
from weft.base.identity import Origin, is_canonical, next_era, sort_key
from weft.base.now import SECOND, seconds
from weft.base.paths import is_key, is_under
from weft.base.records import LostRecord, Stream, StreamRecord
from weft.base.settings import Table

KEY = st.text("abc/.%[]~-_ é", max_size=12)


@given(st.lists(st.integers(-SECOND, 1 << 62), min_size=1, max_size=20))
def test_eras_grow_whatever_the_clock_does(walls: list[int]) -> None:
    eras = [0]
    for wall in walls:
        eras.append(next_era(wall, eras[-1]))
    assert all(before < after for before, after in pairwise(eras))


@given(ORIGINS, ORIGINS)
def test_canonical_origins_have_one_place_in_the_order(left: Origin, right: Origin) -> None:
    assert (left == right) == (sort_key(left) == sort_key(right))


@pytest.mark.parametrize(
    "origin, expected",
    [
        (Origin(bytes(16), 7), True),
        (Origin(bytes(16), 0), True),
        (Origin(bytes(15), 7), False),
        (Origin("n", None), True),
        (Origin("", None), False),
        (Origin("n" * 128, None), True),
        (Origin("n" * 129, None), False),
        (Origin("é" * 64, 1), True),
        (Origin("é" * 65, 1), False),
        (Origin("é" * 8, 1), False),
        (Origin("0123456789abcdef", None), True),
        (Origin("ab" * 16, None), True),
        (Origin("AB" * 16, 1), True),
    ],
)
def test_canonical_origin(origin: Origin, expected: bool) -> None:
    assert expected == is_canonical(*origin)


def test_an_origin_is_shown_as_people_type_it() -> None:
    assert "00" * 16 + "/7" == str(Origin(bytes(16), 7))
    assert str(Origin("n1", None)) == "n1"


@pytest.mark.proves("CFG-004")
@pytest.mark.parametrize(
    "text, expected",
    [
        ("/a", True),
        ("/CONFIG/web/metric/cpu", True),
        ("/a.b_c:d@e%f+g=h~i[0]-j", True),
        ("/" + "a" * 254, True),
        ("/" + "a" * 255, False),
        ("", False),
        ("/", False),
        ("a", False),
        ("/a/", False),
        ("//a", False),
        ("/a b", False),
        ("/é", False),
        ("/a\n", False),
    ],
)
def test_key(text: str, expected: bool) -> None:
    assert expected == is_key(text)


@pytest.mark.proves("CFG-004")
@pytest.mark.parametrize(
    "key, subtree, expected",
    [
        ("/CONFIG/g1/rate", "/CONFIG/g1/", True),
        ("/CONFIG/g10/rate", "/CONFIG/g1/", False),
        ("/CONFIG/g1", "/CONFIG/g1/", False),
        ("/CONFIG/g1", "/CONFIG/g1", True),
        ("/CONFIG/g10", "/CONFIG/g1", False),
        ("/any", "", True),
        ("/any", "/", True),
    ],
)
def test_subtree(key: str, subtree: str, expected: bool) -> None:
    assert expected == is_under(key, subtree)


@given(KEY)
def test_a_key_is_exactly_its_non_empty_segments(text: str) -> None:
    segments = text.split("/")
    named = all(segment and set(segment) <= set("abc.%[]~-_") for segment in segments[1:])
    assert (len(segments) > 1 and segments[0] == "" and named) == is_key(text)


def test_a_new_draw_for_one_purpose_moves_no_other() -> None:
    assert Chance("7/link/a>b/stream").getrandbits(64) == 0x93B343F49AA91AE9
    other, disturbed = Chance("7/b"), Chance("7/a")
    disturbed.random()
    assert Chance("7/b").random() == other.random()


@given(st.integers(0, 1 << 62), st.sampled_from([0.0, 0.2, 1.0]))
def test_about_stays_within_its_share(value: int, share: float) -> None:
    drawn = Chance(str(value)).about(value, share)
    assert abs(drawn - value) <= value * share + 1 + value * 1e-15


def test_seconds_are_whole_nanoseconds() -> None:
    assert [0, 1, 250_000_000, SECOND] == [seconds(0), seconds(1e-9), seconds(0.25), seconds(1)]


def test_errors_say_whose_fault_it_is() -> None:
    peer = PeerError("bad-frames", "two instead of three", b"x" * 300)
    assert ("bad-frames", "two instead of three", 256) == (peer.code, peer.why, len(peer.shown))
    assert str(PeerError("bad-type")) == "bad-type"
    user = UserError("name-taken", "a node of that name is alive", "weft init --name other")
    assert "a node of that name is alive\n  try: weft init --name other" == str(user)
    assert all(issubclass(kind, WeftError) for kind in (OurFault, PeerError, StorageFailed, UserError))


def test_codes_that_share_an_exit_status_say_the_same_and_unknown_codes_are_usage() -> None:
    alike: dict[int, list[str]] = {}
    for code, status in EXIT_CODES.items():
        alike.setdefault(status, []).append(code)
    shared = {status: codes for status, codes in alike.items() if len(codes) > 1}
    # 1: what was asked is not so; 5: nothing can be said of it; 75: try again later (PIP-023, SEC-014)
    assert {
        1: ["violated", "damaged", "unproved"],
        5: ["unconfirmed", "void"],
        75: ["lease-held", "memory-exceeded"],
    } == shared
    assert (77, 2) == (exit_code("name-taken"), exit_code("E04"))


def test_a_batch_of_samples_names_its_last_number() -> None:
    record = StreamRecord(Stream.SAMPLES, bytes(16), 7, 1001, 0, 0, "", b"", {"n": 3})
    assert (Origin(bytes(16), 7), 1003) == (record.source, record.last)
    alone = StreamRecord(Stream.EVENTS, "n1", None, 5, 0, 0, "", b"", {})
    assert (Origin("n1", None), 5) == (alone.source, alone.last)
    assert Origin("n1", None) == LostRecord(1, "n1", None, 1, 2, "crash").source


@pytest.mark.parametrize(
    "effect",
    [
        Send("up", b"", None),
        Persist(()),
        Connect("up", "127.0.0.1:1"),
        Disconnect("up"),
        Perform(None),
        Reply(1, None),
        Tell(None),
    ],
    ids=lambda effect: type(effect).__name__,
)
def test_effects_are_values(effect: msgspec.Struct) -> None:
    assert effect == type(effect)(*msgspec.structs.astuple(effect))
    with pytest.raises(AttributeError):
        setattr(effect, effect.__struct_fields__[0], None)


def test_an_empty_text_is_missing_where_one_is_required() -> None:
    mistakes: list[str] = []
    Table({"detail": ""}, "metric.a", mistakes).text("detail", is_required=True)
    assert ["E03 metric.a.detail: is empty"] == mistakes
