"""`weft doc`: documents that several people edit together, and their logs (JAM-040)."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Final

from cyclopts import App, Parameter

from weft.cli.doc_calls import Node, Session, Words, at_session, checked
from weft.cli.doc_lines import (
    change_json,
    change_lines,
    conflict_row,
    operation_json,
    operation_line,
    short,
    time_of,
)
from weft.cli.kit.exits import DONE, UNREACHABLE, complain
from weft.cli.kit.lines import print_json, print_table
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.client.doc.client import Client

app = App(
    name="doc",
    help="Edit one document with others, without a server: edit, watch, replay, verify.",
    help_epilogue="Exit status: 0 done, 1 not found or a fault found, 2 wrong usage, 3 no node, 4 refused or without effect. Whatever is typed: docs/doc.md.",
)
ROOMS: Final[dict[str, tuple[str, str]]] = {
    "join": ("weft.cli.doc_join:join", "Run a node here that takes part in a session."),
    "open": ("weft.cli.doc_join:open_file", "Run a node that takes part in a session, and bring a file into it."),
    "add": ("weft.cli.doc_edit:add", "Add elements, or text."),
    "set": ("weft.cli.doc_edit:set_value", "Set attributes, or the text of an element."),
    "remove": ("weft.cli.doc_edit:remove", "Remove an element."),
    "undo": ("weft.cli.doc_edit:undo", "Take an entry back."),
    "redo": ("weft.cli.doc_edit:redo", "Take the last undo back."),
    "resolve": ("weft.cli.doc_edit:resolve", "Decide a conflict."),
    "chat": ("weft.cli.doc_edit:chat", "Send a text to the people at the other nodes."),
    "show": ("weft.cli.doc_show:show", "Print the document, or a part of it, now or as it stood."),
    "replay": ("weft.cli.doc_show:replay", "Print the document as it stood, from the log alone."),
    "export": ("weft.cli.doc_files:export", "Write the log or the document into a file."),
    "import": ("weft.cli.doc_files:import_file", "Import a log, a document or a roster."),
    "verify": ("weft.cli.doc_files:verify", "Check a log: numbers, hashes, document."),
    "rebuild": ("weft.cli.doc_files:rebuild", "Rebuild the document from a file or a lake."),
    "key": ("weft.cli.doc_files:key", "Make the key of a session."),
}
for name, (where, what) in ROOMS.items():
    # The help of one command shows its whole docstring, the list of commands only these words.
    app.command(where, name=name, help=None if [name] == sys.argv[2:3] else what)


@app.command
def sessions(*, node: Node = None, json: Flag = False) -> int:
    """List the sessions that nodes of this machine have.

    Args:
        node: only of this one: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else all.
        json: one array.
    """
    from weft.client.doc.finding import VARIABLE, alive

    node = node or os.environ.get(VARIABLE)
    ends: Sequence[tuple[str, str | None]] = [("", node)] if node else [(path.name, at) for path, at in alive().items()]
    rows: list[dict[str, object]] = []

    def of(name: str, endpoint: str | None) -> int:
        async def work(client: Client) -> int:
            rows.extend({"node": name or node, **facts} for facts in await client.sessions())
            return DONE

        return at_session(endpoint, "", work)

    status = max((of(name, endpoint) for name, endpoint in ends), default=DONE)
    heads = ("session", "node", "state", "schema", "endpoint", "operations")
    if json:
        print_json(rows)
    else:
        cells = [[clean(str(row.get(head, ""))) for head in heads] for row in rows]
        print_table(heads, cells, "no node with a document runs here: weft doc join SESSION")
    return status


@app.command
def status(*, node: Node = None, session: Session = "", json: Flag = False) -> int:
    """Show the state of a session here: this node, who is connected, how many entries there are, and which ones wait.

    Args:
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: one object, with more facts.
    """

    async def work(client: Client) -> int:
        facts = await client.status()
        if json:
            print_json(facts)
            return DONE
        is_behind = ", being folded anew" if facts["catching_up"] else ""
        print(f"session    {clean(facts['session'])}, schema {clean(facts['schema'])}")
        print(f"here       {facts['uuid']} at {facts['endpoint'] or 'no port'}")
        print(f"peers      {_alone(facts)}")
        print(
            f"document   {facts['operations']} entries of {facts['sources']} sources, check {facts['check']}{is_behind}"
        )
        print(f"waiting    {facts['parked']} entries for what they refer to")
        print(f"conflicts  {facts['conflicts']} open{': weft doc conflicts' if facts['conflicts'] else ''}")
        if facts["is_degraded"]:
            print("journal    full: nothing can be entered here, others' entries are kept in memory")
        return DONE

    return at_session(node, session, work)


@app.command
def peers(*, node: Node = None, session: Session = "", json: Flag = False) -> int:
    """Show who is connected, who was, and to whom this node tries to connect.

    Args:
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: one array.
    """

    async def work(client: Client) -> int:
        status, peers_there = await client.status(), await client.ask("peers")
        rows, refused = peers_there["peers"], peers_there.get("refused", [])
        if json:
            print_json({"uuid": status["uuid"], "endpoint": status["endpoint"], "peers": rows, "refused": refused})
            return DONE
        print(
            f"{clean(status['session'])}: {short(status['uuid'])} at {status['endpoint'] or 'no port'}, {_alone(status)}"
        )
        cells = [
            [
                "silent" if row.get("silent") else row["state"].lower(),
                row["endpoint"],
                short(row["uuid"]) or "-",
                row["how"],
                _ago(row["heard_s"]),
                clean(row.get("by", "")) or "-",
            ]
            for row in rows
        ]
        heads = ("state", "endpoint", "source", "known by", "heard", "operator")
        if cells or not refused:
            print_table(heads, cells, "nobody is known: weft doc join --peer HOST:PORT")
        for row in refused:
            text = f"another session: {clean(row['session'])!r}, and here it is {clean(status['text'])!r}"
            print(f"refused {row['endpoint']}: it is of {text}")
        return DONE

    return at_session(node, session, work)


@app.command
def sources(*, node: Node = None, session: Session = "", json: Flag = False) -> int:
    """Show whose entries are here, and up to which number; each start of a node is a source of its own.

    Args:
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: one array.
    """

    async def work(client: Client) -> int:
        rows = await client.sources()
        if json:
            print_json(rows)
            return DONE
        cells = [
            [row["source"], row["state"], f"{row['latest']:,}", _missing(row), clean(row["by"]) or "-"] for row in rows
        ]
        print_table(("source", "state", "entries", "missing", "by"), cells, "nobody has entered anything")
        return DONE

    return at_session(node, session, work)


@app.command
def digest(*, node: Node = None, session: Session = "", json: Flag = False) -> int:
    """Print the document's SHA-256, in canonical form, and the check of its log: equal documents have equal ones.

    Args:
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: as JSON.
    """

    async def work(client: Client) -> int:
        facts = await client.digest()
        if json:
            print_json(facts)
        else:
            behind = "; a long refold is under way" if facts["catching_up"] else ""
            print(f"{facts['digest']}  check {facts['check']}, {facts['operations']:,} operations{behind}")
        return DONE

    return at_session(node, session, work)


@app.command
def log(
    *words: Words,
    tail: int | None = None,
    source: str = "",
    node: Node = None,
    session: Session = "",
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Print every entry, in the order in which they became known here: `weft doc log --tail 20`.

    With a reference: who wrote what of that element, and what was there before: `weft doc log period=1 jam=3`.

    Args:
        words: where, as for weft doc add.
        tail: only the last so many entries.
        source: only entries of this source; its first digits are enough.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: one object a line.
    """
    where = checked(words)

    async def work(client: Client) -> int:
        if where:
            return await _history(client, where, json=json)
        found = [operation async for operation in client.log(source=source)] if tail is None or source else None
        for operation in found if found is not None else await client.tail(tail or 0):
            if json:
                print_json(operation_json(operation))
            else:
                print(operation_line(operation))
        return DONE

    return at_session(node, session, work)


