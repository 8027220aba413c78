"""`weft catalog watch`, `subscribe`, `topics`, `lcv`, `logs`: changes as they happen, and last values."""

import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.base.now import SECOND
from weft.base.settings import span_ns
from weft.cli.catalog_calls import Many, at_catalog
from weft.cli.catalog_lines import clock, document, frames_line, line, print_json, show, span, values_json
from weft.cli.chain_ends import until_any
from weft.cli.kit.exits import DONE, NOT_SO, complain
from weft.cli.kit.options import Flag
from weft.client.catalog.client import Client
from weft.client.catalog.entries import Change, Value

Broker = Annotated[str | None, Parameter(show_default=False)]
Level = Literal["debug", "info", "warning", "error", "critical"]


def watch(
    pattern: str = "*", /, *, tag: Many = (), count: int | None = None, broker: Broker = None, json: Flag = False
) -> int:
    """Print all services, then every change as it happens, until Ctrl-C.

    Args:
        pattern: names, with * and ?.
        tag: only those that have this tag; several: all of them.
        count: end after so many lines.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: each change as JSON.
    """
    wanted = {**({"name": pattern} if pattern != "*" else {}), **({"tags": list(tag)} if tag else {})}

    async def work(client: Client) -> int:
        await until_any(_each(client.watch(wanted), _change_json if json else _change_line, count))
        return DONE

    return at_catalog(broker, work)


def subscribe(
    name: str,
    prefix: str = "",
    /,
    *,
    latest: Annotated[bool, Parameter(show_default=False)] = True,
    count: int | None = None,
    broker: Broker = None,
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Print what a service publishes, the last value of each topic first; Ctrl-C ends it.

    Args:
        name: of the service.
        prefix: only topics that begin with this.
        latest: --no-latest: only what is published from now on.
        count: end after so many values.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: each value as JSON.
    """

    async def work(client: Client) -> int:
        values = client.subscribe(name, prefix, latest=latest)
        await until_any(_each(values, _value_json if json else _value_line, count))
        return DONE

    return at_catalog(broker, work)


def topics(prefix: str = "", /, *, broker: Broker = None, json: Flag = False) -> int:
    """List the topics that services publish, whose last values the broker keeps.

    Args:
        prefix: only topics that begin with this.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: one array.
    """

    async def work(client: Client) -> int:
        found = await client.topics(prefix)
        if json:
            print_json(found)
        else:
            rows = [
                (
                    str(row.get("topic", "")),
                    str(row.get("publisher", "")),
                    str(row.get("instance", "")),
                    f"{row.get('count', 0):,}",
                    f"{row.get('bytes', 0):,}",
                    span(float(row.get("age_s") or 0)),
                    "stale" if row.get("stale") else "",
                )
                for row in found
            ]
            show(("topic", "publisher", "instance", "count", "bytes", "age", ""), rows, "no topic", ("count", "bytes"))
        return DONE if found else NOT_SO

    return at_catalog(broker, work)


def last_values(
    topic: str, /, *, publisher: str = "", raw: Flag = False, broker: Broker = None, json: Flag = False
) -> int:
    """Print the last value of a topic, `weft catalog lcv room/temp`, or of all with a prefix, `weft catalog lcv 'room/*'`.

    Args:
        topic: its name; with * at its end, all topics with that prefix.
        publisher: only what this service has published.
        raw: print only the bytes of the value, unchanged.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: one array.
    """

    async def work(client: Client) -> int:
        values = await client.last_values(topic, publisher=publisher)
        if json:
            print_json([values_json(value) for value in values])
        elif raw:
            for value in values:
                sys.stdout.buffer.write(b"".join(value.frames))
            sys.stdout.flush()
        else:
            for value in values:
                _value_line(value)
        if not values:
            return complain(f"no value of {topic!r} is kept\n  try: weft catalog topics", NOT_SO)
        return DONE

    return at_catalog(broker, work)


def logs(  # tidy: each is a condition
    service: str = "",
    /,
    *,
    level: Level = "warning",
    since: str = "",
    contains: str = "",
    limit: int = 100,
    follow: Flag = False,
    broker: Broker = None,
    json: Flag = False,
) -> int:
    """Print what services have logged, oldest first: `weft catalog logs thermo --since 10m --follow`.

    Args:
        service: only of this one.
        level: this level and above; services send records below warning only if they are told to.
        since: not older than this, e.g. 90s, 10m, 2h.
        contains: only messages with this text in them.
        limit: print at most so many old records, the newest ones.
        follow: then print new records as they come, until Ctrl-C.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: each record as JSON, one per line.
    """
    wanted: dict[str, Any] = {"level": level.upper(), "limit": limit}
    wanted |= {key: value for key, value in (("service", service), ("contains", contains)) if value}
    if since:
        if (ago := span_ns(since)) is None:
            raise UserError("usage", f"--since {since!r} is no time", "--since 10m, 90s, 2h")
        wanted["since"] = time.time() - ago / SECOND
    tell = print_json if json else _log_line

    async def work(client: Client) -> int:
        if not follow:
            for entry in await client.logs(wanted):
                tell(entry)
            return DONE
        await until_any(_each(client.follow_logs(wanted), tell, None))
        return DONE

    return at_catalog(broker, work)


async def _each(source: AsyncIterator[Any], tell: Callable[[Any], None], count: int | None) -> None:
    """Print each item, up to a number."""
    left = count
    if left == 0:
        return
    async for item in source:
        tell(item)
        if left is not None:
            left -= 1
            if not left:
                return


def _change_json(change: Change) -> None:
    facts = {"op": change.op, "name": change.name, "instance": change.instance, "index": change.index, "ts": change.at}
    print_json({**facts, "record": document(change.entry)["record"] if change.entry else None})


def _change_line(change: Change) -> None:
    if change.op == "resync":
        complain("changes were missed; all differences follow", DONE)
        return
    entry = change.entry
    state = entry.state if entry else ""
    place = entry.address if entry else None
    parts: Sequence[tuple[str, str]] = (
        (f"{clock(change.at)} ", "dim"),
        (f"{change.op:8} ", "bold"),
        (f"{change.name} {change.instance}", ""),
        (f" {state}" if state else "", state),
        (f" at {place}" if place and str(place) != change.instance else "", ""),
    )
    line(*parts)


def _value_json(value: Value) -> None:
    print_json(values_json(value))


def _value_line(value: Value) -> None:
    line(
        (f"{clock(value.received if not value.is_live else time.time())} ", "dim"),
        (value.topic, "bold"),
        (f" {frames_line(value.frames)}", ""),
        (f" # {value.publisher} {value.instance}", "dim"),
        (" stale" if value.is_stale else "", "stale"),
    )


def _log_line(entry: dict[str, Any]) -> None:
    level = str(entry.get("level", ""))
    repeated = entry.get("repeated")
    line(
        (f"{clock(entry.get('ts') or entry.get('received'))} ", "dim"),
        (f"{level:8} ", level),
        (f"{entry.get('service', '')} ", "bold"),
        (f"{entry.get('logger')}: " if entry.get("logger") else "", "dim"),
        (str(entry.get("message", "")), ""),
        (f" ({repeated} times)" if repeated else "", "dim"),
    )
