"""Operations in XML: what is read, what is refused, what is written (GSP-001, GSP-004, GSP-012, DOC-011, DOC-031)."""

import json
import uuid
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.document.fold.words import eid, source_of
from tests.examples import examples
from weft.base.errors import PeerError
from weft.wire.document.operations import (
    NAMESPACE,
    Operation,
    Stamp,
    derived_eid,
    eid_of,
    emit,
    header_of,
    parse,
    timestamp_of,
    timestamp_text,
    uuid_of,
)
from weft.wire.document.xml import Node, Payload, fragment_of

A = "a0000000-0000-4000-8000-000000000001"
STAMPED = f'source="{A}" timestamp="1763800000.25" sequence="7"'
W15 = f'<add period="1" jam="3" {STAMPED}><penalty eid="{eid(1)}" team="home" person="123" code="B"/></add>'.encode()
VECTORS = {
    vector["id"]: vector
    for vector in map(
        json.loads, (Path(__file__).parents[2] / "vectors/document-wire.jsonl").read_text("utf-8").splitlines()
    )
}


def refused(body: bytes) -> str:
    """The code with which both readers refuse it."""
    codes = set()
    for read in (header_of, parse):
        with pytest.raises(PeerError) as caught:
            read(body)
        codes.add(caught.value.code)
    assert len(codes) == 1
    return codes.pop()


def inert(body: bytes) -> str:
    """Why an operation does nothing; its header is readable."""
    operation = parse(body)
    header = header_of(body)
    assert (header.verb, header.source, header.sequence) == (operation.verb, operation.source, operation.sequence)
    return operation.inert


# The header


@pytest.mark.proves("GSP-012")
def test_the_header_is_what_the_first_start_tag_says() -> None:
    header = header_of(W15)
    assert ("add", source_of("a"), 7, "1763800000.25") == header[:4]
    assert bytes.fromhex(VECTORS["W15"]["frames"][2]) == W15


@pytest.mark.proves("GSP-012")
@pytest.mark.parametrize("name", ["W35", "W36", "W37"])
def test_bodies_of_the_vectors_that_are_dropped(name: str) -> None:
    assert refused(bytes.fromhex(VECTORS[name]["frames"][2])) == "no-header"


@pytest.mark.proves("GSP-012")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"just text",
        b"\xff\xfe<\x00a\x00/\x00>\x00",
        b"<add",
        b"<!-- only a comment -->",
        f"<!DOCTYPE add><add {STAMPED}/>".encode(),
        f'<!DOCTYPE a [<!ENTITY b "b"><!ENTITY c "&b;&b;&b;&b;">]><add {STAMPED}>&c;</add>'.encode(),
        f'<!DOCTYPE a SYSTEM "file:///etc/passwd"><add {STAMPED}/>'.encode(),
        f'<add source="{A}" sequence="0"/>'.encode(),
        f'<add source="{A}" sequence="+7"/>'.encode(),
        f'<add source="{A}" sequence="7.0"/>'.encode(),
        f'<add source="{A}" sequence="\u0667"/>'.encode(),
        f'<add source="{A}" sequence="{1 << 53}"/>'.encode(),
        f'<add source="{A}" sequence="00000000000000007"/>'.encode(),
        f'<add source="{A}"/>'.encode(),
        b'<add source="a0000000" sequence="7"/>',
        b'<add source="{a0000000-0000-4000-8000-000000000001" sequence="7"/>',
        f'<add source="{A}" source="{A}" sequence="7"/>'.encode(),
        f"<add {STAMPED}/>".encode() + b" " * 262_144,
    ],
)
def test_bytes_without_a_header_are_refused(body: bytes) -> None:
    assert refused(body) == "no-header"


@pytest.mark.proves("GSP-012")
@pytest.mark.parametrize(
    "source",
    [
        "A0000000-0000-4000-8000-000000000001",
        "{a0000000-0000-4000-8000-000000000001}",
        "a0000000000040008000000000000001",
    ],
)
def test_a_source_is_one_in_any_of_its_spellings(source: str) -> None:
    assert source_of("a") == parse(f'<add source="{source}" sequence="7"/>'.encode()).source


