"""The two forms of a log record on a publisher's socket, and the normal form that it gets (LOG-002, LOG-003, LOG-005).

topic = "log." service "." level *("." sub)     ; level: the first token that is one
body  = text                                    ; pyzmq's `PUBHandler`
      / JSON                                    ; {v: 1, ts, level, service, instance, logger, message, seq, fields}
"""

from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec

from weft.cores.catalog import limits
from weft.cores.catalog.records import is_name, parse_object
from weft.cores.catalog.refusals import Refusal

PREFIX: Final = b"log."
LEVELS: Final = {"DEBUG": 10, "INFO": 20, "WARN": 30, "WARNING": 30, "ERROR": 40, "CRITICAL": 50, "FATAL": 50}
"""Levels that a topic may name, with their severity."""
NAMES: Final = {"WARN": "WARNING", "FATAL": "CRITICAL"}
"""Second names of two levels."""
SEVERE: Final = LEVELS["WARNING"]
"""Records from this severity on have priority."""
TS_MAX: Final = 1 << 33  # Unix seconds; a time after the year 2242 is treated as missing
Number = Annotated[int, msgspec.Meta(ge=1, lt=1 << 53)]


class Span(msgspec.Struct, frozen=True, gc=False, rename={"first": "from", "last": "to"}):
    """Numbers of records that are lost (LOG-006)."""

    first: int
    last: int


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """A record in its normal form; these are its keys in the journal, on the XPUB and in answers (LOG-005)."""

    ts: float | None
    """Unix seconds as the service states; None: not stated."""
    received: float
    """Unix seconds when the broker received it."""
    net: str
    level: str
    """`DEBUG INFO WARNING ERROR CRITICAL`."""
    service: str
    instance: str
    logger: str
    message: str
    seq: int | None
    fields: dict[str, Any]
    repeated: int | msgspec.UnsetType = msgspec.UNSET
    """How many equal records this one stands for (LOG-007)."""
    lost: Span | msgspec.UnsetType = msgspec.UNSET

    @property
    def severity(self) -> int:
        return LEVELS[self.level]


class Line(NamedTuple):
    """A record with its JSON, which is the same everywhere."""

    log: Log
    data: bytes
    is_local: bool = False
    """It is below the level that its publisher wants on the bus: only remembered here, not published or journaled
    (LOG-004).
    """


class OwnForm(msgspec.Struct, frozen=True):
    """The form that services of this library use (LOG-003)."""

    v: Literal[1]
    message: str
    seq: Number | None = None
    level: str = ""
    ts: float | str | None = None
    service: str = ""
    instance: str = ""
    logger: str = ""
    fields: dict[str, Any] | None = None


class Topic(NamedTuple):
    """What a topic states about its records."""

    service: str
    level: str
    sub: str


class Origin(NamedTuple):
    """The sender as the broker knows it, whatever the record claims."""

    name: str
    instance: str
    net: str


_OWN: Final = msgspec.json.Decoder(OwnForm)
encode: Final = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder(Log).decode


def line_of(log: Log, *, is_local: bool = False) -> Line:
    """A record with its JSON."""
    return Line(log, encode(log), is_local)


def severity_of(level: Any) -> int:
    """The severity for `bus_level` of a record: a name or a number; anything else means WARNING (LOG-004).

    >>> severity_of("info"), severity_of(10), severity_of(None)
    (20, 10, 30)
    """
    if isinstance(level, int) and not isinstance(level, bool):
        return level
    return LEVELS.get(level.upper(), SEVERE) if isinstance(level, str) else SEVERE


def read_topic(topic: bytes) -> Topic | None:
    """Parse a topic; None: it is no topic of a log.

    >>> read_topic(b"log.Rohan.arm.WARN.motor.left")
    Topic(service='Rohan.arm', level='WARNING', sub='motor.left')
    >>> read_topic(b"log.position") is None
    True
    """
    if not topic.startswith(PREFIX) or len(topic) > 4 * limits.NAME_BYTES_MAX:
        return None
    tokens = topic[len(PREFIX) :].decode(errors="replace").split(".")
    for place, token in enumerate(tokens):
        if token in LEVELS:
            level = NAMES.get(token, token)
            return Topic(".".join(tokens[:place]), level, ".".join(tokens[place + 1 :]))
    return None


def read(topic: Topic, body: tuple[bytes, ...], origin: Origin, received: float) -> Log:
    """The record in a message, in either form. A body that is not JSON of our form is taken as text."""
    if len(body) == 1 and body[0].startswith(b"{") and (own := _own(body[0])) is not None:
        return read_own(own, len(body[0]), origin, received, topic)
    text = b" ".join(body).decode(errors="replace").removesuffix("\n")
    service = topic.service if is_name(topic.service) else origin.name
    return Log(
        ts=None,
        received=received,
        net=origin.net,
        level=topic.level,
        service=service,
        instance=origin.instance,
        logger=topic.sub,
        message=text[: limits.LOG_BYTES_MAX],
        seq=None,
        fields={} if service == origin.name else {"publisher": origin.name},
    )


def read_own(own: OwnForm, size: int, origin: Origin, received: float, topic: Topic) -> Log:
    """The record of a body in our own form; `size` is the length of its JSON."""
    level = own.level.upper()
    service = own.service or topic.service
    service = service if is_name(service) else origin.name
    fields = _fields(own, size)
    if service != origin.name:
        fields["publisher"] = origin.name
    return Log(
        ts=own.ts if isinstance(own.ts, float) and 0 <= own.ts < TS_MAX else None,
        received=received,
        net=origin.net,
        level=NAMES.get(level, level) if level in LEVELS else topic.level,
        service=service,
        instance=origin.instance,
        logger=own.logger[: limits.NAME_BYTES_MAX],
        message=own.message[: limits.LOG_BYTES_MAX],
        seq=own.seq,
        fields=fields,
    )


def _own(body: bytes) -> OwnForm | None:
    try:
        return _OWN.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _fields(own: OwnForm, size: int) -> dict[str, Any]:
    """Its other fields, if they are short, flat and finite, so that any reader can use them (CAT-009)."""
    if not own.fields or size > limits.LOG_BYTES_MAX:
        return {}
    try:
        return parse_object(encode(own.fields))
    except (Refusal, ValueError, OverflowError, RecursionError):
        return {}


class Refill(msgspec.Struct, frozen=True):
    """A service's answer to `dbp.logs {"from", "to"}`: the records it still has, in its own form."""

    logs: list[msgspec.Raw]


_REFILL: Final = msgspec.json.Decoder(Refill)


def read_refill(body: tuple[bytes, ...], origin: Origin, received: float) -> dict[int, Log]:
    """The records of an answer by number; invalid ones are left out."""
    try:
        answer = _REFILL.decode(body[0]) if body else Refill([])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    topic = Topic("", "INFO", "")
    found: dict[int, Log] = {}
    for raw in answer.logs[: limits.REFILL_MAX]:
        own = _own(bytes(raw))
        if own is not None and own.seq is not None:
            found[own.seq] = read_own(own, len(bytes(raw)), origin, received, topic)
    return found
