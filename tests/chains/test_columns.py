"""Records counted by columns: what is decoded straight into them, and what is read as any filter reads it (CHN-067)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chains.rig import WALL
from tests.chains.test_aggregate import TABLE, specs
from weft.base.mail import Mail
from weft.base.now import SECOND, Now
from weft.cores.chains import limits
from weft.cores.chains.aggregating import AggregateLink
from weft.cores.chains.core import Chains
from weft.cores.chains.messages import ChainsSettings
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.parcel import IN, Parcel
from weft.cores.chains.states import Verdict

ENCODE = {"msgpack": msgspec.msgpack.encode, "json": msgspec.json.encode}
NOW = Now(0, WALL)
TIMES = st.one_of(st.integers(0, 30).map(lambda at: WALL + at * SECOND // 3), st.none())
RECORDS = st.fixed_dictionaries(
    {"name": st.sampled_from("xyz"), "value": st.one_of(st.floats(-1e6, 1e6), st.integers(-5, 5))},
    optional={"t": TIMES, "room": st.sampled_from("ab")},
)


def link(**more: Any) -> AggregateLink:
    core = Chains(specs({**TABLE, "functions": ["mean", "p50"], **more}), ChainsSettings(level="root"), b"B" * 16, 1)
    (made,) = core.chain(IN, "t")
    assert isinstance(made, AggregateLink)
    return made


def parcel(content: Any, fmt: str = "msgpack", depth: int = 0) -> Parcel:
    frames = (ENCODE[fmt](content),)
    said: dict[str, Any] = {"origin": b"A" * 16, "era": 1, "sequence": 1, "type": "t", "to": ("PARENTSOF",)}
    return Parcel(1, IN, Mail(frames=frames, fmt=fmt, at=WALL + SECOND, depth=depth, **said))


def told(of: AggregateLink) -> list[Any]:
    return [(mail, which, len(holds)) for mail, holds, which in of.close_all()]


@pytest.mark.proves("CHN-067", part="records that are decoded straight into columns count like those that are not")
@given(
    st.lists(st.lists(RECORDS, min_size=1, max_size=12), min_size=1, max_size=3),
    st.sampled_from(((), ("name",), ("name", "room"))),
    st.sampled_from(sorted(ENCODE)),
)
def test_however_records_are_decoded_they_count_the_same(
    messages: list[list[dict[str, Any]]], group: tuple[str, ...], fmt: str
) -> None:
    quick, slow = link(group=list(group)), link(group=list(group))
    for records in messages:
        content = records[0] if len(records) == 1 else records
        first, second = parcel(content, fmt), parcel(content, fmt)
        if quick.absorb_whole(first, NOW) is None:
            quick.absorb(MessageView(first), first, NOW)
        assert slow.absorb(MessageView(second), second, NOW) is Verdict.DROPPED
    assert told(slow) == told(quick)
    assert slow.counters == quick.counters


PLAIN = {"t": WALL, "name": "x", "value": 3.5}


@pytest.mark.parametrize("content", [PLAIN, [PLAIN, {"name": "y", "value": 1}]])
@pytest.mark.parametrize("fmt", sorted(ENCODE))
def test_records_of_nothing_but_what_is_read_need_no_view(content: Any, fmt: str) -> None:
    assert link().absorb_whole(parcel(content, fmt), NOW) is Verdict.DROPPED


@pytest.mark.parametrize(
    "change",
    [
        {"unit": "W"},
        {"value": "1"},
        {"value": True},
        {"value": float("nan")},
        {"value": 1e300},
        {"value": None},
        {"t": 1.5},
        {"name": 5},
    ],
)
def test_any_other_record_is_left_to_the_view(change: dict[str, Any]) -> None:
    of = link()
    assert of.absorb_whole(parcel([PLAIN, PLAIN | change]), NOW) is None
    assert (0, []) == (of.counters.offered, told(of))


@pytest.mark.parametrize(
    ("more", "content"),
    [
        ({"where": {"name": {"in": ["x"]}}}, PLAIN),
        ({"when": "f.name == 'x'"}, PLAIN),
        ({"group": ["labels.cpu"]}, {"t": WALL, "labels.cpu": "x", "value": 3.5}),
        ({"group": ['"']}, {"t": WALL, '"': "x", "value": 3.5}),
        ({"group": ["\n"]}, {"t": WALL, "\n": "x", "value": 3.5}),
        ({"group": ["sketch"]}, {"t": WALL, "sketch": "x", "value": 3.5}),
        ({"group": ["name", "name"]}, PLAIN),
    ],
)
def test_an_aggregate_of_some_records_or_of_inner_fields_reads_by_the_view(more: dict[str, Any], content: Any) -> None:
    assert link(**more).absorb_whole(parcel(content), NOW) is None


def test_messages_that_are_none_of_records_are_left_to_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    of = link()
    assert of.absorb_whole(parcel([]), NOW) is None
    assert of.absorb_whole(parcel(PLAIN, depth=limits.DEPTH_MAX), NOW) is None
    monkeypatch.setattr(limits, "RECORDS_MAX", 1)
    assert of.absorb_whole(parcel([PLAIN, PLAIN]), NOW) is None


@pytest.mark.proves("CHN-067", part="the last is the one of the greatest time, of equal ones the later arrival")
def test_the_last_value_is_the_one_of_the_greatest_time_whatever_the_order() -> None:
    of = link(group=["name"])
    rows = [(2, "x", 1.0), (9, "y", 2.0), (9, "x", 3.0), (9, "x", 4.0), (1, "y", 5.0), (12, "x", 6.0), (3, "x", 7.0)]
    records = [{"t": WALL + at * SECOND, "name": name, "value": value} for at, name, value in rows]
    assert of.absorb_whole(parcel(records), NOW) is Verdict.DROPPED
    found = [msgspec.msgpack.decode(mail.frames[0]) for mail, _, _ in told(of)]
    expected = [(0, "x", 4, 15.0, 4.0, 9), (0, "y", 2, 7.0, 2.0, 9), (10, "x", 1, 6.0, 6.0, 12)]
    assert expected == [
        (
            (record["start"] - WALL) // SECOND,
            record["name"],
            record["count"],
            record["sum"],
            record["last"],
            (record["last_t"] - WALL) // SECOND,
        )
        for record in found
    ]
