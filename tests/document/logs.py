"""Operations for tests of the log: bodies as a peer would make them, and a log with nothing around it."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.document.rig import EPOCH, A, Rig, Word, settings
from weft.base.effects import Persist, Tell
from weft.base.now import SECOND, Now
from weft.base.records import Entry, Record, StreamRecord
from weft.cores.document.context import Context
from weft.cores.document.log import Log
from weft.cores.document.memory import SessionKept, record_of
from weft.cores.document.own import Issued
from weft.cores.document.session import Session
from weft.wire.document.messages import Gsip, Xmsg
from weft.wire.document.operations import parse, uuid_text
from weft.wire.document.xml import Payload

SIGNED: Final = {
    row["id"]: row
    for row in map(json.loads, (Path(__file__).parents[1] / "vectors" / "document-sign.jsonl").read_text().splitlines())
}
A1, A2, B1 = (bytes.fromhex(frame) for frame in SIGNED["S06"]["frames"])
"""The bodies of vector S06: two of A, one of B."""


def body(source: bytes, sequence: int, value: str = "x", *, at: float | str = EPOCH, tag: str = "set") -> bytes:
    """An operation of any source."""
    head = f'path="b" source="{uuid_text(source)}" timestamp="{at}" sequence="{sequence}"'
    return f"<{tag} {head}>{value}</{tag}>".encode()


def run(source: bytes, first: int, last: int, **how: Any) -> list[bytes]:
    """Operations first..last."""
    return [body(source, sequence, **how) for sequence in range(first, last + 1)]


class Desk:
    """A log, its clock, and what it wants kept and told."""

    def __init__(self, uuid: bytes = A, **changes: Any) -> None:
        self.context = Context(settings(uuid, **changes))
        self.log = Log(self.context)
        self.ns = 0
        self.pass_ns(0)

    def pass_ns(self, span: int) -> None:
        self.ns += span
        self.context.begin(Now(SECOND + self.ns, EPOCH * SECOND + self.ns))

    def take(self, sender: bytes, *bodies: bytes) -> list[str]:
        """What became of each."""
        return [self.log.take(one, sender).code for one in bodies]

    def records(self) -> list[Record]:
        """What this turn keeps."""
        return [record for effect in self.effects() if isinstance(effect, Persist) for record in effect.records]

    def rows(self) -> list[StreamRecord]:
        """Those of the stream."""
        return [record for record in self.records() if isinstance(record, StreamRecord)]

    def told(self) -> list[Any]:
        return [effect.event for effect in self.effects() if isinstance(effect, Tell)]

    def effects(self) -> list[Any]:
        return self.context.take()

    def again(self, records: Sequence[Record], **changes: Any) -> "Desk":
        """Another start with these records."""
        desk = Desk(**changes)
        named = SessionKept(desk.context.session, desk.context.settings.schema)
        desk.log.restore(entries([record_of(named), *records]))
        desk.log.begin()
        return desk


def entries(records: Sequence[Record]) -> list[Entry]:
    return list(enumerate(records, 1))


def same(one: Log, other: Log) -> bool:
    """Whether two logs hold the same, in the same order of arrival."""
    arrivals = [[each.arrival(position) for position in range(each.count)] for each in (one, other)]
    kept = [[each.kept(*pair)[:3] for pair in order] for each, order in zip((one, other), arrivals, strict=True)]
    return arrivals[0] == arrivals[1] and kept[0] == kept[1] and one.check == other.check and one.held() == other.held()


class Node(Rig):
    """A whole session, driven by hand."""

    def __init__(self, **changes: Any) -> None:
        self.issued: list[Issued] = []
        super().__init__(Session, **changes)

    @property
    def session(self) -> Session:
        assert isinstance(self.node, Session)
        return self.node

    @property
    def log(self) -> Log:
        return self.session.log

    def issue(self, verb: str = "set", reference: dict[str, str] | None = None, **how: Any) -> list[Word]:
        """An own entry; what is said of it."""
        payload = how.pop("payload", Payload(text="x"))
        return self.do(
            lambda: self.issued.append(self.session.own.issue(verb, reference or {"path": "venue"}, payload, **how))
        )

    def own(self, sequence: int) -> bytes:
        """The bytes of an own operation."""
        return self.log.body(self.session.context.uuid, sequence)


def bodies(said: Iterable[Word]) -> list[bytes]:
    """Of the operations among words."""
    return [word.message.body for word in said if isinstance(word.message, Xmsg)]


def numbers(said: Iterable[Word]) -> list[int]:
    """Their sequences."""
    return [parse(one).sequence for one in bodies(said)]


def pushed(said: Iterable[Word]) -> list[tuple[str, bytes]]:
    """Who was sent which operation."""
    return [(word.to, word.message.body) for word in said if isinstance(word.message, Xmsg)]


def gossiped(said: Iterable[Word]) -> list[tuple[str, bytes, int]]:
    """Who was told of which source and number."""
    return [
        (word.to, source, upto)
        for word in said
        if isinstance(word.message, Gsip)
        for source, upto in word.message.entries
    ]
