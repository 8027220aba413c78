"""`weft doc add`, `set`, `remove`, `resolve`, `chat`: what people enter."""

from typing import Annotated, Any

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.doc_calls import INERT, Node, Session, Words, at_session, checked
from weft.cli.doc_lines import short
from weft.cli.kit.exits import DENIED, DONE, complain
from weft.cli.kit.lines import print_json
from weft.cli.kit.options import Flag
from weft.client.doc.client import Client
from weft.client.doc.values import Written

By = Annotated[str, Parameter(show_default=False)]
Text = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
Attributes = Annotated[tuple[str, ...], Parameter(name=["-a", "--attribute"], allow_leading_hyphen=True, negative="")]


def add(
    *words: Words,
    text: Text = None,
    by: By = "",
    force: Flag = False,
    node: Node = None,
    session: Session = "",
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Add elements: `weft doc add period=1 jam=3 penalty team=home person=123 code=B`.

    First where, then what: one or more tags with their attributes, or XML in single quotes:
    `weft doc add team=home '<person number="123" name="Ann Lee"/>'`. A period or a jam that does not exist is made.

    Args:
        words: where: period=1 jam=3, team=home person=123, eid=…, path=venue, path=/ for the top. What: `TAG name=value
            …`, or XML; `-` is standard input.
        text: of the tag that is typed; without one it is appended to the text of the place.
        by: who enters this; default: the operator of the node.
        force: above a later entry of somebody else; and even if this node does not find what it refers to.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: the answer as JSON.
    """
    return _enter("add", checked(words), node, session, json=json, text=text, by=by, force=force)


def set_value(
    *words: Words,
    attribute: Attributes = (),
    text: Text = None,
    by: By = "",
    force: Flag = False,
    node: Node = None,
    session: Session = "",
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Set attributes, or the text, of an element: `weft doc set period=1 jam=3 duration=90`.

    As many words as possible say where: of `team=home person=12 name=Ann` the first two. To set an attribute that would
    be read as a part of that, use -a: `weft doc set team=home -a person=12`.

    Args:
        words: where, as for weft doc add; then name=value, as many as are to be set.
        attribute: a further name=value, whatever its name; several may be given.
        text: the text of the element: `weft doc set path=venue --text "Hall 5"` makes a venue if there is none.
        by: who enters this; default: the operator of the node.
        force: above a later entry of somebody else; and even if this node does not find what it refers to.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: the answer as JSON.
    """
    more = {"attributes": pairs(attribute)}
    return _enter("set", checked(words), node, session, json=json, text=text, by=by, force=force, **more)


def remove(
    *words: Words, by: By = "", force: Flag = False, node: Node = None, session: Session = "", json: Flag = False
) -> int:  # tidy: each is an option of the command line
    """Remove an element and everything in it: `weft doc remove eid=4555cf48-271e-5f2b-96af-b43e0929b9c9`.

    Args:
        words: where, as for weft doc add; weft doc show prints the eids.
        by: who enters this; default: the operator of the node.
        force: above a later entry of somebody else; and even if this node does not find what it refers to.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: the answer as JSON.
    """
    return _enter("remove", checked(words), node, session, json=json, by=by, force=force)


def undo(
    entry: str = "",
    /,
    *,
    by: By = "",
    force: Flag = False,
    node: Node = None,
    session: Session = "",
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Undo the last entry: `weft doc undo`. A second undo takes back the entry before that.

    An undo is an entry itself, which everybody gets: it restores old values, removes what was added, and brings back what
    was removed, with the same eids. `weft doc redo` takes the undo back.

    Args:
        entry: undo this entry instead, SOURCE:N as weft doc log shows it; another person's, too.
        by: whose last entry to undo, and who does it; default: the operator of the node.
        force: even where somebody else has written since.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: the answer as JSON.
    """

    async def work(client: Client) -> int:
        return _tell(await client.undo(entry, by=by, force=force), json=json)

    return at_session(node, session, work)


def redo(
    *, by: By = "", force: Flag = False, node: Node = None, session: Session = "", json: Flag = False
) -> int:  # tidy: as above
    """Take the last undo back: `weft doc redo`. Possible until something else is entered.

    Args:
        by: whose undo; default: the operator of the node.
        force: even where somebody else has written since.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: the answer as JSON.
    """

    async def work(client: Client) -> int:
        return _tell(await client.redo(by=by, force=force), json=json)

    return at_session(node, session, work)


def resolve(
    conflict: str,
    /,
    *,
    first: Flag = False,
    second: Flag = False,
    seen: Flag = False,
    value: Text = None,
    by: By = "",
    node: Node = None,
    session: Session = "",
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Decide a conflict for everybody: `weft doc resolve 7bf28509 --second`.

    Args:
        conflict: its id, as weft doc conflicts shows; the beginning is enough.
        first: take what the first of the two wanted.
        second: take what the second of the two wanted.
        seen: leave everything as it is, and list the conflict no more.
        value: take this value instead of both.
        by: who decides; default: the operator of the node.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: the answer as JSON.
    """
    if first + second + seen + (value is not None) != 1:
        mend = f"weft doc resolve {conflict} --first, --second, --seen, or --value V"
        raise UserError("usage", "say which side is right", mend)

    async def work(client: Client) -> int:
        side: Any = "first" if first else "second" if second else "seen" if seen else None
        return _tell(await client.resolve(conflict, side, value=value, by=by), json=json)

    return at_session(node, session, work)


def chat(*words: Words, node: Node = None, session: Session = "", json: Flag = False) -> int:
    """Send a text to the people at all other nodes: `weft doc chat jam 3 had 4 points?`. Without a text, print the chat.

    Args:
        words: the text.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: as JSON.
    """

    async def work(client: Client) -> int:
        if not words:
            return await _print_chats(client, json=json)
        count = await client.chat(" ".join(words))
        if json:
            print_json({"told": count})
        else:
            print(f"said to {count} {'node' if count == 1 else 'nodes'}")
        return DONE

    return at_session(node, session, work)


async def _print_chats(client: Client, *, json: bool) -> int:
    from weft.cli.doc_lines import event_line

    for line in await client.chats():
        if json:
            print_json(line)
        else:
            print(event_line({"event": "chat", **line}))
    return DONE


def pairs(words: tuple[str, ...]) -> dict[str, str]:
    """`name=value` each; UserError."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UserError("usage", f"-a {word!r} is no name=value", "-a team=home")
        found[name] = value
    return found


def _enter(
    verb: str, words: list[str], node: str | None, session: str, *, json: bool, **more: Any
) -> int:  # tidy: what all three have in common
    async def work(client: Client) -> int:
        return _tell(await client.edit(verb, words, **more), json=json)

    return at_session(node, session, work)


def _tell(written: Written, *, json: bool) -> int:
    """Print what became of an entry; returns the exit status. The entry is in the log in any case."""
    from msgspec.structs import asdict

    status = DONE if written.is_applied or written.resolved or written.outcome == "parked" else DENIED
    name = f"{short(written.source)}:{written.sequence}"
    if json:
        print_json(asdict(written))
        return status
    if written.hidden_by:
        source, _, number = written.hidden_by.rpartition(":")
        text = f"entered as {name}, but a later entry stands above it: {written.hidden_value!r} by {short(source)}:{number}"
        return complain(f"{text}\n  try: the same with --force", status)
    if written.outcome == "parked":
        print(f"entered as {name}; it waits for what it refers to (weft doc parked)")
    elif written.undoes:
        source, _, number = written.undoes.rpartition(":")
        print(f"entered as {name}; {short(source)}:{number} is taken back")
    elif written.resolved:
        print(f"entered as {name}; the conflict is resolved for everybody")
    elif status == DONE:
        print(" ".join([f"entered as {name}", *(f"eid={eid}" for eid in written.eids)]))
    else:
        why = written.outcome.removeprefix("inert:")
        return complain(
            f"entered as {name}, and changes nothing: {why}\n  try: {INERT.get(why, 'weft doc log')}", status
        )
    return DONE