@pytest.mark.proves("GSP-012")
def test_the_greatest_sequence_and_leading_zeros_are_numbers() -> None:
    assert (1 << 53) - 1 == parse(f'<add source="{A}" sequence="{(1 << 53) - 1}"/>'.encode()).sequence
    assert parse(f'<add source="{A}" sequence="0000000000000007"/>'.encode()).sequence == 7


@pytest.mark.proves("GSP-012")
def test_an_encoding_is_what_utf_8_is_whatever_is_declared() -> None:
    body = f'<?xml version="1.0" encoding="UTF-16"?><add path="" {STAMPED}>\u00e4</add>'.encode()
    assert parse(body).text == "\u00e4"
    assert inert(f'<?xml version="1.0" encoding="latin-1"?><add {STAMPED}>'.encode() + b"\xe4</add>") == "malformed"


# What is wrong behind it


@pytest.mark.proves("GSP-012", "DOC-001", "DOC-002")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (f"<add {STAMPED}>hello", "malformed"),
        (f"<add {STAMPED}>&nothing;</add>", "malformed"),
        (f"<add {STAMPED}/><!DOCTYPE a>", "malformed"),
        (f"<add {STAMPED}><x:y>", "malformed"),
        (f"<move {STAMPED}/>", "verb"),
        (f"<move {STAMPED}><x:y/></move>", "name"),
        (f"<add {STAMPED} xmlns='u'/>", "name"),
        (f"<add {STAMPED}><a xml:space='preserve'/></add>", "name"),
        (f"<add {STAMPED}><{'a' * 129}/></add>", "name"),
        (f"<add {STAMPED}><\u00e4/></add>", "name"),
        (f"<add {STAMPED}>{'<a>' * 64}{'</a>' * 64}</add>", ""),
        (f"<add {STAMPED}>{'<a>' * 65}{'</a>' * 65}</add>", "depth"),
        (f"<action {STAMPED}><add>{'<a>' * 64}{'</a>' * 64}</add></action>", ""),
        (f"<action {STAMPED}><add>{'<a>' * 65}{'</a>' * 65}</add></action>", "depth"),
        (f"<add {STAMPED}>{'<a/>' * 10_000}</add>", ""),
        (f"<add {STAMPED}>{'<a/>' * 10_001}</add>", "size"),
    ],
)
def test_what_is_wrong_behind_the_header_makes_the_operation_inert(body: str, why: str) -> None:
    assert why == inert(body.encode())


@pytest.mark.proves("GSP-012", "GSP-055", "SEC-043")
def test_entities_are_never_expanded_and_nothing_is_loaded() -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    body = f'<!DOCTYPE add [<!ENTITY l0 "{"ha" * 100}">{laughs}]><add path="" {STAMPED}>&l9;</add>'
    assert refused(body.encode()) == "no-header"


# What is said


@pytest.mark.proves("DOC-032")
@pytest.mark.parametrize(
    ("inner", "writes"),
    [
        ("<attribute> code </attribute>\n  X  ", [("code", "X")]),
        ('<attribute name=" code "> C </attribute>gone<attribute name="q">1</attribute>', [("code", "C"), ("q", "1")]),
        ('<attribute>q</attribute><attribute name="code">C</attribute>2', [("code", "C")]),
        ("<attribute>q</attribute>1<attribute>r</attribute>2", [("q", "12")]),
        (" b ", [("#text", " b ")]),
        ("a<x/>b", [("#text", "ab")]),
        ("<x/>  ", [("#text", "  ")]),
        ("", [("#text", "")]),
    ],
)
def test_a_set_says_names_and_values(inner: str, writes: list[tuple[str, str]]) -> None:
    assert writes == parse(f'<set path="" {STAMPED}>{inner}</set>'.encode()).steps[0].writes


@pytest.mark.proves("DOC-032")
def test_the_root_may_name_the_attribute_to_set() -> None:
    (step,) = parse(f'<set path="" attribute=" q " {STAMPED}> z </set>'.encode()).steps
    assert [("q", "z")] == step.writes


