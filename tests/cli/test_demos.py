"""The demonstrations of chains as objects: what they send, change and refuse, byte by byte."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.errors import PeerError
from weft.cli.demos.programs import (
    IN,
    OUT,
    PASS,
    Aggregator,
    Detector,
    Drop,
    Heard,
    Hold,
    Link,
    Pass,
    Responder,
    Rewriter,
)
from weft.cli.demos.report import BYTES_MAX, DEPTH_MAX, accumulated, label, leaf, read, visited

A0, A1, B0 = leaf("A", 0), leaf("A", 1), leaf("B", 0)


def heard(payload: bytes, on: str = IN, *, own: bool = False) -> Heard:
    return Heard(on, (payload,), own)


def nested(depth: int) -> bytes:
    return b"<report>" * depth + b"</report>" * depth


# Reports (DEM-001, DEM-003, DEM-004, DEM-005)


@pytest.mark.proves("DEM-001")
def test_a_report_has_exactly_its_bytes() -> None:
    assert b'<report origin="A" type="leaf" num="0"/>' == leaf("A", 0)
    assert {"origin": 'a<&"', "type": "leaf", "num": "7"} == read(leaf('a<&"', 7)).attributes


@pytest.mark.proves("DEM-004")
def test_a_tag_is_the_last_child_and_no_other_byte_changes() -> None:
    first = b'<report origin="A" type="leaf" num="0"><rewriter visited="127.0.0.1" PID="4711"/></report>'
    assert first == visited(A0, "127.0.0.1", 4711)
    second = first.replace(b"</report>", b'<rewriter visited="10.0.0.1" PID="12"/></report>')
    assert second == visited(first, "10.0.0.1", 12)
    around = b"<?xml version='1.0'?>\n<report  a='&lt;' /> <?end />?>\n"
    tagged = b"<?xml version='1.0'?>\n<report  a='&lt;' ><rewriter visited=\"h\" PID=\"1\"/></report> <?end />?>\n"
    assert tagged == visited(around, "h", 1)
    both = accumulated("B", [A0, B0])
    assert both.removesuffix(b"</report>") + b'<rewriter visited="h" PID="1"/></report>' == visited(both, "h", 1)


@pytest.mark.proves("SEC-043", part="what the programs of `weft demo` read: size, depth, declarations")
@pytest.mark.proves("DEM-005")
@pytest.mark.parametrize(
    "why, payload",
    [
        ("too-big", b"<report>" + b" " * BYTES_MAX + b"</report>"),
        ("too-deep", nested(DEPTH_MAX + 1)),
        ("declaration", b'<!DOCTYPE r [<!ENTITY a "aaaa">]><report>&a;</report>'),
        ("declaration", b"<report><!-- a remark --></report>"),
        ("declaration", b"<report><![CDATA[x]]></report>"),
        ("not-text", b"\xff\xfe<\0r\0/\0>\0"),
        ("not-xml", b""),
        ("not-xml", b"news from A"),
        ("not-xml", b"<report/><report/>"),
        ("not-xml", b"<report>&unknown;</report>"),
        ("not-xml", b"<report><report></report>"),
    ],
)
def test_what_is_too_much_for_a_report_is_refused_and_passes_every_program(why: str, payload: bytes) -> None:
    with pytest.raises(PeerError) as refused:
        read(payload)
    assert why == refused.value.why
    for program, on in [(Rewriter("h", 1), OUT), (Aggregator("B", outbound=True), OUT), (Aggregator("B"), IN)]:
        assert PASS == program.take(heard(payload, on))
        assert Counter(seen=1, refused=1) == +program.counts
        assert [] == program.tick()


@pytest.mark.proves("DEM-005")
def test_the_largest_and_the_deepest_report_are_read() -> None:
    assert "report" == read(nested(64)).name
    assert "report" == read(b"<report>" + b" " * ((64 << 10) - 17) + b"</report>").name


def test_several_frames_are_no_report() -> None:
    program = Rewriter("h", 1)
    assert PASS == program.take(Heard(OUT, (A0, A1)))
    assert 1 == program.counts["refused"]


@given(st.binary(max_size=200) | st.text("<>/!?& reportA\"='0", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(payload: bytes) -> None:
    try:
        found = read(payload)
    except PeerError:
        return
    again = read(visited(payload, "h", 1))
    assert (found.name, found.attributes, found.start) == (again.name, again.attributes, again.start)
    assert not again.is_empty_tag


def test_a_label_says_who_what_was_inside_and_who_changed_it() -> None:
    assert "A:0" == label(A0)
    assert "B[A:0,B:0]" == label(accumulated("B", [A0, B0]))
    tagged = visited(visited(A0, "h", 100), "h", 101)
    assert "C[B[A:0+100+101]]" == label(accumulated("C", [accumulated("B", [tagged])]))


# Programs


@pytest.mark.proves("DEM-001")
def test_a_detector_stands_nowhere_and_counts_from_0() -> None:
    program = Detector("A", count=2)
    assert () == program.links
    assert [[A0], [A1], []] == [program.tick() for _ in range(3)]
    assert program.is_done
    program.settled("spooled")
    assert Counter(sent=2, spooled=1) == program.counts
    assert not Detector("A").is_done


@pytest.mark.proves("DEM-002")
def test_a_responder_lets_everything_pass() -> None:
    assert (Link(IN),) == Responder().links
    program = Responder(OUT, 10, "rw")
    assert ((OUT, "rw", 10), PASS) == (program.links[0][:3], program.take(heard(b"anything", OUT)))
    assert Counter(seen=1) == +program.counts


def test_a_responder_that_holds_keeps_so_many_and_lets_the_rest_pass() -> None:
    program = Responder(OUT, access="rw", hold=2)
    assert [Hold(), Hold(), PASS] == [program.take(heard(A0, OUT)) for _ in range(3)]
    assert program.links[0].timeout_ms > 60_000


@pytest.mark.proves("DEM-003")
def test_an_aggregator_sends_all_of_a_period_whole_and_in_order() -> None:
    program = Aggregator("B")
    assert (Link(IN),) == program.links
    tagged = visited(A1, "127.0.0.1", 7)
    for payload in (A0, b"<?xml version='1.0'?>\n" + tagged + b"\n", B0):
        program.take(heard(payload))
    assert [b'<report origin="B" type="accumulated">' + A0 + tagged + B0 + b"</report>"] == program.tick()
    assert [] == program.tick()


@pytest.mark.proves("DEM-003")
def test_an_aggregator_does_not_swallow_its_own_output() -> None:
    root = Aggregator("C")
    for payload in (accumulated("C", [A0]), accumulated("B", [A0]), leaf("C", 3), b"<other/>"):
        root.take(heard(payload))
    assert ["C[B[A:0],C:3]"] == [label(payload) for payload in root.tick()]
    assert 2 == root.counts["passed over"]


@pytest.mark.proves("DEM-003")
def test_an_outbound_aggregator_takes_what_others_send_and_passes_its_own() -> None:
    program = Aggregator("B", outbound=True)
    assert (Link(IN), Link(OUT, "rw")) == program.links
    assert isinstance(program.take(heard(B0, OUT)), Drop)
    (sent,) = program.tick()
    assert PASS == program.take(heard(sent, OUT, own=True))
    assert PASS == program.take(heard(b"<other/>", OUT))
    assert [] == program.tick()


def test_an_accumulated_report_is_never_larger_than_the_next_reader_may_take() -> None:
    program = Aggregator("B")
    large = b'<report origin="A" type="leaf">' + b" " * 30_000 + b"</report>"
    for _ in range(5):
        program.take(heard(large))
    sent = program.tick()
    assert [2, 2, 1] == [payload.count(large) for payload in sent]
    assert [True] * 3 == [read(payload).name == "report" for payload in sent]


@pytest.mark.proves("DEM-004")
def test_a_rewriter_tags_the_first_of_two_and_deletes_the_second() -> None:
    program = Rewriter("127.0.0.1", 4711)
    assert ((OUT, "rw", "after-all"),) == tuple(link[:3] for link in program.links)
    verdicts = [program.take(heard(leaf("A", number), OUT)) for number in range(4)]
    assert [0, 2] == [
        number for number, told in enumerate(verdicts) if told == Pass(visited(leaf("A", number), "127.0.0.1", 4711))
    ]
    assert [1, 3] == [number for number, told in enumerate(verdicts) if isinstance(told, Drop)]


@pytest.mark.proves("DEM-005")
def test_what_a_rewriter_refuses_is_not_one_of_two() -> None:
    program = Rewriter("h", 1)
    told = [program.take(heard(payload, OUT)) for payload in (A0, b"<!", A1, A0)]
    assert [True, True, False, True] == [isinstance(verdict, Pass) for verdict in told]
