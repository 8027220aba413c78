"""`weft get`, `set`, `del`, `ls`, `watch`: the shared store by hand (ADM-020)."""

import json as from_json
import re
import shlex
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any, Final

from cyclopts import Parameter

from weft.base.changes import Link
from weft.base.errors import PeerError, UserError
from weft.base.now import SECOND
from weft.base.settings import span_ns
from weft.cli.chain_ends import until_any
from weft.cli.kit.exits import DONE, NOT_SO, complain, notice
from weft.cli.kit.lines import date_and_clock, print_json
from weft.cli.kit.options import Flag
from weft.cli.store_calls import at_store
from weft.cli.store_lines import chain_facts, document, facts, line, links, plain
from weft.client.store.client import Ack, Client
from weft.client.store.values import MISSING, Change, Mark, Written, path_of
from weft.client.store.watching import Mode
from weft.wire.store.pack import PathValue
from weft.wire.store.path import parse, text_of
from weft.wire.store.yamltext import load

Word = Annotated[str | None, Parameter(allow_leading_hyphen=True, show_default=False)]
ROOT: Final = ":"
ACKS: Final[dict[str, Ack]] = {"local": "local", "one": "one", "majority": "majority"}
SAYING: Final = "-v TEXT, -e YAML, -p PATH, -b FILE"
OPTION: Final = re.compile("--?[a-zA-Z]")
"""Text that looks like an option; negative numbers and lists of YAML do not."""
POSITION: Final = "what weft watch --json shows as position"
FILE_BYTES_MAX: Final = 1 << 20
"""More than a value may have, so that the store refuses it with its own message."""


def get(
    path: str,
    /,
    *,
    chain: Flag = False,
    raw: Flag = False,
    json: Flag = False,
    group: str = "",
    node: str | None = None,
    port: int | None = None,
) -> int:
    """Print the value at a path, as YAML: `weft get home.kitchen.temp`.

    Exit status 1 if there is none; a stored null is printed as null.

    Args:
        path: elements with dots between: home.kitchen.temp; `:12` is a number, `:` the root.
        chain: also who changed it last.
        raw: print text and bytes unchanged, without quotes and without a new line.
        json: as JSON.
        group: convert values with the codecs of this group: weft store conv.
        node: host:port of the store, a node's name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
    """

    async def work(client: Client) -> int:
        entry = await client.entry(path)
        if json:
            print_json(facts(entry))
        elif not entry.is_there:
            what = "it was deleted" if entry.is_deleted else "none was ever written"
            return complain(f"there is no value at {path}: {what}\n  {_below(path)}", NOT_SO)
        elif raw:
            value = entry.value
            sys.stdout.buffer.write(value if isinstance(value, bytes) else _raw(value).encode())
        else:
            print(document(entry.value))
            if chain:
                print(f"# {links(entry.chain)}")
            if chain and entry.until is not None:
                print(f"# until {_instant(entry.until)}")
        return DONE if entry.is_there else NOT_SO

    return at_store(node, port, work, reads=True, group=group)


def set_value(  # tidy: each is an option of the command line
    path: str,
    value: Word = None,
    /,
    *,
    text: Annotated[str | None, Parameter(name=["-v", "--text"], allow_leading_hyphen=True)] = None,
    yaml: Annotated[str | None, Parameter(name=["-e", "--yaml"], allow_leading_hyphen=True)] = None,
    as_path: Annotated[str | None, Parameter(name=["-p", "--path"], allow_leading_hyphen=True)] = None,
    file: Annotated[str | None, Parameter(name=["-b", "--bytes"], allow_leading_hyphen=True)] = None,
    new: Flag = False,
    ttl: str | None = None,
    ack: str = "local",
    if_chain: str | None = None,
    if_value: Word = None,
    chain: Flag = False,
    json: Flag = False,
    group: str = "",
    node: str | None = None,
    port: int | None = None,
) -> int:
    """Write a value: `weft set home.kitchen.temp 21.5`. It is durable at the node when this returns.

    Exit status 1 if a condition failed. Conditions compare with what this one node has.

    Args:
        path: elements with dots between: home.kitchen.temp.
        value: read as YAML: 21.5 is a number, true a boolean, [1, 2] a list, null a null, anything else text; `-`: YAML
            from standard input.
        text: the value is this text, whatever it looks like.
        yaml: the value is this YAML; !P a.b is a path, !bin and !hex are bytes.
        as_path: the value is this path.
        file: the value is the bytes of this file, or of standard input for `-`; `weft get --raw` prints them again.
        new: only if there is no value.
        ttl: delete the entry after this time, unless it is changed before: 30s, 5m, 12h, 7d.
        ack: how many members, with this node, must have stored it when this returns: local, one, majority, or a number;
            exit status 5 if they have not after 5 s, though the value is written.
        if_chain: only if this was the last change, NODE:TICK as `weft get --chain` shows it.
        if_value: only if this is the present value (YAML).
        chain: also print who has changed it now.
        json: the answer as JSON.
        group: convert the value with the codecs of this group: weft store conv.
        node: host:port of the store, a node's name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
    """
    wanted = _value(value, {"text": text, "yaml": yaml, "path": as_path, "bytes": file})
    conditions = _conditions(if_chain, if_value) | ({"new": True} if new else {})
    if ttl is not None:
        conditions["ttl"] = _seconds(ttl)
    conditions["ack"] = _ack(ack)
    if new and if_chain is not None:
        raise UserError("usage", "--new and --if-chain exclude each other", "one of them")

    async def work(client: Client) -> int:
        _tell(path, await client.set(path, wanted, **conditions), chain=chain, json=json)
        return DONE

    return at_store(node, port, work, group=group)


