"""`weft doc show` and `replay`: the document, now or as it stood (GSP-032)."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.doc_calls import Node, Session, Words, at_session, checked, failed
from weft.cli.kit.exits import DONE, complain
from weft.cli.kit.lines import print_json
from weft.cli.kit.options import Flag
from weft.client.doc.client import Client
from weft.client.doc.errors import DocError, NotFound

if TYPE_CHECKING:
    from weft.client.doc.logfile import LogFile

Instant = Annotated[str | None, Parameter(allow_leading_hyphen=True, show_default=False)]


def show(
    *words: Words,
    at: Instant = None,
    as_seen: Instant = None,
    until: str | None = None,
    eids: bool = True,
    c14n: Flag = False,
    node: Node = None,
    session: Session = "",
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Print the document, or a part of it: `weft doc show period=1 jam=3`; as it stood: `weft doc show --at 20:15`.

    Args:
        words: where, as for weft doc add; left out: everything.
        at: the document as of this time, by all that is known now: 20:15, -5m, ISO 8601, or Unix seconds.
        as_seen: the document as this node showed it at this time.
        until: with this entry and all before it in the document's order: SOURCE:NUMBER as weft doc log shows.
        eids: --no-eids: without eids.
        c14n: as Canonical XML, the bytes from which the digest is computed.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: xml, digest, check and operations as one object.
    """
    where = checked(words)
    if at is not None or as_seen is not None or until is not None:
        return _replay(where, (at, as_seen, until), None, node, session, eids=eids, c14n=c14n, json=json)

    async def work(client: Client) -> int:
        xml = await client.show(where or None, eids=eids)
        if json:
            print_json({"xml": xml, **({} if where else await client.digest())})
        else:
            _print(xml, eids=eids, c14n=c14n)
        return DONE

    return at_session(node, session, work)


def replay(
    *words: Words,
    at: Instant = None,
    as_seen: Instant = None,
    until: str | None = None,
    log: str | None = None,
    from_lake: Annotated[Path | None, Parameter(show_default=False)] = None,
    schema: str = "",
    eids: bool = True,
    c14n: Flag = False,
    node: Node = None,
    session: Session = "",
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Build the document from the log and print it: `weft doc replay --at 20:15`, `--log bout.ndjson --until 5f3a9c21:7`.

    Args:
        words: where, as for weft doc add; left out: everything.
        at: the document as of this time, by all that is known now: 20:15, -5m, ISO 8601, or Unix seconds.
        as_seen: the document as the node with this log showed it at this time.
        until: with this entry and all before it in the document's order: SOURCE:NUMBER as weft doc log shows.
        log: a file of weft doc export, instead of a node.
        from_lake: a lake's directory, instead of a node; --as-seen then counts the entries that any node had received.
        schema: with --from-lake: the TOML file, if the session has a schema of its own.
        eids: --no-eids: without eids.
        c14n: as Canonical XML, the bytes from which the digest is computed.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: xml, digest, check and operations as one object.
    """
    from weft.cli.doc_files import log_of_file, log_of_lake

    if log is not None and from_lake is not None:
        raise UserError("usage", "--log and --from-lake both say where the log is", "one of them")
    source: Callable[[], LogFile] | None = None
    if log is not None:
        source = partial(log_of_file, log)
    if from_lake is not None:
        source = partial(log_of_lake, from_lake, session, schema)
    return _replay(checked(words), (at, as_seen, until), source, node, session, eids=eids, c14n=c14n, json=json)


def _replay(  # tidy: what both have in common
    where: list[str],
    moment: tuple[str | None, str | None, str | None],
    source: "Callable[[], LogFile] | None",
    node: str | None,
    session: str,
    **how: Any,
) -> int:
    from weft.cli.doc_files import log_of_node

    if source is not None:
        try:
            return _show(source(), where, moment, **how)
        except DocError as error:
            return failed(error)

    async def work(client: Client) -> int:
        return _show(await log_of_node(client), where, moment, **how)

    return at_session(node, session, work)


def _show(
    log: "LogFile",
    where: list[str],
    moment: tuple[str | None, str | None, str | None],
    *,
    eids: bool,
    c14n: bool,
    json: bool,
) -> int:  # tidy: three of them are how it is printed
    from weft.client.doc.replaying import moment_of, replay
    from weft.client.doc.values import reference_of
    from weft.wire.document.xml import canonical

    engine = replay(log.header.load(), log.entries, moment_of(*moment, log.entries))
    root = engine.find(reference_of(where)) if where else engine.root
    if root is None:
        raise NotFound(
            f"there was no element at {' '.join(where)}", mend="weft doc replay without a place: the whole document"
        )
    xml = canonical(root, eids=eids).decode()
    for fault in log.faults:
        complain(fault, DONE)
    if json:
        print_json({"xml": xml, "digest": engine.digest(), "operations": engine.operations})
    else:
        _print(xml, eids=eids, c14n=c14n)
    return DONE


def _print(xml: str, *, eids: bool, c14n: bool) -> None:
    import sys

    from weft.client.doc.exporting import pretty
    from weft.wire.document.xml import tree_of

    if c14n:
        sys.stdout.buffer.write(xml.encode())
        sys.stdout.buffer.flush()
    else:
        print(pretty(tree_of(xml), eids=eids))
