"""The checks of `weft catalog doctor` (CAT-073): each finding is a word, a sentence, and a mend."""

import asyncio
import os
import socket
import time
from typing import Any, Final, NamedTuple

import zmq

from weft.base.errors import UserError
from weft.cli.catalog_lines import line, print_json, span
from weft.cli.catalog_reach import Broker, pinged
from weft.cli.kit.exits import DONE, UNREACHABLE
from weft.cli.kit.options import Flag
from weft.client.catalog.client import Client
from weft.client.catalog.discovery import find_broker
from weft.client.catalog.errors import CatalogError, Unreachable
from weft.client.catalog.finding import Found
from weft.client.catalog.limits import ANSWER_S, BEACON_S
from weft.wire.catalog import beats
from weft.wire.catalog.messages import AWK, HEARTBEAT, PING, PONG, Beat

FINE, WARNING, BROKEN = "fine", "warning", "broken"
INTERVAL_MS: Final = 200  # of the test service: the broker probes it after 1.5 intervals
CALLED_S: Final = 2.0
PINGS_MAX: Final = 200
"""At most this many instances are pinged directly."""


class Finding(NamedTuple):
    """The result of one check."""

    what: str
    state: str
    text: str
    mend: str = ""


async def findings(broker: str | None, beacon_port: int) -> list[Finding]:
    """All findings, in the order in which to mend them."""
    results = [await _beacon(beacon_port)]
    client = Client(broker)
    try:
        async with client:
            results.append(await _broker(client))
            found = await client.found()
            if found.is_legacy:
                return results
            results += await asyncio.gather(_changes(client, found), _addresses(client))
            results += await _both_ways(client, found)
    except CatalogError as error:
        results.append(Finding("broker", BROKEN, error.text, "weft catalog serve; or --broker HOST:PORT"))
    return results


async def _beacon(port: int) -> Finding:
    try:
        broker = await find_broker((), wait_s=BEACON_S, beacon_port=port)
    except Unreachable as error:
        mend = "--broker HOST:PORT, or seeds, where broadcast does not reach; else look at [catalog] beacons and the firewall"
        return Finding("beacon", WARNING, error.text, mend)
    of = f" of network {broker.net}" if broker.net else ""
    return Finding("beacon", FINE, f"a broker{of} is heard at {broker.host}:{broker.port}")


async def _broker(client: Client) -> Finding:
    begun = time.perf_counter()
    listed = await client.list()
    took = span(time.perf_counter() - begun)
    found = await client.found()
    if found.is_legacy:
        text = f"{client.broker} answers within {took}, {len(listed)} services; it is a broker of the original protocol, without queries"
        return Finding("broker", WARNING, text, "weft catalog serve, for changes, last values and logs")
    status = await client.status()
    text = f"{client.broker} answers within {took}; {len(listed)} services"
    if status.get("insecure"):
        return Finding("broker", WARNING, f"{text}; it is open to whoever reaches it", "a network that you trust")
    return Finding("broker", FINE, text)


async def _changes(client: Client, found: Found) -> Finding:
    try:
        async with asyncio.timeout(2 * ANSWER_S), client.watch():
            return Finding("changes", FINE, f"they come from {found.host}:{found.pub}")
    except (CatalogError, TimeoutError):
        text = f"nothing comes from {found.host}:{found.pub}, where the broker publishes"
        return Finding("changes", BROKEN, text, f"open TCP port {found.pub} of {found.host}")


async def _addresses(client: Client) -> Finding:
    entries = [entry for entry in await client.query() if entry.is_usable]
    pings = await pinged(client, entries[:PINGS_MAX], ANSWER_S)
    silent = [f"{row['name']} {row['address'] or row['instance']}" for row in pings if row["rtt_s"] is None]
    if not silent:
        return Finding("addresses", FINE, f"all {len(pings)} instances answer where they say they are")
    text = f"{len(silent)} of {len(pings)} instances do not answer a ping: {', '.join(silent[:5])}{' …' * (len(silent) > 5)}"
    mend = "services of other kinds need not; else look at the address they registered: weft catalog get NAME"
    return Finding("addresses", WARNING, text, mend)


