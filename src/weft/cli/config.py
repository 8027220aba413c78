"""`weft config`: write a fleet's file, and change a running fleet."""

import json as json_module
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from cyclopts import App, Parameter

from weft.base.errors import UserError, why_unread
from weft.base.keys import bound_node
from weft.base.now import SECOND
from weft.base.paths import is_key
from weft.base.settings import span_ns
from weft.cli.config_crossings import crossings
from weft.cli.config_store import CONFIG, Change, Outcome, Past, Running, Store, changes, follow
from weft.cli.kit.exits import DONE, NOT_SO, notice
from weft.cli.kit.lines import date_and_clock
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.cli.which import PORT, AskedPort
from weft.node.fleet import Fleet, Reading, read_fleet
from weft.node.fleetkeys import GLOBAL, canonical, from_pairs, to_pairs
from weft.node.fleetparts import SPANS, Mistake, in_seconds, refusal
from weft.node.plan import why_unusable

app = App(name="config", help="Write a fleet's file, and read or change what the root of a running fleet holds.")
app.command("weft.cli.config_show:show", name="show", help="Print keys and values as they stood, from the lake.")
app.command(
    "weft.cli.config_original:original",
    name="original",
    help="Write what an original dCAMP root runs as a fleet's file.",
)

Ack = Literal["", "quorum", "local"]
Output = Annotated[Path | None, Parameter(name=["--output", "-o"])]
HISTORY: Final = 20
EVERY: Final = "1s"


# Files


@app.command
def check(file: Path, /, *, lake: Path | None = None, json: Flag = False) -> int:
    """Report everything that is wrong with a fleet's file: `weft config check fleet.toml`.

    Exit status 0 if it can be used, 1 if not. Each line is file, line, code, place, sentence; codes that begin with W
    are warnings. Original dCAMP files (`.cfg`) are read, too.

    Args:
        file: a fleet's file, TOML, or an original dCAMP file (`.cfg`).
        lake: also print how often each alert would have fired in the last hour of this lake's data.
        json: file, usable, errors and warnings as JSON; with a lake also crossings.
    """
    reading = _reading(file)
    found = [] if lake is None or reading.fleet is None else crossings(reading.fleet, lake)
    if json:
        errors, warnings = [_as_json(m) for m in reading.errors], [_as_json(m) for m in reading.warnings]
        facts = {"file": str(file), "usable": reading.fleet is not None, "errors": errors, "warnings": warnings}
        _print_json(facts | ({} if lake is None else {"crossings": [one._asdict() for one in found]}))
    else:
        _complain(reading, file)
    if reading.fleet is None:
        return NOT_SO
    if not json:
        pairs = to_pairs(reading.fleet)
        print(f"{file} can be used: {_count(len(reading.fleet.groups), 'group')}, {_count(len(pairs), 'key')}")
        print("".join(f"{clean(one.sentence())}\n" for one in found), end="")
    return DONE


@app.command(name="print")
def show(file: Path, /, *, json: Flag = False) -> None:
    """Print a fleet's file as the keys and values that are replicated: `weft config print fleet.toml`.

    Args:
        file: a fleet's file, TOML, or an original dCAMP file (`.cfg`).
        json: one object, values by key.
    """
    pairs = _pairs(file)
    if json:
        _print_json({key: json_module.loads(value) for key, value in pairs})
        return
    for key, value in pairs:
        print(f"{key} {clean(value)}")


@app.command
def diff(file: Path, other: Path | None = None, /, *, port: AskedPort = PORT, json: Flag = False) -> int:
    """Show the differences to another file, or to the running fleet.

    `weft config diff old.toml new.toml`, or against the fleet that the node at PORT belongs to: `weft config diff
    fleet.toml`; then `+` is what the file would add. Exit status 0 if nothing differs, 1 if something does.

    Args:
        file: a fleet's file, TOML, or an original dCAMP file (`.cfg`).
        other: the file to compare it with; without it the running fleet.
        port: any node's name, its state directory, or the first of its ten ports.
        json: a list of key, old and new, both the text of a value; an absent one is empty.
    """
    if other is not None:
        found = changes(_pairs(file), _pairs(other))
    else:
        found = changes(_values(Running(port), CONFIG), _pairs(file))
    _tell_changes(found, json=json)
    return NOT_SO if found else DONE