def delete(
    path: str,
    /,
    *,
    tree: Flag = False,
    ack: str = "local",
    if_chain: str | None = None,
    if_value: Word = None,
    chain: Flag = False,
    json: Flag = False,
    node: str | None = None,
    port: int | None = None,
) -> int:
    """Delete the value at a path: `weft del home.kitchen.temp`; exit status 1 if there was none.

    Args:
        path: elements with dots between: home.kitchen.temp.
        tree: also everything below it.
        ack: how many members, with this node, must have stored it when this returns: local, one, majority, or a number.
        if_chain: only if this was the last change, NODE:TICK as `weft get --chain` shows it.
        if_value: only if this is the present value (YAML).
        chain: also print who has changed it now.
        json: the answer as JSON.
        node: host:port of the store, a node's name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
    """
    conditions = _conditions(if_chain, if_value)
    if tree and conditions:
        raise UserError("usage", "--tree takes no conditions", "--tree without --if-chain and --if-value")

    async def work(client: Client) -> int:
        if tree:
            count = await client.delete_tree(path)
            if json:
                print_json({"path": path, "deleted": count})
            else:
                print(f"{count:,} deleted")
            return DONE if count else NOT_SO
        written = await client.delete(path, ack=_ack(ack), **conditions)
        if not (written.is_changed or json):
            return complain(f"there is no value at {path}\n  {_below(path)}", NOT_SO)
        _tell(path, written, chain=chain, json=json)
        return DONE if written.is_changed else NOT_SO

    return at_store(node, port, work)


def ls(
    path: str = ROOT,
    /,
    *,
    tree: Flag = False,
    deleted: Flag = False,
    chain: Flag = False,
    json: Flag = False,
    group: str = "",
    node: str | None = None,
    port: int | None = None,
) -> int:
    """List the names directly below a path: `weft ls home`; with --tree all entries below it, with values.

    Args:
        path: elements with dots between; left out: the root.
        tree: all entries at and below the path, a line each: path and value. Parents come first; otherwise they are in
            the order in which they reached this node, so use `| sort` to compare nodes.
        deleted: also deleted entries, as long as the node remembers them.
        chain: with --tree: also who changed each last.
        json: with --tree one object a line, else one list.
        group: convert values with the codecs of this group: weft store conv.
        node: host:port of the store, a node's name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
    """

    async def names(client: Client) -> int:
        base = path_of(path)
        found = sorted(text_of((*base, element)) for element in await client.list(base, deleted=deleted))
        if json:
            print_json(found)
        elif found:
            print("\n".join(found))
        return DONE

    async def entries(client: Client) -> int:
        async for entry in client.tree(path, deleted=deleted):
            if json:
                print_json(facts(entry))
            else:
                print(entry.text, line(entry.value), *(["#", links(entry.chain)] if chain else []))
        return DONE

    return at_store(node, port, entries if tree else names, reads=True, group=group)


def watch(
    path: str = ROOT,
    /,
    *,
    fetch: Flag = False,
    latest: Flag = False,
    count: int | None = None,
    since: str | None = None,
    json: Flag = False,
    group: str = "",
    node: str | None = None,
    port: int | None = None,
) -> int:
    """Print every change at and below a path, a line each, until Ctrl-C: `weft watch home`.

    If the node stops and comes back, the list goes on where it was.

    Args:
        path: elements with dots between; left out: everything.
        fetch: first print the present entries.
        latest: if this command is too slow for all changes, only get the newest of each entry.
        count: end after so many changes.
        since: go on after the change with this position, as --json shows it.
        json: one object a line.
        group: convert values with the codecs of this group: weft store conv.
        node: host:port of the store, a node's name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
    """
    position = _position(since)
    if count is not None and count < 1:
        raise UserError(
            "usage", f"{count} is no number of changes to wait for", "--count 1, or without it until Ctrl-C"
        )

    async def follow(client: Client) -> None:
        left = count
        mode: Mode = "latest" if latest else "all"
        async for change in client.watch(path, fetch=fetch, since=position, mode=mode, marks=True):
            if isinstance(change, Mark):
                _tell_mark(change, json=json)
                continue
            _tell_change(change, json=json)
            left = None if left is None else left - 1
            if left == 0:
                return

    async def work(client: Client) -> int:
        await until_any(follow(client))
        return DONE

    return at_store(node, port, work, reads=True, group=group)


