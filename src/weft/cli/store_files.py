"""`weft store save`, `load`, `dump`: the store as a file, and back (ADM-012, ADM-013)."""

import base64
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Parameter

from weft.base.errors import PeerError, UserError
from weft.cli.kit.bar import progress
from weft.cli.kit.exits import DONE, NOT_SO, complain, notice
from weft.cli.kit.lines import print_json
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.cli.store_calls import at_store, ordered
from weft.cli.store_lines import chain_facts, facts, line, plain
from weft.client.store.client import Client
from weft.client.store.values import MISSING
from weft.wire.store.path import parse, text_of

if TYPE_CHECKING:
    from weft.base.changes import Event
    from weft.client.store.files import Difference, Loaded

How = Literal["new", "copy"]
PORT: Final = 27_500
YAML: Final = (".yaml", ".yml")
PIECE_RECORDS: Final = 1_000  # of one order, and with a limit in bytes: between orders the node does other work
PIECE_BYTES: Final = 256 << 10


def save(file: Path, /, *, json: Flag = False, node: str | None = None, port: int | None = None) -> int:
    """Write everything that the store of a node has into a file: `weft store save home.msgpack`.

    Real MoaT-KV servers save and load the same format. It has who changed each entry last, deletions, and the store's own
    entries. The file appears only when it is whole and on the disk.

    Args:
        file: its name; an existing file is replaced.
        json: what was written, as JSON.
        node: host:port of the store, a node's name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
    """
    from weft.client.store import files

    async def work(client: Client) -> int:
        try:
            saved = await files.save(client, file)
        except OSError as error:
            raise UserError("bad-file", f"{file} cannot be written: {error.strerror}", "another file") from None
        if json:
            print_json({"file": str(file), **saved._asdict()})
        else:
            print(f"{file}: {saved.entries:,} entries, {saved.deleted:,} deleted ones, {saved.bytes:,} bytes")
        return DONE

    return at_store(node, port, work, reads=True)


def load(  # tidy: each is an option of the command line
    file: Path,
    /,
    *,
    how: Annotated[How, Parameter(name="--as")] = "new",
    whole: Flag = False,
    diff: Flag = False,
    dry_run: Flag = False,
    json: Flag = False,
    node: str | None = None,
    port: int | None = None,
) -> int:
    """Load a file of `weft store save`, or of a real MoaT-KV server's save or log: `weft store load home.msgpack`.

    Exit status 1 if entries were refused, or with --diff if anything differs. A load that broke off can be repeated, and
    goes on where it was.

    Args:
        file: its name; .yaml, .yml: a map of paths to values, as `weft store dump` writes it.
        how: `new`: as new changes of this node; entries that are not in the file stay. `copy`: unchanged, with their
            numbers, into a node that is empty and has not joined a store; then it serves.
        whole: with `--as copy`: no other node of the file's store is left, so the node need not ask for missing changes.
            A real server's save has no deletions.
        diff: change nothing, and print which entries differ between file and store.
        dry_run: change nothing, and print how many entries would change.
        json: as JSON; with --diff one object a line.
        node: host:port of the store, a node's name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
    """
    is_yaml = file.suffix.lower() in YAML
    if whole and how != "copy":
        raise UserError("usage", "--whole belongs to a copy", "--as copy --whole")
    if diff and dry_run:
        raise UserError("usage", "--diff and --dry-run exclude each other", "one of them")
    if how == "copy":
        if diff or dry_run or is_yaml or node is not None:
            raise UserError(
                "usage", "a copy is made of a saved store alone, by a node of this machine", "--as copy --port N"
            )
        return _copy(file, PORT if port is None else port, whole=whole, json=json)
    if diff or dry_run:
        return _compare(file, node, port, shows=diff, json=json)

    async def work(client: Client) -> int:
        from weft.client.store import files

        total = files.counted(_events(file))
        with progress(total, "entries") as step:
            loaded = await files.load_new(client, _events(file), lambda more: step(more, ""))
        return _tell(loaded, json=json)

    return at_store(node, port, work)


def dump(
    path: str = ":",
    /,
    *,
    chain: Flag = False,
    json: Flag = False,
    node: str | None = None,
    port: int | None = None,
) -> int:
    """Print everything at and below a path as YAML, a map of paths to values: `weft store dump home > home.yaml`.

    Args:
        path: elements with dots between; left out: everything but the store's own entries, which are below `:n`.
        chain: print each value as a map with who changed it: `value`, `chain`, `tock`. Such a file cannot be loaded.
        json: one object a line.
        node: host:port of the store, a node's name or state directory; default: the one that runs here.
        port: first of the ten ports of a node of this machine.
    """
    from weft.wire.store.yamltext import dump as as_yaml

    async def work(client: Client) -> int:
        hides = not parse(path)
        async for entry in client.tree(path):
            if hides and entry.path and entry.path[0] is None:
                continue
            if json:
                print_json(facts(entry))
                continue
            value: Any = {"value": entry.value, **chain_facts(entry.chain, entry.tock)} if chain else entry.value
            try:
                sys.stdout.write(as_yaml({entry.text: value}))
            except PeerError:  # a value of a foreign type, which YAML cannot express
                print(f"# {entry.text} {line(plain(entry.value))}")
        return DONE

    return at_store(node, port, work, reads=True)


