"""How soon a fleet finds itself, what that costs on the wire, and what it costs to stand: beside the original's figures.

All nodes but the root run and wait; then the root starts. The join time is from the start of the root's interpreter until
every node has a place and runs the configuration. Heartbeat 60 s, CPU and MEMORY each 60 s, DISK and NETWORK each 120 s,
groups of 25 with one collector each, as dCAMP was measured. The root has led this fleet before, so it has its journal;
`--fresh` measures one that has none, and must first ask who knows more (REC-016).

Bytes of the configuration: all messages that replicas hear on their subscriptions and as answers to their requests,
with ZMTP's framing (2 or 9 bytes a frame), counted where they are taken from the sockets. Steady traffic: the same
count of all channels, and what the loopback device carried, headers of TCP and IP and acknowledgements included.

    .venv/bin/python -m bench.tree [--nodes 3 25 50 100 200] [--steady 30] [--hosts 4] [--fresh]
"""

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.hosts import CONFIGURATION, Hosts, dealt, enter_own_network, load, loopback
from weft.shell.blocks import BLOCK

GROUP: Final = 25
BEACONS: Final = 27_400
FIRST: Final = 27_500
PATIENCE_S: Final = 150
METRICS: Final = {
    name: {"detail": name.upper(), "rate": rate}
    for name, rate in (("cpu", "60s"), ("memory", "60s"), ("disk", "120s"), ("network", "120s"))
}
PUBLISHED: Final = {3: (1.8, 3.8e3), 25: (61.3, 84e3), 50: (61.6, 381e3), 100: (62.1, 3.64e6)}
"""What the specification says of the original: seconds until joined, bytes of configuration received in 100 s."""
MUST: Final = {3: (1.0, 3.8e3), 25: (2.0, 42e3), 50: (3.0, 95e3), 100: (5.0, 303e3)}
LOOPBACK_200: Final = 132_000
"""Mean bytes/s of the original's 200 nodes on the loopback device (MEA-040)."""


class Seen(NamedTuple):
    """One fleet's figures; seconds and bytes."""

    nodes: int
    groups: int
    joined_s: float
    imported_s: float
    """Of it until the root's interpreter had imported everything."""
    bytes: int
    """Of configuration until everybody had joined."""
    settled_bytes: int
    """The same a while later."""
    join_loopback: int
    steady: dict[str, float]
    by_channel: dict[str, tuple[float, float]]


