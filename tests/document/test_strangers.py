"""What somebody in the network may do to a session without being invited: it goes on, and it can say what it wants to say."""

from collections.abc import Iterable

import pytest

from tests.document.logs import Node, body
from tests.document.rig import EB, EC, B, C
from weft.base.effects import Effect, Send, Source
from weft.cores.document.station import CLIENTS
from weft.wire.document import frames, programs
from weft.wire.document.clients import Answer, Asked
from weft.wire.document.messages import Message, Time, Xmsg

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
