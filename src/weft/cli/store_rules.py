"""`weft store type`, `match`, `codec`, `conv`: rules for values, kept in the store's hidden tree (ADM-010, ADM-011)."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from weft.base.errors import PeerError, UserError, why_unread
from weft.cli.kit.exits import DONE, NOT_SO, complain
from weft.cli.kit.lines import print_json
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.cli.store_calls import at_store
from weft.cli.store_lines import document, line, plain
from weft.client.store.client import Client
from weft.wire.store.pack import PathValue
from weft.wire.store.path import parse, text_of
from weft.wire.store.yamltext import load

Values = Annotated[tuple[str, ...], Parameter(allow_leading_hyphen=True)]
Where = tuple[Any, ...]


def type_(  # tidy: each is an option of the command line
    name: str | None = None,
    /,
    *,
    schema: str | None = None,
    good: Values = (),
    bad: Values = (),
    delete: Flag = False,
    json: Flag = False,
    node: str | None = None,
    port: int | None = None,
) -> int:
    """List the types, show one, or write one: `weft store type percent --schema @percent.json --good 0 --good 99.5 --bad no`.

    A value must meet its type and all types above it: a `number.percent` must be a `number`, too.

    Args:
        name: a path, e.g. number.percent; left out: list all.
        schema: JSON Schema, as YAML or JSON; @FILE reads it from a file.
        good: an example of a valid value, as YAML; at least two.
        bad: an example of an invalid value; at least one.
        delete: delete this type.
        json: as JSON.
        node: host:port of the store, a node's name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
    """
    rule: dict[str, Any] | None = None
    if schema is not None:
        rule = {"schema": _yaml(_text(schema)), "good": [*map(_yaml, good)], "bad": [*map(_yaml, bad)]}
    elif good or bad:
        raise UserError(
            "usage", "examples belong to a schema", "weft store type NAME --schema @FILE --good V --good V --bad V"
        )
    return _rule(("type",), name, rule, delete=delete, json=json, at=(node, port))


def match(
    pattern: str | None = None,
    type_: Annotated[str | None, Parameter(name="type")] = None,
    /,
    *,
    delete: Flag = False,
    json: Flag = False,
    node: str | None = None,
    port: int | None = None,
) -> int:
    """List which paths have which type, show one, or set one: `weft store match home.+.humidity percent`.

    Args:
        pattern: a path, in which `+` stands for one element and `#` for one or more; the most specific pattern counts.
        type_: name of a type.
        delete: delete this rule.
        json: as JSON.
        node: host:port of the store, a node's name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
    """
    rule = None if type_ is None else {"type": PathValue(_path(type_))}
    return _rule(("match",), pattern, rule, delete=delete, json=json, at=(node, port))


def codec(  # tidy: each is an option of the command line
    name: str | None = None,
    built_in: str | None = None,
    /,
    *,
    examples_in: Annotated[Values, Parameter(name="--in")] = (),
    out: Values = (),
    delete: Flag = False,
    json: Flag = False,
    node: str | None = None,
    port: int | None = None,
) -> int:
    """List the codecs, show one, or write one: `weft store codec lamp switch --in "[on, true]" --out "[false, off]"`.

    Args:
        name: a path; left out: list all.
        built_in: the conversion: json, int, float, switch, utf8, hex, base64 or celsius.
        examples_in: a pair as YAML: what a user writes, and what is then stored; at least one.
        out: a pair as YAML: what is stored, and what a user then reads; at least one.
        delete: delete this codec.
        json: as JSON.
        node: host:port of the store, a node's name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
    """
    rule: dict[str, Any] | None = None
    if built_in is not None:
        rule = {"name": built_in, "in": [*map(_yaml, examples_in)], "out": [*map(_yaml, out)]}
    return _rule(("codec",), name, rule, delete=delete, json=json, at=(node, port))


def conv(  # tidy: each is an option of the command line
    group: str | None = None,
    pattern: str | None = None,
    codec: str | None = None,
    /,
    *,
    delete: Flag = False,
    json: Flag = False,
    node: str | None = None,
    port: int | None = None,
) -> int:
    """Set which codec a group of users has for which paths: `weft store conv panel home.+.lamp lamp`.

    Args:
        group: a group of users; `weft get --group panel` reads as one of them.
        pattern: a path with `+` and `#`, as in `weft store match`.
        codec: name of a codec.
        delete: delete this rule.
        json: as JSON.
        node: host:port of the store, a node's name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
    """
    top = ("conv",) if group is None else ("conv", group)
    rule = None if codec is None else {"codec": PathValue(_path(codec))}
    return _rule(top, pattern, rule, delete=delete, json=json, at=(node, port))


def _rule(  # tidy: the options of four commands
    top: Where,
    name: str | None,
    rule: dict[str, Any] | None,
    *,
    delete: bool,
    json: bool,
    at: tuple[str | None, int | None],
) -> int:
    """List, show, write or delete one entry of the hidden tree."""
    base: Where = (None, *top)
    path = base if name is None else (*base, *_path(name))
    if name is None and (delete or rule is not None):
        raise UserError("usage", "no name is given", f"weft store {top[0]} NAME")

    async def work(client: Client) -> int:
        if delete:
            written = await client.delete(path)
            return DONE if written.is_changed else _absent(path)
        if rule is not None:
            await client.set(path, rule)
            return DONE
        if name is None:
            return await _list(client, base, json=json)
        entry = await client.entry(path)
        if not entry.is_there:
            return _absent(path)
        print_json(plain(entry.value)) if json else print(document(entry.value))
        return DONE

    return at_store(*at, work, reads=rule is None and not delete)


async def _list(client: Client, base: Where, *, json: bool) -> int:
    async for entry in client.tree(base):
        name = text_of(entry.path[len(base) :])
        if json:
            print_json({"name": name, "value": plain(entry.value)})
        else:
            print(clean(name), line(entry.value))
    return DONE


def _absent(path: Where) -> int:
    return complain(f"there is no {path[1]} {text_of(path[2:])}\n  try: weft store {path[1]}", NOT_SO)


def _text(schema: str) -> str:
    if not schema.startswith("@"):
        return schema
    try:
        return Path(schema[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            "usage", f"{schema[1:]} cannot be read: {why_unread(error)}", "--schema @FILE, or the schema itself"
        ) from None


def _yaml(text: str) -> Any:
    try:
        return load(text)
    except PeerError as error:
        raise UserError("bad-yaml", f"this is no YAML of a value: {error.why}", "--good 21.5") from None


def _path(text: str) -> Where:
    try:
        return parse(text)
    except PeerError as error:
        raise UserError("bad-path", f"{text!r} is no path: {error.why}", "home.+.humidity") from None
