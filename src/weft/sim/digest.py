"""The state of a node as one number: everything its cores remember, but for what they only count (CHK-019)."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from enum import Enum
from hashlib import blake2b
from random import Random
from types import FunctionType, MethodType
from typing import Any, Final

import msgspec

from weft.base.now import Now
from weft.node.node import Node
from weft.wire.journal import encode_record

ATOMS: Final = (int, float, str, bytes, bytearray, bool, type(None))
DEPTH_MAX: Final = 24


def state_digest(node: Node) -> str:
    """BLAKE2b-128 over the state of all cores, without counters (names with `count`) and the instant of the last call."""
    digest = blake2b(digest_size=16)
    for name, core in node.cores.items():
        digest.update(name.encode())
        for piece in _pieces(core, 0):
            digest.update(piece)
    return digest.hexdigest()


def memory_digest(node: Node) -> str:
    """BLAKE2b-128 over what the cores would keep in a snapshot, core by core (JRN-040)."""
    digest = blake2b(digest_size=16)
    for core in node.cores.values():
        for record in core.condense():
            digest.update(encode_record(record))
    return digest.hexdigest()


def _pieces(value: Any, depth: int) -> Iterator[bytes]:
    assert depth < DEPTH_MAX, f"a state nests deeper than {DEPTH_MAX}"
    if isinstance(value, ATOMS):
        yield f"{type(value).__name__}:{value!r};".encode()
    elif isinstance(value, Enum | type | FunctionType | MethodType | Counter):
        yield b"" if isinstance(value, Counter) else getattr(value, "__name__", str(value)).encode()
    elif isinstance(value, Random):
        yield repr(value.getstate()).encode()
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _pieces(key, depth + 1)
            yield from _pieces(item, depth + 1)
    elif isinstance(value, set | frozenset):
        yield from sorted(b"".join(_pieces(item, depth + 1)) for item in value)
    elif isinstance(value, list | tuple | deque):
        yield f"{len(value)}[".encode()
        for item in value:
            yield from _pieces(item, depth + 1)
    else:
        yield from _fields(value, depth)


def _fields(value: Any, depth: int) -> Iterator[bytes]:
    """An object by its attributes, wherever it keeps them."""
    yield type(value).__name__.encode()
    names = list(getattr(value, "__dict__", ()))
    for kind in type(value).__mro__:
        names += [name for name in getattr(kind, "__slots__", ()) if hasattr(value, name)]
    if isinstance(value, msgspec.Struct):
        names = list(value.__struct_fields__)
    for name in names:
        if "count" not in name and not isinstance(getattr(value, name), Now):
            yield name.encode()
            yield from _pieces(getattr(value, name), depth + 1)
