"""`weft store`: shows the state of a node's store, and takes people's decisions about it (ADM-020)."""

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

app = App(name="store", help="Found the shared store; show its state; deal with conflicts and lost nodes.")
nodes = App(name="node", help="Choose which nodes must have seen a deletion before it is forgotten.")
app.command(nodes)
app.command("weft.cli.store_files:save", name="save", help="Write the whole store into a file.")
app.command(
    "weft.cli.store_files:load", name="load", help="Load a file of a store, as new changes or as a copy, or compare it."
)
app.command("weft.cli.store_audit:audit", name="audit", help="Compare the store with those of other nodes.")
app.command("weft.cli.store_files:dump", name="dump", help="Print everything at and below a path as YAML.")
app.command("weft.cli.store_rules:type_", name="type", help="Types: rules that values must meet.")
app.command("weft.cli.store_rules:match", name="match", help="Which values have which type.")
app.command("weft.cli.store_rules:codec", name="codec", help="Codecs: how values are converted for some users.")
app.command("weft.cli.store_rules:conv", name="conv", help="Which codec a group of users has for which paths.")
app.command("weft.cli.store_lake:get", name="get", help="Print a past value of a path, from the lake.")
app.command("weft.cli.store_lake:history", name="history", help="List the versions of an entry, from the lake.")

What = Literal["list", "add", "remove", "set"]
DELETERS: Final = (None, "actor", "del")
WAITING: Final = {
    "OFFLINE": "has no link to another node yet",
    "LISTEN": "has no data, and waits for a node that has: start one; or weft store found, if this is the first",
    "JOIN": "asks the other nodes which changes exist",
    "RESTORED": "has restarted, and waits 15 s for other nodes that may have newer changes",
    "CATCHUP": "fetches missing changes",
}
"""What a node does in each state in which it does not serve yet."""


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
            "bad-yaml", f"this is no YAML of a value: {error.why}", 'weft store found "our house"'
        ) from None
    answer = ordered(port, "store-found", value=packed.hex())
    return _tell(answer, "{node} has founded the store", json=json)


@app.command
def state(*, port: AskedPort = PORT, json: Flag = False) -> int:
    """Show the state of a node's store: whether it serves, how many entries it has, and which changes are missing.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        json: all facts as JSON.
    """
    answer = ordered(port, "store-show", what="state")
    if isinstance(answer, int):
        return answer
    if json:
        return _tell(answer, "", json=True)
    serves = "serves clients" if answer["serves"] else "serves nobody yet"
    print(
        f"{clean(str(answer['node']))}: {answer['state']}, {serves}; change {answer['tick']:,}, tock {answer['tock']:,}"
    )
    if not answer["serves"] and answer["state"] in WAITING:
        print(f"it {WAITING[answer['state']]}")
    if answer.get("read_only"):
        print(f"takes no writes: {answer['read_only']}")
    print(
        f"{answer['entries']:,} entries, {answer['tombstones']:,} deleted ones, {answer['value_bytes']:,} bytes of values"
    )
    members = f"{_count(answer['members'], 'other node')} linked, {_count(answer['foreign'], 'MoaT-KV server')}"
    print(f"{members}{', a broker' if answer.get('has_broker') else ''}")
    for name, ranges in answer["missing"].items():
        print(f"missing of {clean(name)}: {_shown(ranges)}")
    if answer.get("conflicts"):
        print(f"{_count(answer['conflicts'], 'conflict')} so far: weft store conflicts")
    return DONE


@app.command
def members(*, port: AskedPort = PORT, json: Flag = False) -> int:
    """List every node that has ever changed the store, as this node knows them.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        json: as JSON.
    """
    answer = ordered(port, "store-show", what="members")
    if isinstance(answer, int) or json:
        return _tell(answer, "", json=json)
    rows = [
        (
            clean(row["node"]),
            row["kind"],
            row["link"] or "-",
            row["endpoint"] or "-",
            f"{row['tick']:,}",
            f"{row['missing']:,}",
        )
        for row in answer["members"]
    ]
    return _table(("node", "kind", "link", "endpoint", "last change", "missing"), rows)


@app.command
def conflicts(*, restore: int | None = None, port: AskedPort = PORT, json: Flag = False) -> int:
    """List conflicts, newest first: `weft store conflicts`; `--restore 3` writes the value that lost conflict 3 again.

    A conflict is two changes of an entry whose authors did not know of each other.

    Args:
        restore: the number of a conflict; the value that lost is written as a new change.
        port: the node's name, its state directory, or the first of its ten ports.
        json: as JSON.
    """
    if restore is not None:
        answer = ordered(port, "store-restore", number=restore)
        return _tell(answer, "{path} has the value again that had lost", json=json)
    answer = ordered(port, "store-show", what="conflicts")
    if isinstance(answer, int) or json:
        return _tell(_read(answer, "conflicts"), "", json=json)
    rows = [
        (str(row["number"]), clean(row["path"]), row["reason"], _side(row["kept"]), _side(row["lost"]))
        for row in answer["conflicts"]
    ]
    return _table(("number", "path", "reason", "kept", "lost"), rows, "no conflicts")