@pytest.mark.proves("DOC-001")
def test_the_text_of_an_element_is_what_stands_before_its_first_child() -> None:
    body = f'<add path="" {STAMPED}>\n <a> x<!--c--><?p i?>y<![CDATA[<z>]]><b> \n<c/></b>tail</a> tail</add>'
    (node,) = parse(body.encode()).payload
    assert (" xy<z>", "") == (node.text, node.children[0].text)
    assert parse(body.encode()).text == ""


@pytest.mark.proves("DOC-011")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1763800000.25", 1763800000.25),
        (" +1.e2\t", 100.0),
        (".5", 0.5),
        ("1E+2", 100.0),
        ("0", 0.0),
        ("-1", 0.0),
        ("-0", 0.0),
        ("1e-400", 0.0),
        ("1e400", 253402300799.0),
        ("253402300800", 253402300799.0),
        *((text, 0.0) for text in ("", "nan", "inf", "1_000", "0x10", "1,5", "\u0661", "1e", ".", "1 2", "\u00a01")),
    ],
)
def test_timestamps_that_are_no_decimal_number_count_as_zero(text: str, value: float) -> None:
    assert value == timestamp_of(text)


@pytest.mark.proves("DOC-031")
@given(
    source=st.sampled_from([source_of("a"), bytes(range(16))]),
    sequence=st.integers(1, 1 << 53),
    place=st.sampled_from(["0/0", "3/17", "2.0/1"]),
)
@settings(max_examples=50)
def test_an_eid_that_nobody_gave_is_a_uuid5(source: bytes, sequence: int, place: str) -> None:
    expected = uuid.uuid5(uuid.UUID(bytes=NAMESPACE), f"{uuid.UUID(bytes=source)}/{sequence}/{place}")
    assert str(expected) == derived_eid(source, sequence, place)


@pytest.mark.proves("DOC-031", "DOC-013", "DOC-034")
def test_derived_eids_count_elements_in_document_order_and_use_the_original_pair() -> None:
    (step,) = parse(f'<add path="" {STAMPED}><a><b eid="x"><c/></b><d/></a><e/></add>'.encode()).steps
    (a, e) = step.payload
    named = [a, a.children[0], a.children[0].children[0], a.children[1], e]
    places = ["0/0", None, "0/2", "0/3", "1/0"]
    expected = [derived_eid(source_of("a"), 7, place) if place else "x" for place in places]
    assert expected == [node.attributes["eid"] for node in named]
    copy = parse(f'<add path="" {STAMPED} origsource="{A.replace("a", "c")}" origsequence="6"><a/></add>'.encode())
    assert (
        derived_eid(bytes.fromhex(A.replace("a", "c").replace("-", "")), 6, "0/0") == copy.payload[0].attributes["eid"]
    )
    action = parse(f'<action {STAMPED}><nothing/><add path=""><a/></add></action>'.encode())
    assert derived_eid(source_of("a"), 7, "1.0/0") == action.steps[0].payload[0].attributes["eid"]


@pytest.mark.proves("DOC-013")
@pytest.mark.parametrize(
    ("said", "origin"),
    [
        (f'origsource="{A}" origsequence="6"', (source_of("a"), 6)),
        (f'origsource="{A}"', None),
        (f'origsource="{A}" origsequence="0"', None),
        ('origsource="nobody" origsequence="6"', None),
        ('origsequence="6"', None),
    ],
)
def test_a_copy_names_its_original(said: str, origin: tuple[bytes, int] | None) -> None:
    operation = parse(f'<add path="" {said} {STAMPED}/>'.encode())
    assert origin == operation.origin
    assert (origin or (source_of("a"), 7)) == operation.pair


@pytest.mark.proves("DOC-020")
def test_eids_are_compared_as_uuids_if_they_are_some() -> None:
    spellings = (eid(1), eid(1).upper(), f" {{{eid(1)}}} ", eid(1).replace("-", ""))
    assert {eid(1)} == {eid_of(text) for text in spellings}
    assert ["Foo", "e1"] == [eid_of(text) for text in ("Foo", "\te1 ")]
    assert uuid_of("e1000000-00004000-8000-000000000001") is None