def table_of(nodes: int, place: Path, heartbeat: str = "60s") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The root's file and the others', the fleet's file written."""
    groups = -(-(nodes - 1) // GROUP)
    names = [f"g{n % groups}-{n // groups:02}" for n in range(nodes - 1)]
    ports = {name: FIRST + BLOCK * index for index, name in enumerate(["root", *names])}
    lines = [f'[fleet]\nname = "bench"\nheartbeat = "{heartbeat}"\n']
    lines += [f'[metric.{name}]\ndetail = "{row["detail"]}"\nrate = "{row["rate"]}"\n' for name, row in METRICS.items()]
    listed = ", ".join(f'"{name}"' for name in METRICS)
    lines += [
        f'[group.g{n}]\ncollectors = ["127.0.0.1:{ports[f"g{n}-00"]}"]\nmembers = ["g{n}-*"]\nmetrics = [{listed}]\n'
        for n in range(groups)
    ]
    file = place / "fleet.toml"
    file.write_text("\n".join(lines))
    shared = {"name": "bench", "beacon_port": BEACONS, "beat_s": 60.0, "dead_s": 300.0, "heartbeat": heartbeat}
    root = {
        "fleet": shared,
        "node": {
            "name": "root",
            "level": "root",
            "config": str(file),
            "port": ports["root"],
            "state": str(place / "root"),
        },
        "lake": {"path": str(place / "lake")},
    }
    others = [
        {"fleet": shared, "node": {"name": name, "port": ports[name], "state": str(place / name)}} for name in names
    ]
    return root, others


def lead_once(root: dict[str, Any], place: Path) -> None:
    """Let the root lead a fleet of nobody, so that it has a journal; its heartbeat is short meanwhile."""
    quick = {**root, "fleet": {**root["fleet"], "heartbeat": "0.1s"}}
    (place / "before").mkdir()
    with Hosts(place / "before") as hosts:
        hosts.start([quick])
        if not hosts.until(lambda: any(stand.is_settled for stand in hosts.stands.values()), 30):
            raise TimeoutError("the root alone")
        time.sleep(0.3)


def measure(nodes: int, place: Path, options: argparse.Namespace) -> Seen:
    root, others = table_of(nodes, place)
    if not options.fresh:
        lead_once(root, place)
    with Hosts(place) as hosts:
        for part in dealt(others, options.hosts):
            hosts.start(part)
        hosts.until_ready()
        hosts.until(lambda: len(hosts.stands) == nodes - 1, 60)
        time.sleep(1)
        before_bytes = loopback()[0]
        began = hosts.start([root])

        def all_settled() -> bool:
            return len(hosts.stands) == nodes and all(stand.is_settled for stand in hosts.stands.values())

        if not hosts.until(all_settled, PATIENCE_S):
            late = {name: stand for name, stand in hosts.stands.items() if not stand.is_settled}
            raise TimeoutError(f"{len(late)} of {nodes} have not joined: {dict(list(late.items())[:3])}")
        joined = max(stand.at for stand in hosts.stands.values()) - began
        imported = hosts.ready_at - began
        join_loopback = loopback()[0] - before_bytes
        received = configured(hosts.counts())
        time.sleep(options.settle)
        settled = hosts.counts()
        steady, by_channel = stand_still(hosts, settled, nodes, options.steady)
        groups = -(-(nodes - 1) // GROUP)
        return Seen(nodes, groups, joined, imported, received, configured(settled), join_loopback, steady, by_channel)


def stand_still(
    hosts: Hosts, before: dict[str, Any], nodes: int, seconds: float
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """What a fleet says that has nothing to do, per node and second."""
    device, worst, began = loopback(), 0.0, time.monotonic()
    last = device[0]
    for _ in range(max(1, round(seconds / 5))):
        time.sleep(min(5.0, seconds))
        now = loopback()[0]
        worst, last = max(worst, (now - last) / min(5.0, seconds)), now
    spent = time.monotonic() - began
    after, device_after = hosts.counts(), loopback()
    totals: dict[str, Counter[str]] = {"bytes": Counter(), "messages": Counter()}
    for name, counts in after.items():
        for kind, total in totals.items():
            total.update(Counter(counts[kind]) - Counter(before[name][kind]))
    share = nodes * spent
    steady = {
        "zmtp": totals["bytes"].total() / share,
        "messages": totals["messages"].total() / share,
        "device": (device_after[0] - device[0]) / share,
        "packets": (device_after[1] - device[1]) / share,
        "total": (device_after[0] - device[0]) / spent,
        "worst": worst,
    }
    channels = totals["bytes"]
    return steady, {c: (channels[c] / share, totals["messages"][c] / share) for c in sorted(channels)}


def configured(counts: dict[str, Any]) -> int:
    """Bytes of configuration that all nodes have received."""
    return sum(each["bytes"].get(channel, 0) for each in counts.values() for channel in CONFIGURATION)


def show_join(seen: Seen) -> None:
    """A row beside the original's; CFG-095: n(1.2 kB + 0.25 kB c), c first-level collectors."""
    past, goal = PUBLISHED.get(seen.nodes), MUST.get(seen.nodes)
    original = f"{past[0]:.1f} s, {past[1] / 1e3:,.1f} kB" if past else "-"
    must = f"{goal[0]:.1f} s, {goal[1] / 1e3:,.1f} kB" if goal else "-"
    less = f"1/{past[1] / seen.bytes:.1f}" if past else "-"
    bound = seen.nodes * (1.2 + 0.25 * seen.groups)
    print(
        f"| {seen.nodes} | {original} | {must} | {seen.joined_s:.2f} | {seen.joined_s - seen.imported_s:.2f} | {seen.bytes / 1e3:,.1f} "
        f"| {seen.settled_bytes / 1e3:,.1f} | {less} | {bound:,.0f} | {seen.join_loopback / 1e3:,.0f} | {load()} |",
        flush=True,
    )


def show_steady(seen: Seen) -> None:
    """Per node and second; and the whole fleet beside the original's."""
    told = seen.steady
    print(
        f"{seen.nodes} nodes stand: per node {told['device']:.0f} B/s and {told['packets']:.2f} packets/s on the device; "
        f"heard {told['zmtp']:.0f} B/s, {told['messages']:.2f} messages/s; all {told['total'] / 1e3:.1f} kB/s, "
        f"worst 5 s {told['worst'] / 1e3:.1f} kB/s"
    )
    print("  heard per node: " + ", ".join(f"{c} {b:.1f} B/s {m:.3f}/s" for c, (b, m) in seen.by_channel.items()))
    if seen.nodes == 200:
        print(
            f"  the original's 200 (published): 132 kB/s, worst 12,900 kB/s; now 1/{LOOPBACK_200 / told['total']:.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, nargs="+", default=[3, 25, 50, 100, 200])
    parser.add_argument("--steady", type=float, default=30, help="seconds of steady traffic")
    parser.add_argument("--settle", type=float, default=5, help="seconds between joining and steady traffic")
    parser.add_argument("--hosts", type=int, default=4, help="processes that share the nodes; the root has its own")
    parser.add_argument("--fresh", action="store_true", help="a root without its journal")
    options = parser.parse_args()
    own = enter_own_network()
    print(
        f"{options.hosts} processes with all nodes but the root, which has its own; each node has its sockets and disk"
    )
    print(f"loopback of {'this fleet alone' if own else 'the whole machine: others may be in its bytes'}; {load()}\n")
    print(
        "| nodes | original, published in the spec | must | joined s | of it after imports s | config kB | 5 s later | of original"
        " | CFG-095 kB | joining on device kB | |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    )
    rows = []
    for nodes in options.nodes:
        with tempfile.TemporaryDirectory() as place:
            rows.append(measure(nodes, Path(place), options))
        show_join(rows[-1])
    print()
    for seen in rows:
        show_steady(seen)


if __name__ == "__main__":
    main()
