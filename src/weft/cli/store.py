"""`weft store`: what a node's store is like, and what people decide for it (ADM-020)."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from cyclopts import App, Parameter

from weft.base.errors import PeerError, UserError
from weft.cli.kit.exits import DONE, complain
from weft.cli.kit.lines import print_json, print_table
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.cli.store_calls import at_store, ordered
from weft.cli.store_lines import line
from weft.cli.which import PORT, AskedPort
from weft.client.store.client import Client
from weft.client.store.values import MISSING
from weft.wire.store.pack import pack, unpack
from weft.wire.store.yamltext import load

app = App(name="store", help="Found the shared store; see how it stands; deal with conflicts and lost nodes.")
nodes = App(name="node", help="Nodes of the store that will not come back.")
app.command(nodes)
app.command("weft.cli.store_files:save", name="save", help="Write the whole store into a file.")
app.command("weft.cli.store_files:load", name="load", help="Read a file of a store, as new or as a copy, or compare.")
app.command("weft.cli.store_audit:audit", name="audit", help="Whether other nodes have the same.")
app.command("weft.cli.store_files:dump", name="dump", help="Print what stands at and below a path as YAML.")
app.command("weft.cli.store_rules:type_", name="type", help="Types: what values have to be.")
app.command("weft.cli.store_rules:match", name="match", help="Which values have which type.")
app.command("weft.cli.store_rules:codec", name="codec", help="Codecs: how values are turned for some users.")
app.command("weft.cli.store_rules:conv", name="conv", help="Where codecs are used, by group of users.")
app.command("weft.cli.store_lake:get", name="get", help="The value that stood at a path, from the lake.")
app.command("weft.cli.store_lake:history", name="history", help="The versions of an entry, from the lake.")

What = Literal["list", "add", "remove", "set"]
DELETERS: Final = (None, "actor", "del")
WAITING: Final = {
    "OFFLINE": "has met nobody yet, by no link",
    "LISTEN": "has no data, and waits for a node that has: see that one runs; weft store found, if this is the first",
    "JOIN": "asks the others what there is",
    "RESTORED": "was started again, and waits three clocks (15 s) for others that may know more",
    "CATCHUP": "fetches what it lacks",
}
"""What a node does in a state in which it serves nobody."""


@app.command
def found(
    value: Annotated[str, Parameter(allow_leading_hyphen=True)] = "null",
    /,
    *,
    port: AskedPort = PORT,
    json: Flag = False,
) -> int:
    """Found the store at one node, once in its life: `weft store found "our house"`; the others join by themselves.

    Args:
        value: the root's value, as YAML.
        port: the node's name, its state directory, or the first of its ten ports.
        json: the answer as JSON.
    """
    try:
        packed = pack(load(value))
    except PeerError as error:
        raise UserError(
            "bad-yaml", f"that is no YAML of a value: {error.why}", 'weft store found "our house"'
        ) from None
    told = ordered(port, "store-found", value=packed.hex())
    return _tell(told, "{node} has founded the store", json=json)


@app.command
def state(*, port: AskedPort = PORT, json: Flag = False) -> int:
    """Show how the store of a node stands: whether it has joined, what it holds, what it lacks.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        json: all facts as JSON.
    """
    told = ordered(port, "store-show", what="state")
    if isinstance(told, int):
        return told
    if json:
        return _tell(told, "", json=True)
    serves = "serves clients" if told["serves"] else "serves nobody yet"
    print(f"{clean(str(told['node']))}: {told['state']}, {serves}; change {told['tick']:,}, tock {told['tock']:,}")
    if not told["serves"] and told["state"] in WAITING:
        print(f"it {WAITING[told['state']]}")
    if told.get("read_only"):
        print(f"takes no writes: {told['read_only']}")
    print(f"{told['entries']:,} entries, {told['tombstones']:,} deleted ones, {told['value_bytes']:,} bytes of values")
    members = f"{_count(told['members'], 'other node')} linked, {_count(told['foreign'], 'MoaT-KV server')}"
    print(f"{members}{', a broker' if told.get('has_broker') else ''}")
    for name, ranges in told["missing"].items():
        print(f"missing of {clean(name)}: {_shown(ranges)}")
    if told.get("conflicts"):
        print(f"{_count(told['conflicts'], 'conflict')} so far: weft store conflicts")
    return DONE


@app.command
def members(*, port: AskedPort = PORT, json: Flag = False) -> int:
    """List every node that has ever changed the store, as this node knows them.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        json: as JSON.
    """
    told = ordered(port, "store-show", what="members")
    if isinstance(told, int) or json:
        return _tell(told, "", json=json)
    rows = [
        (
            clean(row["node"]),
            row["kind"],
            row["link"] or "-",
            row["endpoint"] or "-",
            f"{row['tick']:,}",
            f"{row['missing']:,}",
        )
        for row in told["members"]
    ]
    return _table(("node", "kind", "link", "endpoint", "last change", "missing"), rows)


@app.command
def conflicts(*, restore: int | None = None, port: AskedPort = PORT, json: Flag = False) -> int:
    """List changes that knew nothing of each other, newest first, or write a loser again: `weft store conflicts --restore 3`.

    Args:
        restore: the number of a conflict; what lost it is written as a new change.
        port: the node's name, its state directory, or the first of its ten ports.
        json: as JSON.
    """
    if restore is not None:
        told = ordered(port, "store-restore", number=restore)
        return _tell(told, "{path} is again what it was in the change that had lost", json=json)
    told = ordered(port, "store-show", what="conflicts")
    if isinstance(told, int) or json:
        return _tell(_read(told, "conflicts"), "", json=json)
    rows = [
        (str(row["number"]), clean(row["path"]), row["reason"], _side(row["kept"]), _side(row["lost"]))
        for row in told["conflicts"]
    ]
    return _table(("number", "path", "reason", "kept", "lost"), rows, "no conflicts")


@app.command
def orphans(*, replay: Flag = False, port: AskedPort = PORT, json: Flag = False) -> int:
    """List changes of this node that nobody took, since it had been dropped while it was away.

    Args:
        replay: write them anew, as changes of now; then none is left.
        port: the node's name, its state directory, or the first of its ten ports.
        json: as JSON.
    """
    if replay:
        return _tell(ordered(port, "store-replay"), "{written} are written anew", json=json)
    told = ordered(port, "store-show", what="orphans")
    if isinstance(told, int) or json:
        return _tell(_read(told, "orphans"), "", json=json)
    return _table(("path", "value"), [(clean(row["path"]), _side(row)) for row in told["orphans"]], "no orphans")


@nodes.command
def drop(name: str, /, *, port: AskedPort = PORT, json: Flag = False) -> int:
    """Say that a node will not come back: nobody waits for it any more, and its later changes are refused everywhere.

    Args:
        name: of the node in the store; `weft store members` lists them.
        port: any other node's name, its state directory, or the first of its ten ports.
        json: the answer as JSON.
    """
    return _tell(ordered(port, "store-drop-node", node=name), "{node} is dropped behind its change {tick}", json=json)


@app.command
def deleter(what: What = "list", /, *names: str, port: AskedPort = PORT, json: Flag = False) -> int:
    """Say which nodes must have seen a deletion before it is forgotten: `weft store deleter add attic`; default: all.

    Args:
        what: list, add, remove, or set; `set` without names: all nodes.
        names: of nodes.
        port: the node's name, its state directory, or the first of its ten ports.
        json: as JSON.
    """
    if what in ("add", "remove") and not names:
        raise UserError("usage", f"nobody to {what}", f"weft store deleter {what} NAME")
    held: list[str] = []
    if what != "set" and (status := at_store(None, port, _reading(held), reads=True)) != DONE:
        return status
    if what in ("add", "set"):
        _warn_of_strangers(names, port)
    if what != "list":
        wanted = {"add": [*held, *names], "remove": [name for name in held if name not in names], "set": names}[what]
        told = ordered(port, "store-deleters", nodes=list(dict.fromkeys(wanted)))
        if isinstance(told, int):
            return told
        held = list(dict.fromkeys(wanted))
    if json:
        print_json({"deleters": held})
    else:
        print("\n".join(map(clean, held)) or "all nodes")
    return DONE


@app.command
def accept_tick(*, port: AskedPort = PORT, json: Flag = False) -> int:
    """Let a node whose numbers nobody could confirm go on under its own name.

    Only after its disk was lost or is an old copy, and if no node is away that might have heard more of it: a number
    that is used twice never heals.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        json: the answer as JSON.
    """
    told = ordered(port, "store-show", what="state")
    if isinstance(told, dict) and told.get("read_only") != "unconfirmed":
        return complain(
            f"nothing is to be accepted: {told['node']} writes under its own name\n  try: weft store state", 1
        )
    return _tell(
        told if isinstance(told, int) else ordered(port, "store-accept-tick"),
        "{node} goes on behind its change {tick}",
        json=json,
    )


def _warn_of_strangers(names: Sequence[str], port: int) -> None:
    """Who is named and does not exist holds up every deletion for ever."""
    told = ordered(port, "store-show", what="members") if names else {}
    known = [row["node"] for row in told.get("members", ())] if isinstance(told, dict) else names
    for name in names:
        if name not in known:
            text = (
                f"no node called {name!r} has ever changed this store: no deletion is forgotten before it has seen it"
            )
            complain(f"{text}\n  try: weft store deleter remove {name}, unless it is still to come", DONE)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _reading(held: list[str]) -> Any:
    async def work(client: Client) -> int:
        value = await client.get(DELETERS)
        held.extend(value["nodes"] if isinstance(value, dict) else ())
        return DONE

    return work


def _tell(told: dict[str, Any] | int, words: str, *, json: bool) -> int:
    if isinstance(told, int):
        return told
    if json:
        print_json({name: fact for name, fact in told.items() if name != "answer"})
    elif words:
        print(words.format(**{name: clean(str(fact)) for name, fact in told.items()}))
    return DONE


def _read(told: dict[str, Any] | int, name: str) -> dict[str, Any] | int:
    """With values that are values."""
    from weft.cli.store_lines import plain as as_json

    if isinstance(told, int):
        return told
    for row in told[name]:
        for side in (row, row.get("kept", {}), row.get("lost", {})):
            if "value" in side:
                side["value"] = as_json(unpack(bytes.fromhex(side["value"])))
    return told


def _side(side: dict[str, Any]) -> str:
    value = MISSING if "value" not in side else unpack(bytes.fromhex(side["value"]))
    by = f" {clean(side['by'])}" if side.get("by") else ""
    return f"{line(value)} # {clean(side['node'])}:{side['tick']}{by}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], nothing: str = "nothing") -> int:
    print_table(heads, rows, nothing)
    return DONE


def _shown(ranges: list[Any]) -> str:
    """Ranges of the wire, for people: their ends are inclusive here.

    >>> _shown([5, [8, 11]])
    '5, 8-10'
    """
    return ", ".join(f"{part[0]}-{part[1] - 1}" if isinstance(part, list) else str(part) for part in ranges)
