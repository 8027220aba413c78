"""What a closed fabric costs, what 10,000 strangers do to it, and how fast its drills are (SEC-053, SEC-054, SEC-057).

    .venv/bin/python -m bench.closed [cost|strangers|drills|away|join ...] [--strangers 10000]

`cost`, with keys and without, taking turns: a sensor's batches until they are durable at the root (bench/fabric.py); then two
processes, one DEALER to one ROUTER as a node makes them: large messages, and a small one there and back. `strangers`: a real root with keys and a machine that has joined it;
its own client asks its control port again and again, in peace and while strangers connect, some plain, some with a key of
their own, some without finishing the handshake. `drills`: a machine is revoked while it measures ten times a second, and
all keys are renewed. `away`: a node that was off for two weeks comes home by itself. `join`: from an empty directory to a machine whose samples the root has, by two commands (SEC-020).
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import zmq

from bench import fabric
from bench.hosts import enter_own_network, load
from tests.fabric.test_closed_away import TREE, Weeks
from tests.fabric.test_enrolment import Site
from tests.fabric.test_rotation import OFTEN, Measuring, leads
from weft.base.keys import Binding, KeyTable
from weft.cli.asking import try_status
from weft.shell.keymaking import new_pair
from weft.shell.keys import Keys, load_keys
from weft.shell.sockets import Context, Credentials, Shape, Socket, connect_with, make_socket
from weft.shell.zap import Gatekeeper
from weft.wire import discovery
from weft.wire.discovery import Control

NODE: Final = b"n" * 16
BATCH: Final = [os.urandom(16_000)]  # a hop of a hundred records and more
BATCHES: Final = 2_000
WINDOW: Final = 64
TRIPS: Final = 2_000
ROUNDS: Final = 5
SAMPLES, ROWS, FABRIC_ROUNDS = 200_000, 1_000, 3
GOAL_SHARE, GOAL_TRIP_US, GOAL_JOIN_S = 0.10, 60.0, 20.0
AT_ONCE: Final = 200
HOLD_S: Final = 0.2
QUIET_S: Final = 8.0
PAUSE_S: Final = 0.01
ECHO, KNOCK = "--echo", "--knock"


# What encryption costs


def _echo(secret: str, public: str, known: str) -> None:
    """The other process: answers each message with its first hundred bytes; with keys, if there are some."""

    async def serve() -> None:
        context: Context = zmq.Context()
        made = make_socket(context, Shape("ROUTER", is_bound=True, sends=1_000, hears=1_000))
        if secret:
            binding = Binding(curve=(known,), name="n", roles=("sensor",))
            table = KeyTable.of([(NODE, binding)])
            keeper = Gatekeeper(context, table)
            keeper.open()
            Credentials(Keys(public, secret), table).serve(made)
        port = made.bind_to_random_port("tcp://127.0.0.1")
        print(port, flush=True)
        while True:
            while made.poll(0):
                peer, data = made.recv_multipart()
                made.send_multipart([peer, data[:100]])
            await asyncio.sleep(0) if made.poll(1) else await asyncio.sleep(0.0002)

    asyncio.run(serve())


@contextlib.contextmanager
def _other(is_closed: bool) -> Iterator[Socket]:  # noqa: FBT001  # both ways take turns
    ours, theirs = new_pair(), new_pair()
    words = [theirs.secret, theirs.public, ours.public] if is_closed else ["", "", ""]
    command = [sys.executable, "-m", "bench.closed", ECHO, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        context: Context = zmq.Context()
        made = make_socket(context, Shape("DEALER", is_bound=False, sends=1_000, hears=1_000))
        try:
            if is_closed:
                connect_with(made, ours, theirs.public)
            made.connect(f"tcp://127.0.0.1:{int(process.stdout.readline())}")
            made.send(b"x")
            made.recv()
            yield made
        finally:
            made.close()
            context.term()
            process.kill()


def _throughput(link: Socket) -> float:
    """Bytes per second, a window of messages under way."""
    began = time.perf_counter()
    for number in range(BATCHES + WINDOW):
        if number < BATCHES:
            link.send_multipart(BATCH)
        if number >= WINDOW:
            link.recv()
    return BATCHES * len(BATCH[0]) / (time.perf_counter() - began)


def _trip_us(link: Socket) -> float:
    """One there and back, the median."""
    spans = []
    for _ in range(TRIPS):
        began = time.perf_counter()
        link.send(bytes(100))
        link.recv()
        spans.append(time.perf_counter() - began)
    return statistics.median(spans) * 1e6


def cost() -> None:
    """Both goals of SEC-057, open and closed in turns; what a bare link carries, beside them."""
    rates: dict[bool, list[float]] = {False: [], True: []}
    for closed in (False, True) * FABRIC_ROUNDS:
        print("closed" if closed else "open  ", end=" ")
        with tempfile.TemporaryDirectory() as place:
            rates[closed].append(fabric.measure(Path(place), SAMPLES, ROWS, closed=closed))
    less = 1 - max(rates[True]) / max(rates[False])
    print(
        f"samples until durable at the root, best of {FABRIC_ROUNDS}: {less:+.0%} less: {_judged(less <= GOAL_SHARE)} (goal {GOAL_SHARE:.0%})"
    )
    with _other(is_closed=False) as open_link, _other(is_closed=True) as closed_link:
        links = {"open": open_link, "closed": closed_link}
        speeds: dict[str, list[float]] = {name: [] for name in links}
        trips: dict[str, list[float]] = {name: [] for name in links}
        for _ in range(ROUNDS):
            for name, link in links.items():
                speeds[name].append(_throughput(link))
                trips[name].append(_trip_us(link))
    speed = {name: max(each) for name, each in speeds.items()}
    trip = {name: min(each) for name, each in trips.items()}
    more = trip["closed"] - trip["open"]
    print(
        f"batches of 16 kB   open {speed['open'] / 1e6:7.0f} MB/s   closed {speed['closed'] / 1e6:7.0f} MB/s   on a bare link"
    )
    print(f"there and back     open {trip['open']:7.0f} us     closed {trip['closed']:7.0f} us", end="     ")
    print(f"{more:+.0f} us: {_judged(more <= GOAL_TRIP_US)} (goal {GOAL_TRIP_US:.0f} us)")


def _judged(is_met: bool) -> str:  # noqa: FBT001  # the word for it
    return "met" if is_met else "missed"


# Strangers


async def _knocks(port: int, count: int) -> None:
    """The other process: strangers who connect, say what they can, and hold on for a while."""
    waiting, draw = asyncio.Semaphore(AT_ONCE), random.Random(7)
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"CURVE".ljust(20, b"\0") + bytes(32)
    hello = b"\x04\xc8\x05HELLO\x01\x00" + bytes(72)

    said = (greeting.replace(b"CURVE", b"NULL\0"), greeting, greeting + hello + os.urandom(120))

    async def knock(kind: int) -> None:
        async with waiting:
            with contextlib.suppress(OSError):
                await _hold_on(port, said[kind])

    await asyncio.gather(*(knock(draw.randrange(3)) for _ in range(count)))


async def _hold_on(port: int, said: bytes) -> None:
    """One stranger: says this, and reads until it is cut off, or has waited long enough."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(HOLD_S):
            await reader.read(4_096)
            await reader.read(4_096)
    writer.close()


