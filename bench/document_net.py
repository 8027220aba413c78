"""What a session of many nodes says and waits for: counted in virtual time, timed on real sockets.

    .venv/bin/python -m bench.document_net [traffic] [catchup] [--operations 20000]

`traffic`: how often an operation is said, of what is needed at least (GSP-060): 16 nodes with 60 entries each, 64 with 10, every
message lost with one tenth, or none lost and all out of order. `catchup`: two nodes as processes on loopback; how long a newcomer takes
for the whole log, its own start left out, and how long a start takes that finds it on disk. Beside the latter the same bytes
through one bare DEALER to ROUTER.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

import zmq

from tests.document.net import Net, Weather
from tests.fabric.test_documents_many import Crowd
from weft.base.now import MILLISECOND, SECOND
from weft.doc import SyncClient
from weft.wire.document.operations import Stamp, emit
from weft.wire.document.xml import fragment_of

SOURCES: Final = 16
JAM: Final = {"period": "1", "jam": "1"}
SCENES: Final = ((16, 60, 10, 0.1, 1.5, 10), (16, 60, 10, 0.0, 1.02, 10), (64, 10, 100, 0.1, 1.5, 15))
"""Nodes, entries of each, milliseconds between two, loss; said at most so often, equal after so many seconds at most."""


def traffic() -> None:
    """Each scene, a line."""
    for nodes, entries, gap_ms, loss, most, most_s in SCENES:
        net = Net(1)
        first = net.machine()
        for _ in range(nodes - 1):
            net.machine(peers=[first])
            net.pass_time(300 * MILLISECOND)
        net.until(net.is_mesh, 200 * SECOND)
        introduced = net.said["PeerAt"]
        net.weather = Weather(loss=loss, most_ns=20 * MILLISECOND, in_order=False)
        net.said.clear()
        for number in range(entries * nodes):
            net.edit(net.machines[number % nodes], "add", JAM, xml='<pass team="home" points="1"/>')
            net.pass_time(gap_ms * MILLISECOND)
        equal = net.until(net.is_equal, 120 * SECOND) / SECOND
        said = net.said["Xmsg"] / (entries * nodes * (nodes - 1))
        print(
            f"{nodes} nodes x {entries}, loss {loss:.0%}: said {said:.3f} times (at most {most}), "
            f"equal after {equal:.1f} s (at most {most_s}); {introduced} PEER to meet",
            flush=True,
        )


def bodies(count: int) -> Iterator[bytes]:
    """Operations of some sources in turn, as in bench/document.py about 170 bytes each."""
    for number in range(count):
        source = UUID(int=(0xA0 << 120) + 0x4000_8000_0000_0000_0000 + number % SOURCES).bytes
        payload = f'<pass team="home" points="{number % 5}" eid="{UUID(int=(0xE1 << 120) + number)}"/>'
        stamp = Stamp(source, 1_763_800_000.0 + number * 0.05, number // SOURCES + 1)
        yield emit("add", JAM | {"jam": str(1 + number % 200)}, stamp, fragment_of(payload))


def catchup(count: int) -> None:
    """A newcomer, then its next start."""
    said = list(bodies(count))
    with tempfile.TemporaryDirectory() as place:
        crowd = Crowd(Path(place), 2)
        old, new = crowd.parents
        try:
            crowd.start(old)
            crowd.until(lambda: bool(crowd.document(old).get("endpoint")), "the first node")
            with SyncClient(crowd.place / old, session="friday", timeout=60) as client:
                client.bring(said)
            print(
                f"a newcomer has {count:,} operations {_timed(crowd, new, count):.2f} s after it listens (at most 4 s)"
            )
            crowd.member(new).wanted = False  # nobody else starts it again
            crowd.kill(new)
            print(
                f"a start finds them on its disk {_timed(crowd, new, count):.2f} s after its process began (at most 2 s)"
            )
        finally:
            crowd.__exit__()
    print(f"the same bytes through a bare DEALER to ROUTER: {_bare(said):.2f} s")


def _timed(crowd: Crowd, name: str, count: int) -> float:
    """Seconds from its first answer, or from its beginning where that comes with everything, until it has all of it folded."""

    def has(what: str) -> int:
        return int(crowd.document(name).get(what, {}).get("friday", -1))

    began = time.monotonic()
    crowd.start(name)
    crowd.until(lambda: bool(crowd.document(name).get("endpoint")), "it listens")
    if has("operations") < count:
        began = time.monotonic()
    crowd.until(lambda: has("operations") == count and not has("behind"), "it has and shows everything", 120)
    return time.monotonic() - began


def _bare(said: list[bytes]) -> float:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    router, dealer = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    for end in (router, dealer):
        end.set_hwm(0)
    port = router.bind_to_random_port("tcp://127.0.0.1")
    dealer.connect(f"tcp://127.0.0.1:{port}")
    began = time.monotonic()
    for body in said:
        dealer.send_multipart([b"XMSG", body])
    for _ in said:
        router.recv_multipart()
    took = time.monotonic() - began
    context.destroy(linger=0)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="traffic, catchup; default: both")
    parser.add_argument("--operations", type=int, default=20_000)
    options = parser.parse_args()
    if not options.what or "traffic" in options.what:
        traffic()
    if not options.what or "catchup" in options.what:
        catchup(options.operations)


if __name__ == "__main__":
    main()
