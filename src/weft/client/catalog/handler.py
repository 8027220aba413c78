"""Log records of a service: warnings go to the bus, others stay on this machine (LOG-003, LOG-004, LOG-006).

    service = Service("thermo")
    logging.getLogger().addHandler(weft.catalog.Handler(service))

Logging never blocks the program and never raises: records that cannot be written are dropped and counted.
"""

import logging
import logging.handlers
import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.client.catalog.errors import CatalogError
from weft.client.catalog.servicelimits import (
    FIELDS_MAX,
    MESSAGE_CHARS_MAX,
    RECORDS_PER_TURN,
    RECORDS_WAITING_MAX,
    RING_MAX,
)

if TYPE_CHECKING:
    from weft.client.catalog.service import Service  # tidy: a logging handler needs access to the service that owns it

LEVELS: Final = {"CRITICAL": 50, "ERROR": 40, "WARNING": 30, "INFO": 20, "DEBUG": 10}
SYSLOG: Final = "/dev/log"
FILE_BYTES_MAX: Final = 4 << 20  # bytes; then a new file is begun
FILES_MAX: Final = 3
_PLAIN: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})
"""Attributes that every log record has; all others are fields that the program has added."""


class Bus:
    """Log records on their way to the broker: numbered, published, and kept so that missed ones can be sent again."""

    def __init__(self, service: str) -> None:
        self.service = service
        self.instance = ""
        self.threshold = logging.WARNING
        """The lowest level that goes to the bus."""
        self.dropped = 0
        """Records that were dropped, without a number, because the loop could not keep up."""
        self._waiting: deque[dict[str, Any]] = deque()
        self._ring: deque[dict[str, Any]] = deque(maxlen=RING_MAX)
        self._seq = 0
        self._stir: Callable[[], None] | None = None
        self._publish: Callable[[list[bytes]], Any] | None = None

    def put(self, record: dict[str, Any]) -> None:
        """Add a record, from any thread; never waits."""
        if len(self._waiting) >= RECORDS_WAITING_MAX:
            self.dropped += 1
            return
        self._waiting.append(record)
        if len(self._waiting) == 1 and self._stir is not None:  # for further records it has been called already
            self._stir()

    def open(self, stir: Callable[[], None], publish: Callable[[list[bytes]], Any]) -> None:
        """The service runs: `stir` makes the loop call `flush`, which hands messages to `publish`."""
        self._stir, self._publish = stir, publish
        self.flush()

    def close(self) -> None:
        """The service ends; later records wait for its next start."""
        while self._waiting and self._publish is not None:
            self._publish_next(self._publish)
        self._stir = self._publish = None

    def flush(self) -> None:
        """Number and publish what waits, some of it in each turn of the loop. In the loop only."""
        for _ in range(RECORDS_PER_TURN):
            if not self._waiting or self._publish is None:
                return
            self._publish_next(self._publish)
        if self._stir is not None:
            self._stir()

    def _publish_next(self, publish: Callable[[list[bytes]], Any]) -> None:
        self._seq += 1
        record = {"v": 1, **self._waiting.popleft()}
        record.update(service=self.service, instance=self.instance, seq=self._seq)
        self._ring.append(record)
        publish([f"log.{self.service}.{record['level']}".encode(), msgspec.json.encode(record)])

    def again(self, payload: tuple[bytes, ...]) -> dict[str, Any]:
        """Answer `dbp.logs {"from","to"}`: the records with these numbers that are still kept (LOG-006)."""
        try:
            span = msgspec.json.decode(payload[0] if payload else b"{}", type=_Span)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CatalogError(f'wanted {{"from":1,"to":9}}: {error}', "bad-argument") from None
        return {"logs": [record for record in self._ring if span.first <= record["seq"] <= span.last]}


class _Span(msgspec.Struct):
    first: int = msgspec.field(name="from", default=1)
    last: int = msgspec.field(name="to", default=1 << 62)


class Handler(logging.Handler):
    """Takes the log records of a program that is a service.

    bus_level: records of this level and above go to the bus; `service.update(bus_level="INFO")` changes it later. local:
    where lower ones go: "auto" for syslog, or, without one, a rotated file; a handler of your own; or None for nowhere.
    """

    def __init__(
        self,
        service: "Service",
        level: int | str = logging.NOTSET,
        *,
        bus_level: int | str | None = None,
        local: logging.Handler | str | None = "auto",
    ) -> None:
        super().__init__(level)
        self._bus = service.bus
        if bus_level is not None:
            self._bus.threshold = level_of(bus_level)
        self._local: Local | None = None
        if isinstance(local, logging.Handler):
            self._local = Local(lambda: local)
        elif local is not None:
            name = service.name
            self._local = Local(lambda: local_handler(name))

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on; if that fails it is dropped."""
        try:
            if record.levelno >= self._bus.threshold:
                self._bus.put(told_of(record))
            elif self._local is not None:
                self._local.put(record)
        except Exception:  # noqa: BLE001  # logging must not stop a program, whatever its records contain
            self._bus.dropped += 1

    def close(self) -> None:
        """Write what waits for this machine's log, and end."""
        if self._local is not None:
            self._local.close()
        super().close()


