"""What a line of a foreign log turns out to be. A parser gives one of these for every line, whatever its bytes."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from weft.lake.importing.limits import ANCIENT_NS, LABELS_MAX, LINE_BYTES_MAX, LONG_MAX, TEXT_MAX
from weft.lake.series import SeriesDefinition


class About:
    """What samples of one series of one source share. One object per series and file, told apart by identity."""

    __slots__ = ("attributes", "config_number", "definition", "source")

    def __init__(
        self,
        source: str,
        definition: SeriesDefinition | None,
        config_number: int | None = None,
        attributes: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.source = source
        self.definition = definition
        """None: lines of this source that could not be read."""
        self.config_number = config_number
        self.attributes = tuple(attributes)


class Sample(NamedTuple):
    """One value at one instant."""

    about: About
    at_ns: int
    value: int | float
    base: int | float | None
    doubt: str = ""
    """`ancient` or `future`: the row is whole, and silver refuses it by its stamp."""


class Refused(NamedTuple):
    """A line that is kept in quarantine."""

    reason: str
    """Of PIP-031; `torn`: the file ends within the line."""
    source: str = ""
    """Whose line it is, if that much could be read."""


class Nothing(NamedTuple):
    """A line that is no row. `what` names the counter: `heartbeats`, `comments`, `blank`, `bases`."""

    what: str


class Many(NamedTuple):
    """A line with several rows, as a wide table has them."""

    rows: tuple[Sample | Refused, ...]


Found = Sample | Refused | Nothing | Many
HEARTBEAT: Final = Nothing("heartbeats")
COMMENT: Final = Nothing("comments")
BLANK: Final = Nothing("blank")
BASES: Final = Nothing("bases")
KINDS: Final = frozenset({"basic", "delta", "rate", "average", "percent"})
AGGREGATE: Final = "aggregate-"


class Parser(Protocol):
    """Reads the lines of one file, in order, without their LF. Never raises, whatever the bytes (12.2)."""

    def read(self, line: bytes) -> Found:
        """What the next line is."""


def text_of(line: bytes, encoding: str = "utf-8") -> str | Refused:
    """A line as text, unless it is too long, or none."""
    if len(line) > LINE_BYTES_MAX:
        return Refused("too-long")
    if b"\0" in line or b"\r" in line:
        return Refused("undecodable")
    try:
        return line.decode(encoding)
    except UnicodeDecodeError:
        return Refused("undecodable")


def is_kind(text: str) -> bool:
    """Whether a type is one that two samples can be calculated by (PIP-040)."""
    return text in KINDS or text.startswith(AGGREGATE)


def is_too_long(texts: Sequence[str], labels: Mapping[str, str]) -> bool:
    """Whether a definition is over the limits of section 9."""
    if len(labels) > LABELS_MAX:
        return True
    return any(len(text) > TEXT_MAX for text in (*texts, *labels, *labels.values()))


def sample(
    about: About, at_ns: int, numbers: tuple[int | float, int | float | None], latest_ns: int
) -> Sample | Refused:
    """A sample with its value and base; its stamp is looked at, `latest_ns` being the last that is believed."""
    if not -LONG_MAX <= at_ns <= LONG_MAX:
        return Refused("out-of-range", about.source)
    doubt = "ancient" if at_ns < ANCIENT_NS else "future" if at_ns > latest_ns else ""
    return Sample(about, at_ns, *numbers, doubt)