# Values from the command line


def _value(value: str | None, flags: dict[str, str | None]) -> Any:
    """The value, from whichever of its options was given; UserError if it was not exactly one."""
    given = {how: word for how, word in {"value": value, **flags}.items() if word is not None}
    if len(given) != 1:
        what = "no value" if not given else "more than one value"
        raise UserError("usage", f"{what} is given", f"weft set PATH VALUE, or one of {SAYING}")
    [(how, word)] = given.items()
    if how == "value" and OPTION.match(word):  # probably a mistyped option
        raise UserError("usage", f"{word!r} is no option here", f"-v {word} if it is the value; {SAYING}")
    readers: dict[str, Callable[[str], Any]] = {
        "text": str,
        "path": lambda text: PathValue(_parsed(text)),
        "bytes": _bytes,
        "yaml": _yaml,
    }
    return readers.get(how, _typed)(word)


def _typed(word: str) -> Any:
    if word != "-":
        return _yaml(word)
    try:
        text = sys.stdin.read()
        text.encode()  # fails for bytes that are no text, which Python reads as surrogates
    except UnicodeError:
        raise UserError("bad-yaml", "standard input is no text", "-b -: the bytes as they are") from None
    return _yaml(text)


def _bytes(file: str) -> bytes:
    try:
        with open(sys.stdin.fileno() if file == "-" else file, "rb", closefd=file != "-") as source:
            return source.read(FILE_BYTES_MAX)
    except OSError as error:
        raise UserError(
            "usage", f"{file} cannot be read: {error.strerror}", "-b FILE, or -b - for standard input"
        ) from None


def _yaml(text: str) -> Any:
    try:
        return load(text)
    except PeerError as error:
        raise UserError("bad-yaml", f"this is no YAML of a value: {error.why}", "-v TEXT for text as it is") from None


def _parsed(text: str) -> Any:
    try:
        return parse(text)
    except PeerError as error:
        raise UserError("bad-path", f"{text!r} is no path: {error.why}", "home.kitchen.temp") from None


def _conditions(if_chain: str | None, if_value: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {} if if_chain is None else {"chain": _link(if_chain)}
    return found if if_value is None else found | {"prev": _yaml(if_value)}


def _link(text: str) -> Link:
    node, _, tick = text.split(" ", maxsplit=1)[0].rpartition(":")
    if not node or not (tick.isascii() and tick.isdecimal()):
        raise UserError("usage", f"{text!r} names no change", "NODE:TICK as weft get --chain shows it")
    return node, int(tick)


def _ack(text: str) -> Ack:
    if text in ACKS:
        return ACKS[text]
    if text.isascii() and text.isdecimal():
        return int(text)
    raise UserError("usage", f"--ack {text!r} is no number of members", "local, one, majority, or 2")


def _seconds(text: str) -> float:
    span = span_ns(text)
    if not span:
        raise UserError("usage", f"--ttl {text!r} is no span of time", "30s, 5m, 12h or 7d")
    return span / SECOND


def _instant(until: float) -> str:
    try:
        return date_and_clock(until)
    except (ValueError, OverflowError, OSError):
        return f"{until:g}"


def _position(text: str | None) -> Any:
    try:
        return None if text is None else from_json.loads(text)
    except ValueError:
        raise UserError("usage", f"{text!r} is no position", POSITION) from None


# Output


def _below(path: str) -> str:
    return f"try: weft ls {shlex.quote(path)} --tree: what stands below it"


def _raw(value: Any) -> str:
    return value if isinstance(value, str) else document(value)


def _tell(path: str, written: Written, *, chain: bool, json: bool) -> None:
    if json:
        before = {} if written.before is MISSING else {"before": plain(written.before)}
        facts = {"path": path, "changed": written.is_changed} | chain_facts(written.chain, written.tock)
        print_json(facts | before)
    elif chain:
        print(links(written.chain))


def _tell_change(change: Change, *, json: bool) -> None:
    if json:
        kind = "entry" if change.is_old else "change"
        print_json({"event": kind, **facts(change), "position": change.position})
        return
    clock = "--:--:--" if change.is_old else time.strftime("%H:%M:%S")  # the time of an old change is unknown
    print(clock, change.text, line(change.value), "#", links(change.chain).partition(" ")[0], flush=True)


def _tell_mark(mark: Mark, *, json: bool) -> None:
    if json:
        print_json({"event": mark.what} | ({"why": mark.why} if mark.why else {}))
        return
    words = {
        "lost": "the node is away; waiting for it",
        "back": "the node is back",
        "gap": "changes were missed; this is all that is there now",
    }.get(mark.what)
    if words:
        notice(words)
