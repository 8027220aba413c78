"""What somebody in the network may do to a session without being invited: it goes on, and it can say what it wants to say."""

from collections.abc import Iterable
from itertools import count
from typing import Any

import pytest

from tests.document.logs import Node, body, numbers, run
from tests.document.rig import EB, EC, ED, B, C, D
from weft.base.effects import Effect, Persist, Send, Source
from weft.cores.document import limits
from weft.cores.document.answering import Answering
from weft.cores.document.context import CLIENTS, PEERS
from weft.cores.document.fold.engine import fold
from weft.cores.document.forks import wins
from weft.wire.document import frames, programs
from weft.wire.document.clients import Answer, Asked
from weft.wire.document.messages import Envelope, Gsip, Helo, Message, PeerAt, Progress, Time, Xmsg
from weft.wire.document.operations import parse, uuid_text

LAST_SECOND = 253_402_300_799.0
"""Of the year 9999 (DOC-011)."""


def encoded(effects: Iterable[Effect]) -> list[Answer]:
    """What a turn says to programs, as they read it; whatever cannot be encoded raises, as it would end a node."""
    said = [effect for effect in effects if isinstance(effect, Send)]
    for effect in said:
        if effect.channel != CLIENTS:
            frames.encode(effect.message)
    return [programs.decode_answer(programs.encode(one.message)) for one in said if one.channel == CLIENTS]


def ask(node: Node, verb: str, **args: object) -> list[Answer]:
    source = Source(CLIENTS, b"program")
    node.do(lambda: node.session.receive(Asked(b"q", verb, "", args), source, node.now))
    return encoded(node.effects)


def at_once(node: Node, sender: bytes, said: Iterable[Message]) -> None:
    """All of it is heard in one turn."""
    source = Source(PEERS, sender, kind="127.0.0.1")

    def hear() -> None:
        for message in said:
            node.session.receive(Envelope(sender, message), source, node.now)

    node.do(hear)


def watched() -> Node:
    """A, whose peers are B and C, and a program that watches."""
    node = Node()
    node.befriend(C, EC, time=1_763_800_000)
    node.befriend(B, EB)
    ask(node, "watch")
    return node


@pytest.mark.parametrize("said", [Xmsg(body(B, 1, at=LAST_SECOND)), Time(LAST_SECOND)])
@pytest.mark.proves("GSP-002", "PEE-043")
def test_a_clock_of_the_year_9999_is_told_to_programs(said: Message) -> None:
    node = watched()
    node.hear(B, said)
    events = [event for answer in encoded(node.effects) for event in answer.body["events"]]
    assert [(1 << 63) - 1] == [event.get("ahead_ns", event.get("skew_ns")) for event in events]


def nobody(number: int) -> tuple[bytes, str]:
    """A peer that somebody has made up."""
    return bytes([0xE0, *number.to_bytes(15, "big")]), f"10.9.{number // 250}.{number % 250 + 1}:50000"


def crowded() -> Node:
    """A has B for a peer, and strangers have said HELO as often as they may."""
    node = Node()
    node.befriend(B, EB)
    for number in range(3 * limits.GREETINGS_MAX):
        uuid, endpoint = nobody(number)
        node.hear(uuid, Helo(endpoint), address=endpoint.partition(":")[0])
        node.seconds += 1.1 / limits.GREETINGS_MAX
    assert node.peers.is_full()
    return node


@pytest.mark.proves("PEE-014", "PEE-034")
def test_strangers_who_only_say_helo_keep_nobody_out() -> None:
    node = crowded()
    node.befriend(C, EC)
    node.meet(ED)
    assert [B, C] == [peer.id for peer in node.peers.active()]
    assert "CALLING" == node.peers.at(ED).state  # type: ignore[union-attr]  # it is known
    assert 256 == sum(peer.state != "GONE" for peer in node.peers.all())


@pytest.mark.proves("PEE-014")
def test_peers_that_a_liar_names_keep_nobody_out_for_ever() -> None:
    node = Node()
    node.befriend(B, EB)
    for number in range(limits.REMEMBERED_MAX + 8):
        node.hear(B, PeerAt(nobody(number)[1]))
    assert [] == node.hear(B, PeerAt(ED))
    node.befriend(C, EC)
    assert [B, C] == [peer.id for peer in node.peers.active()]
    node.pass_seconds(700, heard=(B, C))
    assert [ED] == [word.to for word in node.hear(B, PeerAt(ED))]
    node.pass_seconds(700, heard=(B, C))
    assert [B, C] == [peer.id for peer in node.peers.active()]


