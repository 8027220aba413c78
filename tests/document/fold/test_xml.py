"""Canonical form, whole documents and what people type (DOC-001, DOC-050, GSP-055)."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given

from tests.document.fold.test_operations import NODES, SAID
from tests.document.fold.words import Desk, eid
from tests.examples import examples
from weft.base.errors import PeerError
from weft.wire.document import xml
from weft.wire.document.xml import Node, Payload, canonical, fragment_of, is_name, tree_of, written


@pytest.mark.proves("DOC-050")
@given(node=NODES, text=SAID)
@examples(100)
def test_the_canonical_form_is_that_of_everybody_else(node: Node, text: str) -> None:
    node.attributes["eid"] = text
    expected = ET.canonicalize(written([node]))
    assert expected == canonical(node).decode()
    del node.attributes["eid"]
    for child in node.children:
        child.attributes.pop("eid", None)
    assert expected.replace(f' eid="{xml.escaped_value(text)}"', "", 1) == canonical(node).decode()


@pytest.mark.proves("DOC-050", "JAM-030")
def test_without_eids_as_a_file_that_is_handed_on() -> None:
    desk = Desk()
    desk.add("a", 'period="1" jam="1"', f'<pass eid="{eid(1)}" points="4"><note eid="{eid(2)}">x</note></pass>')
    assert b'<pass points="4"><note>x</note></pass>' in canonical(desk.fold.root, eids=False)
    assert b"eid=" not in canonical(desk.fold.root, eids=False)
    assert canonical(tree_of(canonical(desk.fold.root))) == canonical(desk.fold.root)


@pytest.mark.proves("DOC-001")
def test_a_document_of_any_depth_is_written_and_one_too_deep_is_not_read() -> None:
    deep = top = Node("a", {})
    for _ in range(50_000):
        deep.children.append(Node("a", {}))
        deep = deep.children[0]
    assert len(canonical(top)) == 7 * 50_001
    with pytest.raises(PeerError) as caught:
        tree_of(canonical(top))
    assert caught.value.code == "bad-xml"
    while top.children:
        top = top.children.pop()


@pytest.mark.parametrize(
    "body, limits, built, told",
    [
        (b"<a><b><c><d/></c></b></a>", xml.Limits(1, 9), ["b"], (3, 3)),
        (b"<a><b/><c><d/></c></a>", xml.Limits(9, 1), ["b"], (2, 3)),
    ],
    ids=["deep", "many"],
)
def test_what_is_too_deep_or_too_many_is_counted_and_not_built(
    body: bytes, limits: xml.Limits, built: list[str], told: tuple[int, int]
) -> None:
    read = xml.read(body, limits)
    assert (built, []) == ([child.tag for child in read.root.children], read.root.children[0].children)
    assert ({"a", *built}, told) == (read.names, (read.deepest, read.elements))


@pytest.mark.parametrize(
    "text",
    [
        "a & b",
        "<a>",
        "</w><w>",
        "<a/></w><w>",
        "<!DOCTYPE a>",
        "<a:b/>",
        "<\u00e4/>",
        "\x00",
        "&nothing;",
        f"{'<a>' * 65}{'</a>' * 65}",
    ],
)
def test_what_a_person_types_and_is_no_xml_is_refused(text: str) -> None:
    with pytest.raises(PeerError) as caught:
        fragment_of(text)
    assert caught.value.code == "bad-xml"


@pytest.mark.proves("GSP-055")
@pytest.mark.parametrize(
    "text",
    ["", "no", "<!DOCTYPE a><a/>", '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "<a><b></a>", "<a xmlns='u'/>"],
)
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(PeerError) as caught:
        tree_of(text)
    assert caught.value.code == "bad-xml"


@pytest.mark.proves("DOC-001")
def test_what_a_person_types() -> None:
    assert Payload("x", [Node("a", {"b": "1"}, "y", [Node("c", {})])]) == fragment_of('x<a b="1">y<c/></a> ')
    assert Payload(" ", []) == fragment_of(" ")
    assert Payload("", [Node("a", {})]) == fragment_of(" <a/>")


@pytest.mark.proves("DOC-001")
@pytest.mark.parametrize("text", ["x<a/>lost", "<a>x<b/> lost</a>", "<a><b/>lost<b/></a>"])
def test_text_that_no_document_keeps_is_refused_where_it_is_typed(text: str) -> None:
    with pytest.raises(PeerError) as caught:
        fragment_of(text)
    assert ("mixed", True) == (caught.value.code, "'lost'" in caught.value.why)
    assert "x<b></b>" in canonical(tree_of(f"<a>x<b/>{text}</a>")).decode()  # what others say is read as it was


@pytest.mark.proves("DOC-001")
def test_names() -> None:
    good = ["a", "_", "A-1.b", "x" * 128]
    bad = ["", "1", "-a", "a b", "a:b", "xmlns", "\u00e4", "x" * 129, "a\n"]
    assert ([True] * len(good), [False] * len(bad)) == (list(map(is_name, good)), list(map(is_name, bad)))
    assert list(map(is_name, good)) == [True] * len(good)
