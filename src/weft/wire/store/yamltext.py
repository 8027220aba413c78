"""Values as YAML, the safe subset (COD-006).

    !P text      a path, as in path.py         !bin text    bytes that are ASCII         !hex 00:ff    other bytes

Text that would read as something else is quoted. No aliases, no other tags, no key twice. `load(dump(v))` is `v`.
"""

import re
from collections.abc import Hashable
from typing import Any, Final

import yaml

from weft.base.errors import PeerError
from weft.wire.store.pack import PathValue
from weft.wire.store.path import parse, text_of

TEXT_CHARACTERS_MAX: Final = 16 << 20  # of one document: more than any value
DEPTH_MAX: Final = 100
"""Lists and maps inside one another: nobody writes deeper ones by hand, and the library recurs."""


# Out


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, _: Any) -> bool:  # tidy: PyYAML asks it
        return True


def dump(value: Any) -> str:
    """The text of a value as `pack.unpack` gives it; PeerError `unencodable` for what YAML has no word for."""
    try:
        text: str = yaml.dump(_shallow(value), Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=1 << 20)
    except (yaml.YAMLError, RecursionError, PeerError, UnicodeError, ValueError) as error:
        raise PeerError("unencodable", str(error)[:200]) from None
    return text[:-4] if text.endswith("\n...\n") else text  # PyYAML ends a document of one plain word so


def _shallow(value: Any, depth: int = DEPTH_MAX) -> Any:
    """The value; PeerError if it is deeper than `load` accepts. Python's recursion limit is no substitute: other code may change it."""
    if isinstance(value, dict | list) or type(value) is tuple:
        if not depth:
            raise PeerError("unencodable", f"deeper than {DEPTH_MAX}")
        for inner in value.values() if isinstance(value, dict) else value:
            _shallow(inner, depth - 1)
    return value


def _path(dumper: _Dumper, path: PathValue) -> yaml.Node:
    return dumper.represent_scalar("!P", text_of(tuple(path)))


def _octets(dumper: _Dumper, octets: bytes) -> yaml.Node:
    if octets.isascii():
        return _quoted(dumper, "!bin", octets.decode("ascii"))
    return dumper.represent_scalar("!hex", octets.hex(":"))


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    style = (
        "'" if _NUMBER.fullmatch(text) else None
    )  # newer YAML readers take more texts for numbers than this library does
    return _quoted(dumper, "tag:yaml.org,2002:str", text, style)


_NUMBER: Final = re.compile(r"[-+]?[0-9.][0-9a-fA-FxobeE+_.:-]*")


def _quoted(dumper: _Dumper, tag: str, text: str, style: str | None = None) -> yaml.Node:
    """Text with invisible characters in double quotes, since other styles would fold its lines."""
    return dumper.represent_scalar(tag, text, style=style if text.isprintable() else '"')


def _sequence(dumper: _Dumper, items: tuple[Any, ...]) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items)


_Dumper.add_representer(PathValue, _path)
_Dumper.add_representer(bytes, _octets)
_Dumper.add_representer(str, _text)
_Dumper.add_representer(tuple, _sequence)


# In


class _Loader(yaml.CSafeLoader):
    """Knows our three tags, and of YAML's own those of values."""


def load(text: str) -> Any:
    """The value of a text; PeerError `bad-yaml`."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise PeerError("bad-yaml", f"more than {TEXT_CHARACTERS_MAX} characters")
    try:
        _judge(text)
        loader = _Loader(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except (yaml.YAMLError, RecursionError, UnicodeError, ValueError, TypeError) as error:
        raise PeerError("bad-yaml", str(error)[:200]) from None


def _judge(text: str) -> None:
    """Refuse aliases and deep nesting before anything is built."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise PeerError("bad-yaml", "an alias")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEPTH_MAX:
            raise PeerError("bad-yaml", f"deeper than {DEPTH_MAX}")


def _map_of(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable) or key in found:
            raise PeerError("bad-yaml", "a key that stands twice, or is none")
        found[key] = loader.construct_object(value_node, deep=True)
    return found


def _path_of(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> PathValue:
    try:
        return PathValue(parse(_scalar_text(loader, node)))
    except PeerError as error:
        raise PeerError("bad-yaml", error.why) from None


def _octets_of(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> bytes:
    return _scalar_text(loader, node).encode("ascii")


_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2})*)?")


def _hex_of(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> bytes:
    text = _scalar_text(loader, node)
    if not _HEX.fullmatch(text):
        raise PeerError("bad-yaml", "no hexadecimal bytes")
    return bytes.fromhex(text.replace(":", ""))


def _scalar_text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


def _other(_: yaml.SafeLoader, node: yaml.Node) -> Any:
    raise PeerError("bad-yaml", f"the tag {node.tag}")


_Loader.yaml_constructors = {
    **{
        tag: yaml.SafeLoader.yaml_constructors[tag]
        for tag in (f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "seq"))
    },
    "tag:yaml.org,2002:map": _map_of,
    "tag:yaml.org,2002:timestamp": _scalar_text,  # a date is text here
    "tag:yaml.org,2002:value": _scalar_text,
    "!P": _path_of,
    "!bin": _octets_of,
    "!hex": _hex_of,
    None: _other,
}
