"""Whatever peers, programs and the machine say, in whatever order: no verb raises, and all that follows can be encoded and kept.

What a node could not encode would end it, whoever said it.
"""

import random
from typing import Any, Final

import pytest

from tests.document.rig import EPOCH
from weft.base.effects import Perform, Persist, Send, SendFailed, Source
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.cores.document import messages
from weft.cores.document.context import CLIENTS, PEERS
from weft.cores.document.core import Documents
from weft.cores.document.messages import SessionSettings
from weft.wire.document import frames, programs
from weft.wire.document.clients import Asked
from weft.wire.journal import encode_record

NAMES: Final = {"friday": "derby", "пятница": "derby", "notes": "plain"}
OURS: Final = "127.0.0.1:50000"
STEPS: Final = 700
VERBS: Final = ("add", "set", "remove", "action", "zap")
HUGE: Final = "9" * 5_000
WORDS: Final = (
    "1",
    "2",
    "0",
    "-1",
    HUGE,
    "nan",
    "1e999",
    "",
    " 1 ",
    "home",
    "é",
    "\u0661",
    "²",
    "/",
    "a/b",
    "venue",
    "eid:x",
    "&lt;",
)
TAGS: Final = (
    "period",
    "jam",
    "team",
    "person",
    "venue",
    "pass",
    "penalty",
    "timeout",
    "attribute",
    "lead",
    "é",
    "bout",
)
ATTRIBUTES: Final = (
    "period",
    "jam",
    "team",
    "person",
    "eid",
    "path",
    "number",
    "id",
    "timestamp",
    "duration",
    "points",
)
TIMES: Final = (f"{EPOCH}", f"{EPOCH + 7}.5", f"{EPOCH + 1}", "nan", HUGE, "253402300799", "")
REFERENCES: Final = ('period="1" jam="2"', 'team="home" person="7"', 'path="venue"', f'period="{HUGE}"', 'eid="x"', "")
SPANS: Final = (*(0, 1_000_000, SECOND // 10, SECOND, 3 * SECOND) * 8, 40 * SECOND, 365 * 86_400 * SECOND)


def uuid(number: int) -> bytes:
    return bytes([0xA0 + number, *bytes(5), 0x40, 0, 0x80, *bytes(7)])


class Storm:
    """A node with three sessions, and everybody who means it ill."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.mono, self.wall = 10**12, EPOCH * SECOND
        self.documents = Documents(
            SessionSettings(name=name, uuid=uuid(place), schema=schema, mdns=False)
            for place, (name, schema) in enumerate(NAMES.items())
        )
        self.order(messages.Begin())

    @property
    def now(self) -> Now:
        return Now(self.mono, self.wall)

    def order(self, order: object) -> None:
        self.documents.command(order, self.now)
        self.settle()

    def settle(self) -> None:
        """What follows of a turn, as a shell would do it."""
        for effect in self.documents.effects():
            if isinstance(effect, Send):
                frames.encode(effect.message) if effect.channel == PEERS else programs.encode(effect.message)
            elif isinstance(effect, Persist):
                for record in effect.records:
                    encode_record(record)
            elif isinstance(effect, Perform):
                self.documents.command(messages.Opened(effect.work.session, OURS), self.now)

    def element(self, depth: int = 0) -> str:
        pick = self.chance.choice
        said = {pick(ATTRIBUTES): pick(WORDS) for _ in range(pick((0, 1, 2)))}
        inner = "".join(self.element(depth + 1) for _ in range(pick((0, 0, 1, 2)))) if depth < 3 else ""
        tag, written = pick(TAGS), "".join([f' {name}="{value}"' for name, value in said.items()])
        return f"<{tag}{written}>{pick(WORDS)}{inner}</{tag}>"

    def body(self, name: str) -> bytes:
        pick, source = self.chance.choice, uuid(self.chance.randrange(3, 7))
        latest = self.documents.sessions[name].log.latest(source)
        sequence = max(1, latest + pick((1, 1, 1, 1, 1, 1, 0, 2, 3, -1)))
        head = f'source="{frames.uuid_text(source)}" timestamp="{pick(TIMES)}" sequence="{sequence}"'
        verb = pick(VERBS)
        text = f"<{verb} {pick(REFERENCES)} {head}>{self.element()}{pick(('', self.element()))}</{verb}>".encode()
        return text if self.chance.random() < 0.95 else text[: self.chance.randrange(len(text))]

    def hear(self) -> None:
        pick = self.chance.choice
        name, sender = pick(list(NAMES)), uuid(self.chance.randrange(2, 7))
        text = self.documents.sessions[name].context.settings.text
        held = f"{frames.uuid_text(uuid(self.chance.randrange(12)))} {pick((0, 1, 3, 9, (1 << 53) - 1))}"
        word, said = pick(
            [(b"XMSG", self.body(name))] * 9
            + [(b"GSIP", held.encode()), (b"BEAT", b"3 00000000 00000000"), (b"PEER", b"10.0.0.1:5000")]
            + [(b"TIME", pick((b"", b"253402300799", b"0", b"nan"))), (b"CHAT", b"hi"), (b"GBYE", b"")]
        )
        source = Source(PEERS, name.encode() + b"\0" + sender, None, pick(("127.0.0.1", "", "fe80::1%eth0")))
        greeting = [(b"HELO", f"127.0.0.1:{50_000 + sender[0]}".encode()), (b"BOUT", text.encode())]
        for each, about in [*(greeting if self.chance.random() < 0.3 else []), (word, said)]:
            try:
                self.documents.receive(frames.decode([sender, each, about]), source, self.now)
            except PeerError as error:
                self.documents.command(messages.Garbled(PEERS, source.peer, error.code), self.now)

    def ask(self) -> None:
        pick = self.chance.choice
        where = {pick(ATTRIBUTES): pick(WORDS)}
        questions: list[tuple[str, dict[str, Any]]] = [
            (
                "edit",
                {"verb": pick(VERBS), "reference": where, "xml": self.element(), "force": pick((True, False))},
            ),
            ("edit", {"verb": "set", "words": ["period=1", f"jam={pick(WORDS)}", f"duration={pick(WORDS)}"]}),
            ("import", {"operations": [self.body("friday"), b"<"]}),
            ("element", {"reference": where}),
            ("board", {"at": pick((0.0, float("nan"), float("-inf"), 1e300))}),
            ("log", {"from": pick((-1, 1 << 62)), "tail": pick((None, -9, 9)), "limit": pick((-1, 5))}),
            ("show", {"from": -7, "of": pick(WORDS)}),
            ("heard", {"n": pick((1, -1, 2.5, "x"))}),
            *((plain, {}) for plain in ("watch", "status", "peers", "sources", "conflicts", "parked", "end", "zap")),
        ]
        verb, args = pick(questions)
        asked = Asked(b"q", verb, pick([*NAMES, "", "nobody"]), args)
        self.documents.receive(programs.decode(programs.encode_request(asked)), Source(CLIENTS, b"program"), self.now)

    def shake(self) -> None:
        """Time passes or jumps, the disk fills up or not, links break."""
        name = self.chance.choice(list(NAMES))
        self.mono += self.chance.choice(SPANS)
        self.wall = max(0, self.wall + self.chance.choice((1, -SECOND, SECOND, -(10**17))))
        full = messages.HoldBack(self.chance.random() < 0.5)
        lost = SendFailed(CLIENTS, b"program")
        self.order(
            self.chance.choice((full, lost, messages.LinkFull(name, "127.0.0.1:50163"), messages.Opened(name, OURS)))
        )
        self.documents.wake(self.now)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.proves("PEE-006", "GSP-012", "GSP-031")
def test_nothing_that_anybody_says_ends_a_node(seed: int) -> None:
    storm = Storm(seed)
    for _ in range(STEPS):
        storm.chance.choices((storm.hear, storm.ask, storm.shake), (8, 2, 1))[0]()
        if storm.chance.random() < 0.5:
            storm.settle()
    storm.order(messages.HoldBack(is_full=False))
    storm.documents.wake(storm.now)
    storm.settle()
    again = Documents(session.context.settings for session in storm.documents.sessions.values())
    again.restore(enumerate(storm.documents.condense(), 1), storm.now)
    again.command(messages.Begin(), storm.now)
    checks = [{name: node.log.check for name, node in each.sessions.items()} for each in (storm.documents, again)]
    digests = [
        {name: node.engine.digest() for name, node in each.sessions.items()} for each in (storm.documents, again)
    ]
    assert checks[0] == checks[1]
    assert digests[0] == digests[1]
    assert 50 < sum(node.log.count for node in again.sessions.values())
