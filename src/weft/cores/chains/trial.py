"""Tests of filters in a file: `[[chains.test]]` beside `[[chains.filter]]`, run without a node (CHN-072).

    [[chains.test]]
    name = "old alarms end here"
    type = "app.alarm"
    dir = "in"                                # default: "out"
    level = "collector"                       # or "root", "sensor": where the filters stand
    send = [{ level = 5 }, { level = 1 }]     # one message each: a table, a list of tables, a text
    every = "1s"                              # between two of them; default: none
    until = "1m"                              # how long time goes on; default: until the last has been sent
    passes = [{ level = 5 }]                  # what comes to the end of the chain
    sends = [{ level = 5 }]                   # what filters send from this node
    journals = []                             # what filters put into the journal for the lake

The chains core itself runs them, in virtual time, so a node behaves exactly as in the test.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from weft.base.effects import Persist, Tell
from weft.base.mail import INBOX, OUTBOX, Mail, of_record, to_record
from weft.base.now import MILLISECOND, Now
from weft.base.records import Record, Stream, StreamRecord
from weft.base.settings import Table
from weft.cores.chains import limits
from weft.cores.chains.core import Chains
from weft.cores.chains.messages import BatchPassed, ChainsSettings, MailPosted, PassBatch, Placed, PostReached
from weft.cores.chains.parcel import IN, OUT, Parcel
from weft.cores.chains.settings import METRIC, FilterSpec, parse_filters
from weft.wire import clients
from weft.wire.samples import Row, SampleBatch, Series

LEVELS: Final = ("collector", "root", "sensor")
FORMATS: Final = ("json", "msgpack", "text", "raw", "xml")
WALL: Final = 1_800_000_000_000_000_000
"""When every test begins: at a full minute, so that windows begin there too."""
NODE, CHILD = b"\x01" * 16, b"\x02" * 16
Functions = dict[str, Callable[[dict[Any, Any]], Any]]
KINDS: Final = ("passes", "sends", "journals")
_ENCODE: Final[dict[str, Callable[[Any], bytes]]] = {"json": msgspec.json.encode, "msgpack": msgspec.msgpack.encode}
_DECODE: Final[dict[str, Callable[[bytes], Any]]] = {"json": msgspec.json.decode, "msgpack": msgspec.msgpack.decode}


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One test of a file."""

    name: str
    type: str
    direction: str = OUT
    level: str = "collector"
    fmt: str = "json"
    send: tuple[Any, ...] = ()
    every_ns: int = 0
    until_ns: int = 0
    expected: dict[str, list[Any]] = {}
    """`passes`, `sends`, `journals`: those that the test states."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of a test."""

    name: str
    found: dict[str, list[Any]]
    """The results for what the test states."""
    expected: dict[str, list[Any]]

    @property
    def is_good(self) -> bool:
        """Whether the result is the expected one."""
        return self.found == self.expected


def parse_trials(document: dict[str, Any]) -> tuple[list[FilterSpec], list[Trial], list[str]]:
    """The filters and tests of a file, and all errors in them."""
    chains = document.get("chains")
    if not isinstance(chains, dict):
        return [], [], ["E03 chains: there is no [[chains.filter]]"]
    filters, mistakes = parse_filters(chains.get("filter", []), is_local=True)
    tests = chains.get("test", [])
    if not isinstance(tests, list) or not tests:
        return filters, [], [*mistakes, "E03 chains.test: there is no [[chains.test]]"]
    trials = [_trial(Table(values, f"chains.test[{index}]", mistakes)) for index, values in enumerate(tests)]
    return filters, trials, mistakes


def _trial(table: Table) -> Trial:
    trial = Trial(
        name=table.text("name", is_required=True),
        type=table.text("type", is_required=True),
        direction=table.choice("dir", (OUT, IN), OUT),
        level=table.choice("level", LEVELS, "collector"),
        fmt=table.choice("fmt", FORMATS, "json"),
        send=tuple(_messages(table, "send")),
        every_ns=table.span("every", 0),
        until_ns=table.span("until", 0),
        expected={kind: _messages(table, kind) for kind in KINDS if kind in table},
    )
    for kind in KINDS:
        table.raw(kind)
    if not trial.expected:
        table.say("E03", "passes", "sends or journals is missing: what comes of it?")
    table.end()
    return trial


def _messages(table: Table, key: str) -> list[Any]:
    messages = table.raw(key)
    if messages is None:
        return []
    if not isinstance(messages, list) or len(messages) > limits.TRIAL_MESSAGES_MAX:
        table.say("E04", key, f"must be a list of at most {limits.TRIAL_MESSAGES_MAX:,} messages")
        return []
    return messages


def play(filters: list[FilterSpec], trial: Trial, functions: Functions | None = None) -> Outcome:
    """Run one test with fresh filters; filters of kind `python` call these functions."""
    stage = _Stage(filters, trial, functions or {})
    for number, message in enumerate(trial.send):
        stage.advance(number * trial.every_ns)
        stage.send(message)
    stage.advance(max(trial.until_ns, len(trial.send[1:]) * trial.every_ns))
    return Outcome(trial.name, {kind: stage.found[kind] for kind in trial.expected}, trial.expected)


