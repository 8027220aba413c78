"""What a parser returns for one line of a foreign log: `Sample`, `Refused`, `Nothing` or `Many`."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from weft.lake.importing.limits import ANCIENT_NS, KNOWN_MAX, LINE_BYTES_MAX
from weft.lake.schemas import LONG_MAX
from weft.lake.series import SeriesDefinition

K = TypeVar("K")
V = TypeVar("V")


class About:
    """What the samples of one series of one source share. One object per series and file, compared by identity."""

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
        """None for lines that could not be read."""
        self.config_number = config_number
        self.attributes = tuple(attributes)


def remember(known: dict[K, V], key: K, value: V) -> V:
    """Add an entry to a cache, which is emptied first if it is full; returns the entry."""
    if len(known) >= KNOWN_MAX:
        known.clear()
    known[key] = value
    return value


class Sample(NamedTuple):
    """One value at one instant."""

    about: About
    at_ns: int
    value: int | float
    base: int | float | None
    doubt: str = ""
    """`ancient` or `future`: the row is stored complete, but silver refuses it because of its time stamp."""


class Refused(NamedTuple):
    """A line that goes to quarantine."""

    reason: str
    """An error of PIP-031; `torn`: the file ends within the line."""
    source: str = ""
    """The source of the line, if it could be read."""


class Nothing(NamedTuple):
    """A line that holds no row. `what` names its counter: `heartbeats`, `headers`, `comments`, `blank`, `bases`."""

    what: str


class Many(NamedTuple):
    """A line with several rows, as in a wide table."""

    rows: tuple[Sample | Refused, ...]


Found = Sample | Refused | Nothing | Many
HEARTBEAT: Final = Nothing("heartbeats")
COMMENT: Final = Nothing("comments")
HEADER: Final = Nothing("headers")
BLANK: Final = Nothing("blank")
BASES: Final = Nothing("bases")
KINDS: Final = frozenset({"basic", "delta", "rate", "average", "percent"})
AGGREGATE: Final = "aggregate-"


class Parser(Protocol):
    """Parses the lines of one file, in order, without their LF. Bad bytes never raise.

    Only a header that cannot be used raises: UserError.
    """

    def read(self, line: bytes) -> Found:
        """Parse the next line."""


def text_of(line: bytes, encoding: str = "utf-8") -> str | Refused:
    """A line as text, or the reason for its refusal: it is too long, is not text, or holds a NUL or CR."""
    if len(line) > LINE_BYTES_MAX:
        return Refused("too-long")
    if b"\0" in line or b"\r" in line:
        return Refused("undecodable")
    try:
        return line.decode(encoding)
    except UnicodeDecodeError:
        return Refused("undecodable")


def is_kind(text: str) -> bool:
    """Whether a series may have this type: one for which PIP-040 says how two samples become a value."""
    return text in KINDS or text.startswith(AGGREGATE)


def sample(
    about: About, at_ns: int, numbers: tuple[int | float, int | float | None], latest_ns: int
) -> Sample | Refused:
    """A sample; `numbers` are its value and base. Marked as doubtful if it is before the year 2000 or after `latest_ns`."""
    if not -LONG_MAX <= at_ns <= LONG_MAX:
        return Refused("out-of-range", about.source)
    doubt = "ancient" if at_ns < ANCIENT_NS else "future" if at_ns > latest_ns else ""
    return Sample(about, at_ns, *numbers, doubt)
