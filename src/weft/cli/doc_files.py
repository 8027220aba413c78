"""`weft doc export`, `import`, `verify`, `rebuild`: logs and documents as files (GSP-033, GSP-034, JAM-030)."""

import asyncio
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.doc_calls import INERT, File, Node, Session, at_session, failed, file_named
from weft.cli.kit.exits import DENIED, DONE, NOT_SO, complain
from weft.cli.kit.lines import print_json
from weft.cli.kit.options import Flag
from weft.client.doc.client import Client
from weft.client.doc.errors import BadFile, DocError, TooFast, Unreachable

if TYPE_CHECKING:
    from weft.client.doc.importing import Enter
    from weft.client.doc.logfile import LogFile

Format = Literal["ndjson", "derbyxml", "derbyjson", "csv"]
BY_ENDING: Final[dict[str, Format]] = {".xml": "derbyxml", ".json": "derbyjson", ".csv": "csv", ".ndjson": "ndjson"}
WAIT_S: Final = 0.2  # until a node takes entries again
SETTLE_S: Final = 3.0  # on a local network other nodes need less to connect and to send what they have
LOOK_S: Final = 0.1
Instant = Annotated[str | None, Parameter(allow_leading_hyphen=True, show_default=False)]


# Logs


async def log_of_node(client: Client) -> "LogFile":
    """The log of a session, as its node has it."""
    from weft.client.doc.logfile import Entry, Header, LogFile
    from weft.wire.document.operations import parse

    status = await client.status()
    header = Header(status["session"], status["schema"], status.get("schema_text", ""))
    entries = [
        Entry(parse(operation.body), operation.body, operation.received_at, operation.received_from)
        async for operation in client.log()
    ]
    return LogFile(header, entries, [])


def log_of_file(name: str, *, partial: bool = False) -> "LogFile":
    """The log in a file of `weft doc export`; BadFile."""
    from weft.client.doc.logfile import read_log

    return read_log(text_of(name).split("\n"), partial=partial)


def text_of(name: str) -> str:
    """The text of a file, or of standard input for `-`; BadFile."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise BadFile(f"{name} cannot be read: {error.strerror}", mend="another file; - is standard input") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadFile(f"{name} is no UTF-8", mend="a file of weft doc export, DerbyXML, or CSV") from None


# Out


def export(
    file: File = "-",
    /,
    *,
    form: Annotated[Format | None, Parameter(name="--as", show_default=False)] = None,
    node: Node = None,
    session: Session = "",
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Write the whole log into a file: `weft doc export bout.ndjson`; or the document: `weft doc export bout.xml`.

    Args:
        file: its ending chooses the format: .ndjson the log, .xml DerbyXML, .json DerbyJSON, .csv the score sheet;
            left out: standard output.
        form: the format, whatever the file is called: ndjson, derbyxml, derbyjson, csv.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: what was written where, as JSON.
    """
    ending = Path(file_named(file)).suffix.lower()
    if form is None and ending and ending not in BY_ENDING:
        raise UserError(
            "usage", f"no format has the ending {ending}", f"one of {', '.join(sorted(BY_ENDING))}; or --as csv"
        )
    chosen = form or BY_ENDING.get(ending, "ndjson")

    async def work(client: Client) -> int:
        text = await _written(client, chosen)
        _write(file, text)
        facts = {"file": file, "as": chosen, "bytes": len(text.encode())}
        if json:
            print_json(facts)
        elif file != "-":
            print(f"{file}: {chosen}, {facts['bytes']:,} bytes")
        return DONE

    return at_session(node, session, work)


async def _written(client: Client, form: Format) -> str:
    from weft.client.doc import exporting
    from weft.client.doc.logfile import lines_of
    from weft.wire.document.xml import tree_of

    if form == "ndjson":
        log = await log_of_node(client)
        return "".join(f"{line}\n" for line in lines_of(log.header, log.entries))
    if form == "csv":
        return exporting.score_sheet((await client.board())["board"]["rows"])
    root = tree_of(await client.show())
    return exporting.derbyxml(root) if form == "derbyxml" else exporting.derbyjson(root)


