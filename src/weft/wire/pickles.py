"""Pickles as the original dCAMP nodes of 2014 send them, read by a decoder of our own (CFG-100 to CFG-102).

A pickle is a program for a machine with a stack, and Python's machine calls whatever the pickle names. This decoder
knows a fixed list of opcodes that make plain values: None, booleans, numbers, text, bytes, lists, dictionaries, tuples.
A name may only be one of `KINDS`; what is made of it is a `Made`, which is data and calls nothing. `datetime` alone
comes by REDUCE.

Anything else, and what is too long, too deep or has too many objects, raises PeerError `pickle` or `too-large`. Circles
are allowed where the original nodes make them: a node knows its parent, and its parent the node.
"""

import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

from weft.base.errors import PeerError

BYTES_MAX: Final = 256 << 10
OBJECTS_MAX: Final = 10_000  # an original fleet of 200 nodes says 2,000
DEPTH_MAX: Final = 64
DIGITS_MAX: Final = 64  # of a whole number in text; a UUID has 39
INTEGER_BYTES_MAX: Final = 32

SPECS: Final = "dcamp.types.specs"
TOPO: Final = "dcamp.types.topo"
KINDS: Final[dict[tuple[str, str], tuple[str, ...] | None]] = {
    (SPECS, "EndpntSpec"): ("host", "port"),
    (SPECS, "MetricSpec"): ("config_name", "rate", "threshold", "detail", "param", "aggr"),
    (SPECS, "ThreshSpec"): ("op", "value"),
    (SPECS, "FilterSpec"): ("action", "match"),
    (TOPO, "TopoNode"): None,
    ("uuid", "UUID"): None,
    ("datetime", "datetime"): None,
}
"""Every name that a pickle may have (CFG-101), and the fields of those that are made of a tuple."""
STATES: Final = {
    "TopoNode": frozenset({"endpoint", "uuid", "level", "group", "parent", "children", "last_seen"}),
    "UUID": frozenset({"int"}),
}
"""The fields that an object which is made empty may be given."""


class Made:
    """An object of one of `KINDS`: its name and its fields. Compared by identity, since there are circles."""

    __slots__ = ("fields", "kind")

    def __init__(self, kind: str, fields: dict[str, Any]) -> None:
        self.kind, self.fields = kind, fields


class _Name:
    """A name that stands on the stack, until something is made of it."""

    __slots__ = ("fields", "kind")

    def __init__(self, kind: str, fields: tuple[str, ...] | None) -> None:
        self.kind, self.fields = kind, fields


CIRCLES: Final = ("parent", "children")
"""Fields that may form circles: they are not followed."""
MARK: Final = object()


def read(data: bytes) -> Any:
    """The value of a pickle; PeerError `too-large`, or `pickle` for what is none of these.

    >>> read(bytes.fromhex("80044b022e")), read(bytes.fromhex("80044e2e"))
    (2, None)
    """
    if len(data) > BYTES_MAX:
        raise PeerError("too-large", f"a pickle of {len(data)} bytes, {BYTES_MAX} at most", data)
    try:
        value = _Machine(data).run()
    except (IndexError, ValueError, TypeError, KeyError, UnicodeError, struct.error, _Wrong) as error:
        raise PeerError("pickle", str(error)[:200] or type(error).__name__, data) from None
    _measure(value, data)
    return value


class _Wrong(Exception):
    """The bytes are no such pickle."""


