"""`weft chain`: shows the chains of a node, and sends or watches messages by hand (docs/chains.md)."""

import json as to_json
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from weft.base.errors import UserError
from weft.cli.asking import order, status_of
from weft.cli.chain_lines import show, show_spool, spooled, traced, wanted
from weft.cli.kit.exits import DONE, NOT_SO, notice
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.cli.which import PORT, AskedNode, AskedPort

app = App(name="chain", help="Show the links of a node's chains; send a message, watch messages pass.")

Way = Literal["in", "out"]
PAYLOAD_BYTES_MAX = 1 << 20
TRACED_MAX = 1_000
TRACE_S_MAX = 30.0
HINTS = {
    "bad-type": "1 to 64 of a-z 0-9 . _ -, the first a letter or a digit",
    "bad-destination": "parentsof, childrenof, nearestcoord, local, direct:NODE",
    "denied": "types that begin with weft. are the nodes' own",
    "deleted": "weft chain ls: who stands there, and what failed; filters see fields with --fmt json or msgpack",
    "filter-failed": "weft chain ls: who stands there",
    "unimplemented": "parentsof, childrenof, nearestcoord, local, direct:NODE",
    "unreachable": "weft status; with --keep disk a message to the parent waits for it",
}


@app.command(name="ls", alias="show")
def list_chains(
    *, port: AskedPort = PORT, type_name: Annotated[str | None, Parameter(name="--type")] = None, json: Flag = False
) -> int:
    """Show the chains of a node of this machine: the links of each from top to bottom, and what each has done.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        type_name: only the chains of this type, e.g. demo.report.
        json: all facts as JSON.
    """
    answer = order(port, "chains")
    chains = wanted(answer, type_name)
    if json:
        print(to_json.dumps({**answer, "chains": chains}))
    else:
        show(answer, chains)
    return DONE


@app.command
def trace(
    type_name: str,
    /,
    *,
    on: Annotated[Way | None, Parameter(show_default=False)] = None,
    count: int = 1,
    seconds: float = 5.0,
    port: AskedPort = PORT,
    json: Flag = False,
) -> int:
    """Show what each link does to the next messages of a type: `weft chain trace demo.report`.

    The time of each step is counted from the arrival of the message: the node's filters take almost none, programs that
    rewrite or hold it may. Exit status 1 if none came. Samples, logs and events go in batches and are not traced.

    Args:
        type_name: their type; `demo.*` for all types with this prefix.
        on: only `in`: what arrives at the node, or `out`: what is sent there; left out: both.
        count: end after so many messages, at most 1,000.
        seconds: wait so long, at most 30.
        port: the node's name, its state directory, or the first of its ten ports.
        json: all facts as JSON.
    """
    if not 1 <= count <= TRACED_MAX or not 0 < seconds <= TRACE_S_MAX:
        raise UserError("usage", "a trace takes 1 to 1,000 messages and at most 30 s", "--count 10 --seconds 20")
    span_ms = max(1, round(seconds * 1_000))
    answer = order(port, "trace", type=type_name, direction=on or "", count=count, span_ms=span_ms)
    if json:
        print(to_json.dumps(answer))
    elif answer.get("is_busy"):
        notice("another trace runs at that node\n  try: again in a moment")
    else:
        traced(answer)
    return DONE if answer["messages"] else NOT_SO


@app.command
def spool(*, port: AskedPort = PORT, json: Flag = False) -> int:
    """Show what waits on a node's disk for its parent, and which received messages are still in work: `weft chain spool`.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        json: all facts as JSON.
    """
    counts = spooled(status_of(port))
    if json:
        print(to_json.dumps(counts))
    else:
        show_spool(counts)
    return DONE


@app.command
def forget(name: str, /, *, port: AskedPort = PORT, json: Flag = False) -> int:
    """Forget a reader that confirms and is away: its waiting messages are given up, and no more are kept for it.

    `weft chain ls` shows the remembered readers, and what waits for them. An attached reader cannot be forgotten. Exit
    status 1 if no reader of that name is away.

    Args:
        name: the reader's name.
        port: the node's name, its state directory, or the first of its ten ports.
        json: the answer as JSON.
    """
    answer = order(port, "forget-reader", reader=name)
    if json:
        print(to_json.dumps(answer))
    elif answer["is_full"]:
        notice(
            "the journal is full, so the reader was not forgotten; nothing has changed\n  try: weft status, then again"
        )
    elif answer["forgotten"]:
        print(f"forgotten; {answer['messages']:,} messages that waited for it are given up")
    else:
        notice(f"no reader of the name {clean(name)} is away\n  try: weft chain ls")
    return DONE if answer["forgotten"] else NOT_SO