@app.command(name=["convert", "import"])
def convert(file: Path, /, *, output: Output = None, json: Flag = False) -> None:
    """Convert a fleet's file to TOML, also an original dCAMP file: `weft config import old.cfg -o fleet.toml`.

    Settings that groups share are written once. An existing file is not overwritten.

    Args:
        file: a fleet's file, TOML, or an original dCAMP file (`.cfg`).
        output: the file to write, which must not exist yet; without it the text is printed.
        json: file, number of keys, and the text as `toml`.
    """
    from weft.node.fleettext import to_toml  # only here

    fleet = _fleet(file)
    text = to_toml(fleet)
    if output is not None:
        write_new(output, text)
    if json:
        _print_json({"file": str(output) if output else None, "keys": len(to_pairs(fleet)), "toml": text})
    elif output is not None:
        print(f"{output} says what {file} says: {_count(len(fleet.groups), 'group')}")
    else:
        print(text, end="")


# A running fleet


@app.command
def export(*, output: Output = None, port: AskedPort = PORT, json: Flag = False) -> None:
    """Write the running fleet's configuration to a file: `weft config export -o fleet.toml`. Loading it changes nothing.

    Args:
        output: the file to write, which must not exist yet; without it the text is printed.
        port: any node's name, its state directory, or the first of its ten ports.
        json: file, the text as `toml`, and what could not be written, as `left_out`.
    """
    from weft.node.fleettext import to_toml  # only here

    fleet, left_out = from_pairs((key, value.encode()) for key, value in _values(Running(port), CONFIG))
    text = to_toml(fleet)
    if output is not None:
        write_new(output, text)
    for why in left_out:
        notice(f"left out: {clean(why)}")
    for mistake in read_fleet(text).errors:
        notice(f"cannot be loaded as it is: {clean(mistake.describe(str(output or 'export')))}")
    if json:
        _print_json({"file": str(output) if output else None, "toml": text, "left_out": left_out})
    else:
        print(text if output is None else f"{output}: {_count(len(fleet.groups), 'group')}\n", end="")


@app.command(name="set")
def set_value(
    key: str,
    value: str,
    /,
    *,
    ttl: str | None = None,
    if_number: int | None = None,
    ack: Ack = "",
    port: AskedPort = PORT,
    json: Flag = False,
) -> None:
    """Write one value: `weft config set web/metric/cpu '{"detail": "CPU", "rate": "100ms"}'`.

    Returns when it is durable at the root, and with two or more collectors when a majority of them has it.

    Args:
        key: a path; without a leading slash it is under /CONFIG/.
        value: JSON; anything else is taken as text.
        ttl: the root deletes the key after this time, e.g. 30s or 2h.
        if_number: only if the key's last write has this number; 0: only if the key is absent.
        ack: who must have stored it: quorum (a majority of the first-level collectors) or local (the root alone).
        port: the root's name, its state directory, or the first of its ten ports.
        json: key, number, writes and is_confirmed as JSON.
    """
    path = full_key(key)
    text, store = value_for(path, value), Running(port)
    _tell_outcome(path, store.write(path, text, _ttl_s(ttl), if_number, ack), json=json)


@app.command
def get(key: str, /, *, port: AskedPort = PORT, json: Flag = False) -> None:
    """Print one value: `weft config get web/metric/cpu`.

    Args:
        key: a path; without a leading slash it is under /CONFIG/.
        port: any node's name, its state directory, or the first of its ten ports.
        json: key, value, and the number of its last write.
    """
    path = full_key(key)
    found = next((entry for entry in Running(port).entries(path) if entry.key == path), None)
    if found is None:
        raise UserError("no-key", f"there is no {path}", "weft config list")
    if json:
        _print_json({"key": path, "number": found.number, "value": loaded(found.value)})
    else:
        print(clean(found.value))


@app.command
def delete(key: str, /, *, if_number: int | None = None, port: AskedPort = PORT, json: Flag = False) -> None:
    """Delete one key: `weft config delete web/metric/cpu`.

    Args:
        key: a path; without a leading slash it is under /CONFIG/.
        if_number: only if the key's last write has this number.
        port: the root's name, its state directory, or the first of its ten ports.
        json: key, number, writes and is_confirmed as JSON.
    """
    path = full_key(key)
    outcome = Running(port).write(path, "", None, if_number)
    what = path if outcome.writes or json else f"there is no {path}"
    _tell_outcome(what, outcome, json=json)


