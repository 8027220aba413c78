"""`weft catalog tap`: copies of a service's messages, without changes to its program (MON-001, MON-006)."""

import asyncio
import contextlib
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.base.now import SECOND
from weft.base.settings import span_ns
from weft.cli.catalog_calls import Many, at_catalog
from weft.cli.catalog_lines import clock, frames_line, line, print_json, show, span
from weft.cli.chain_ends import until_any
from weft.cli.kit.exits import DONE, NOT_SO, complain
from weft.cli.kit.options import Flag
from weft.cli.octets import payload_json
from weft.client.catalog.client import Client
from weft.client.catalog.tapped import Copied, Flow, Tapped, note_flow

Broker = Annotated[str | None, Parameter(show_default=False)]
List = Annotated[bool, Parameter(name="--list", negative="", show_default=False)]
Way = Literal["in", "out", "both"]
HEADS = ("service", "dir", "other end", "what", "messages", "per s", "bytes", "p50", "p99")
RIGHT = ("messages", "per s", "bytes", "p50", "p99")
LAST_S = 2.0
"""How long to wait for the final counts."""
Flows = dict[tuple[str, str, str, str], Flow]


def tap(  # tidy: each is an option of the command line
    name: str = "",
    /,
    *,
    instance: str = "",
    socket: Many = (),
    direction: Annotated[Way, Parameter(name="--dir")] = "both",
    sample: int = 1,
    max_frame: int = 256,
    rate: int = 1_000,
    span_text: Annotated[str, Parameter(name="--for")] = "60s",
    count: int | None = None,
    summary: Flag = False,
    listed: List = False,
    stop: str = "",
    broker: Broker = None,
    json: Flag = False,
) -> int:
    """Copy the messages of a service, without changes to its program: `weft catalog tap thermo --summary`.

    Args:
        name: of the service; dbp.broker: the broker itself.
        instance: only this one; default: all that support taps.
        socket: router (calls and answers), pub (what is published); default: both.
        direction: in, out or both.
        sample: N: copy every N-th message.
        max_frame: bytes of each frame that are copied; 0: lengths only.
        rate: the most copies a second of each instance.
        span_text: how long, e.g. 10s, 5m; an hour at most.
        count: end after so many copies.
        summary: at the end, print who talks to whom, how often and how fast.
        listed: only list the taps that run.
        stop: only end the tap with this id.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: a line for each copy; or the summary as one document.
    """
    if listed or stop:
        return at_catalog(broker, lambda client: _listed(client, json=json) if listed else _stopped(client, stop))
    seconds = span_ns(span_text)
    if not name or seconds is None:
        what = "of which service?" if not name else f"--for {span_text!r} is no time"
        raise UserError("usage", what, "weft catalog tap NAME --for 10s; weft catalog ls: names")
    wanted: dict[str, Any] = {"instance": instance, "sockets": list(socket), "dir": direction, "sample": sample}
    wanted |= {"max_frame": max_frame, "rate": rate, "seconds": seconds / SECOND}

    async def work(client: Client) -> int:
        flows: Flows = {}
        async with client.tap(name, wanted) as tapped:
            await until_any(_each(tapped, flows, count, is_quiet=summary, json=json))
            await tapped.stop()
            await _accounts(tapped)
        _tell_end(tapped, flows, summary=summary, json=json)
        return DONE if tapped.accounts.get("seen") else NOT_SO

    return at_catalog(broker, work)


async def _each(tapped: Tapped, flows: Flows, count: int | None, *, is_quiet: bool, json: bool) -> None:
    """Print and count each copy, up to a number."""
    left = count
    async for copy in tapped:
        note_flow(flows, copy)
        if not is_quiet:
            (_copy_json if json else _copy_line)(copy)
        if left is not None:
            left -= 1
            if left <= 0:
                return


async def _accounts(tapped: Tapped) -> None:
    """Keep reading until the final counts arrive, at most `LAST_S`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LAST_S):
            async for _ in tapped:
                pass


def _tell_end(tapped: Tapped, flows: Flows, *, summary: bool, json: bool) -> None:
    facts = {"tap": tapped.id, "instances": tapped.instances, **tapped.accounts, "unread": tapped.dropped}
    if summary and json:
        print_json({**facts, "flows": [_flow_json(key, flow) for key, flow in sorted(flows.items())]})
    elif summary:
        show(HEADS, [_flow_row(key, flow) for key, flow in sorted(flows.items())], "no message", RIGHT)
    if not json:
        counts = ", ".join(
            f"{tapped.accounts.get(name, 0):,} {name}" for name in ("seen", "copied", "sampled", "dropped")
        )
        complain(f"{counts} ({tapped.accounts.get('why', 'no last account')})", DONE)


def _flow_row(key: tuple[str, str, str, str], flow: Flow) -> tuple[str, ...]:
    times = (flow.quantile(share) for share in (0.5, 0.99))
    return (
        *key,
        f"{flow.count:,}",
        f"{flow.rate:,.1f}",
        f"{flow.bytes:,}",
        *("-" if took is None else span(took) for took in times),
    )


def _flow_json(key: tuple[str, str, str, str], flow: Flow) -> dict[str, Any]:
    named = dict(zip(("service", "dir", "peer", "word"), key, strict=True))
    figures = {"messages": flow.count, "per_s": round(flow.rate, 3), "bytes": flow.bytes}
    return {**named, **figures, "p50_s": flow.quantile(0.5), "p99_s": flow.quantile(0.99)}


def _copy_json(copy: Copied) -> None:
    print_json({**copy.header, "shown": [payload_json(frame) for frame in copy.frames]})


def _copy_line(copy: Copied) -> None:
    header = copy.header
    took = header.get("took_us")
    line(
        (f"{clock(header.get('ts'))} ", "dim"),
        (f"{header.get('dir', ''):3} ", "bold"),
        (f"{header.get('instance', '')} ", ""),
        (f"{header.get('peer') or 'subscribers'} ", "dim"),
        (f"{header.get('word', '')} " if header.get("word") else "", "bold"),
        (frames_line(copy.frames) if copy.frames else f"{header.get('bytes', 0)} bytes", ""),
        (" …" if header.get("cut") else "", "dim"),
        (f" in {span(took / 1e6)}" if isinstance(took, int) else "", "dim"),
    )


async def _listed(client: Client, *, json: bool) -> int:
    taps = await client.taps()
    if json:
        print_json(taps)
    else:
        heads = ("tap", "service", "instances", "left", "seen", "copied", "dropped", "sampled")
        rows = [
            (
                str(row.get("tap", "")),
                str(row.get("service", "")),
                " ".join(map(str, row.get("instances", ()))),
                span(float(row.get("left_s") or 0)),
                *(f"{row.get(name, 0):,}" for name in heads[4:]),
            )
            for row in taps
        ]
        show(heads, rows, "no tap runs", heads[4:])
    return DONE if taps else NOT_SO


async def _stopped(client: Client, tap_id: str) -> int:
    await client.stop_tap(tap_id)
    line((f"tap {tap_id} is stopped", ""))
    return DONE
