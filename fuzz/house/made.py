"""Makes well-formed messages and orders from choices, by their types: a field holds what its annotation allows.

`hints` say by the name of a field, or by `Struct.field`, from what to pick instead, so that names and numbers of one story
meet again. `field[]` are the items of a list.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from fuzz.house.choices import Choices

Hints = Mapping[str, Sequence[Any]]
LIST_MAX: Final = 3
WORDS: Final = ("a", "b", "", "x.y", "weft.metric", "demo.report", "127.0.0.1:27500", "é", "0f" * 16)
BLOBS: Final = (b"", b"a", b"n" * 16, b"m" * 16, b"\x80", b"\xc0", b"{}", b"x" * 40)
FLOATS: Final = (0.0, 1.0, -1.0, 1e9, 1e18, 0.5)
ANYTHING: Final[tuple[Any, ...]] = (
    None,
    True,
    7,
    -1,
    "a",
    b"a" * 16,
    [],
    ["PARENTSOF"],
    ["DIRECT", "b"],
    {},
    {"a": 1},
    0.5,
)


@cache
def _info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


class Maker:
    """Makes values from one input."""

    def __init__(self, choices: Choices, hints: Hints) -> None:
        self.choices, self.hints = choices, hints

    def one_of(self, kinds: Sequence[Any]) -> Any:
        """A value of one of these types; what is no type is taken as it is, or made by calling it with the choices."""
        kind = self.choices.pick(kinds)
        if isinstance(kind, type):
            return self._of(_info(kind), "")
        return kind(self.choices) if callable(kind) else kind

    def _of(self, info: Any, name: str) -> Any:
        make = _MAKERS.get(type(info))
        assert make is not None, f"{name}: {info}"
        return make(self, info, name)

    def _named(self, info: Any, name: str) -> Any:
        if name in self.hints:
            found = self.choices.pick(self.hints[name])
            return found(self.choices) if callable(found) else found
        return self._of(info, name)

    def struct(self, info: Any, name: str) -> Any:
        """All fields; those that have a default have it mostly."""
        values = {}
        for field in info.fields:
            if field.required or self.choices.flag(3):
                of_struct = f"{info.cls.__name__}.{field.name}"
                values[field.name] = self._named(field.type, of_struct if of_struct in self.hints else field.name)
        return info.cls(**values)

    def whole(self, info: Any, name: str) -> int:
        """A number within its bounds, mostly a small one."""
        least = info.ge if info.ge is not None else 0
        most = info.le if info.le is not None else (1 << 63) - 1
        return int(min(max(self.choices.number(), least), most))

    def text(self, info: Any, name: str) -> str:
        """A word; `.`-free names are what most fields hold."""
        word = self.choices.pick(WORDS)
        return word[: info.max_length] or ("a" if info.min_length else "")

    def blob(self, info: Any, name: str) -> bytes:
        """Some bytes, of the length that is asked for."""
        blob = self.choices.pick(BLOBS)
        if info.min_length is not None:
            blob = blob.ljust(info.min_length, b".")
        return blob[: info.max_length]

    def items(self, info: Any, name: str) -> list[Any]:
        """None to three."""
        least = info.min_length or 0
        most = min(LIST_MAX, LIST_MAX if info.max_length is None else info.max_length)
        return [self._named(info.item_type, f"{name}[]") for _ in range(max(least, self.choices.below(most + 1)))]

    def pairs(self, info: Any, name: str) -> dict[Any, Any]:
        """None to three pairs."""
        return {
            self._named(info.key_type, f"{name}{{}}"): self._named(info.value_type, f"{name}[]")
            for _ in range(self.choices.below(LIST_MAX + 1))
        }


_MAKERS: Final[dict[type, Callable[[Maker, Any, str], Any]]] = {
    inspect.StructType: Maker.struct,
    inspect.IntType: Maker.whole,
    inspect.StrType: Maker.text,
    inspect.BytesType: Maker.blob,
    inspect.BoolType: lambda maker, info, name: maker.choices.flag(),
    inspect.NoneType: lambda maker, info, name: None,
    inspect.FloatType: lambda maker, info, name: maker.choices.pick(FLOATS),
    inspect.AnyType: lambda maker, info, name: maker.choices.pick(ANYTHING),
    inspect.RawType: lambda maker, info, name: msgspec.Raw(maker.choices.pick((b"\xc0", b"\x01", b"\xa1a"))),
    inspect.LiteralType: lambda maker, info, name: maker.choices.pick(info.values),
    inspect.EnumType: lambda maker, info, name: maker.choices.pick(list(info.cls)),
    inspect.UnionType: lambda maker, info, name: maker._of(maker.choices.pick(info.types), name),
    inspect.ListType: Maker.items,
    inspect.VarTupleType: lambda maker, info, name: tuple(maker.items(info, name)),
    inspect.TupleType: lambda maker, info, name: tuple([maker._named(kind, f"{name}[]") for kind in info.item_types]),
    inspect.DictType: Maker.pairs,
    inspect.CustomType: lambda maker, info, name: maker.choices.pick(ANYTHING),
}
