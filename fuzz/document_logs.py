"""Logs that people carry: any lines are a log, whole or in part, or `BadFile` that says what is wrong (GSP-033)."""

import json
from collections.abc import Iterable
from typing import Any

from fuzz.house.choices import Choices
from fuzz.house.running import outcomes, run
from fuzz.house.vectors import hostile
from weft.client.doc.errors import BadFile
from weft.client.doc.logfile import Entry, Header, lines_of, read_log
from weft.wire.document.operations import Stamp, emit, parse, uuid_text
from weft.wire.document.xml import fragment_of

ODD: tuple[Any, ...] = (7, 0, -1, 2.5, 1e308, float("inf"), float("nan"), "7", None, [], "\ud800", "<add/>")
SOURCE = bytes.fromhex("a0000000000040008000000000000001")


def one(data: bytes) -> None:
    """As the text of a file; and as operations, in any order and with any numbers, of which a file is made."""
    _read(data.decode("utf-8", "replace").split("\n"))
    _read(_story(Choices(data)))


def _story(choices: Choices) -> list[str]:
    """A log with holes, doubles and what no operation is."""
    told = [next(iter(lines_of(Header("friday", "derby"), [])))]
    number = 0
    while not choices.is_over and len(told) < 9:
        number = choices.number(number + 1)
        entry = _entry(number, "<jam number='1'/>") if 0 < number < 1 << 53 else None
        if entry is None or choices.flag(8):
            told.append(json.dumps({"source": choices.byte(), "sequence": number, "body": choices.pick(ODD)}))
        else:
            facts = {"source": uuid_text(SOURCE), "sequence": number, "received_at": choices.pick(ODD)}
            told.append(json.dumps({**facts, "body": entry.body.decode()}))
    return told


def _entry(number: int, text: str) -> Entry:
    body = emit("add", {"path": "/"}, Stamp(SOURCE, 1_763_800_000.5 + number % 1_000, number), fragment_of(text))
    return Entry(parse(body), body, number, "a")


def _read(text: list[str]) -> None:
    """What is read in part is written as a whole, and read as one."""
    try:
        read_log(text)
    except BadFile as error:
        outcomes.add(("bad-file", str(error)[:40]))
    try:
        log = read_log(text, partial=True)
    except BadFile as error:
        outcomes.add(("bad-part", str(error)[:40]))
    else:
        again = read_log(lines_of(log.header, log.entries))
        assert again.faults == [], again.faults


def seeds() -> Iterable[bytes]:
    """A log, a part of one, one with a hole, and one that is none."""
    texts = ("<period number='1'/>", "<jam number='1'/>", "<team id='home'>A &amp; B</team>")
    entries = [_entry(number, text) for number, text in enumerate(texts, 1)]
    yield "\n".join(lines_of(Header("friday", "derby"), entries)).encode().replace(b'"operations":3', b'"operations":4')
    yield "\n".join(lines_of(Header("", "derby"), entries)).encode().replace(b'sequence=\\"2', b'sequence=\\"7')
    for count in (0, 1, 3):
        yield "\n".join(lines_of(Header("friday", "derby"), entries[:count])).encode()
    yield from hostile("json")
    yield bytes(range(0, 250, 9))
    yield bytes((1, 3, 0, 170, 12, 1, 0, 2, 3, 4, 5))


if __name__ == "__main__":
    run(one)