async def _both_ways(client: Client, found: Found) -> list[Finding]:
    """Register a service that beats once, and then wait for the broker's probe."""
    host = own_address(found)
    name = f"weft-doctor-{os.getpid()}"
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    router = context.socket(zmq.ROUTER)
    router.setsockopt(zmq.LINGER, 0)
    try:
        port = router.bind_to_random_port(f"tcp://{host}")
        approved = await client.register(name, ip=host, port=port, heartbeat=INTERVAL_MS, beacon=False, metadata={})
        instance = str(approved.get("instance", ""))
        results = [await _by_udp(found, name, instance), await _by_tcp(router, found, host, port)]
        await client.leave(name, instance)
        return results
    except (CatalogError, zmq.ZMQError) as error:
        return [Finding("both ways", BROKEN, f"no service can be registered: {error}", "weft catalog register NAME")]
    finally:
        router.close(0)


async def _by_udp(found: Found, name: str, instance: str) -> Finding:
    """Send a beat, and wait for the answer."""
    if not found.hb:
        return Finding("udp", WARNING, "the broker takes no beats by UDP; they go by TCP", "")
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET6 if ":" in found.host else socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.setblocking(False)
        beat = Beat(HEARTBEAT, name, time.time(), instance or None)
        try:
            made.connect((found.host, found.hb))
            await loop.sock_sendall(made, beats.encode(beat)[0])
            async with asyncio.timeout(ANSWER_S):
                answer = beats.decode([await loop.sock_recv(made, beats.BYTES_MAX)])
        except (OSError, TimeoutError):
            text = f"a beat to UDP port {found.hb} of {found.host} is not answered; services beat by TCP then"
            return Finding("udp", WARNING, text, f"open UDP port {found.hb} of {found.host}, and its answers")
    is_awk = any(one.word == AWK for one in answer.lines)
    return Finding("udp", FINE if is_awk else WARNING, f"beats go to {found.host}:{found.hb}, and are answered")


async def _by_tcp(router: Any, found: Found, host: str, port: int) -> Finding:
    """The broker probes a service that has stopped beating."""
    due = time.monotonic() + CALLED_S
    while time.monotonic() < due:
        if await asyncio.to_thread(router.poll, 100):
            frames = router.recv_multipart()
            if PING in frames:
                at = frames.index(PING)
                router.send_multipart([*frames[:at], PONG, *frames[at + 1 : at + 2], b"weft-doctor"])
                return Finding("tcp", FINE, f"the broker reaches this machine at {host}")
    text = f"the broker did not connect to {host}:{port} within {CALLED_S:g} s"
    mend = f"let {found.host} connect to {host}; services that send beats need it only when beats are lost"
    return Finding("tcp", WARNING, text, mend)


def own_address(found: Found) -> str:
    """The address at which the broker sees this machine."""
    with socket.socket(socket.AF_INET6 if ":" in found.host else socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.connect((found.host, found.port))
        return str(made.getsockname()[0])


def doctor(*, broker: Broker = None, beacon_port: int = 5_245, json: Flag = False) -> int:
    """Look for what is wrong: beacons, the broker, changes, UDP and TCP both ways, addresses; status 3 if anything is.

    To find out whether the broker can reach this machine, it registers a service `weft-doctor-…` for a second or two.

    Args:
        broker: host:port; default: the broker of this machine, else the first beacon.
        beacon_port: the UDP port at which to listen for beacons.
        json: one array of findings.
    """
    if not 0 < beacon_port < 1 << 16:
        raise UserError("usage", f"{beacon_port} is no port", "--beacon-port 5245")
    results: list[Finding] = asyncio.run(findings(broker, beacon_port))
    if json:
        print_json([finding._asdict() for finding in results])
    else:
        for finding in results:
            line((f"{finding.state:7} ", finding.state), (f"{finding.what:10} ", "bold"), (finding.text, ""))
            if finding.mend:
                line((" " * 19 + f"try: {finding.mend}", "dim"))
    return UNREACHABLE if any(finding.state == "broken" for finding in results) else DONE