async def _history(client: Client, where: list[str], *, json: bool) -> int:
    element = await client.element(where)
    if json:
        print_json(element)
        return DONE
    print(clean(element["slot"]))
    for past in element["history"]:
        before = "" if past["before"] is None else f" (was {clean(past['before'])!r})"
        by = f" by {clean(past['by'])}" if past["by"] else ""
        who = f"{short(past['source'])}:{past['sequence']}"
        print(f"{time_of(past['eff'])} {who} {clean(past['attribute'])} = {clean(past['value'])!r}{before}{by}")
    return DONE


@app.command
def conflicts(
    *,
    every: Annotated[bool, Parameter(name="--all", negative="", show_default=False)] = False,
    node: Node = None,
    session: Session = "",
    json: Flag = False,
) -> int:
    """List conflicts: places where two people wanted different things. `weft doc resolve ID` decides one.

    Args:
        every: also those that are decided.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: one array.
    """

    async def work(client: Client) -> int:
        from msgspec.structs import asdict

        found = await client.conflicts(closed=every)
        if json:
            print_json([asdict(conflict) for conflict in found])
        else:
            print_table(("id", "kind", "where", "first", "second", ""), map(conflict_row, found), "no conflicts")
        return DONE

    return at_session(node, session, work)


@app.command
def parked(*, node: Node = None, session: Session = "", json: Flag = False) -> int:
    """List entries that wait for an element that was entered at another node, and has not come yet.

    Args:
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: one array.
    """

    async def work(client: Client) -> int:
        found = await client.parked()
        if json:
            print_json([operation_json(operation) for operation in found])
        else:
            print("\n".join(map(operation_line, found)) or "nothing waits")
        return DONE

    return at_session(node, session, work)


@app.command
def watch(*, count: int | None = None, node: Node = None, session: Session = "", json: Flag = False) -> int:
    """Print every change as a line, until Ctrl-C: everybody's entries, who connects and leaves, conflicts, chat.

    Args:
        count: end after so many changes.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: one object for each change.
    """
    from weft.cli.chain_ends import until_any

    async def follow(client: Client) -> None:
        left = count
        async for change in client.watch():
            if json:
                print_json(change_json(change))
            else:
                for line in change_lines(change):
                    print(line, flush=True)
            left = None if left is None else left - 1
            if left == 0:
                return
        raise EOFError

    async def work(client: Client) -> int:
        try:
            await until_any(follow(client))
        except EOFError:
            return complain("the node has stopped\n  try: weft doc join SESSION starts one", UNREACHABLE)
        return DONE

    return at_session(node, session, work)


def _alone(status: dict[str, object]) -> str:
    if status["active"]:
        return f"{status['active']} connected"
    return f"alone for {status.get('alone_s', 0)} s"


def _ago(seconds: int | None) -> str:
    return "never" if seconds is None else f"{seconds} s ago"


def _missing(row: dict[str, int]) -> str:
    return f"{row['latest'] + 1}…{row['highest']}" if row["highest"] > row["latest"] else "-"
