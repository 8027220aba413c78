"""When the first picture of a console is on a screen, beside Netdata's page of the same machine (CON-003).

    scripts/bench-install && scripts/interop-install browser
    .venv/bin/python -m bench.console_page [--rounds 3] [--opens 4] [--seconds 15]

Both are opened in headless Chromium, 1440 by 900, in turns: in a new browser, and again in the same one. The picture counts when
the values of machines are drawn; before that, both show words only. Then 50 viewers look at a root of this machine, and 50 ask
Netdata once a second for the newest values of four charts; its page, which draws some fifteen, asks for more. The processor time is that of the process that serves, without viewers and with
them; the age is that of the newest value when a viewer gets it. Netdata keeps its values in memory, and its page can reach nothing
but this machine.
"""

import argparse
import asyncio
import multiprocessing
import os
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.console import Fleet
from bench.peers import programs
from bench.peers.netdata import SETTLE_S, netdata
from bench.peers.nodes import Nodes
from bench.sensor import cpu_seconds
from tests.interop.chromium import Chromium, Page
from weft.base.endpoints import HTTP
from weft.shell.blocks import free_blocks

SETTINGS: Final = "".join(
    f'[metric.{detail.lower()}]\ndetail = "{detail}"\nrate = "1s"\n'
    for detail in ("CPU", "MEMORY_PERCENT", "DISK_PERCENT", "NETWORK")
)
NOTE: Final = """
const seen = () => { try { return SEEN; } catch { return false; } };
const look = () => seen() ? requestAnimationFrame(() => setTimeout(() => performance.mark("picture"), 0)) : requestAnimationFrame(look);
requestAnimationFrame(look);
"""
TIMES: Final = """(() => {
  const [page] = performance.getEntriesByType("navigation"), of = (name) => performance.getEntriesByName(name)[0]?.startTime ?? null;
  return [page.responseStart, of("first-contentful-paint"), page.domContentLoadedEventEnd, of("picture")];
})()"""
NAMES: Final = ("response", "words", "loaded", "picture")
OURS: Final = "document.querySelector('#verdict').dataset.much !== undefined"
THEIRS: Final = "document.querySelector('canvas') && performance.getEntriesByType('resource').some((one) => one.name.includes('/data?'))"
ASKED: Final = tuple(
    f"/api/v1/data?chart=system.{name}&after=-1&points=1&options=jsonwrap" for name in ("ram", "io", "net", "cpu")
)
VIEWERS: Final = 50
PORT: Final = 36_000
Ages = list[float]
Viewer = Callable[[int, Ages], Any]


class Site(NamedTuple):
    """A page, and the expression that holds once its picture is there."""

    name: str
    url: str
    picture: str


def opened(browser: Chromium, site: Site) -> Page:
    """A page of it with its picture."""
    page = browser.open("about:blank", 1440, 900)
    page.say("Emulation.setFocusEmulationEnabled", enabled=True)
    page.say("Page.addScriptToEvaluateOnNewDocument", source=NOTE.replace("SEEN", site.picture))
    page.say("Page.navigate", url=site.url)
    page.until("performance.getEntriesByName('picture').length > 0")
    return page


def pictures(sites: list[Site], rounds: int, opens: int) -> None:
    """Open all in turns; print medians and the worst."""
    found: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for site in sites * rounds:
        with tempfile.TemporaryDirectory() as place, Chromium(Path(place)) as browser:
            for turn in range(opens):
                page = opened(browser, site)
                found[site.name, "again" if turn else "new browser"].append(page.run(TIMES))
                page.say("Page.close")
    print(f"{'ms, median (worst)':36}" + "".join(f"{name:>16}" for name in NAMES))
    for (name, when), rows in found.items():
        columns = [[value for value in column if value is not None] for column in zip(*rows, strict=True)]
        shown = [f"{statistics.median(each):.0f} ({max(each):.0f})" if each else "-" for each in columns]
        print(f"{f'{name}, {when}':36}" + "".join(f"{text:>16}" for text in shown))