# Writing


@pytest.mark.proves("GSP-001", "GSP-004")
def test_the_example_of_the_specification_byte_for_byte() -> None:
    node = Node("penalty", {"team": "home", "person": "123", "code": "B", "eid": eid(1)})
    stamp = Stamp(source_of("a"), 1763800000.25, 7)
    body = emit("add", {"period": "1", "jam": "3"}, stamp, Payload("", [node]))
    assert W15 == body
    assert len(body) == 202


@pytest.mark.proves("GSP-001", "GSP-006")
def test_the_root_says_its_attributes_in_one_order_and_escapes_its_greater_than() -> None:
    stamp = Stamp(
        source_of("a"), 2.0, 1, by='<"O&\t>', resolves="ab", origin=(source_of("c"), 6), prev="00", key="k", sig="s"
    )
    body = emit("set", {"path": "a>b"}, stamp, Payload("x > y\r", []))
    assert body.decode() == (
        f'<set path="a&gt;b" source="{A}" timestamp="2.0" sequence="1" by="&lt;&quot;O&amp;&#x9;&gt;" resolves="ab"'
        ' origsource="c0000000-0000-4000-8000-000000000003" origsequence="6" prev="00" key="k" sig="s">x &gt; y&#xD;</set>'
    )


@pytest.mark.proves("GSP-001", "GSP-004")
def test_empty_elements_are_closed_at_once_and_every_payload_element_has_an_eid() -> None:
    stamp = Stamp(source_of("a"), 2.0, 1)
    assert f'<remove eid="x" source="{A}" timestamp="2.0" sequence="1"/>'.encode() == emit(
        "remove", {"eid": "x"}, stamp
    )
    body = emit("add", {"path": ""}, stamp, fragment_of('t<a q=">"><b/></a>'))
    first, second = (derived_eid(source_of("a"), 1, place) for place in ("0/0", "0/1"))
    assert body.decode().endswith(f'>t<a eid="{first}" q=">"><b eid="{second}"/></a></add>')


@pytest.mark.proves("GSP-001")
def test_what_xml_cannot_say_is_refused() -> None:
    for payload in (Payload("\x00"), Payload("\ud800"), Payload("", [], {"a": "\x1b"}), Payload("\ufffe")):
        with pytest.raises(PeerError) as caught:
            emit("set", {"path": ""}, Stamp(source_of("a"), 1.0, 1), payload)
        assert caught.value.code == "bad-xml"


SAID = st.text("ab <>&\"';]\t\n\r\u00e4\u20ac\u2028\U0001f600", max_size=6)
NAMES = st.sampled_from(["a", "b", "code", "x-1.y", "_q"])
NODES = st.recursive(
    st.builds(Node, NAMES, st.dictionaries(NAMES, SAID, max_size=3), SAID),
    lambda inner: st.builds(Node, NAMES, st.dictionaries(NAMES, SAID, max_size=3), SAID, st.lists(inner, max_size=3)),
    max_leaves=6,
)
SOURCES = st.sampled_from([source_of("a"), source_of("b"), bytes(range(16))])
STAMPS = st.builds(
    lambda source, timestamp, sequence, by, origin: Stamp(source, timestamp, sequence, by, "0123" * bool(by), origin),
    SOURCES,
    st.floats(0.001, 253402300799.0),
    st.integers(1, (1 << 53) - 1),
    SAID,
    st.none() | st.tuples(SOURCES, st.integers(1, 99)),
)
REFERENCES = st.sampled_from([{"path": "a/b"}, {"eid": eid(1)}, {"period": "1", "jam": "3"}, {"path": '<&>"\t'}, {}])


def payload_of(operation: Operation) -> Payload:
    (step,) = operation.steps
    if operation.verb == "set" and step.writes[0][0] != "#text":
        return Payload("", [], dict(step.writes))
    return Payload(step.writes[0][1] if operation.verb == "set" else step.text, step.payload)


def is_kept(node: Node) -> bool:
    """White text in front of children is none (DOC-001)."""
    return not (node.children and node.text and not node.text.strip(" \t\r\n")) and all(map(is_kept, node.children))


