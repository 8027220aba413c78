"""`weft catalog ping`, `call`: whether services answer."""

import json as to_json
import sys
from typing import Annotated, Any

from cyclopts import Parameter

from weft.cli.catalog_calls import at_catalog
from weft.cli.catalog_lines import frames_line, print_json, show, span
from weft.cli.kit.exits import DONE, UNREACHABLE
from weft.cli.kit.options import Flag
from weft.cli.octets import payload_json
from weft.client.catalog.client import Client
from weft.client.catalog.entries import Entry
from weft.client.catalog.errors import CatalogError
from weft.client.catalog.limits import ANSWER_S, CALL_S
from weft.client.catalog.picking import Policy

Broker = Annotated[str | None, Parameter(show_default=False)]


def ping(name: str, /, *, timeout: float = ANSWER_S, broker: Broker = None, json: Flag = False) -> int:
    """Ping every instance of a service directly; status 3 if one does not answer.

    Args:
        name: of the service.
        timeout: seconds to wait.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: one array.
    """

    async def work(client: Client) -> int:
        pings = await pinged(client, await client.instances(name), timeout)
        if json:
            print_json(pings)
        else:
            rows = [(str(row["instance"]), str(row["address"] or "-"), _answer(row)) for row in pings]
            show(("instance", "address", "answer"), rows)
        return DONE if all(row["rtt_s"] is not None for row in pings) else UNREACHABLE

    return at_catalog(broker, work)


async def pinged(client: Client, entries: list[Entry], timeout_s: float) -> list[dict[str, Any]]:
    """The answer of each instance; all are asked at once."""
    import asyncio

    async def one(entry: Entry) -> dict[str, Any]:
        row: dict[str, Any] = {
            "name": entry.name,
            "instance": entry.instance,
            "address": None,
            "rtt_s": None,
            "error": "",
        }
        row["address"] = str(entry.address) if entry.address else None
        try:
            row["rtt_s"] = round(await client.ping(entry, timeout=timeout_s), 6)
        except CatalogError as error:
            row["error"] = error.code
        return row

    return list(await asyncio.gather(*map(one, entries)))


def _answer(row: dict[str, Any]) -> str:
    return span(row["rtt_s"]) if row["rtt_s"] is not None else f"none ({row['error']})"


def call(  # tidy: each is an option of the command line
    name: str,
    endpoint: str,
    /,
    *payload: Annotated[str, Parameter(allow_leading_hyphen=True)],
    policy: Policy = "first",
    timeout: float = CALL_S,
    raw: Flag = False,
    broker: Broker = None,
    json: Flag = False,
) -> int:
    """Call an endpoint of a service: `weft catalog call thermo read kitchen`. A call is never repeated.

    Args:
        name: of the service; every Weft service has the endpoints ping, dbp.info, dbp.stats and dbp.logs.
        endpoint: of the service.
        payload: its frames, as text; `-`: one frame from standard input.
        policy: which instance: first (the best), random, round_robin, weighted.
        timeout: seconds to wait.
        raw: print only the bytes of the answer, unchanged.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: the frames of the answer as JSON.
    """
    frames = [sys.stdin.buffer.read()] if payload == ("-",) else [part.encode() for part in payload]

    async def work(client: Client) -> int:
        reply = await client.call(name, endpoint, frames, timeout=timeout, policy=policy)
        if json:
            print_json({"frames": [payload_json(frame) for frame in reply]})
        elif raw:
            sys.stdout.buffer.write(b"".join(reply))
            sys.stdout.flush()
        else:
            print(_readable(reply))
        return DONE

    return at_catalog(broker, work)


def _readable(frames: tuple[bytes, ...]) -> str:
    """Frames for people; a single JSON object is indented."""
    if len(frames) == 1 and frames[0].startswith(b"{"):
        try:
            return to_json.dumps(to_json.loads(frames[0]), indent=2)
        except (ValueError, RecursionError):
            pass
    return frames_line(frames)