class Asker(threading.Thread):
    """A machine's own client: asks the root's control port for its root, with the machine's key, one question after the other."""

    def __init__(self, port: int, keys: Keys, uuid: bytes, server: str, fleet: str) -> None:
        super().__init__(daemon=True)
        self.spans: list[float] = []
        self.unanswered = 0
        self.is_over = False
        self._words = discovery.encode_call(Control("whois", "127.0.0.1:29999", uuid, {"fleet": fleet}))
        self._port, self._keys, self._server = port, keys, server

    def run(self) -> None:
        context: zmq.Context[Any] = zmq.Context()
        link: zmq.Socket[bytes] = context.socket(zmq.DEALER)
        link.setsockopt(zmq.LINGER, 0)
        connect_with(link, self._keys, self._server)
        link.connect(f"tcp://127.0.0.1:{self._port}")
        while not self.is_over:
            began = time.perf_counter()
            link.send_multipart(self._words)
            if not link.poll(5_000):
                self.unanswered += 1
                continue
            while link.poll(0):
                link.recv_multipart()
            self.spans.append(time.perf_counter() - began)
            time.sleep(PAUSE_S)
        link.close()
        context.term()

    def taken(self) -> str:
        """Median and 99 of a hundred since the last call."""
        spans, self.spans = sorted(self.spans), []
        return f"{statistics.median(spans) * 1e3:6.1f} ms, p99 {spans[len(spans) * 99 // 100] * 1e3:6.1f} ms of {len(spans)}"


