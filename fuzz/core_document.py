"""The document core: any story of peers, operations, programs and crashes (FUZ-002)."""

from collections.abc import Iterable
from typing import Any

from fuzz.house.choices import Choices
from fuzz.house.life import Cast, Life, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from weft.base.effects import SendFailed, Source
from weft.cores.document import messages
from weft.cores.document.context import CLIENTS, PEERS
from weft.cores.document.core import Documents
from weft.cores.document.messages import SessionSettings
from weft.wire.document import frames, programs
from weft.wire.document.clients import Asked
from weft.wire.document.messages import (
    READS_PACKS,
    Beat,
    Bout,
    Chat,
    Envelope,
    Gbye,
    Gsip,
    Helo,
    PeerAt,
    Progress,
    Time,
    Xmsg,
    Xpak,
)
from weft.wire.document.operations import Stamp, emit
from weft.wire.document.xml import Payload, fragment_of
from weft.wire.journal import encode_record

OURS = bytes.fromhex("a0000000000040008000000000000000")
PEERS_OF = tuple(bytes([0xB0 + n, *bytes(5), 0x40, 0, 0x80, *bytes(7)]) for n in range(3))
SOURCES = (*PEERS_OF, bytes([0xC0, *bytes(5), 0x40, 0, 0x80, *bytes(7)]))
REFERENCES: tuple[dict[str, str], ...] = (
    {"period": "1", "jam": "2"},
    {"team": "home", "person": "7"},
    {"path": "venue"},
    {"path": "/"},
    {"eid": "x"},
    {},
)
ELEMENTS = (
    "<jam number='1'/>",
    "<pass team='home' points='4'/>",
    "<person number='7'>A</person>",
    "<venue>x</venue>",
    "<a><b/></a>",
)
TIMES = (1_763_800_000.0, 1_763_800_007.5, 1_763_800_001.0, 253_402_300_799.0, 0.0)


def _body(choices: Choices) -> bytes:
    """An operation of somebody, numbered as choices will."""
    stamp = Stamp(choices.pick(SOURCES), choices.pick(TIMES), 1 + choices.below(6))
    verb, reference = choices.pick(("add", "set", "set", "remove", "add")), choices.pick(REFERENCES)
    if verb == "add":
        return emit(verb, reference, stamp, fragment_of(choices.pick(ELEMENTS)))
    writes = {choices.pick(("duration", "points", "color")): choices.pick(("90", "", "x"))}
    return emit(verb, reference, stamp, Payload("", [], writes) if verb == "set" else Payload())


def _said(choices: Choices) -> Envelope:
    """What a peer says; mostly an operation."""
    held = Progress(choices.pick((*SOURCES, OURS)), choices.pick((0, 1, 3, 9, (1 << 53) - 1)))
    sender = choices.pick(PEERS_OF)
    message: Any = choices.pick(
        (
            Xmsg(_body(choices)), Xmsg(_body(choices)), Xmsg(_body(choices)), Xmsg(b"<x"), Xpak((_body(choices), _body(choices))),
            Xpak((_body(choices), b"<x")), Helo(f"127.0.0.1:{50_000 + sender[0]}"),
            Bout("friday"), Bout("other"), Gsip((held,)), Beat(choices.below(5), 0, choices.below(9), choices.pick(((), (READS_PACKS,)))),
            Time(choices.pick(TIMES)),
            Time(None), PeerAt("10.0.0.1:5000"), Chat("hi"), Gbye(""),
        )
    )  # fmt: skip
    return Envelope(sender, message)


def _greet(life: Life, choices: Choices) -> None:
    """A peer says who it is, as all do first."""
    sender = choices.pick(PEERS_OF)
    for message in (Helo(f"127.0.0.1:{50_000 + sender[0]}"), Bout("friday"), Time(TIMES[0])):
        life.hear(frames.decode([sender, *frames.encode(message)]), _from(sender))


def _from(sender: bytes) -> Source:
    return Source(PEERS, b"friday\0" + sender, None, "127.0.0.1")


def _hears(life: Life, choices: Choices) -> None:
    said = _said(choices)
    life.hear(frames.decode([said.sender, *frames.encode(said.message)]), _from(said.sender))


def _hears_without_room(life: Life, choices: Choices) -> None:
    """The disk is full: what is said meanwhile is kept as soon as there is room, and until then nothing of it is (GSP-031)."""
    life.order(messages.HoldBack(is_full=True))
    kept = len(life.entries)
    for _ in range(1 + choices.below(5)):
        _hears(life, choices)
    assert kept == len(life.entries), "it keeps what has no room"
    life.order(messages.HoldBack(is_full=False))
    life.advance(0)


def _asked(choices: Choices) -> Asked:
    where = choices.pick(REFERENCES)
    asked: tuple[tuple[str, dict[str, Any]], ...] = (
            ("edit", {"verb": "add", "reference": where, "xml": choices.pick(ELEMENTS), "force": choices.flag()}),
            ("edit", {"verb": "set", "reference": where, "attributes": {"points": choices.pick(("1", "2"))}}),
            ("edit", {"verb": "remove", "reference": where}), ("status", {}), ("log", {"from": 1, "limit": 3}), ("watch", {}),
            ("conflicts", {}), ("board", {"at": choices.pick(TIMES)}), ("element", {"reference": where}), ("end", {}), ("zap", {}),
    )  # fmt: skip
    verb, args = choices.pick(asked)
    return Asked(b"q", verb, choices.pick(("friday", "", "nobody")), args)


def _opened(work: Any, choices: Choices) -> Any:
    return messages.Opened(work.session, "127.0.0.1:50001" if not choices.flag(8) else "")


def _state(core: Documents) -> Any:
    kept = sorted(map(encode_record, core.condense()))
    return kept, {name: (session.log.check, session.engine.digest()) for name, session in core.sessions.items()}


CAST = Cast(
    make=lambda start: Documents([SessionSettings(name="friday", uuid=bytes((0xA0 + start % 8, *OURS[1:])), mdns=False)]),
    says=(((Source(CLIENTS, b"p1"), Source(CLIENTS, b"p2")), (_asked,), lambda asked: programs.decode(programs.encode_request(asked))),),
    orders=(
        messages.Found("friday", "10.0.0.7:50001"), messages.Vanished("friday", "10.0.0.7:50001"), messages.LinkFull("friday", "127.0.0.1:50177"),
        messages.Garbled(PEERS, b"friday\0" + PEERS_OF[0], "bad_body"), SendFailed(CLIENTS, b"p1"),
    ),
    works=_opened,
    acts=(_greet, _hears, _hears, _hears, _hears_without_room),
    state=_state,
    begin=(messages.Begin(), messages.Opened("friday", "127.0.0.1:50001")),
)  # fmt: skip


def one(data: bytes) -> None:
    """One node of one session."""
    play(CAST, data)


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    return drawn("document")


if __name__ == "__main__":
    run(one)
