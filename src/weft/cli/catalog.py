"""`weft catalog`: which services exist, where, and whether they are alive (CAT-073)."""

import json as to_json
import sys
import time
from typing import Annotated, Any, Final, Literal

from cyclopts import App, Parameter

from weft.base.errors import UserError
from weft.cli.catalog_calls import Many, at_catalog, pairs
from weft.cli.catalog_lines import HEADS, document, line, pairs_of, print_json, rows, show, span
from weft.cli.kit.exits import DONE, NOT_SO, complain
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.client.catalog.client import Client
from weft.client.catalog.entries import Entry
from weft.client.catalog.errors import CatalogError, NotFound, Unsupported

app = App(name="catalog", help="Which services exist, where, and whether they are alive; their last values and logs.")
ROOMS: Final[dict[str, tuple[str, str]]] = {
    "serve": ("weft.cli.catalog_serve:serve", "Run a catalog here."),
    "register": ("weft.cli.catalog_own:register", "Register a service that cannot do it itself."),
    "update": ("weft.cli.catalog_own:update", "Change keys of a record that this machine has registered."),
    "deregister": ("weft.cli.catalog_own:deregister", "Remove a service."),
    "watch": ("weft.cli.catalog_watch:watch", "Print all services, then every change as it happens."),
    "subscribe": ("weft.cli.catalog_watch:subscribe", "Print what a service publishes, last values first."),
    "topics": ("weft.cli.catalog_watch:topics", "List the topics that services publish."),
    "lcv": ("weft.cli.catalog_watch:last_values", "Print the last value of a topic, or of many."),
    "logs": ("weft.cli.catalog_watch:logs", "Print what services have logged."),
    "tap": ("weft.cli.catalog_tap:tap", "Copy the messages of a service, without changes to its program."),
    "ping": ("weft.cli.catalog_reach:ping", "Ask every instance of a service whether it is there."),
    "call": ("weft.cli.catalog_reach:call", "Call an endpoint of a service."),
    "doctor": ("weft.cli.catalog_doctor:doctor", "Look for what is wrong."),
}
for name, (where, what) in ROOMS.items():
    # The help of one command shows its whole docstring, the list of commands only these words.
    app.command(where, name=name, help=None if [name] == sys.argv[2:3] else what)

All = Annotated[bool, Parameter(name="--all", negative="", show_default=False)]
Broker = Annotated[str | None, Parameter(show_default=False)]
State = Literal["active", "suspect", "inactive"]
Health = Literal["passing", "warning", "critical", "unknown"]
LIVE: Final = ("active", "suspect")


@app.command(name="list", alias="ls")
def list_services(
    pattern: str = "*", /, *, tag: Many = (), every: All = False, broker: Broker = None, json: Flag = False
) -> int:  # tidy: each is an option of the command line
    """List services, each instance on a line: `weft catalog ls 'thermo*' --tag lab`.

    Args:
        pattern: names, with * and ?.
        tag: only those that have this tag; several: all of them.
        every: also those that are gone or critical.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: one array of records.
    """

    async def work(client: Client) -> int:
        try:
            entries = await client.query({"name": pattern, **({"tags": list(tag)} if tag else {})})
        except Unsupported:  # an existing broker
            entries = _matching(await client.list(), pattern, tag)
        return _shown([entry for entry in entries if every or entry.is_usable], json=json)

    return at_catalog(broker, work)


@app.command
def get(*names: str, every: All = False, address: Flag = False, broker: Broker = None, json: Flag = False) -> int:
    """Show a service as it can be reached now: `weft catalog get thermo`; status 1 if nobody provides it.

    Args:
        names: of services.
        every: every instance that can be used, not only the best one.
        address: only host:port, for scripts.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: the record; of several names, or with --all, an array of them.
    """
    if not names:
        raise UserError("usage", "no service is named", "weft catalog get NAME; weft catalog ls lists the names")

    async def work(client: Client) -> int:
        found: list[Entry] = []
        missing: list[CatalogError] = []
        for name in names:
            try:
                found += await client.instances(name) if every else [await client.get(name)]
            except NotFound as error:
                missing.append(error)
        _one_by_one(found, is_many=every or len(names) > 1, address=address, json=json)
        for lack in missing:
            _miss(lack)
        return NOT_SO if missing else DONE

    return at_catalog(broker, work)