class Local:
    """Passes records to a handler that may block, in a thread of its own that starts with the first record."""

    def __init__(self, make: Callable[[], logging.Handler]) -> None:
        self.dropped = 0
        self._make = make
        self._waiting: deque[logging.LogRecord] = deque()
        self._has_some = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def put(self, record: logging.LogRecord) -> None:
        """Add a record, from any thread; never waits for the handler."""
        with self._has_some:
            if self._is_closed or len(self._waiting) >= RECORDS_WAITING_MAX:
                self.dropped += 1
                return
            self._waiting.append(record)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="weft-log", daemon=True)
                self._thread.start()
            self._has_some.notify()

    def close(self) -> None:
        """Write pending records, for at most `CLOSE_S`, and end."""
        with self._has_some:
            self._is_closed = True
            self._has_some.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        handler: logging.Handler | None = None
        while (record := self._next()) is not None:
            try:
                handler = handler or self._make()
                handler.handle(record)
            except Exception:  # noqa: BLE001  # no disk space, no permission: the program continues
                self.dropped += 1
        if handler is not None:
            handler.close()

    def _next(self) -> logging.LogRecord | None:
        with self._has_some:
            while not self._waiting and not self._is_closed:
                self._has_some.wait()
            return self._waiting.popleft() if self._waiting else None


CLOSE_S: Final = 0.2  # seconds; records that a slow disk has not taken by then are dropped


def told_of(record: logging.LogRecord) -> dict[str, Any]:
    """A record in the protocol's form, without its service, instance and number (LOG-003)."""
    fields = {_text(key): _plain(value) for key, value in record.__dict__.items() if key not in _PLAIN}
    if record.exc_info and record.exc_info[0] is not None:
        fields["exception"] = _text(logging.Formatter().formatException(record.exc_info)[-MESSAGE_CHARS_MAX:])
    return {
        "ts": record.created,
        "level": name_of(record.levelno),
        "logger": _text(record.name),
        "message": _message(record),
        "fields": dict(list(fields.items())[:FIELDS_MAX]),
    }


def name_of(level: int) -> str:
    """The level's name on the bus; for a level between the named ones, the name below it.

    >>> name_of(30), name_of(35), name_of(5)
    ('WARNING', 'WARNING', 'DEBUG')
    """
    return next((name for name, least in LEVELS.items() if level >= least), "DEBUG")


def level_of(level: int | str) -> int:
    """A level by its name or number; ValueError for an unknown name.

    >>> level_of("info"), level_of(30)
    (20, 30)
    """
    if isinstance(level, int):
        return level
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f"{level!r} is not a level: {', '.join(LEVELS)}")
    return number


def local_handler(service: str) -> logging.Handler:
    """Syslog, or, without one, a rotated file below the user's state directory."""
    form = logging.Formatter(f"{service}: %(levelname)s %(name)s %(message)s")
    if os.path.exists(SYSLOG):  # noqa: PTH110  # a socket
        handler: logging.Handler = logging.handlers.SysLogHandler(SYSLOG)
    else:
        base = Path(os.environ.get("XDG_STATE_HOME", "") or Path.home() / ".local/state") / "weft/log"
        base.mkdir(parents=True, exist_ok=True)
        path = base / f"{service.replace(os.sep, '_')}.log"
        handler = logging.handlers.RotatingFileHandler(path, maxBytes=FILE_BYTES_MAX, backupCount=FILES_MAX)
        form = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")
    handler.setFormatter(form)
    return handler


def _message(record: logging.LogRecord) -> str:
    try:
        return _text(record.getMessage())
    except Exception:  # noqa: BLE001  # the arguments do not fit the text: use the text alone
        return _text(record.msg)


def _plain(value: Any) -> Any:
    """A value that JSON can hold: None, booleans, numbers; everything else as text."""
    if value is None or isinstance(value, bool | float):
        return value
    return value if isinstance(value, int) and abs(value) < 1 << 63 else _text(value)


def _text(value: Any) -> str:
    """Text of bounded length, valid as UTF-8."""
    return str(value)[:MESSAGE_CHARS_MAX].encode("utf-8", "replace").decode()