def _write(file: str, text: str) -> None:
    """Write the file whole, or not at all."""
    if file == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    path = Path(file)
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_text(text, "utf-8")
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise BadFile(f"{file} cannot be written: {error.strerror}", mend="another directory") from None


# In


def import_file(
    file: File,
    /,
    *,
    partial: Flag = False,
    if_empty: Flag = False,
    wait: float = 0.0,
    settle: float = SETTLE_S,
    node: Node = None,
    session: Session = "",
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Import a file: a log of weft doc export, a document (DerbyXML), or a roster (CSV: team,number,name).

    Operations of a log keep their numbers, so known ones are skipped; a document and a roster become new entries.

    Args:
        file: the file; its content shows which kind it is; - is standard input.
        partial: accept a log that was cut off, and say what is missing.
        if_empty: only if nobody has entered anything, here or at a connected node.
        wait: seconds to wait for a node that is still starting.
        settle: with --if-empty: seconds to wait for others to connect and to send what they have.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: the counts as JSON.
    """
    try:
        text = text_of(file_named(file))
    except DocError as error:
        return failed(error)

    async def work(client: Client) -> int:
        if if_empty and not await _is_empty(client, settle):
            print(f"{file}: not taken in, since the session has entries already")
            return DONE
        return await _take(client, file, text, partial=partial, json=json)

    return at_session(_awaited(node, wait), session, work)


def _awaited(node: str | None, wait_s: float) -> str | None:
    """Wait for a node that is still starting; returns its endpoint."""
    import time

    from weft.client.doc.finding import endpoint_of
    from weft.client.link.finding import is_live

    ends_at = time.monotonic() + wait_s
    while time.monotonic() < ends_at:
        try:
            endpoint = endpoint_of(node)
        except Unreachable:
            endpoint = ""
        if endpoint and is_live(endpoint):
            return endpoint
        time.sleep(LOOK_S)
    return node


async def _is_empty(client: Client, settle_s: float) -> bool:
    """Whether there is no entry, once others have had time to send theirs."""
    if (await client.status())["operations"] == 0:
        await asyncio.sleep(settle_s)
    return bool((await client.status())["operations"] == 0)


async def _take(client: Client, file: str, text: str, *, partial: bool, json: bool) -> int:
    begin = text.lstrip()[:1]
    if begin == "{":
        return await _take_log(client, file, text, partial=partial, json=json)
    return await _take_entries(client, file, text, is_xml=begin == "<", json=json)


async def _take_log(client: Client, file: str, text: str, *, partial: bool, json: bool) -> int:
    from weft.client.doc.logfile import in_order, read_log

    log, status = read_log(text.split("\n"), partial=partial), await client.status()
    if (log.header.schema, log.header.schema_text) != (status["schema"], status.get("schema_text", "")):
        raise BadFile(
            f"{file} is of schema {log.header.schema}, and the session of {status['schema']}",
            mend=f"weft doc join SESSION --schema {log.header.schema}",
        )
    counts = await client.bring(entry.body for entry in in_order(log.entries))
    for fault in log.faults:
        complain(fault, DONE)
    if json:
        print_json({"file": file, **counts, "faults": log.faults})
    else:
        print(f"{file}: {counts['taken']:,} operations taken in, {counts['known']:,} known already")
    if counts["refused"]:
        return complain(f"{counts['refused']:,} were refused\n  try: weft doc verify {file}", DENIED)
    return DONE


async def _take_entries(client: Client, file: str, text: str, *, is_xml: bool, json: bool) -> int:
    from weft.client.doc.logfile import Header

    status = await client.status()
    schema = Header(status["session"], status["schema"], status.get("schema_text", "")).load()
    if is_xml:
        from weft.client.doc.importing import entries_of

        entries = entries_of(text, schema)
    else:
        from weft.client.doc.importing import roster_of
        from weft.wire.document.xml import tree_of

        entries = roster_of(io.StringIO(text, newline=""), tree_of(await client.show()))
    outcomes = await _enter_all(client, list(entries))  # the list reads the whole file first: a bad one enters nothing
    if json:
        print_json({"file": file, "outcomes": outcomes})
    else:
        made = outcomes.get("applied", 0)
        print(f"{file}: {made:,} {'entry' if made == 1 else 'entries'} made")
    others = [(outcome, count) for outcome, count in outcomes.items() if outcome != "applied"]
    for outcome, count in others:
        why = INERT.get(outcome.removeprefix("inert:"), "weft doc log")
        complain(f"{count:,} without effect: {outcome}\n  try: {why}", DENIED)
    return DENIED if others else DONE


async def _enter_all(client: Client, entries: "list[Enter]") -> dict[str, int]:
    """Make entries one by one, as fast as the node takes them (GSP-055); returns how many had which outcome."""
    outcomes: dict[str, int] = {}
    for enter in entries:
        outcome = await _enter(client, enter)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return outcomes


async def _enter(client: Client, enter: "Enter") -> str:
    """Make one entry; returns its outcome, or the code of the refusal if only this entry was refused."""
    while True:
        try:
            if enter.verb == "add":
                return (await client.add(enter.reference, enter.xml)).outcome
            return (await client.set(enter.reference, enter.attributes, text=enter.text)).outcome
        except TooFast:
            await asyncio.sleep(WAIT_S)
        except DocError as error:
            if error.code not in INERT:
                raise
            return f"inert:{error.code}"


# Proof


def verify(
    file: File | None = None,
    /,
    *,
    node: Node = None,
    session: Session = "",
    json: Flag = False,
) -> int:
    """Check a log: no number may be missing, and hashes and document must be right.

    Args:
        file: of weft doc export; left out: check the log of a node against the node's own digest.
        node: a node's name, state directory, first port or endpoint; default: WEFT_DOC, else the only one that runs here.
        session: its name, where the node has several.
        json: the findings as JSON.
    """
    if file is not None:
        try:
            log = log_of_file(file_named(file), partial=True)
        except DocError as error:
            return failed(error)
        return _judge(file, log, log.faults, json=json)

    async def work(client: Client) -> int:
        from weft.client.doc.logfile import Tally, folded

        log, facts = await log_of_node(client), await client.digest()
        tally = Tally.of(log.entries)
        faults = [f"missing of {gap}" for gap in tally.gaps()]
        if facts["operations"] == tally.operations:
            if facts["check"] != tally.check:
                faults.append(f"the node says check {facts['check']}, and its log has {tally.check}")
            elif not facts["catching_up"] and facts["digest"] != (digest := folded(log).digest()):
                faults.append(f"the node says digest {facts['digest']}, and its log folds to {digest}")
        return _judge(log.header.session, log, faults, json=json)

    return at_session(node, session, work)


def _judge(name: str, log: "LogFile", faults: list[str], *, json: bool) -> int:
    from weft.client.doc.logfile import Tally, folded

    tally, engine = Tally.of(log.entries), folded(log)
    facts = {
        "operations": tally.operations,
        "sources": tally.sources,
        "check": tally.check,
        "digest": engine.digest(),
        "signed": "unsigned",
        "faults": faults,
    }
    if json:
        print_json(facts)
        return NOT_SO if faults else DONE
    print(f"{name}: {tally.operations:,} operations of {tally.sources:,} sources, unsigned; check {tally.check}")
    print(f"document {facts['digest']}")
    for fault in faults:
        complain(fault, NOT_SO)
    return NOT_SO if faults else DONE


def rebuild(
    *,
    of: Annotated[str, Parameter(name="--from")],
    out: str | None = None,
    at: Instant = None,
    as_seen: Instant = None,
    until: str | None = None,
    partial: Flag = False,
    schema: str = "",
    session: Session = "",
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Rebuild a document from a lake or an exported log: `weft doc rebuild --from lake --session "Hall 5" --at 20:15`.

    Args:
        of: a lake, or a file of weft doc export.
        out: where to write the document (DerbyXML).
        at: the document as of this time, by all that is known now: 20:15, -5m, ISO 8601, or Unix seconds.
        as_seen: the document with only those entries that any node had received by this time.
        until: with this entry and all before it in the document's order: SOURCE:NUMBER as weft doc log shows.
        partial: accept a log that was cut off, and say what is missing.
        schema: the TOML file, if the session has a schema of its own.
        session: its name, if the lake has several.
        json: digest, check and counts as JSON.
    """
    from weft.client.doc.logfile import Tally
    from weft.client.doc.replaying import moment_of, replay

    try:
        log = log_of_lake(Path(of), session, schema) if Path(of).is_dir() else log_of_file(of, partial=partial)
        moment = moment_of(at, as_seen, until, log.entries)
        engine = replay(log.header.load(), log.entries, moment)
        if out is not None:
            from weft.client.doc.exporting import derbyxml

            _write(out, derbyxml(engine.root))
    except DocError as error:
        return failed(error)
    for fault in log.faults:
        complain(fault, DONE)
    tally, is_all = Tally.of(log.entries), moment == (None, None, None)
    facts = {"session": log.header.session, "digest": engine.digest(), "operations": engine.operations}
    if is_all:  # nodes give a check only for all operations
        facts |= {"check": tally.check, "operations": tally.operations, "sources": tally.sources}
    if json:
        print_json(facts)
    else:
        check = f"check {tally.check}, " if is_all else ""
        print(f"{facts['digest']}  {check}{facts['operations']:,} operations of {log.header.session}")
    return DONE


def log_of_lake(lake: Path, session: str, schema: str) -> "LogFile":
    """The log of a session in a lake; if there is none, BadFile lists the sessions of the lake."""
    from weft.client.doc.logfile import Entry, Header, LogFile
    from weft.cores.document.fold.schema import SHIPPED
    from weft.pipeline.documents import operations_of, sessions_in
    from weft.wire.document.operations import parse, uuid_text

    there = list(sessions_in(lake))
    meant = [one for one in there if one.name == session or not session]
    if len(meant) != 1:
        names = ", ".join(repr(one.name) for one in there) or "none"
        raise BadFile(f"the lake has these sessions: {names}", mend="--session NAME")
    entries = [
        Entry(
            parse(operation.body),
            operation.body,
            operation.received_ns,
            uuid_text(operation.received_from) if operation.received_from else "",
        )
        for operation in operations_of(lake, meant[0].name)
    ]
    beyond = [f"{meant[0].beyond:,} operations stand behind a gap"] if meant[0].beyond else []
    name = meant[0].schema or ""
    if name not in SHIPPED and not schema:
        raise BadFile(f"its schema is one of its own, {name!r}", mend="--schema FILE")
    return LogFile(Header(meant[0].name, name, text_of(schema) if schema else ""), entries, beyond)


def key(new: Literal["new"], file: Path, /, *, json: Flag = False) -> int:
    """Make the key of a session: `weft doc key new hall5.key`. With the file, others join: `weft doc join --key hall5.key`.

    Copy the file so that nobody else can read it. Whoever has had it may take part until all use another key.

    Args:
        new: the word new.
        file: where to write the key pair, with mode 600.
        json: the file and the public key as JSON.
    """
    from weft.shell.keymaking import write_session_key

    del new  # the only word so far
    pair = write_session_key(file)
    if json:
        print_json({"file": str(file), "public": pair.public})
    else:
        print(f"{file} holds the key of a session; others need a copy: weft doc join SESSION --key {file.name}")
    return DONE