@app.command(name="list", alias="ls")
def list_keys(prefix: str = CONFIG, /, *, port: AskedPort = PORT, json: Flag = False) -> None:
    """Print keys and values: `weft config list`, `weft config list web`, `weft config list /` for everything.

    Args:
        prefix: only keys under it.
        port: any node's name, its state directory, or the first of its ten ports.
        json: a list of key, number of the last write, and value.
    """
    entries = [entry for subtree in subtrees_of(prefix) for entry in Running(port).entries(subtree)]
    if json:
        _print_json([{"key": key, "number": number, "value": loaded(value)} for key, number, value in entries])
        return
    for entry in entries:
        print(f"{entry.key} {clean(entry.value)}")


@app.command
def load(file: Path, /, *, port: AskedPort = PORT, json: Flag = False) -> None:
    """Make the running fleet match a file, with as few writes as possible: `weft config load fleet.toml`.

    Keys under /CONFIG/ that the file does not have are deleted; `weft config diff fleet.toml` shows them beforehand.

    Args:
        file: a fleet's file, TOML, or an original dCAMP file (`.cfg`).
        port: the root's name, its state directory, or the first of its ten ports.
        json: number, writes and is_confirmed as JSON, and the changes as `weft config diff` tells them.
    """
    pairs, store = _pairs(file), Running(port)
    found = changes(_values(store, CONFIG), pairs)
    outcome = store.load(pairs)
    if json:
        _print_json({**outcome._asdict(), "changes": [change._asdict() for change in found]})
        return
    _tell_changes(found, json=False)
    _tell_outcome(str(file), outcome, json=False)


@app.command
def history(prefix: str = CONFIG, /, *, limit: int = HISTORY, port: AskedPort = PORT, json: Flag = False) -> None:
    """Print the last writes, newest first: `weft config history web`.

    Args:
        prefix: only keys under it.
        limit: how many.
        port: the root's name, its state directory, or the first of its ten ports.
        json: as JSON, times in nanoseconds since 1970.
    """
    found = [write for subtree in subtrees_of(prefix) for write in Running(port).history(subtree, limit)]
    found = sorted(found, key=lambda write: write.number, reverse=True)[:limit]
    if json:
        _print_json([write._asdict() for write in found])
        return
    for write in found:
        print(_write_line(write))


@app.command
def rollback(number: int, prefix: str = CONFIG, /, *, port: AskedPort = PORT, json: Flag = False) -> None:
    """Restore keys to their values just after write NUMBER, with new writes: `weft config rollback 12 web`.

    Args:
        number: of a write, as `weft config history` shows it.
        prefix: only keys under it.
        port: the root's name, its state directory, or the first of its ten ports.
        json: key, number, writes and is_confirmed as JSON.
    """
    store = Running(port)
    below, *alone = subtrees_of(prefix)
    path = next((key for key in alone if store.history(key, 1) or store.entries(key)), below)
    _tell_outcome(path, store.roll_back(number, path), json=json)


@app.command
def watch(prefix: str = CONFIG, /, *, every: str = EVERY, port: AskedPort = PORT, json: Flag = False) -> None:
    """Print changes as they come, until Ctrl-C: `weft config watch web`.

    Args:
        prefix: only keys under it.
        every: how often to ask the node.
        port: any node's name, its state directory, or the first of its ten ports.
        json: one line of JSON per change.
    """
    pause = span_ns(every)
    if not pause:
        raise UserError("usage", f"{every!r} is no span of time", "--every 1s")
    try:
        for found in follow(Running(port), subtrees_of(prefix), _ticks(pause)):
            _tell_watched(found, json=json)
    except KeyboardInterrupt:
        return


# Keys and values from the command line


def full_key(key: str) -> str:
    """The full key: without a leading slash it is below /CONFIG/.

    >>> full_key("web/metric/cpu"), full_key("CONFIG/web/members"), full_key("/app/x")
    ('/CONFIG/web/metric/cpu', '/CONFIG/web/members', '/app/x')
    """
    path = key if key.startswith("/") else f"/{key}" if key.startswith("CONFIG/") else f"{CONFIG}{key}"
    if not is_key(path):
        raise UserError("bad-key", f"{path!r} is no key", "a path like web/metric/cpu: letters, digits, ._:@%+=~[]-")
    return path


