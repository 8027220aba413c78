"""A document's log as a file: one JSON object per line (GSP-033).

    {"format": "weft-log-1", "session": "Hall 5", "schema": "derby", "fold": 1, "genesis_sha256": "a66c…"}
    {"source": "a0…01", "sequence": 1, "eff": 1763800000.25, "received_at": 17638…, "received_from": "a0…01", "body": "<add …/>"}
    {"operations": 1, "check": "5ad5…", "document": "b482…"}

The first line is the header, the last one the trailer, with which the file is checked. Operations stand in the order in
which the writing node got them; `received_at` is its clock, in Unix nanoseconds. A body that is not UTF-8 stands in
`base64` instead.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple, Self

from weft.base.errors import PeerError, UserError
from weft.client.doc.errors import BadFile
from weft.cores.document.fold.engine import Engine, fold
from weft.cores.document.fold.schema import SHIPPED, Schema
from weft.cores.document.holding import Kept
from weft.cores.document.sources import Source
from weft.wire.document.operations import Operation, parse, uuid_of, uuid_text

FORMAT: Final = "weft-log-1"
FOLD: Final = 1
"""Version of the rules for folding a log into a document (DOC-002)."""
GAPS_SHOWN: Final = 10  # missing numbers of one source that are listed
AGAIN: Final = "export it anew; --partial takes what is there"
NOTHING: Final = bytes(16)


class Entry(NamedTuple):
    """One operation of a log."""

    operation: Operation
    body: bytes
    received_ns: int
    received_from: str

    @property
    def pair(self) -> tuple[bytes, int]:
        return self.operation.source, self.operation.sequence


class Header(NamedTuple):
    """The session and its schema; `schema_text` is the schema itself if it does not ship with Weft."""

    session: str
    schema: str
    schema_text: str = ""

    def load(self) -> Schema:
        """The schema; BadFile if it is unknown or invalid."""
        if self.schema not in SHIPPED and not self.schema_text:
            raise BadFile(f"its schema {self.schema!r} neither ships with Weft nor is in the file", mend=AGAIN)
        try:
            return Schema.load(self.schema_text or self.schema)
        except UserError as error:
            raise BadFile(error.text, mend=error.try_this) from None


class LogFile(NamedTuple):
    """A log read from a file."""

    header: Header
    entries: list[Entry]
    faults: list[str]
    """What is missing or wrong; empty: the log is complete and matches its trailer."""

    @property
    def operations(self) -> list[Operation]:
        return [entry.operation for entry in self.entries]


class Tally:
    """Evaluates a log: effective times, gaps, and the check over what is known without a gap (PEE-022, DOC-010)."""

    def __init__(self) -> None:
        self._sources: dict[bytes, Source] = {}
        self._beyond: dict[bytes, set[int]] = {}
        self._check = self.operations = 0

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Self:
        """The tally of a log."""
        tally = cls()
        for entry in entries:
            tally.take(entry)
        return tally

    @property
    def sources(self) -> int:
        """How many sources are known from number 1 on."""
        return sum(source.latest > 0 for source in self._sources.values())

    def take(self, entry: Entry) -> float | None:
        """Add an operation, and return its effective time; None: it comes after a gap, or is a duplicate."""
        source, sequence = entry.pair
        there = self._sources.setdefault(source, Source(source, 0))
        if sequence != there.latest + 1:
            if sequence > there.latest:
                self._beyond.setdefault(source, set()).add(sequence)
            return None
        there.append(Kept(entry.body, 0, NOTHING), entry.operation.timestamp, 0)
        self.operations += 1
        return there.effs[-1]

    @property
    def check(self) -> str:
        """The check in hexadecimal, as peers send it in BEAT."""
        for source in self._sources.values():
            self._check ^= source.turn()
        return f"{self._check:08x}"

    def gaps(self) -> list[str]:
        """The missing numbers before later operations, one line for each source."""
        found = []
        for source, beyond in sorted(self._beyond.items()):
            after = self._sources[source].latest
            missing = list(islice((n for n in range(after + 1, max(beyond)) if n not in beyond), GAPS_SHOWN + 1))
            shown = ", ".join(map(str, missing[:GAPS_SHOWN])) + (" …" if missing[GAPS_SHOWN:] else "")
            found.append(f"{uuid_text(source)}: {shown or 'none, but lines are out of order'}")
        return found


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """The operations in the document's order, so that none is late when they are entered; those after gaps come last."""
    tally = Tally()
    keyed = [(tally.take(entry), entry) for entry in entries]
    return [entry for _, entry in sorted(keyed, key=lambda one: (one[0] is None, one[0] or 0, one[1].pair))]


def folded(log: LogFile) -> Engine:
    """The document of a log."""
    return fold(log.header.load(), log.operations)


# Writing


