"""What is entered here: durable first, then said to everybody, under the next number and a timestamp that counts."""

import pytest

from tests.document.logs import Node as Whole
from tests.document.logs import bodies, body, pushed
from tests.document.rig import EB, EC, EPOCH, A, B, C, gsip
from weft.base.effects import Persist, Send
from weft.base.now import SECOND
from weft.base.records import StreamRecord
from weft.cores.document import messages
from weft.cores.document.context import Context
from weft.cores.document.limits import BURST, RATE
from weft.cores.kit.refusals import Refusal
from weft.wire.document import operations, xml
from weft.wire.document.messages import Beat, Xmsg
from weft.wire.document.operations import parse
from weft.wire.document.xml import Node, Payload, fragment_of

JAM = {"period": "1", "jam": "3"}


def pair() -> Whole:
    node = Whole()
    node.befriend(B, EB)
    node.befriend(C, EC)
    return node


def refused(node: Whole, code: str, /, *words: object, **how: object) -> None:
    """Nothing changes, and nothing is said."""
    before = (node.log.count, node.log.check, node.session.engine.digest())
    with pytest.raises(Refusal) as refusal:
        node.session.own.issue(*words, **how)  # type: ignore[arg-type]  # on purpose anything
    assert code == refusal.value.code
    assert before == (node.log.count, node.log.check, node.session.engine.digest())
    assert [] == node.do(lambda: None)


@pytest.mark.proves("GSP-001", "GSP-002", "GSP-004", "GSP-006")
def test_an_entry_is_written_as_the_specification_says() -> None:
    node = Whole()
    node.issue("add", JAM, payload=fragment_of('<penalty team="home" person="123" code="B"/>'), by="Ann")
    expected = (
        '<add period="1" jam="3" source="a0000000-0000-4000-8000-000000000001" timestamp="1763800000.0" sequence="1" '
        'by="Ann" crc32="b5b7e786"><penalty eid="4555cf48-271e-5f2b-96af-b43e0929b9c9" team="home" person="123" code="B"/></add>'
    )
    assert expected.encode() == node.own(1)
    assert ((A, 1), "applied", None) == (node.issued[0].operation.pair, *node.issued[0][1:])


