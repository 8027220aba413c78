"""Records a whole node: every call that the shell makes, and the effects (OBS-006).

A node is deterministic: the same start and the same calls give the same effects. So a recording of a node in the field can
be replayed at a desk, and fails there in the same way. `RecordedNode` writes one row before each call and one with its
effects; `Replay` makes the same calls and compares.

Rows are pickles, because orders and events may be of any of Weft's classes. `_Unpickler` makes objects of those classes
only: a malicious recording may fill the memory, but cannot run code. A recording has everything that the node received,
and the node's secret.
"""

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn

import msgspec

from weft.base.effects import Source
from weft.base.errors import UserError
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry, UnknownRecord
from weft.node import installed
from weft.node.assembly import build_node
from weft.node.guard import MemoryTight
from weft.node.node import Node, NodeEffect
from weft.node.settings import NodeSettings

MAGIC: Final = b"WEFTREC1"
ROW_BYTES_MAX: Final = 1 << 30  # the largest row is a part of a journal, 20,000 records
SHOWN_CHARS: Final = 600  # of an effect that differs
PARTS: Final = (msgspec.Struct, tuple, Enum, UnknownRecord)
"""Classes of Weft may be in a row if they derive from one of these."""
BUILT_IN: Final = frozenset({"set", "frozenset", "bytearray", "complex"})
"""Python's own classes that may be in a row by name."""


class Begin(NamedTuple):
    """How a node was made: the arguments of `build_node`."""

    version: str
    settings: NodeSettings
    node: bytes
    era: int
    seed: str
    secret: bytes


Write = Callable[[bytes], None]


class RecordedNode(Node):
    """A node that records its calls and effects. `write` is called with one framed row at a time."""

    def __init__(self, node: Node, begin: Begin, write: Write) -> None:  # takes over the whole state of `node`
        vars(self).update(vars(node))
        self._write = write
        self._note("start", begin)

    def restore(self, entries: Iterable[Entry], next_lsn: int, now: Now) -> None:
        self._call("restore", list(entries), next_lsn, now)

    def hear(self, messages: Iterable[tuple[Source, list[bytes]]], now: Now) -> None:
        self._call("hear", list(messages), now)

    def command(self, core: str, order: Any, now: Now) -> None:
        self._call("command", core, order, now)

    def tell(self, event: Any, now: Now) -> None:
        self._call("tell", event, now)

    def wake(self, now: Now) -> None:
        self._call("wake", now)

    def wrote(self, count: int) -> None:
        self._call("wrote", count)

    def deadline(self) -> int | None:
        if not self._is_settled:  # this call is recorded, too, because some cores note that they were asked
            self._note("deadline")
        return super().deadline()

    def condense(self) -> Iterator[CoreRecord]:
        self._note("condense")
        yield from super().condense()

    def effects(self) -> list[NodeEffect]:
        done = super().effects()
        if done:
            self._note("effects", done)
        return done

    def _call(self, verb: str, *args: Any) -> None:
        self._note(verb, *args)
        try:
            getattr(Node, verb)(self, *args)
        except BaseException as fault:
            self._note("failed", f"{type(fault).__name__}: {fault}")
            raise

    def _note(self, what: str, *args: Any) -> None:
        self._write(framed((what, *args)))


def framed(row: tuple[Any, ...]) -> bytes:
    """A row as it is stored: the length of its pickle, then the pickle."""
    body = pickle.dumps(row, protocol=5)
    return len(body).to_bytes(4, "big") + body


def is_recording(file: BinaryIO) -> bool:
    """Whether the file begins like a recording; its position is at the beginning again afterwards."""
    head = file.read(len(MAGIC))
    file.seek(0)
    return head == MAGIC


def rows(file: BinaryIO) -> Iterator[tuple[Any, ...]]:
    """All complete rows of a recording; an incomplete last row is left out. UserError `no-recording`."""
    if file.read(len(MAGIC)) != MAGIC:
        raise UserError("no-recording", "this is not a recording of a node", "a file that weft up --record wrote")
    while len(head := file.read(4)) == 4:
        length = int.from_bytes(head, "big")
        body = file.read(length) if length <= ROW_BYTES_MAX else b""
        if len(body) < length:
            return
        yield _row(body)


def _row(body: bytes) -> tuple[Any, ...]:
    try:
        row = _Unpickler(io.BytesIO(body)).load()
    except (pickle.UnpicklingError, ValueError, TypeError, EOFError, AttributeError, ImportError, LookupError) as error:
        _damaged(error)
    if not (isinstance(row, tuple) and row and isinstance(row[0], str)):
        _damaged("a row does not name a call")
    return row


def _damaged(why: Any) -> NoReturn:
    mend = "use the version of Weft that recorded it; the first row names it"
    raise UserError("no-recording", f"the recording cannot be read: {why}", mend) from None


