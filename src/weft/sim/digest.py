"""A digest of a node's state: everything its cores remember, except counters (CHK-019)."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from enum import Enum
from hashlib import blake2b
from random import Random
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final

import msgspec

from weft.base.now import Now
from weft.cores.document import memory
from weft.cores.document.core import Documents
from weft.node.node import Node
from weft.wire.journal import encode_record

ATOMS: Final = (int, float, str, bytes, bytearray, bool, type(None))
DEPTH_MAX: Final = 24


def state_digest(node: Node) -> str:
    """BLAKE2b-128 over the state of all cores, without counters (names with `count`) and the instant of the last call."""
    digest = blake2b(digest_size=16)
    for name, core in node.cores.items():
        digest.update(name.encode())
        for piece in Walk().pieces(core, 0):
            digest.update(piece)
    return digest.hexdigest()


def memory_digest(node: Node) -> str:
    """BLAKE2b-128 over what the cores would keep in a snapshot, core by core (JRN-040)."""
    digest = blake2b(digest_size=16)
    for core in node.cores.values():
        for record in core.condense():
            digest.update(encode_record(record) if record.core != memory.CORE else b"")
        if isinstance(core, Documents):
            digest.update(repr(_operations(core)).encode())
    return digest.hexdigest()


def _operations(core: Documents) -> list[Any]:
    """All operations by session and source, without time of receipt and sender.

    Those two may differ after a start: an operation that a node passes on is in its journal twice, and then the first
    copy counts.
    """
    logs = {**core.dormant, **{name: session.log for name, session in core.sessions.items()}}
    return [
        (name, source, [log.body(source, number) for number in range(1, latest + 1)], sorted(log.held()))
        for name, log in sorted(logs.items())
        for source, latest in log.sources()
    ]


class Walk:
    """A walk through the state of a core.

    An object already visited is only named, because parts of a core may refer to one another.
    """

    def __init__(self) -> None:
        self._met: dict[int, Any] = {}

    def pieces(self, value: Any, depth: int) -> Iterator[bytes]:
        """The contents of a value, in order."""
        assert depth < DEPTH_MAX, f"a state nests deeper than {DEPTH_MAX}"
        if isinstance(value, ATOMS):
            yield f"{type(value).__name__}:{value!r};".encode()
        elif isinstance(value, Enum | type | FunctionType | BuiltinFunctionType | MethodType | Counter):
            yield b"" if isinstance(value, Counter) else getattr(value, "__name__", str(value)).encode()
        elif isinstance(value, Random):
            yield repr(value.getstate()).encode()
        elif isinstance(value, Mapping):
            for key, item in value.items():
                yield from self.pieces(key, depth + 1)
                yield from self.pieces(item, depth + 1)
        elif isinstance(value, set | frozenset):
            yield from sorted(b"".join(self.pieces(item, depth + 1)) for item in value)
        elif isinstance(value, list | tuple | deque):
            yield f"{len(value)}[".encode()
            for item in value:
                yield from self.pieces(item, depth + 1)
        else:
            yield from self._fields(value, depth)

    def _fields(self, value: Any, depth: int) -> Iterator[bytes]:
        """The attributes of an object, wherever it stores them."""
        yield type(value).__name__.encode()
        if id(value) in self._met:
            return
        self._met[id(value)] = value
        for name in _names(value):
            if "count" not in name and not isinstance(getattr(value, name), Now):
                yield name.encode()
                yield from self.pieces(getattr(value, name), depth + 1)


def _names(value: Any) -> list[str]:
    if isinstance(value, msgspec.Struct):
        return list(value.__struct_fields__)
    names = list(getattr(value, "__dict__", ()))
    for kind in type(value).__mro__:
        names += [name for name in getattr(kind, "__slots__", ()) if hasattr(value, name)]
    return names