@pytest.mark.proves("GSP-001")
@given(stamp=STAMPS, reference=REFERENCES, text=SAID, nodes=st.lists(NODES.filter(is_kept), max_size=3))
@examples(100)
def test_what_is_added_is_read_back_and_written_again_in_the_same_bytes(
    stamp: Stamp, reference: dict[str, str], text: str, nodes: list[Node]
) -> None:
    payload = Payload(text if not nodes or text.strip(" \t\r\n") else "", nodes)
    body = emit("add", reference, stamp, payload)
    operation = parse(body)
    assert operation.inert == ""
    assert (stamp.source, stamp.sequence, stamp.timestamp) == (
        operation.source,
        operation.sequence,
        operation.timestamp,
    )
    assert (reference, stamp.by, stamp.resolves, stamp.origin) == (
        operation.reference,
        operation.by,
        operation.resolves,
        operation.origin,
    )
    assert timestamp_text(stamp.timestamp) == operation.raw_timestamp
    assert body == emit("add", operation.reference, stamp, payload_of(operation))


@pytest.mark.proves("GSP-001")
@given(stamp=STAMPS, values=st.dictionaries(NAMES, SAID.map(lambda text: text.strip(" \t\r\n")), max_size=3), text=SAID)
def test_what_is_set_is_read_back(stamp: Stamp, values: dict[str, str], text: str) -> None:
    payload = Payload("" if values else text, [], values)
    body = emit("set", {"path": "a"}, stamp, payload)
    assert payload == payload_of(parse(body))
    assert body == emit("set", {"path": "a"}, stamp, payload_of(parse(body)))


@pytest.mark.proves("GSP-012")
@given(
    st.binary(max_size=80)
    | st.text(max_size=60).map(lambda text: f"<add {STAMPED}>{text}</add>".encode("utf-8", "replace"))
)
@examples(100)
def test_any_bytes_are_an_operation_or_are_refused(body: bytes) -> None:
    try:
        header = header_of(body)
    except PeerError as error:
        assert error.code == "no-header"
        with pytest.raises(PeerError):
            parse(body)
        return
    operation = parse(body)
    assert (header.source, header.sequence) == (operation.source, operation.sequence)
    assert operation.inert in ("", "malformed", "name", "verb", "depth", "size")


@pytest.mark.proves("GSP-012")
@given(st.data())
@examples(100)
def test_a_good_operation_with_some_bytes_changed_is_read_or_refused(data: st.DataObject) -> None:
    body = bytearray(W15)
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        parse(bytes(body))
    except PeerError as error:
        assert error.code == "no-header"


def frames_of(name: str, ids: tuple[str, ...]) -> list[bytes]:
    lines = (Path(__file__).parents[2] / f"vectors/{name}.jsonl").read_text("utf-8").splitlines()
    vectors = [json.loads(line) for line in lines]
    return [bytes.fromhex(frame) for vector in vectors if vector["id"] in ids for frame in vector["frames"]]


def written_again(body: bytes) -> bytes:
    operation = parse(body)
    more = [operation.attributes.get(name, "") for name in ("origbody", "prev", "key", "sig")]
    own = (operation.source, operation.timestamp, operation.sequence, operation.by, operation.resolves)
    stamp = Stamp(*own, operation.origin, *more)
    return emit(operation.verb, operation.reference, stamp, payload_of(operation))


@pytest.mark.proves("GSP-001")
def test_operations_of_others_are_written_again_byte_for_byte() -> None:
    """Signed ones too; of those that leave eids out, we write none."""
    bodies = [*frames_of("document-sign", ("S03", "S05", "S06")), *frames_of("document-fold", ("F80", "F81", "F82"))]
    strict = [body for body in bodies if all("eid" in each.attrib for each in payloads_of(body))]
    assert len(strict) > 140
    assert strict == [written_again(body) for body in strict]


def payloads_of(body: bytes) -> list[ET.Element]:
    root = ET.fromstring(body)
    return [element for element in root.iter() if element is not root and element.tag != "attribute"]