def lines_of(header: Header, entries: Iterable[Entry]) -> Iterator[str]:
    """The lines of a file; operations after a gap are left out."""
    schema, tally, kept = header.load(), Tally(), []
    head: dict[str, Any] = {"format": FORMAT, "session": header.session, "schema": header.schema, "fold": FOLD}
    if header.schema_text:
        head["schema_text"] = header.schema_text
    yield _line({**head, "genesis_sha256": schema.genesis_sha256})
    for entry in entries:
        eff = tally.take(entry)
        if eff is not None:
            kept.append(entry.operation)
            yield _line(_facts(entry, eff))
    engine = fold(schema, kept)
    yield _line({"operations": len(kept), "check": tally.check, "document": engine.digest()})


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _facts(entry: Entry, eff: float) -> dict[str, Any]:
    source, sequence = entry.pair
    fields = {
        "source": uuid_text(source),
        "sequence": sequence,
        "eff": eff,
        "received_at": entry.received_ns,
        "received_from": entry.received_from,
    }
    try:
        return {**fields, "body": entry.body.decode()}
    except UnicodeDecodeError:
        return {**fields, "base64": base64.b64encode(entry.body).decode()}


# Reading


def read_log(lines: Iterable[str], *, partial: bool = False) -> LogFile:
    """Read a file; BadFile if it is of another kind, or does not match its trailer.

    With `partial` an incomplete file is read, too, and `faults` says what is missing or wrong.
    """
    header: Header | None = None
    entries: list[Entry] = []
    trailer: dict[str, Any] | None = None
    faults: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if header is not None and trailer is not None:
            raise BadFile(f"line {number}: there are lines after the trailer", mend="one log per file")
        fields = _read(line, number, faults, partial=partial)
        if header is None:
            header = _header(fields)
        elif "operations" in fields:
            trailer = fields
        elif fields:
            entries.append(_entry(fields, number))
    if header is None:
        raise BadFile("it is empty", mend=AGAIN)
    faults += _faults(header, entries, trailer)
    if faults and not partial:
        raise BadFile("; ".join(faults), mend=AGAIN)
    return LogFile(header, entries, faults)


def _read(line: str, number: int, faults: list[str], *, partial: bool) -> dict[str, Any]:
    try:
        fields = json.loads(line)
        if "\\u" in line:
            json.dumps(fields, ensure_ascii=False).encode()  # a lone surrogate can be neither shown nor written
    except (ValueError, RecursionError):
        fields = None
    if isinstance(fields, dict):
        return fields
    if not partial or number == 1:
        raise BadFile(f"line {number} is not a JSON object", mend=AGAIN if number > 1 else "a file of weft doc export")
    faults.append(f"line {number} cannot be read")
    return {}


def _header(fields: dict[str, Any]) -> Header:
    if fields.get("format") != FORMAT:
        raise BadFile(f"its format is {fields.get('format')!r}, not {FORMAT!r}", mend="a file of weft doc export")
    if fields.get("fold") != FOLD:
        text = f"it is for version {fields.get('fold')!r} of the folding rules; this program has version {FOLD}"
        raise BadFile(text, mend="the version of Weft that has written it")
    header = Header(str(fields.get("session", "")), str(fields.get("schema", "")), str(fields.get("schema_text", "")))
    if header.load().genesis_sha256 != fields.get("genesis_sha256"):
        text = f"the schema {header.schema!r} is another one where the file was written"
        raise BadFile(text, mend="the version of Weft that has written it")
    return header


def _entry(fields: dict[str, Any], number: int) -> Entry:
    try:
        body = base64.b64decode(fields["base64"]) if "base64" in fields else str(fields["body"]).encode()
        operation = parse(body)
        if (operation.source, operation.sequence) != (uuid_of(str(fields["source"])), fields["sequence"]):
            raise BadFile(f"line {number} has another source or sequence than its body", mend=AGAIN)
        return Entry(operation, body, int(fields.get("received_at", 0)), str(fields.get("received_from", "")))
    except (KeyError, ValueError, TypeError, OverflowError, PeerError) as error:
        raise BadFile(f"line {number} holds no operation: {error}", mend=AGAIN) from None


def _faults(header: Header, entries: list[Entry], trailer: dict[str, Any] | None) -> list[str]:
    tally = Tally.of(entries)
    faults = [f"missing numbers of {gap}" for gap in tally.gaps()]
    if trailer is None:
        return [*faults, "it has no trailer: its end is missing, and how much is not known"]
    if trailer.get("operations") != len(entries):
        faults.append(f"it has {len(entries):,} operations, and should have {trailer.get('operations')!s}")
    elif trailer.get("check") != tally.check:
        faults.append(f"its check is {tally.check}, and should be {trailer.get('check')!s}")
    elif trailer.get("document") != (digest := fold(header.load(), [entry.operation for entry in entries]).digest()):
        faults.append(f"its document has the digest {digest}, and should have {trailer.get('document')!s}")
    return faults