@app.command(name="test")
def try_filters(file: Path, /, *, json: Flag = False) -> int:
    """Run the tests of filters in a file, without a node: `weft chain test filters.toml`.

    The file has [[chains.filter]] and [[chains.test]]: what is sent, and what must come out. Exit status 1 if a test
    fails.

    Args:
        file: a TOML file; a node's own, or one of filters and tests only.
        json: each test as JSON.
    """
    from weft.cli.chain_test import run

    return run(file, json=json)


@app.command
def replay(file: Path, handlers: str, /, *, json: Flag = False) -> int:
    """Replay recorded messages to a program's handlers, without a node: `weft chain replay night.jsonl tagger:attach`.

    `record=` of weft.chain_client writes such a file. Time is virtual. Exit status 1 if a handler failed, or its answer
    differs from the recorded one.

    Args:
        file: the recording.
        handlers: module:function; the function gets the chain as its argument and registers the program's handlers.
        json: the outcome as JSON.
    """
    from weft.cli.chain_replay import run

    return run(file, handlers, json=json)


@app.command
def send(
    type_name: str,
    payload: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    to: str = "parentsof",
    fmt: Literal["raw", "text", "json", "msgpack", "xml"] | None = None,
    want: Literal["spool", "dest", "none"] = "spool",
    keep: Literal["disk", "memory"] = "disk",
    node: AskedNode = None,
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Send one message, and say what became of it: `weft chain send demo.report '<report type="leaf"/>'`.

    Exit status 1 if it was not sent; one word says why: `deleted`, `no-parent`, `unreachable`, `overload` …

    Args:
        type_name: its type: letters, digits, dots, - and _, in lower case.
        payload: its content; `-`: read it from standard input.
        to: parentsof, childrenof, nearestcoord, local, direct:NODE; with the most hops behind a colon: direct:NODE:TTL.
        fmt: how filters read it: text, which is the default; json or msgpack, whose fields they see; xml; raw, which is the
            default for standard input.
        want: which answer to wait for: `spool` (the node is responsible for it), `dest` (the next node has it), none.
        keep: `memory`: never written to a disk, and lost if the node dies.
        node: a node's name, its state directory, the first of its ten ports, or an endpoint; default: the only one that runs here.
        json: the answer as JSON.
    """
    from weft.cli.chain_calls import send_once

    body = _standard_input() if payload == "-" else payload.encode()
    kind = fmt or ("raw" if payload == "-" else "text")
    if kind == "json":
        _refuse_no_json(body)
    ok, why = send_once(node, type_name, body, to=to, fmt=kind, want=want, keep=keep)
    if json:
        print(to_json.dumps({"ok": ok, "why": why}))
    else:
        print(why or "sent", file=sys.stdout if ok else sys.stderr)
        if not ok and why in HINTS:
            print(f"  try: {HINTS[why]}", file=sys.stderr)
    return DONE if ok else NOT_SO


@app.command(alias="tap")
def watch(
    type_name: str,
    /,
    *,
    on: Way = "in",
    place: str = "after-all",
    count: int | None = None,
    node: AskedNode = None,
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Watch messages pass at the end of their chain: `weft chain watch demo.report --on out`; Ctrl-C ends it.

    It only reads, and delays no message: copies that it cannot print in time are left out and counted.

    Args:
        type_name: their type; `*` for all, `demo.*` for all types with this prefix.
        on: `in`: what arrives at the node; `out`: what is sent there.
        place: where in the chain to watch: before-all, after-all, or a number, as `weft chain ls` shows them.
        count: end after so many messages.
        node: a node's name, its state directory, the first of its ten ports, or an endpoint; default: the only one that runs here.
        json: each message as JSON.
    """
    from weft.cli.chain_calls import place_of, watch_messages

    return watch_messages(node, type_name, (on, place_of(place)), count, json=json)


def _refuse_no_json(body: bytes) -> None:
    """UserError for what readers and filters could not read: to the node a payload is bytes."""
    try:
        to_json.loads(body)
    except (ValueError, RecursionError) as error:
        text = f"the payload is no JSON: {error}"
        raise UserError(
            "usage", text, """--fmt json '{"level": 5}', in single quotes; or without --fmt, as text"""
        ) from None


def _standard_input() -> bytes:
    body = sys.stdin.buffer.read(PAYLOAD_BYTES_MAX + 1)
    if len(body) > PAYLOAD_BYTES_MAX:
        raise UserError("too-big", f"more than {PAYLOAD_BYTES_MAX:,} bytes", "split it into several messages")
    return body