# The entries of a file


def _events(file: Path) -> "Iterator[Event]":
    from weft.client.store import files

    return _yaml_events(file) if file.suffix.lower() in YAML else files.read_file(file)


def _yaml_events(file: Path) -> "Iterator[Event]":
    from weft.base.changes import Chain, Event
    from weft.wire.store.pack import pack
    from weft.wire.store.yamltext import load as of_yaml

    try:
        values = of_yaml(file.read_text("utf-8"))
        pairs = [(parse(str(path)), pack(value)) for path, value in values.items()]
    except OSError as error:
        raise UserError("bad-file", f"{file} cannot be read: {error.strerror}", "another file") from None
    except (PeerError, AttributeError, UnicodeDecodeError) as error:
        why = error.why if isinstance(error, PeerError) else "no map of paths to values"
        raise UserError("bad-yaml", f"{file}: {why}", "a file of weft store dump") from None
    return (Event(Chain((("file", 1),)), 0, path, value) for path, value in pairs)


# Loading


def _tell(loaded: "Loaded", *, json: bool) -> int:
    if json:
        refused = [{"path": path, "why": why} for path, why in loaded.why]
        print_json({"changed": loaded.changed, "same": loaded.same, "refused": loaded.refused, "why": refused})
    else:
        print(f"{loaded.changed:,} entries changed, {loaded.same:,} were the same already")
        for path, why in loaded.why:
            notice(f"{clean(path)} was refused: {clean(why)}")
        if loaded.refused:
            return complain(f"{loaded.refused:,} entries were refused\n  try: change them in the file's store", NOT_SO)
    return NOT_SO if loaded.refused else DONE


def _compare(file: Path, node: str | None, port: int | None, *, shows: bool, json: bool) -> int:
    async def work(client: Client) -> int:
        from weft.client.store import files

        found = await files.compare(client, _events(file))
        if shows:
            for difference in found:
                _show(difference, json=json)
            return NOT_SO if found else DONE
        counts = _counts(found)
        if json:
            print_json(counts)
        else:
            print("would be " + ", ".join(f"{word}: {count:,}" for word, count in counts.items()))
        return DONE

    return at_store(node, port, work, reads=True)


SIGNS: Final = {"new": "+", "changed": "~", "deleted": "-", "left": " "}


def _kind(difference: "Difference") -> str:
    if not difference.is_known:
        return "left"
    if difference.store is None:
        return "new"
    return "deleted" if difference.file is None else "changed"


def _counts(found: "list[Difference]") -> dict[str, int]:
    """How many entries loading would add, change and so on; `left`: entries that are not in the file."""
    kinds = [_kind(difference) for difference in found]
    return {word: kinds.count(word) for word in SIGNS}


def _show(difference: "Difference", *, json: bool) -> None:
    from weft.wire.store.pack import unpack

    kind, path = _kind(difference), text_of(difference.path)
    filed, stored = (MISSING if raw is None else unpack(raw) for raw in (difference.file, difference.store))
    if json:
        sides = {"file": filed, "store": stored}
        print_json({"path": path, "is": kind} | {k: plain(v) for k, v in sides.items() if v is not MISSING})
    elif kind == "left":
        print(f"  {clean(path)} {line(stored)}  # not in the file")
    elif kind == "changed":
        print(f"~ {clean(path)} {line(filed)}  # was {line(stored)}")
    else:
        print(f"{SIGNS[kind]} {clean(path)} {line(stored if filed is MISSING else filed)}")


def _copy(file: Path, port: int, *, whole: bool, json: bool) -> int:
    from weft.client.store import files

    merged = refused = 0
    pieces = _pieces(files.split_file(file))
    piece, is_first = next(pieces, ()), True
    with progress(None, "records") as step:
        while True:
            more = next(pieces, None)
            records = [base64.b64encode(record).decode() for record in piece]
            where = {"is_first": is_first, "is_last": more is None, "is_whole": whole}
            answer = ordered(port, "store-copy", records=records, **where)
            if isinstance(answer, int):
                return answer
            merged, refused, is_first = merged + answer["merged"], refused + answer["refused"], False
            step(len(piece), "")
            if more is None:
                break
            piece = more
    if json:
        print_json({"merged": merged, "refused": refused})
    else:
        print(
            f"{merged:,} entries are here as they were; the node serves them when nothing is missing: weft store state"
        )
    if refused:
        return complain(f"{refused:,} entries were refused and left out\n  try: weft quarantine", NOT_SO)
    return DONE


def _pieces(records: Iterator[bytes]) -> Iterator[tuple[bytes, ...]]:
    batch: list[bytes] = []
    size = 0
    for record in records:
        if batch and (len(batch) >= PIECE_RECORDS or size + len(record) > PIECE_BYTES):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(record)
        size += len(record)
    if batch:
        yield tuple(batch)