def value_for(key: str, text: str) -> str:
    """The value in its replicated form, canonical JSON; UserError if no node could use it.

    >>> value_for("/CONFIG/web/parent", "site"), value_for("/CONFIG/global/heartbeat", "500ms")
    ('"site"', '0.5')
    """
    try:
        value = json_module.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        value = text
    span = span_ns(value) if key.startswith(GLOBAL) and key.removeprefix(GLOBAL) in SPANS else None
    if span is not None:
        value = in_seconds(span)
    try:
        made = canonical(value)
    except (ValueError, OverflowError, RecursionError) as error:
        raise UserError("bad-value", f"{key} cannot be that: {error}", "JSON, or plain text") from None
    if (why := why_unusable(key, made)) is not None:
        page = "filters" if "/filter/" in key else "configuration"
        raise UserError("bad-value", f"{key} cannot be that: {why}", f"docs/{page}.md shows each key")
    return made.decode()


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large")
    return number


def subtrees_of(prefix: str) -> list[str]:
    """The subtrees to query: everything under a path, and without a slash at its end the path itself too."""
    bare = prefix.rstrip("/")
    if bare in ("", "/CONFIG", "CONFIG"):
        return [CONFIG] if bare else ["/"]
    path = full_key(bare)
    return [f"{path}/"] if prefix.endswith("/") else [f"{path}/", path]


def _ttl_s(text: str | None) -> float | None:
    if text is None:
        return None
    span = span_ns(text)
    if not span:
        raise UserError("usage", f"{text!r} is no span of time", "--ttl 30s")
    return span / SECOND


def _ticks(pause: int) -> Iterator[None]:
    while True:
        yield
        time.sleep(pause / SECOND)


# Files into fleets


def _reading(file: Path) -> Reading:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            "no-file", f"{file} cannot be read: {why_unread(error)}", "the path of a fleet's file"
        ) from None
    if file.suffix == ".cfg":
        from weft.node.cfgfile import read_cfg  # only for old files

        return read_cfg(text)
    return read_fleet(text)


def _fleet(file: Path) -> Fleet:
    reading = _reading(file)
    if reading.fleet is None:
        raise refusal(reading.errors, str(file))
    return reading.fleet


def _pairs(file: Path) -> list[tuple[str, str]]:
    return [(key, value.decode()) for key, value in to_pairs(_fleet(file))]


def _values(store: Store, subtree: str) -> list[tuple[str, str]]:
    """The pairs of a subtree, without key bindings: only `weft key ls` shows these, and no file contains them."""
    return [(entry.key, entry.value) for entry in store.entries(subtree) if bound_node(entry.key) is None]


def write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UserError("file-exists", f"{path} is there already", "another name behind -o") from None
    except OSError as error:
        raise UserError("no-file", f"{path} cannot be written: {error.strerror}", "another name behind -o") from None


# Output


def _complain(reading: Reading, file: Path) -> None:
    for mistake in sorted([*reading.errors, *reading.warnings], key=lambda mistake: mistake.line):
        print(clean(mistake.describe(str(file))), file=sys.stderr)


def _as_json(mistake: Mistake) -> dict[str, Any]:
    return mistake._asdict()


def _tell_changes(found: Sequence[Change], *, json: bool) -> None:
    if json:
        _print_json([change._asdict() for change in found])
        return
    for line in _lines(found):
        print(line)


def _tell_watched(found: Sequence[Change], *, json: bool) -> None:
    for change in found:
        print("\n".join(_lines([change])) if not json else json_module.dumps(change._asdict()), flush=True)


def _lines(found: Iterable[Change]) -> Iterator[str]:
    for change in found:
        if change.old:
            yield f"- {change.key} {clean(change.old)}"
        if change.new:
            yield f"+ {change.key} {clean(change.new)}"


def _tell_outcome(what: str, outcome: Outcome, *, json: bool) -> None:
    if json:
        _print_json({"key": what, **outcome._asdict()})
    elif not outcome.writes:
        print(f"{what}: nothing had to change")
    else:
        print(f"{what}: {_count(outcome.writes, 'write')}, the last is number {outcome.number}")
    if not outcome.is_confirmed:
        notice(
            "no majority of the collectors has confirmed the write yet; it stays\n  try: weft status shows who is away"
        )
    for alert in outcome.dead:
        notice(f"an alert can never fire now: {clean(alert)}\n  try: weft alerts")


def _write_line(write: Past) -> str:
    when = date_and_clock(write.at_ns // SECOND)
    old, new = clean(write.old) or "-", clean(write.new) or "deleted"
    return f"{write.number:>6}  {when}  {clean(write.who) or '-':10}  {write.key}  {old} -> {new}"


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def loaded(value: str) -> Any:
    """A value parsed as JSON, or as text if it is no JSON."""
    try:
        return json_module.loads(value)
    except ValueError:
        return value


def _print_json(answer: Any) -> None:
    print(json_module.dumps(answer, ensure_ascii=False))