def _refusals(status: dict[str, Any]) -> int:
    return sum(count for why, count in status["security"]["handshakes"].items() if why != "ok")


def strangers(count: int) -> None:
    """The own latency of a fabric at whose door a crowd knocks."""
    with tempfile.TemporaryDirectory() as place, Measuring(Path(place)) as site:
        measure_often(site)
        site.bring_in("a", 0)
        state, server = site.place / "a", load_keys(site.place / "root")
        keys, status = load_keys(state), try_status(site.port)
        assert keys is not None
        assert server is not None
        assert status is not None
        uuid = bytes.fromhex(json.loads((state / "node.json").read_text())["node"])
        door = next(
            port
            for port in range(site.port, site.port + 10)
            if _answers(port, keys, uuid, server.public, status["fleet"])
        )
        asker = Asker(door, keys, uuid, server.public, status["fleet"])
        asker.start()
        time.sleep(QUIET_S)
        print(f"own questions in peace              {asker.taken()}")
        before, began, taken = _refusals(status), time.monotonic(), site.taken("a")
        with subprocess.Popen([sys.executable, "-m", "bench.closed", KNOCK, str(door), str(count)]) as crowd:
            crowd.wait()
        span = time.monotonic() - began
        print(f"while {count:,} strangers knock       {asker.taken()}, {asker.unanswered} without an answer")
        after = try_status(site.port)
        assert after is not None
        print(
            f"in {span:.1f} s {_refusals(after) - before:,} refused and counted; a measured {site.taken('a') - taken} times meanwhile"
        )
        print(
            f"memory of the root {status['memory_bytes'] >> 20} MB, then {after['memory_bytes'] >> 20} MB; open files {after['open_files']}"
        )
        time.sleep(QUIET_S)
        print(f"afterwards                          {asker.taken()}")
        asker.is_over = True
        asker.join()