class _Stage:
    """One chains core with a simulated sender and surroundings."""

    def __init__(self, filters: list[FilterSpec], trial: Trial, functions: Functions) -> None:
        self.found: dict[str, list[Any]] = {kind: [] for kind in KINDS}
        self.is_gone, self.id, self.name = False, bytes(16), "test"
        self.links: dict[int, Any] = {}
        self._trial, self._ns, self._tag = trial, 0, 0
        parent = "" if trial.level == "root" else "parent"
        settings = ChainsSettings(name="node", level=trial.level, functions=functions)
        self._core = Chains(filters, settings, NODE, 1)
        self._core.command(Placed(trial.level, parent), self._now)
        self._core.engine.stand(self, clients.Reg(reg=1, dir=trial.direction, type="*"), self._now)
        self._take()

    @property
    def _now(self) -> Now:
        return Now(self._ns, WALL + self._ns)

    def advance(self, to_ns: int) -> None:
        """Let time pass; the core is woken at its deadlines."""
        while (due := self._core.deadline()) is not None and due <= to_ns:
            self._ns = max(self._ns, due)
            self._core.wake(self._now)
            self._take()
        self._ns = to_ns

    def send(self, message: Any) -> None:
        """Send one message of the test from the top of its chain."""
        self._tag += 1
        trial = self._trial
        if trial.type == METRIC:
            self._core.command(PassBatch(trial.direction, METRIC, _batch(message, self._now)), self._now)
        elif trial.direction == OUT:
            item = clients.SendItem(tag=self._tag, type=trial.type, to=["PARENTSOF"], fmt=trial.fmt)
            self._core.engine.accept(self, item, (self._encoded(message),), self._now)
        else:
            self._keep(self._core.screen(self._arriving(message), self._now))
        self._take()

    def _arriving(self, message: Any) -> StreamRecord:
        mail = Mail(
            origin=CHILD,
            era=1,
            sequence=self._tag,
            type=self._trial.type,
            frames=(self._encoded(message),),
            to=("PARENTSOF",),
            via=(CHILD,),
            at=self._now.wall,
            fmt=self._trial.fmt,
        )
        return to_record(mail, INBOX, self._now.wall)

    def _encoded(self, message: Any) -> bytes:
        if isinstance(message, str):
            return message.encode()
        return _ENCODE.get(self._trial.fmt, msgspec.json.encode)(message)

    def _take(self) -> None:
        for effect in self._core.effects():
            if isinstance(effect, Persist):
                self._keep(effect.records)
            elif isinstance(effect, Tell):
                self._hear(effect.event)

    def _keep(self, records: Iterable[Record]) -> None:
        for record in records:
            if isinstance(record, StreamRecord):
                self._note(record)

    def _note(self, record: StreamRecord) -> None:
        if record.stream == OUTBOX and self._trial.direction == IN:
            mail = of_record(record)
            self.found["sends"].append(_frames_shown(mail.frames, mail.fmt))
        elif record.stream == Stream.MESSAGES:
            self.found["journals"].append(_shown(record.payload, record.attributes.get("fmt", "raw")))

    def _hear(self, event: Any) -> None:
        if isinstance(event, BatchPassed):
            self.found["passes"] += [_record(event.batch, row) for row in event.batch.rows]
        elif isinstance(event, MailPosted):
            self.found["sends"].append(_frames_shown(event.mail.frames, event.mail.fmt))
            self._core.command(PostReached(event.ticket, 1), self._now)

    # It acts as a client: it sends, and it reads after all others.

    def copy(self, reg: int, parcel: Parcel) -> None:
        """A message that reached the end of the chain."""
        if self._trial.type != METRIC:
            self.found["passes"].append(_frames_shown(parcel.frames, parcel.fmt))

    def offer(self, reg: int, parcel: Parcel, *, re: bool = False) -> None:
        """It holds nothing."""

    def answer(self, tag: int, ok: bool, why: str, count: int | None = None, failed: int = 0) -> None:  # noqa: FBT001 - as a status says it
        """Ignored: the outcome of a send shows in what comes out."""

    def say(self, message: clients.Answered) -> None:
        """Ignored: it asks for nothing that could be refused."""


def _frames_shown(frames: tuple[bytes, ...], fmt: str) -> Any:
    shown = [_shown(frame, fmt) for frame in frames]
    return shown[0] if len(shown) == 1 else shown


def _shown(frame: bytes, fmt: str) -> Any:
    decode = _DECODE.get(fmt)
    try:
        return frame.decode() if decode is None else decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return frame.hex()


def _batch(message: Any, now: Now) -> SampleBatch:
    """Samples in the form of a test: `{ name = "cpu", value = 93.0, labels = { … } }`, one or a list."""
    records = message if isinstance(message, list) else [message]
    series = [
        Series(
            str(record.get("name", "")),
            str(record.get("detail", "")),
            str(record.get("type", "basic")),
            {str(key): str(value) for key, value in record.get("labels", {}).items()},
        )
        for record in records
    ]
    rows = [Row(index, 0, record.get("value", 0)) for index, record in enumerate(records)]
    return SampleBatch(now.wall // MILLISECOND, tuple(series), rows)


def _record(batch: SampleBatch, row: Row) -> dict[str, Any]:
    series = batch.series[row.series]
    fields = {"name": series.config_name, "detail": series.detail, "labels": series.labels, "value": row.value}
    return {key: value for key, value in fields.items() if value or key == "value"}