def made_up(count: int, told: Any) -> None:
    """A console of made-up machines, in a process of its own."""
    asyncio.run(Fleet(count).live(told.send))


async def watch(port: int, ages: Ages) -> None:
    """A viewer of Weft's console: an event a second; the age of the root's newest sample."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    writer.write(f"GET /console/live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    while line := await reader.readline():
        if newest := re.search(rb'"newest":(\d+)', line):
            ages.append(time.time() * 1_000 - int(newest[1]))


async def poll(port: int, ages: Ages) -> None:
    """A viewer of Netdata: the newest values of four charts each second; the age of that of the processors."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    while True:
        began, body = time.monotonic(), b""
        for path in ASKED:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: keep-alive\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            assert length is not None, head
            body = await reader.readexactly(int(length[1]))
        newest = re.search(rb'"before": (\d+)', body)
        assert newest is not None, body
        ages.append((time.time() - int(newest[1])) * 1_000)
        await asyncio.sleep(max(0.0, began + 1 - time.monotonic()))


async def _crowd(viewer: Viewer, port: int, seconds: float, told: Any) -> Ages:
    ages: Ages = []
    tasks = []
    for _ in range(VIEWERS):  # over one second, as people come
        tasks.append(asyncio.ensure_future(viewer(port, ages)))
        await asyncio.sleep(1 / VIEWERS)
    await asyncio.sleep(SETTLE_S)
    ages.clear()
    told.send("all look")
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(ended, asyncio.CancelledError), f"a viewer ended: {ended!r}"
    return ages


def crowd(viewer: Viewer, port: int, seconds: float, told: Any) -> None:
    """All viewers, in a process of their own."""
    told.send(asyncio.run(_crowd(viewer, port, seconds, told)))


def viewed(name: str, pid: int, viewer: Viewer, port: int, seconds: float) -> None:
    """Print what 50 viewers cost the process that serves, and how old a value is when they have it."""
    alone = -cpu_seconds(pid)
    time.sleep(seconds)
    alone += cpu_seconds(pid)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=crowd, args=(viewer, port, seconds, theirs))
    process.start()
    assert ours.recv() == "all look"
    spent, began = -cpu_seconds(pid), time.monotonic()
    ages = sorted(ours.recv())
    spent, wall = spent + cpu_seconds(pid), time.monotonic() - began
    process.join()
    print(
        f"{name:10} alone {100 * alone / seconds:5.1f} % of a core, with {VIEWERS} viewers {100 * spent / wall:5.1f} %",
        end="",
    )
    print(f"; age at the viewer: median {statistics.median(ages):.0f} ms, p95 {ages[int(len(ages) * 0.95)]:.0f} ms")


def main(rounds: int, opens: int, seconds: float) -> None:
    """Print all of it."""
    programs.demand("netdata")
    programs.end_in_order()
    print(f"load {os.getloadavg()[0]:.1f}")
    spawn = multiprocessing.get_context("spawn")
    fleets, sites = [], []
    for count in (7, 500):
        ours, theirs = multiprocessing.Pipe()
        fleets.append(spawn.Process(target=made_up, args=(count, theirs)))
        fleets[-1].start()
        sites.append(Site(f"weft, {count} machines", f"http://127.0.0.1:{ours.recv()}/console/", OURS))
    try:
        with tempfile.TemporaryDirectory() as place, Nodes(Path(place), {"root": ""}, {"root": SETTINGS}) as nodes:
            (folder := Path(place) / "netdata").mkdir()
            nodes.start("root")
            (port,) = free_blocks(1, PORT)
            with netdata(folder, port) as process:
                peer = Site("netdata", f"http://127.0.0.1:{port}/", THEIRS)
                pictures([*sites, peer], rounds, opens)
                print(f"load {os.getloadavg()[0]:.1f}")
                viewed("weft", nodes.pid("root"), watch, nodes.ports["root"] + HTTP, seconds)
                viewed("netdata", process.pid, poll, port, seconds)
    finally:
        for fleet in fleets:
            fleet.terminate()
            fleet.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--opens", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=15.0)
    main(**vars(parser.parse_args()))