def _answers(port: int, keys: Keys, uuid: bytes, server: str, fleet: str) -> bool:
    """Whether the control port is that one."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)):
            return False
    asker = Asker(port, keys, uuid, server, fleet)
    asker.start()
    time.sleep(1)
    asker.is_over = True
    return bool(asker.spans)


# Drills


def measure_often(site: Measuring) -> None:
    """All of them measure often, once the root is the root: it listens for another one first."""
    site.until(lambda: bool((try_status(site.port) or {}).get("root", {}).get("name")), "the root is the root")
    site.run("config", "set", "all/metric/cpu", OFTEN, "--port", str(site.port))


def drills() -> None:
    """How long a revoked machine is still heard, and what the renewal of all keys takes, while all measure."""
    with tempfile.TemporaryDirectory() as place, Measuring(Path(place)) as site:
        measure_often(site)
        for number, name in enumerate(("a", "b")):
            site.bring_in(name, number)
        began = time.monotonic()
        site.rotate("--all")
        rotated = time.monotonic() - began
        site.until(lambda: site.names() == ["a", "b"], "both are below the root")
        print(
            f"three keys renewed in {rotated:.1f} s, of the command line too; all below the root again after {time.monotonic() - began:.1f} s"
        )
        site.measure_on()
        kept = list[tuple[float, int]]()
        is_over = threading.Event()

        def look() -> None:
            while not is_over.is_set():
                rows = {row["name"]: row["kept"] for row in (try_status(site.port) or {}).get("children", [])}
                kept.append((time.monotonic(), rows.get("a", -1)))

        looking = threading.Thread(target=look)
        looking.start()
        time.sleep(2)
        site.run("key", "revoke", "a", "--port", str(site.port))
        revoked = time.monotonic()
        time.sleep(8)
        is_over.set()
        looking.join()
        heard = [at for (at, now), (_, before) in zip(kept[1:], kept, strict=False) if now > before >= 0]
        print(
            f"the last byte of a revoked machine was taken {max(heard) - revoked:+.2f} s after the command had its answer (goal 1 s)"
        )
        site.all.remove("a")
        site.up.remove("a")
        site.measure_on()
        site.running.pop(1).kill()
        site.stop()
        lost, doubled = site.lost_and_doubled()
        print(f"of those that stayed {lost or 'nothing'} is lost, {doubled} samples are doubled")


def away() -> None:
    """From the start of a node that was off for two weeks, by the clocks of both, until its parent has it again; one process."""

    async def main(place: Path) -> None:
        async with Weeks(place, TREE, {}) as hall:
            hall.write(90)
            await hall.until(lambda: all(0 not in hall.until_of(name) for name in TREE), "all know until when")
            await hall.end("sensor-1", "root")
            hall.days = 14
            hall.start("root")
            await hall.until(lambda: hall.up["root"].telemetry.health.is_ready, "the root leads")
            began = time.monotonic()
            hall.start("sensor-1")
            await hall.until(hall.is_home, "it is home")
            print(
                f"a node that was off for 14 days is home {time.monotonic() - began:.2f} s after its start, by itself"
            )

    with tempfile.TemporaryDirectory() as place:
        asyncio.run(main(Path(place)))


def join() -> None:
    """How long it takes from the root's first invitation until the samples of a machine that had nothing are at the root.

    With the times of a fleet that says nothing of them. A busy machine makes all of it slow; so the peer is a process of the
    same run that imports what a node is made of, and does nothing.
    """
    _compile()
    with tempfile.TemporaryDirectory() as place, Site(Path(place)) as site:
        site.until(lambda: leads(site.port), "the root leads")
        bare, bare_cpu = _import()
        root, began, before = psutil.Process(site.running[0].pid), time.monotonic(), sum(os.times()[2:4])
        root_before = _cpu(root)
        token = site.invite()["token"]
        invited, spent = time.monotonic(), [sum(os.times()[2:4]) - before]
        site.join(token, "a", 0)
        site.until(lambda: any(row["kept"] for row in (try_status(site.port) or {}).get("children", [])), "a measures")
        ended = time.monotonic()
        spent += [_cpu(root) - root_before, _cpu(psutil.Process(site.running[1].pid))]
    whole, cpu = ended - began, sum(spent)
    print(
        f"two commands: {invited - began:.1f} s for weft invite, which gives the root its keys, and {ended - invited:.1f} s for "
        f"weft join until its first records are at the root; {whole:.1f} s in all: {_judged(whole <= GOAL_JOIN_S)} (goal {GOAL_JOIN_S:.0f} s)"
    )
    print(
        f"CPU: {spent[0]:.2f} s weft invite, {spent[1]:.2f} s the root, with what it is asked by this bench, {spent[2]:.2f} s weft join "
        f"and its node; {cpu:.2f} s in all. A bare import of a node: {bare:.1f} s, {bare_cpu:.2f} s of CPU; that is x{whole / bare:.1f} and x{cpu / bare_cpu:.1f}"
    )


def _compile() -> None:
    """Leave compiled files behind, as an installation does."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for words in (
        ["weft.cli.main", "invite", "--help"],
        ["weft.cli.main", "join", "--help"],
        ["weft.shell.serve", "{}"],
    ):
        subprocess.run([sys.executable, "-m", *words], capture_output=True, check=False)
    _import()


def _import() -> tuple[float, float]:
    """Seconds, and seconds of CPU, of a process that imports a node."""
    began, before = time.monotonic(), sum(os.times()[2:4])
    subprocess.run([sys.executable, "-c", "import weft.shell.serve"], check=True)
    return time.monotonic() - began, sum(os.times()[2:4]) - before


def _cpu(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return float(spent.user + spent.system)


WAYS: Final[dict[str, Callable[[int], None]]] = {
    "cost": lambda _: cost(),
    "strangers": strangers,
    "drills": lambda _: drills(),
    "away": lambda _: away(),
    "join": lambda _: join(),
}


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("ways", nargs="*", default=[])
    parser.add_argument("--strangers", type=int, default=10_000)
    asked = parser.parse_args()
    enter_own_network()
    print(f"{load()}\n")
    for way in asked.ways or WAYS:
        WAYS[way](asked.strangers)
        print()


if __name__ == "__main__":
    if sys.argv[1:2] == [ECHO]:
        _echo(*sys.argv[2:5])
    elif sys.argv[1:2] == [KNOCK]:
        asyncio.run(_knocks(int(sys.argv[2]), int(sys.argv[3])))
    else:
        main()