@pytest.mark.proves("GSP-022", "PEE-005")
def test_a_gsip_that_names_one_source_4096_times_is_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node()
    node.befriend(B, EB)
    node.befriend(C, EC)
    node.hear(C, *map(Xmsg, run(D, 1, 40)))
    node.pass_seconds(1)
    looks: list[int] = []
    unsent = Answering._unsent

    def look(*args: Any) -> list[tuple[int, int]]:
        looks.append(args[3])
        return unsent(*args)

    monkeypatch.setattr(Answering, "_unsent", look)
    said = node.hear(B, Gsip(tuple(Progress(D, line % 30) for line in reversed(range(frames.SOURCES_MAX)))))
    assert ([1], list(range(1, 41))) == (looks, numbers(said))


def forged(old: bytes, sequence: int) -> bytes:
    """Another body of that number, which wins (GSP-011)."""
    made = (body(D, sequence, f"forged {draw}") for draw in count())
    return next(one for one in made if wins(one, old))


@pytest.mark.proves("GSP-011", "DOC-052")
def test_a_liar_who_makes_forks_of_everything_has_the_document_folded_twice_at_most() -> None:
    node = Node()
    node.befriend(B, EB)
    operations = run(D, 1, 400)
    node.hear(B, *map(Xmsg, operations))
    at_once(node, B, [Xmsg(forged(old, sequence)) for sequence, old in enumerate(operations, 1)])
    assert 400 == node.counters["log.fork"]
    assert node.session.engine.replayed <= 2 * 400
    alone = fold(node.session.schema, [parse(node.log.body(D, sequence)) for sequence in range(1, 401)])
    assert alone.digest() == node.session.engine.digest()


@pytest.mark.proves("PEE-050")
def test_when_operations_were_heard_is_forgotten_as_soon_as_nobody_asks_any_more() -> None:
    node = Node()
    node.befriend(B, EB)
    for sequence in range(1, 200):
        node.hear(B, Xmsg(body(B, sequence)))
        node.pass_seconds(0.05)
    assert 4 >= len(node.log._sources[B]._heard)


def large(sequence: int, head: str, value: str) -> Xmsg:
    """An operation of B that is almost as large as one may be."""
    stamps = f'source="{uuid_text(B)}" timestamp="1763800001.0" sequence="{sequence}"'
    return Xmsg(f"<set {head} {stamps}>{value * 200_000}</set>".encode())


@pytest.mark.proves("GSP-012", "DOC-021", "DOC-054")
def test_what_a_stranger_makes_large_is_told_to_programs_in_part() -> None:
    node = watched()
    waiting = [large(sequence, 'eid="never"', "x") for sequence in range(1, 21)]
    at_once(node, B, waiting + [large(sequence, 'path="venue"', "x") for sequence in range(21, 41)])
    (told,) = encoded(node.effects)
    assert (2, 38) == (len(told.body["operations"]), told.body["more"])
    (parked,) = ask(node, "parked")
    assert (2, 18) == (len(parked.body["parked"]), parked.body["more"])
    (element,) = ask(node, "element", reference={"path": "venue"})
    assert [40] == [past["sequence"] for past in element.body["history"]], "with the value before it is 400,000 bytes"


@pytest.mark.proves("DOC-040")
def test_conflicts_about_large_values_are_told_in_part() -> None:
    node = watched()
    for source in (B, C):
        said = [
            f'<set path="venue" source="{uuid_text(source)}" timestamp="1763800001" sequence="{number}">'
            f'<attribute name="a{number}">{source[:1].hex() * 50_000}</attribute></set>'
            for number in range(1, 21)
        ]
        at_once(node, source, [Xmsg(one.encode()) for one in said])
    (told,) = ask(node, "conflicts")
    assert (2, 18) == (len(told.body["conflicts"]), told.body["more"])


@pytest.mark.proves("GSP-033", "GSP-005")
def test_as_much_as_one_request_brings_in_is_durable_when_it_is_answered() -> None:
    node = Node()
    brought = [body(D, sequence, "x" * 4_000) for sequence in range(1, limits.PAGE + 1)]
    assert len(programs.encode_request(Asked(b"q", "import", "", {"operations": brought}))[1]) < (4 << 20)
    (answer,) = ask(node, "import", operations=brought)
    (persist,) = (effect for effect in node.effects if isinstance(effect, Persist))
    assert (1_000, 1_000, 0) == (answer.body["taken"], len(persist.records), persist.within_ns)
