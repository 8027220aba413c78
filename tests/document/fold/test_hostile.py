"""Nobody makes an operation dear for others by what is in the document already, or by what waits (DOC-060, GSP-012)."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.document.fold.test_undo import everything
from tests.document.fold.words import Desk, eid, source_of
from weft.cores.document.fold.folding import Fold
from weft.wire.document import operations
from weft.wire.document.messages import OPERATION_BYTES_MAX
from weft.wire.document.operations import parse, uuid_text

SOURCE = uuid_text(source_of("a"))


def calls(work: Callable[[], Any]) -> int:
    """How many functions of Python are called by it: what it costs, without a clock."""
    count = 0

    def note(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def stocked(count: int) -> Desk:
    """A document with so many elements below the root, a team of as many, and a period full of jams."""
    desk = Desk()
    notes = "".join(f'<note eid="n{number}"/><venue/>' for number in range(count))
    desk.add("a", 'path=""', notes)
    desk.add("a", 'team="home"', "".join(f'<person eid="p{number}" number="{number}"/>' for number in range(count)))
    for number in range(2, 2 + min(count, 400)):
        desk.set("a", f'period="1" jam="{number * 2}"', "x")
    for reference in ('path="note"', 'path="venue"', 'team="home" person="1"', 'period="1" jam="2"'):
        desk.add("a", reference, "x")
    return desk


@pytest.mark.prove("large documents")
@pytest.mark.proves("DOC-060")
@pytest.mark.parametrize(
    ("verb", "reference", "inner"),
    [
        ("set", 'eid="n5"', "x"),
        ("set", 'path="note"', "x"),
        ("set", 'path="leaf"', "x"),
        ("set", 'team="home" person="7"', "<attribute>number</attribute>8"),
        ("set", 'team="home" person="8"', "<attribute>name</attribute>n"),
        ("set", 'period="1" jam="7"', "x"),
        ("add", 'team="home"', '<person number="7"/>'),
        ("add", 'path=""', "<note><x/><x/></note>"),
        ("remove", 'path="note"', ""),
        ("remove", 'eid="n3"', ""),
        ("remove", 'team="home" person="3"', ""),
    ],
)
def test_an_operation_costs_the_same_in_a_small_and_in_a_large_document(verb: str, reference: str, inner: str) -> None:
    costs = []
    for count in (10, 2_000):
        desk = stocked(count)
        operation = desk.operation("b", verb, reference, inner)
        mark = desk.fold.mark()
        costs.append(
            (calls(lambda: desk.fold.apply(operation, operation.timestamp)), calls(lambda: desk.fold.rewind(mark)))  # noqa: B023  # called here
        )
    (small, small_back), (large, large_back) = costs
    bisection = 30  # the logarithm of the size, where siblings are sorted
    assert large <= small + bisection
    assert large_back <= small_back + bisection


@pytest.mark.proves("DOC-021", "DOC-060")
def test_what_happens_elsewhere_costs_nothing_to_who_waits_for_something_else() -> None:
    costs = []
    for waiting in (1, 1_000):
        desk = Desk()
        for number in range(waiting):
            desk.set("a", f'eid="never-{number}"', "x")
        operation = desk.operation("b", "add", 'path=""', f'<note eid="{eid(1)}"/>')
        costs.append(calls(lambda: desk.fold.apply(operation, operation.timestamp)))  # noqa: B023  # called here
    assert costs[0] == costs[1]


def test_who_is_tried_in_vain_leaves_no_trace() -> None:
    desk = Desk()
    for number in range(50):
        desk.set("a", f'team="home" person="{number}"', "x")
        desk.add("a", f'path="x{number}/venue"', "x")
    mark = desk.fold.mark()
    desk.add("b", 'team="home"', '<person number="99"/>')
    assert desk.fold.mark() - mark == 2


@pytest.mark.proves("DOC-021")
def test_a_step_that_waits_is_tried_after_what_happened_earlier_in_the_same_operation() -> None:
    """The first `a` has no `b`; it is removed behind the step, and the second `a` has one since before the step."""
    desk = Desk()
    desk.add("a", 'path=""', f'<a eid="{eid(1)}"/><a eid="{eid(2)}"/>')
    steps = f'<add eid="{eid(2)}"><b/></add><add path="a/b">found</add><remove eid="{eid(1)}"/>'
    assert desk.say("a", "action", "", steps) == "applied,parked,applied"
    assert desk.present("a", 2) == "applied,applied,applied"
    assert desk.has(">found</b>")


@pytest.mark.proves("DOC-051")
def test_text_that_grows_is_taken_back_at_once() -> None:
    desk = Desk()
    marks, texts = [], []
    for step in range(30):
        marks.append(desk.fold.mark())
        texts.append(desk.fold.root.text)
        (desk.set if step % 7 == 3 else desk.add)("a", 'path=""', f"{step};")
    for mark, text in list(zip(marks, texts, strict=True))[::-4]:
        desk.fold.rewind(mark)
        assert text == desk.fold.root.text
    assert desk.fold.cuts == {}


@pytest.mark.proves("GSP-012", "DOC-002")
@pytest.mark.parametrize(
    ("before", "unit", "after"),
    [
        ("", "<a>", ""),
        ("", "<a/>x", ""),
        ("", "&#65;", ""),
        ("", "<![CDATA[]]>", ""),
        ("", "x<!---->", ""),
        ("<a ", "", "/>"),
        ("", "<attribute name='a'>v</attribute>", ""),
    ],
)
def test_the_longest_operations_are_read_and_folded(before: str, unit: str, after: str) -> None:
    head, tail = f'<set path="" source="{SOURCE}" timestamp="1" sequence="1">{before}', f"{after}</set>"
    room = OPERATION_BYTES_MAX - len(head) - len(tail)
    many = unit * (room // len(unit)) if unit else " ".join(f'a{number}=""' for number in range(room // 10))
    operation = parse(f"{head}{many}{tail}".encode())
    fold = Fold(Desk().fold.schema)
    (outcome,) = fold.apply(operation, 1.0)
    assert outcome in ("applied", "inert:malformed", "inert:size")
    fold.rewind(0)
    assert everything(Desk().fold) == everything(fold)


def test_what_is_too_long_for_a_uuid_is_not_remembered() -> None:
    before = operations._uuid_of.cache_info().currsize
    for number in range(20):
        parse(f'<set eid="{number}{"x" * 1_000}" source="{SOURCE}" sequence="1"/>'.encode())
    assert operations._uuid_of.cache_info().currsize <= before + 1
