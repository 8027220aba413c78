"""Mail on a hop: its bytes, what is refused of it, and what a record of it says."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.carrier.test_frames import ERA_A, LINES, frames_of
from weft.base.errors import PeerError
from weft.base.mail import INBOX, OUTBOX, Mail, of_record, to_record
from weft.base.records import EraRecord, LostRecord, StreamRecord
from weft.cores.carrier.outbox import is_carried
from weft.wire import carried, hop
from weft.wire.carried import Uncarriable, to_item
from weft.wire.hop import Hop

A, B, C = b"\x0a" * 16, b"\x0b" * 16, b"\x0c" * 16
ERA_B = 115592396829884594
LEAF = b'<report origin="A" type="leaf" num="%d"/>'


def mail(**fields: Any) -> Mail:
    standard: dict[str, Any] = {"origin": A, "era": 7, "sequence": 5, "type": "demo.report", "frames": (b"hello",)}
    return Mail(**standard | {"to": ("PARENTSOF",), "at": 111} | fields)


def across(sent: Mail, me: bytes, wall: int = 222) -> StreamRecord:
    """One hop, through bytes."""
    item, frames = to_item(to_record(sent, OUTBOX, 111), me, wall)
    message = hop.decode(hop.encode(Hop(1, 1, [item], frames)))
    assert isinstance(message, Hop)
    _, item, frames = next(message.numbered())
    record = carried.to_record(item, frames, wall)
    assert isinstance(record, StreamRecord)
    return record


@pytest.mark.proves("CLI-003", "CHN-007")
def test_reports_leave_in_the_bytes_of_the_vector() -> None:
    first, second = 1763800002000000000, 1763800004000000000
    reports = [
        mail(era=ERA_A, sequence=6, at=first, frames=(LEAF % 0,)),
        mail(era=ERA_A, sequence=7, at=second, frames=(LEAF % 1,)),
    ]
    parts = [to_item(to_record(report, OUTBOX, 0), A) for report in reports]
    sent = Hop(ERA_A, 6, [item for item, _ in parts], [frame for _, frames in parts for frame in frames])
    assert frames_of(LINES["h-hop"]) == hop.encode(sent)


@pytest.mark.proves("CLI-003", "RTE-005")
def test_an_accumulated_report_leaves_in_the_bytes_of_the_vector() -> None:
    body = b'<report origin="B" type="accumulated">' + LEAF % 0 + b"</report>"
    report = mail(origin=B, era=ERA_B, sequence=1, at=1763800002000000000, depth=1, frames=(body,))
    item, frames = to_item(to_record(report, OUTBOX, 0), B)
    assert frames_of(LINES["h-hop-acc"]) == hop.encode(Hop(ERA_B, 1, [item], frames))


mails = st.builds(
    mail,
    sequence=st.integers(1, 1 << 62),
    era=st.integers(0, (1 << 64) - 1),
    frames=st.lists(st.binary(max_size=9), min_size=1, max_size=16).map(tuple),
    to=st.sampled_from([("PARENTSOF",), ("DIRECT", B), ("DIRECT", "b", 9), ("NEARESTCOORD", None, 3)]),
    depth=st.integers(0, 16),
    at=st.integers(0, (1 << 63) - 1),
    fmt=st.sampled_from(["raw", "msgpack"]),
    exp=st.sampled_from([0, 1 << 62]),
)


@pytest.mark.proves("CHN-004", "CHN-006", "CHN-007", "RTE-004")
@given(mails)
def test_any_mail_arrives_as_it_was_sent_with_one_more_name_on_its_way(sent: Mail) -> None:
    record = across(sent, A)
    assert (INBOX, 222) == (record.stream, record.received)
    arrived = of_record(record)
    assert (A,) == arrived.via
    assert sent == Mail(**{name: getattr(arrived, name) for name in arrived.__struct_fields__} | {"via": ()})


@pytest.mark.proves("RTE-004")
def test_mail_with_a_time_to_live_of_one_reaches_the_parent_and_goes_no_further() -> None:
    record = across(mail(to=("PARENTSOF", None, 1)), A)
    assert "ttl" == why_not(of_record(record))
    assert "ttl" == why_not(mail(to=("PARENTSOF", None, 0)))
    assert "ttl" == why_not(mail(via=(B,) * 64))
    assert 64 == len(of_record(across(mail(via=(B,) * 63), A)).via)


def why_not(sent: Mail) -> str:
    with pytest.raises(Uncarriable) as caught:
        to_item(to_record(sent, OUTBOX, 0), A)
    return caught.value.why


def test_mail_that_no_multipart_holds_says_why() -> None:
    assert "too-big" == why_not(mail(frames=(bytes((1 << 20) + 1),)))
    assert "too-big" == why_not(mail(frames=(bytes(1 << 20),) * 4))
    item, frames = to_item(to_record(mail(frames=(bytes(1 << 20),) * 3), OUTBOX, 0), A)
    assert isinstance(hop.decode(hop.encode(Hop(1, 1, [item], frames))), Hop)


@pytest.mark.proves("CHN-041")
def test_mail_past_its_time_keeps_its_identity_and_no_payload() -> None:
    sent = to_record(mail(exp=500), OUTBOX, 0)
    assert (1, [b"hello"]) == (to_item(sent, A, 499)[0].n, to_item(sent, A, 499)[1])
    item, frames = to_item(sent, A, 500)
    assert (0, [], (A, 7, 5)) == (item.n, frames, item.mid)


BAD: list[tuple[str, str, dict[str, Any]]] = [
    ("an origin in text", "bad-record", {"mid": ("n1", 7, 5)}),
    ("no era", "bad-record", {"mid": (A, None, 5)}),
    ("sequence 0", "bad-record", {"mid": (A, 7, 0)}),
    ("a time over 63 bits", "bad-record", {"ts": 1 << 63}),
    ("a destination in text", "bad-record", {"to": "PARENTSOF"}),
    ("no kind", "bad-record", {"to": []}),
    ("a kind that is no text", "bad-record", {"to": [7]}),
    ("a kind without end", "bad-record", {"to": ["X" * 33]}),
    ("a node that is a number", "bad-record", {"to": ["DIRECT", 7]}),
    ("a short node", "bad-record", {"to": ["DIRECT", b"short"]}),
    ("a node without a name", "bad-record", {"to": ["DIRECT", ""]}),
    ("a ttl in text", "bad-record", {"to": ["PARENTSOF", None, "3"]}),
    ("a ttl that is a truth", "bad-record", {"to": ["PARENTSOF", None, True]}),
    ("a negative ttl", "bad-record", {"to": ["PARENTSOF", None, -1]}),
    ("more than three parts", "bad-record", {"to": ["PARENTSOF", None, 3, 4]}),
    ("a reserved type", "bad-type", {"type": "weft.metric"}),
    ("a loss addressed to somebody", "bad-type", {"type": "weft.lost"}),
    ("too many causes", "loop", {"depth": 17}),
    ("too long a way", "ttl", {"to": ["PARENTSOF", None, 1], "via": (A, B)}),
]


@pytest.mark.proves("FUZ-001", "RTE-004", "RTE-005")
@pytest.mark.parametrize(("code", "fields"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_what_is_no_mail_is_refused(code: str, fields: dict[str, Any]) -> None:
    item, frames = to_item(to_record(mail(), OUTBOX, 0), A)
    standard = {name: getattr(item, name) for name in item.__struct_fields__}
    with pytest.raises(PeerError) as caught:
        carried.to_record(hop.HopItem(**standard | fields), frames, 0)
    assert code == caught.value.code


def test_a_receipt_is_the_one_reserved_type_that_is_mail() -> None:
    assert "weft.receipt" == across(mail(type="weft.receipt"), A).key


def test_of_mail_only_what_goes_up_is_carried_and_never_the_news_of_its_loss() -> None:
    assert [True, False] == [is_carried(to_record(mail(), stream, 0)) for stream in (OUTBOX, INBOX)]
    assert [False, False] == [is_carried(LostRecord(stream, A, 7, 1, 2, "x")) for stream in (OUTBOX, INBOX)]
    assert [False, False] == [is_carried(EraRecord(stream, A, 7, 1, 2)) for stream in (OUTBOX, INBOX)]
    for note in (LostRecord(OUTBOX, A, 7, 1, 2, "x"), EraRecord(INBOX, A, 7, 1, 2)):
        with pytest.raises(PeerError) as caught:
            carried.to_record(*to_item(note, A), wall=0)
        assert "bad-record" == caught.value.code