@pytest.mark.proves("HSE-008", part="an operation is parsed once, whether it is entered here or comes from a peer")
@pytest.mark.parametrize("force", [False, True])
def test_an_operation_is_parsed_once(force: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    def parse_xml(data: bytes) -> xml.Read:
        read.append(data)
        return xml.read(data)

    monkeypatch.setattr(operations, "read", parse_xml)
    node = pair()
    node.issue(by="Ann", force=force)
    theirs = body(B, 1)
    node.hear(B, Xmsg(theirs))
    assert [node.own(1), theirs] == read


@pytest.mark.proves("GSP-006")
def test_the_operator_of_the_settings_signs_what_nobody_else_does() -> None:
    node = Whole(operator="Bob")
    node.issue()
    node.issue(by="Ann", resolves="0123456789abcdef")
    assert [("Bob", ""), ("Ann", "0123456789abcdef")] == [
        (one.by, one.resolves) for one in map(parse, map(node.own, (1, 2)))
    ]


def is_durable_first(node: Whole) -> bool:
    """Whether a wall with the operation stands in front of all that the turn says."""
    node.issue()
    kinds = [effect for effect in node.effects if isinstance(effect, Persist | Send)]
    wall = kinds[0]
    return (
        isinstance(wall, Persist)
        and wall.within_ns == 0
        and any(isinstance(record, StreamRecord) and record.payload == node.own(1) for record in wall.records)
        and [Send, Send] == [type(effect) for effect in kinds[1:]]
    )


@pytest.mark.proves("GSP-005", "GSP-030")
def test_an_entry_is_durable_before_anybody_hears_of_it_and_then_everybody_does() -> None:
    node = pair()
    assert is_durable_first(node)
    said = node.issue()
    assert [(EB, node.own(2)), (EC, node.own(2))] == pushed(said)


def test_canary_an_own_operation_that_is_sent_before_it_is_durable_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    node = pair()
    monkeypatch.setattr(Context, "keep_own", Context.keep)
    assert not is_durable_first(node)


@pytest.mark.proves("GSP-005")
def test_others_operations_go_on_as_they_came() -> None:
    node = pair()
    said = b"<set  path='b'\n" + body(B, 1).split(b'"b"', 1)[1]
    node.hear(B, Xmsg(said))
    node.pass_seconds(1)
    assert [(EC, said)] == pushed(node.hear(C, gsip(B)))


def test_a_beat_follows_half_a_second_after_the_last_entry() -> None:
    node = pair()
    node.issue()
    assert [] == [word for word in node.pass_seconds(0.4) if isinstance(word.message, Beat)]
    beats = [word.message for word in node.pass_seconds(0.2) if isinstance(word.message, Beat)]
    assert [(1, node.log.check)] * 2 == [(beat.sequence, beat.check) for beat in beats]


# Hidden


@pytest.mark.proves("GSP-003")
def test_what_a_later_write_hides_is_said_and_force_writes_behind_it() -> None:
    node = pair()
    far = EPOCH + 4_000.0
    node.hear(B, Xmsg(body(B, 1, "theirs", at=far).replace(b'path="b"', b'path="venue"')))
    node.issue(payload=Payload(text="ours"))
    outcome, hidden = node.issued[-1][1:]
    assert hidden is not None
    assert ("applied-but-hidden", B, 1, far, "theirs") == (
        outcome,
        hidden.source,
        hidden.sequence,
        hidden.eff,
        hidden.value,
    )
    node.issue(payload=Payload(text="ours"), force=True)
    assert ("applied", None) == node.issued[-1][1:]
    assert far + 1e-6 == pytest.approx(node.log.eff(A, 2), abs=3e-7)
    assert node.log.eff(A, 2) > far


@pytest.mark.proves("GSP-002")
def test_a_correction_sorts_behind_what_it_corrects_though_our_clock_is_late() -> None:
    node = pair()
    node.hear(B, Xmsg(body(B, 1, "theirs", at=EPOCH + 200.0).replace(b'path="b"', b'path="venue"')))
    node.issue(payload=Payload(text="ours"))
    assert ("applied", None) == node.issued[-1][1:]
    venue = next(child for child in node.session.engine.root.children if child.tag == "venue")
    assert "ours" == venue.text


# Refused


@pytest.mark.proves("GSP-013")
def test_an_entry_of_more_than_64_kib_is_refused() -> None:
    node = pair()
    refused(node, "too-large", "set", {"path": "venue"}, Payload(text="x" * 65_536))
    node.issue(payload=Payload(text="x" * 65_000))
    assert 1 == node.log.latest(A)


@pytest.mark.proves("GSP-055")
def test_more_than_so_many_entries_a_second_are_refused() -> None:
    node = Whole()
    for _ in range(BURST):
        node.session.own._spend()
    refused(node, "too-fast", "set", {"path": "venue"}, Payload(text="x"))
    node.pass_seconds(1 / RATE)
    node.issue()
    refused(node, "too-fast", "set", {"path": "venue"}, Payload(text="x"))
    node.pass_seconds(3_600)
    node.issue()
    assert BURST * SECOND // RATE - SECOND // RATE == node.session.own._tokens_ns
    assert (200, 1_000) == (RATE, BURST)


@pytest.mark.proves("GSP-031")
def test_without_room_nothing_can_be_entered_and_all_else_goes_on() -> None:
    node = pair()
    node.order(messages.HoldBack(is_full=True))
    refused(node, "storage-full", "set", {"path": "venue"}, Payload(text="x"))
    node.hear(B, Xmsg(body(B, 1)))
    assert 1 == node.session.engine.operations
    node.pass_seconds(1)
    assert [body(B, 1)] == bodies(node.hear(C, gsip(B)))
    node.order(messages.HoldBack(is_full=False))
    node.issue()
    assert [True, False] == [event.is_degraded for event in node.events(messages.LogDegraded)]


@pytest.mark.proves("GSP-054")
def test_whoever_may_not_is_told_so() -> None:
    node = pair()
    asked: list[tuple[str, str, dict[str, str]]] = []

    def authorise(by: str, verb: str, reference: dict[str, str]) -> str:
        asked.append((by, verb, reference))
        return "viewers only look" if by == "viewer" else ""

    node.session.own.authorise = authorise
    refused(node, "not-allowed", "set", JAM, Payload(text="x"), by="viewer")
    node.issue("set", JAM, by="Ann")
    assert [("viewer", "set", JAM), ("Ann", "set", JAM)] == asked


@pytest.mark.parametrize(
    ("code", "verb", "reference", "payload"),
    [
        ("no-reference", "set", {}, Payload(text="x")),
        ("verb", "move", JAM, Payload(text="x")),
        ("bad-xml", "set", JAM, Payload(text="\0")),
        ("bad-xml", "set", {"no name": "1"}, Payload(text="x")),
        ("name", "add", JAM, Payload(nodes=[Node("a" * 129, {}, "", [])])),
        ("name", "add", JAM, Payload(nodes=[Node("a", {"xmlns": "b"}, "", [])])),
    ],
)
def test_what_would_do_nothing_by_its_own_fault_is_not_logged(
    code: str, verb: str, reference: dict[str, str], payload: Payload
) -> None:
    refused(pair(), code, verb, reference, payload)


@pytest.mark.parametrize(
    ("code", "verb", "reference", "payload"),
    [
        ("no-reference", "set", {"nonsense": "1"}, Payload(text="x")),
        ("bad-key", "add", {"period": "12"}, Payload(text="x")),
        ("unknown-team", "add", {"team": "nobody"}, Payload(text="x")),
        ("fixed", "remove", {"team": "home"}, Payload()),
        ("bad-attribute", "set", JAM, Payload(attributes={"eid": "x"})),
        ("absent", "remove", {"period": "2", "jam": "3"}, Payload()),
    ],
)
def test_what_would_do_nothing_where_it_is_meant_is_logged_only_by_force(
    code: str, verb: str, reference: dict[str, str], payload: Payload
) -> None:
    node = pair()
    refused(node, code, verb, reference, payload)
    node.issue(verb, reference, payload=payload, force=True)
    assert f"inert:{code}" == node.issued[-1].outcome


def test_what_waits_for_something_may_be_entered() -> None:
    node = Whole()
    node.issue("set", {"eid": "e1000000-0000-4000-8000-000000000001"})
    assert "parked" == node.issued[-1].outcome
