"""The reports that the demonstrations send one another: read within limits, and changed without re-encoding (DEM-005).

    <report origin="A" type="leaf" num="0"/>                           from a detector
    <report origin="A" …><rewriter visited="127.0.0.1" PID="4711"/></report>   seen by a rewriter
    <report origin="B" type="accumulated">…reports, whole…</report>    from an aggregator

Documents may come from anybody. One that is too large or too deep, or has a declaration (which could define entities that
grow), is refused, never repaired. All other bytes stay unchanged.
"""

from typing import Final, NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape

from weft.base.errors import PeerError

TYPE: Final = "demo.report"
BYTES_MAX: Final = 64 << 10
DEPTH_MAX: Final = 64
ACCUMULATED_BYTES_MAX: Final = BYTES_MAX
"""Also the limit for an aggregator's own reports, because the next aggregator must read them."""
LEAF, ACCUMULATED, REWRITER = "leaf", "accumulated", "rewriter"


class Report(NamedTuple):
    """The root element of a document, and its place in the bytes."""

    name: str
    attributes: dict[str, str]
    start: int
    inner: int
    """Where to insert a last child; in `<report/>`, the place of the slash."""
    end: int

    @property
    def is_empty_tag(self) -> bool:
        return self.end - self.inner == len("/>")


def read(payload: bytes) -> Report:
    """The root element of a document, its attributes and place.

    PeerError: `too-big`, `declaration`, `not-text`, `too-deep`, `not-xml`.

    >>> read(b'<report type="leaf" num="7"/>').attributes
    {'type': 'leaf', 'num': '7'}
    """
    if len(payload) > BYTES_MAX:
        raise PeerError("report", "too-big")
    if b"<!" in payload:
        raise PeerError("report", "declaration", payload)
    try:
        payload.decode()
    except UnicodeDecodeError:
        raise PeerError("report", "not-text", payload) from None
    return _Reader(payload).report()


class _Reader:
    """Parses a document once, and keeps only its root element."""

    def __init__(self, payload: bytes) -> None:
        self._payload, self._depth = payload, 0
        self._parser = parser = expat.ParserCreate("UTF-8")
        parser.StartElementHandler, parser.EndElementHandler = self._begin, self._finish
        self._name, self._attributes = "", dict[str, str]()
        self._start = self._finish_at = 0

    def report(self) -> Report:
        try:
            self._parser.Parse(self._payload, True)  # tidy: the last piece is the only one
        except expat.ExpatError:
            raise PeerError("report", "not-xml", self._payload) from None
        closing = f"</{self._name}".encode()
        if self._payload.startswith(closing, self._finish_at):
            end = self._payload.index(b">", self._finish_at) + 1
            return Report(self._name, self._attributes, self._start, self._finish_at, end)
        inner = self._finish_at - len("/>")  # for an empty tag the parser gives its end
        return Report(self._name, self._attributes, self._start, inner, self._finish_at)

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise PeerError("report", "too-deep", self._payload)
        if self._depth == 1:
            self._name, self._attributes, self._start = name, attributes, self._parser.CurrentByteIndex

    def _finish(self, _: str) -> None:
        self._depth -= 1
        self._finish_at = self._parser.CurrentByteIndex


def leaf(origin: str, number: int) -> bytes:
    """The report of a detector (DEM-001).

    >>> leaf("A", 0)
    b'<report origin="A" type="leaf" num="0"/>'
    """
    return f'<report origin="{_quoted(origin)}" type="{LEAF}" num="{number}"/>'.encode()


def accumulated(origin: str, reports: list[bytes]) -> bytes:
    """The report of an aggregator: whole reports, in order (DEM-003)."""
    head = f'<report origin="{_quoted(origin)}" type="{ACCUMULATED}">'.encode()
    return b"%b%b</report>" % (head, b"".join(reports))


def visited(payload: bytes, address: str, pid: int) -> bytes:
    """The document with a rewriter's tag as the last child of its root (DEM-004); PeerError as `read`.

    >>> visited(b'<report num="0"/>', "127.0.0.1", 4711)
    b'<report num="0"><rewriter visited="127.0.0.1" PID="4711"/></report>'
    >>> visited(b'<report><a/></report>', "127.0.0.1", 1)
    b'<report><a/><rewriter visited="127.0.0.1" PID="1"/></report>'
    """
    report = read(payload)
    tag = f'<{REWRITER} visited="{_quoted(address)}" PID="{pid}"/>'.encode()
    before, after = payload[: report.inner], payload[report.inner :]
    if report.is_empty_tag:
        return b"%b>%b</%b>%b" % (before, tag, report.name.encode(), payload[report.end :])
    return before + tag + after


def label(payload: bytes) -> str:
    """A report in short: origin and number, `+` and the process of each rewriter, and in brackets accumulated reports.

    >>> label(accumulated("B", [visited(leaf("A", 4), "127.0.0.1", 100), leaf("B", 4)]))
    'B[A:4+100,B:4]'
    """
    read(payload)
    parser = expat.ParserCreate("UTF-8")
    open_: list[list[str]] = [[]]
    heads: list[str] = []

    def begin(name: str, attributes: dict[str, str]) -> None:
        open_.append([])
        if name == REWRITER:
            heads.append(f"+{attributes.get('PID', '')}")
        else:
            number = attributes.get("num")
            heads.append(attributes.get("origin", "") + (f":{number}" if number is not None else ""))

    def finish(_: str) -> None:
        inside = open_.pop()
        tags = "".join(part for part in inside if part.startswith("+"))
        reports = ",".join(part for part in inside if not part.startswith("+"))
        open_[-1].append(heads.pop() + (f"[{reports}]" if reports else "") + tags)

    parser.StartElementHandler, parser.EndElementHandler = begin, finish
    parser.Parse(payload, True)
    return open_[0][0]


def _quoted(text: str) -> str:
    return escape(text, {'"': "&quot;"})