@app.command
def query(  # tidy: each is a condition
    conditions: str = "",
    /,
    *,
    name: str | None = None,
    tag: Many = (),
    any_tag: Many = (),
    meta: Many = (),
    state: State | None = None,
    health: Health | None = None,
    net: str | None = None,
    function: str | None = None,
    broker: Broker = None,
    json: Flag = False,
) -> int:
    """Find instances that meet all conditions, whatever their state: `weft catalog query --tag lab --meta room=k1`.

    Args:
        conditions: the same as one JSON object, e.g. '{"name": "thermo*", "any_tags": ["lab", "roof"]}'.
        name: with * and ?.
        tag: it has this tag; several: all of them.
        any_tag: it has one of these.
        meta: KEY=VALUE of its metadata.
        state: active, suspect or inactive.
        health: passing, warning, critical or unknown.
        net: of this network.
        function: the function in its record.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: one array of records.
    """
    wanted = _conditions(conditions)
    single = {"name": name, "state": state, "health": health, "net": net, "function": function}
    wanted |= {key: value for key, value in single.items() if value is not None}
    several = {"tags": list(tag), "any_tags": list(any_tag), "metadata": pairs(meta, "--meta")}
    wanted |= {key: value for key, value in several.items() if value}

    async def work(client: Client) -> int:
        return _shown(await client.query(wanted), json=json)

    return at_catalog(broker, work)


@app.command
def status(*, broker: Broker = None, json: Flag = False) -> int:
    """Show the state of the broker: its ports, its instances, its features.

    Args:
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: all facts as JSON.
    """

    async def work(client: Client) -> int:
        facts = await client.status()
        if json:
            print_json({"broker": client.broker, **facts})
        else:
            pairs_of({"broker": client.broker, **facts})
        return DONE

    return at_catalog(broker, work)


@app.command
def bridge(*, broker: Broker = None, json: Flag = False) -> int:
    """Show the bridges to other networks: whether they are connected, and how much traffic crosses them.

    Args:
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: one array of facts.
    """

    async def work(client: Client) -> int:
        bridges = await client.bridges()
        if json:
            print_json(bridges)
        else:
            heads = ("net", "state", "dialled", "since_s", "imported", "exported", "late")
            rows = [[_fact(row.get(head) or (0 if head in heads[3:] else None)) for head in heads] for row in bridges]
            show([head.replace("since_s", "since (s)") for head in heads], rows, "no bridge")
        return DONE if bridges and all(row.get("state") == "up" for row in bridges) else NOT_SO

    return at_catalog(broker, work)


@app.command
def liveness(pattern: str = "*", /, *, broker: Broker = None, json: Flag = False) -> int:
    """Show how beats of each instance arrive: by UDP or TCP, how long ago, how regularly.

    Args:
        pattern: names, with * and ?.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: one array of facts.
    """
    from fnmatch import fnmatchcase

    async def work(client: Client) -> int:
        found = [row for row in await client.liveness() if fnmatchcase(str(row.get("name", "")), pattern)]
        if json:
            print_json(found)
        else:
            heads = (
                "name",
                "instance",
                *dict.fromkeys(key for row in found for key in row if key not in ("name", "instance")),
            )
            show(
                [head.replace("_", " ") for head in heads], [[_fact(row.get(head)) for head in heads] for row in found]
            )
        return DONE if found else NOT_SO

    return at_catalog(broker, work)


def _matching(entries: dict[str, Entry], pattern: str, tags: tuple[str, ...]) -> list[Entry]:
    from fnmatch import fnmatchcase

    return [
        entry for name, entry in sorted(entries.items()) if fnmatchcase(name, pattern) and set(tags) <= set(entry.tags)
    ]


def _shown(entries: list[Entry], *, json: bool) -> int:
    """Print as a table, or as an array; status 1 if it is empty."""
    entries = sorted(entries, key=lambda entry: (entry.name, entry.instance))
    if json:
        print_json([document(entry) for entry in entries])
    else:
        show(HEADS, rows(entries, time.time()), "no service")
    return DONE if entries else NOT_SO


def _one_by_one(found: list[Entry], *, is_many: bool, address: bool, json: bool) -> None:
    if json:
        documents = [document(entry) for entry in found]
        if documents or is_many:
            print_json(documents if is_many else documents[0])
    elif address:
        print("\n".join(clean(entry.address or "-") for entry in found))
    else:
        for entry in found:
            line((entry.name, "bold"), (f"  {entry.instance}", ""), (f"  {entry.state}", entry.state))
            place = entry.address
            pairs_of(
                {"  address": str(place) if place else "-", **{f"  {key}": fact for key, fact in entry.record.items()}}
            )
            if entry.is_stale:
                line(("  the broker cannot be reached; this is what it said last", "stale"))


def _miss(error: CatalogError) -> None:

    since = ""
    if isinstance(error, NotFound) and error.last_seen:
        since = f"; last seen {span(max(0.0, time.time() - error.last_seen))} ago"
    complain(f"{error.text}{since}\n  try: weft catalog ls --all", NOT_SO)


def _conditions(text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        conditions = to_json.loads(text)
    except ValueError:
        conditions = None
    if not isinstance(conditions, dict):
        raise UserError(
            "usage", f"{text!r} is no JSON object", """weft catalog query '{"tags": ["lab"]}'; or --tag lab"""
        )
    return conditions


def _fact(fact: Any) -> str:
    if fact is None:
        return "-"
    if isinstance(fact, float):
        return f"{fact:g}"
    if isinstance(fact, dict):
        return ", ".join(f"{key} {_fact(part)}" for key, part in fact.items())
    return fact if isinstance(fact, str) else to_json.dumps(fact)