class _Unpickler(pickle.Unpickler):
    """Unpickles objects of classes of Weft and of annexes, and nothing that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "builtins" and name in BUILT_IN:
            return super().find_class(module, name)
        if (module, name) == ("builtins", "getattr"):
            return _member  # before 3.11.4, Python pickles a member of an Enum as a call of getattr
        if name == "rebuild" and module.partition(".")[0] == "msgspec":
            return _rebuild
        found = super().find_class(module, name) if _is_known(module) else None
        if isinstance(found, type) and issubclass(found, PARTS) and _is_known(found.__module__):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed in a recording")


def _is_known(module: str) -> bool:
    """Whether a module belongs to Weft, or to an annex that is installed here."""
    package = module.partition(".")[0]
    return package == "weft" or package in installed.packages()


def _member(kind: Any, name: Any) -> Any:
    """A member of an Enum. `getattr` itself would return any attribute of any object."""
    if not (isinstance(kind, type) and issubclass(kind, Enum)):
        raise pickle.UnpicklingError(f"{kind!r} is not an Enum")
    return kind[name]


def _rebuild(kind: Any, fields: dict[str, Any]) -> Any:
    """A Struct from its fields. msgspec's own function would call any object."""
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        raise pickle.UnpicklingError(f"{kind!r} is not a Struct")
    return kind(**fields)


class Difference(NamedTuple):
    """Where a replay differs from the recording."""

    turn: int
    """Number of the turn in the whole recording, from 1: turns are calls after which there were effects."""
    place: int
    """Number of the effect in its turn, from 1; 0: the difference is no effect."""
    recorded: str
    replayed: str


class Replay:
    """Makes the calls of a recording again. `difference` and `failed` say how it ended."""

    def __init__(self) -> None:
        self.node: Node | None = None
        self.begin: Begin | None = None
        self.starts = self.calls = self.turns = self.effects = 0
        self.first_ns = self.last_ns = 0
        """The wall clock of the first and the last call, in ns."""
        self.difference: Difference | None = None
        self.failed = ""
        """The error with which both the recorded and the replayed node ended; empty: none."""
        self.fault: BaseException | None = None
        """The error that the replayed node raised."""
        self._is_open = False

    def play(self, recorded: Iterable[tuple[Any, ...]]) -> None:
        """Replay the rows until the results differ."""
        for what, *args in recorded:
            if what == "start":
                self._start(Begin(*args[0]))
            elif what == "effects":
                self._compare(args[0])
            elif what == "failed":
                self._fail(args[0])
            else:
                self._call(what, args)
            if self.difference is not None:
                return
        if self.fault is not None and not self.failed:
            self._differ("the recording goes on", f"fails: {_named(self.fault)}")

    def _start(self, begin: Begin) -> None:
        self.starts, self.begin = self.starts + 1, begin
        self.node = build_node(begin.settings, begin.node, begin.era, begin.seed, begin.secret)

    def _call(self, verb: str, args: Sequence[Any]) -> None:
        if self.fault is not None:
            self._differ("the recording goes on", f"fails: {_named(self.fault)}")
            return
        if verb not in CALLS or self.node is None:
            _damaged(f"it holds a call of {verb!r}")
        self.calls += 1
        if args and isinstance(args[-1], Now):
            self.last_ns = args[-1].wall
            self.first_ns = self.first_ns or self.last_ns
        try:
            CALLS[verb](self.node, *args)
        except Exception as fault:  # noqa: BLE001  # any error may be the one that was recorded
            self.fault = fault

    def _compare(self, recorded: list[Any]) -> None:
        if self.fault is not None or self.node is None:
            self._differ("the recording goes on", f"fails: {_named(self.fault)}")
            return
        self.turns += 1
        replayed = self.node.effects()
        for place in range(max(len(recorded), len(replayed))):
            pair = [each[place] if place < len(each) else None for each in (recorded, replayed)]
            if not _are_same(*pair):
                self._differ(_shown(pair[0]), _shown(pair[1]), place + 1)
                return
        self.effects += len(recorded)

    def _fail(self, recorded: str) -> None:
        if self.fault is None:
            self._differ(f"failed: {recorded}", "goes on")
        elif _named(self.fault) != recorded:
            self._differ(f"failed: {recorded}", f"fails: {_named(self.fault)}")
        else:
            self.failed = recorded

    def _differ(self, recorded: str, replayed: str, place: int = 0) -> None:
        self.difference = Difference(self.turns, place, recorded, replayed)


def _tell(node: Node, event: Any, now: Now) -> None:
    if type(event) is MemoryTight:  # the shell froze the cores before it reported this
        for core in node.cores.values():
            core.budget.freeze(is_frozen=event.is_tight)
    node.tell(event, now)


def _condense(node: Node) -> None:
    for _ in node.condense():
        pass


CALLS: Final[dict[str, Callable[..., Any]]] = {
    "restore": Node.restore,
    "hear": Node.hear,
    "command": Node.command,
    "tell": _tell,
    "wake": Node.wake,
    "wrote": Node.wrote,
    "deadline": Node.deadline,
    "condense": _condense,
}
"""Methods that the shell calls, by their names in rows."""


def _are_same(recorded: Any, replayed: Any) -> bool:
    # NaN is not equal to itself, so values with the same text count as equal, too.
    return type(recorded) is type(replayed) and (recorded == replayed or repr(recorded) == repr(replayed))


def _named(fault: BaseException | None) -> str:
    return f"{type(fault).__name__}: {fault}"


def _shown(effect: Any) -> str:
    return "nothing" if effect is None else repr(effect)[:SHOWN_CHARS]