@app.command
def orphans(*, replay: Flag = False, port: AskedPort = PORT, json: Flag = False) -> int:
    """List changes of this node that the others refused, because the node had been dropped while it was away.

    Args:
        replay: write them again as new changes.
        port: the node's name, its state directory, or the first of its ten ports.
        json: as JSON.
    """
    if replay:
        return _tell(ordered(port, "store-replay"), "{written} are written anew", json=json)
    answer = ordered(port, "store-show", what="orphans")
    if isinstance(answer, int) or json:
        return _tell(_read(answer, "orphans"), "", json=json)
    return _table(("path", "value"), [(clean(row["path"]), _side(row)) for row in answer["orphans"]], "no orphans")


@nodes.command
def drop(name: str, /, *, port: AskedPort = PORT, json: Flag = False) -> int:
    """Declare that a node will not come back: no node waits for it any more, and all refuse its later changes.

    Args:
        name: the node's name in the store; `weft store members` lists them.
        port: any other node's name, its state directory, or the first of its ten ports.
        json: the answer as JSON.
    """
    return _tell(ordered(port, "store-drop-node", node=name), "{node} is dropped after its change {tick}", json=json)


@app.command
def deleter(what: What = "list", /, *names: str, port: AskedPort = PORT, json: Flag = False) -> int:
    """Choose which nodes must have seen a deletion before it is forgotten: `weft store deleter add attic`; default: all.

    Args:
        what: list, add, remove, or set; `set` without names: all nodes.
        names: of nodes.
        port: the node's name, its state directory, or the first of its ten ports.
        json: as JSON.
    """
    if what in ("add", "remove") and not names:
        raise UserError("usage", f"nobody to {what}", f"weft store deleter {what} NAME")
    deleters: list[str] = []
    if what != "set" and (status := at_store(None, port, _reading(deleters), reads=True)) != DONE:
        return status
    if what in ("add", "set"):
        _warn_of_strangers(names, port)
    if what != "list":
        wanted = {"add": [*deleters, *names], "remove": [name for name in deleters if name not in names], "set": names}[
            what
        ]
        answer = ordered(port, "store-deleters", nodes=list(dict.fromkeys(wanted)))
        if isinstance(answer, int):
            return answer
        deleters = list(dict.fromkeys(wanted))
    if json:
        print_json({"deleters": deleters})
    else:
        print("\n".join(map(clean, deleters)) or "all nodes")
    return DONE


@app.command
def accept_tick(*, port: AskedPort = PORT, json: Flag = False) -> int:
    """Let a node write under its own name again, though no other node could confirm its last number.

    Use this only after the node's disk was lost or replaced by an old copy, and if no node is away that may have newer
    changes of it: a number that is used twice cannot be repaired.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        json: the answer as JSON.
    """
    answer = ordered(port, "store-show", what="state")
    if isinstance(answer, dict) and answer.get("read_only") != "unconfirmed":
        return complain(
            f"nothing is to be accepted: {answer['node']} writes under its own name\n  try: weft store state", 1
        )
    return _tell(
        answer if isinstance(answer, int) else ordered(port, "store-accept-tick"),
        "{node} goes on after its change {tick}",
        json=json,
    )


def _warn_of_strangers(names: Sequence[str], port: int) -> None:
    """Warn of names that no node has: a deletion would wait for them for ever."""
    answer = ordered(port, "store-show", what="members") if names else {}
    known = [row["node"] for row in answer.get("members", ())] if isinstance(answer, dict) else names
    for name in names:
        if name not in known:
            text = (
                f"no node called {name!r} has ever changed this store: no deletion is forgotten before it has seen it"
            )
            complain(f"{text}\n  try: weft store deleter remove {name}, unless that node will still join", DONE)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _reading(deleters: list[str]) -> Any:
    async def work(client: Client) -> int:
        value = await client.get(DELETERS)
        deleters.extend(value["nodes"] if isinstance(value, dict) else ())
        return DONE

    return work


def _tell(answer: dict[str, Any] | int, words: str, *, json: bool) -> int:
    if isinstance(answer, int):
        return answer
    if json:
        print_json({name: fact for name, fact in answer.items() if name != "answer"})
    elif words:
        print(words.format(**{name: clean(str(fact)) for name, fact in answer.items()}))
    return DONE


def _read(answer: dict[str, Any] | int, name: str) -> dict[str, Any] | int:
    """A node's answer with the bytes of values decoded."""
    from weft.cli.store_lines import plain as as_json

    if isinstance(answer, int):
        return answer
    for row in answer[name]:
        for side in (row, row.get("kept", {}), row.get("lost", {})):
            if "value" in side:
                side["value"] = as_json(unpack(bytes.fromhex(side["value"])))
    return answer


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