class _Machine:
    """One pickle being read: where, the stack, and what is remembered."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.made = 0

    def run(self) -> Any:
        """Carry out the opcodes up to the end of the pickle; nothing may follow it."""
        while (code := self.take(1)) != b".":
            step = STEPS.get(code)
            if step is None:
                raise _Wrong(f"opcode {code!r}")
            step(self)
        if len(self.stack) != 1 or self.at != len(self.data):
            raise _Wrong("not one value, or bytes behind it")
        return _plain(self.stack[0])

    # Bytes

    def take(self, count: int) -> bytes:
        """The next bytes; `_Wrong` at the end."""
        self.at += count
        if self.at > len(self.data):
            raise _Wrong("it ends too early")
        return self.data[self.at - count : self.at]

    def number(self, count: int) -> int:
        """The next little-endian count."""
        return int.from_bytes(self.take(count), "little")

    def line(self) -> str:
        """Text up to the end of the line."""
        end = self.data.index(b"\n", self.at)
        return self.take(end + 1 - self.at)[:-1].decode()

    # Stack

    def push(self, value: Any) -> None:
        """One more value."""
        self.made += 1
        if self.made > OBJECTS_MAX:
            raise _Wrong(f"more than {OBJECTS_MAX} objects")
        self.stack.append(value)

    def pop(self) -> Any:
        """The last one, which is a value."""
        return _plain(self.stack.pop())

    def top(self, kind: type) -> Any:
        """The last one, which is of that kind."""
        if type(self.stack[-1]) is not kind:
            raise _Wrong(f"no {kind.__name__} stands there")
        return self.stack[-1]

    def marked(self) -> list[Any]:
        """All behind the last mark."""
        begin = len(self.stack) - 1 - self.stack[::-1].index(MARK)
        found = [_plain(value) for value in self.stack[begin + 1 :]]
        del self.stack[begin:]
        return found

    # What opcodes do

    def recall(self, number: int) -> None:
        """Put what was remembered on the stack again."""
        self.push(self.memo[number])

    def remember(self, number: int) -> None:
        """Know the last value by a number."""
        if self.stack[-1] is MARK:
            raise _Wrong("a mark is remembered")
        self.memo[number] = self.stack[-1]

    def name(self, module: Any, name: Any) -> None:
        """A name, if it is an allowed one."""
        if (module, name) not in KINDS:
            raise _Wrong(f"the name {str(module)[:64]}.{str(name)[:64]}")
        self.push(_Name(name, KINDS[module, name]))

    def stacked_name(self) -> None:
        """The same, of two texts on the stack."""
        name, module = self.pop(), self.pop()
        self.name(module, name)

    def make(self) -> None:
        """An object of a name and a tuple (NEWOBJ)."""
        given = self.pop()
        name = self.stack.pop()
        if type(name) is not _Name or type(given) is not tuple or name.kind == "datetime":
            raise _Wrong("what is made is no object")
        self.push(Made(name.kind, dict(zip(name.fields or (), given, strict=True))))  # ValueError: too few, or too many

    def reduce(self) -> None:
        """An instant (REDUCE): ten bytes."""
        given = self.pop()
        name = self.stack.pop()
        if type(name) is not _Name or name.kind != "datetime" or type(given) is not tuple:
            raise _Wrong("something is called")
        if len(given) != 1 or type(given[0]) is not bytes or len(given[0]) != 10:
            raise _Wrong("no instant")
        self.push(Made("datetime", {"bytes": given[0]}))

    def build(self) -> None:
        """Give an empty object its fields (BUILD)."""
        state = self.pop()
        made = self.top(Made)
        known = STATES.get(made.kind)
        if type(state) is not dict or known is None or not known.issuperset(state):
            raise _Wrong(f"{made.kind} is told what it has not")
        made.fields.update(state)

    def append(self) -> None:
        """One more element of a list."""
        value = self.pop()
        self.top(list).append(value)

    def extend(self) -> None:
        """Several of them."""
        values = self.marked()
        self.top(list).extend(values)

    def set_item(self) -> None:
        """One more entry of a dictionary."""
        value, key = self.pop(), self.pop()
        self.top(dict).update(_entries([key, value]))

    def set_items(self) -> None:
        """Several of them."""
        values = self.marked()
        self.top(dict).update(_entries(values))

    def tuple_of(self, count: int) -> None:
        """The last values as a tuple."""
        values = [self.pop() for _ in range(count)]
        self.push(tuple(reversed(values)))

    def integer(self, size: int) -> None:
        """A signed whole number of as many bytes as the next ones say."""
        count = self.number(size)
        if count > INTEGER_BYTES_MAX:
            raise _Wrong(f"a whole number of {count} bytes")
        self.push(int.from_bytes(self.take(count), "little", signed=True))

    def text_integer(self) -> None:
        """A whole number in text; `00` and `01` are booleans."""
        text = self.line()
        if len(text) > DIGITS_MAX:
            raise _Wrong("a whole number of too many digits")
        self.push(text == "01" if text in ("00", "01") else int(text.removesuffix("L")))


def _plain(value: Any) -> Any:
    if value is MARK or type(value) is _Name:
        raise _Wrong("a mark or a name is used as a value")
    return value


def _entries(values: list[Any]) -> dict[Any, Any]:
    """Keys are text or numbers: anything else would need a hash that the sender chooses."""
    if len(values) % 2 or not all(type(key) in (str, int, bool, type(None)) for key in values[::2]):
        raise _Wrong("no entries of a dictionary")
    return dict(zip(values[::2], values[1::2], strict=True))


def _signed(machine: _Machine) -> None:
    machine.push(int.from_bytes(machine.take(4), "little", signed=True))


def _text(size: int) -> Callable[[_Machine], None]:
    return lambda machine: machine.push(machine.take(machine.number(size)).decode())


def _bytes(size: int) -> Callable[[_Machine], None]:
    return lambda machine: machine.push(machine.take(machine.number(size)))


def _named(machine: _Machine) -> None:
    module = machine.line()
    machine.name(module, machine.line())


STEPS: Final[dict[bytes, Callable[[_Machine], Any]]] = {
    b"\x80": lambda machine: _protocol(machine.number(1)),
    b"\x95": lambda machine: machine.take(8),  # FRAME: how long the next part is, which nobody needs to know
    b"(": lambda machine: machine.stack.append(MARK),
    b"N": lambda machine: machine.push(None),
    b"\x88": lambda machine: machine.push(True),
    b"\x89": lambda machine: machine.push(False),
    b"I": _Machine.text_integer,
    b"L": _Machine.text_integer,
    b"K": lambda machine: machine.push(machine.number(1)),
    b"M": lambda machine: machine.push(machine.number(2)),
    b"J": _signed,
    b"\x8a": lambda machine: machine.integer(1),
    b"\x8b": lambda machine: machine.integer(4),
    b"F": lambda machine: machine.push(float(machine.line())),
    b"G": lambda machine: machine.push(struct.unpack(">d", machine.take(8))[0]),
    b"V": lambda machine: machine.push(machine.line().encode("latin-1").decode("raw-unicode-escape")),
    b"X": _text(4),
    b"\x8c": _text(1),
    b"\x8d": _text(8),
    b"B": _bytes(4),
    b"C": _bytes(1),
    b"\x8e": _bytes(8),
    b"]": lambda machine: machine.push([]),
    b"l": lambda machine: machine.push(machine.marked()),
    b"a": _Machine.append,
    b"e": _Machine.extend,
    b"}": lambda machine: machine.push({}),
    b"d": lambda machine: machine.push(_entries(machine.marked())),
    b"s": _Machine.set_item,
    b"u": _Machine.set_items,
    b")": lambda machine: machine.push(()),
    b"t": lambda machine: machine.push(tuple(machine.marked())),
    b"\x85": lambda machine: machine.tuple_of(1),
    b"\x86": lambda machine: machine.tuple_of(2),
    b"\x87": lambda machine: machine.tuple_of(3),
    b"p": lambda machine: machine.remember(int(machine.line()[:DIGITS_MAX])),
    b"q": lambda machine: machine.remember(machine.number(1)),
    b"r": lambda machine: machine.remember(machine.number(4)),
    b"\x94": lambda machine: machine.remember(len(machine.memo)),
    b"g": lambda machine: machine.recall(int(machine.line()[:DIGITS_MAX])),
    b"h": lambda machine: machine.recall(machine.number(1)),
    b"j": lambda machine: machine.recall(machine.number(4)),
    b"c": _named,
    b"\x93": _Machine.stacked_name,
    b"\x81": _Machine.make,
    b"R": _Machine.reduce,
    b"b": _Machine.build,
}
"""Every opcode that is obeyed."""


def _protocol(number: int) -> None:
    if number > 5:
        raise _Wrong(f"protocol {number}")


def _measure(value: Any, data: bytes) -> None:
    """Refuse what is nested too deeply, and what has too many objects where each is counted as often as it is met."""
    waiting, count = [(value, 0)], 0
    while waiting:
        one, depth = waiting.pop()
        count += 1
        if depth > DEPTH_MAX or count > OBJECTS_MAX:
            raise PeerError("pickle", f"deeper than {DEPTH_MAX}, or more than {OBJECTS_MAX} objects", data)
        waiting += [(part, depth + 1) for part in _parts(one)]


def _parts(value: Any) -> Iterable[Any]:
    """What it is made of, without parent and children of a node, which form circles."""
    if type(value) is Made:
        return [part for name, part in value.fields.items() if name not in CIRCLES]
    if type(value) is dict:
        return value.values()
    return value if type(value) in (list, tuple) else ()


def write(value: Any) -> bytes:
    r"""A value as a pickle of protocol 3 (CFG-102). Trees only; whole numbers of at most 32 bytes.

    >>> write({"a": [1, None]})
    b'\x80\x03}(X\x01\x00\x00\x00a](K\x01Neu.'
    """
    return b"\x80\x03" + _written(value) + b"."


def _written(value: Any) -> bytes:
    if value is None or type(value) is bool:
        return {None: b"N", True: b"\x88", False: b"\x89"}[value]
    return WRITERS[type(value)](value)


def _written_int(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + bytes([value])
    size = value.bit_length() // 8 + 1
    return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)


def _written_text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def _written_dict(value: dict[Any, Any]) -> bytes:
    return b"}(" + b"".join(_written(key) + _written(one) for key, one in value.items()) + b"u"


def _written_made(value: Made) -> bytes:
    (module,) = [module for module, name in KINDS if name == value.kind]
    name = f"c{module}\n{value.kind}\n".encode()
    if value.kind == "datetime":
        return name + _written((value.fields["bytes"],)) + b"R"
    if value.kind in STATES:
        return name + b")\x81" + _written(value.fields) + b"b"
    return name + _written(tuple(value.fields.values())) + b"\x81"


WRITERS: Final[dict[type, Callable[[Any], bytes]]] = {
    int: _written_int,
    float: lambda value: b"G" + struct.pack(">d", value),
    str: _written_text,
    bytes: lambda value: b"B" + struct.pack("<I", len(value)) + value,
    list: lambda value: b"](" + b"".join(map(_written, value)) + b"e",
    tuple: lambda value: b"(" + b"".join(map(_written, value)) + b"t",
    dict: _written_dict,
    Made: _written_made,
}
