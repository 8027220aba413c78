"""How soon a change of the configuration is in force everywhere, and how soon a fleet mends itself when nodes are killed.

Change: a metric's rate is changed by an order at the root; from its answer to the first sample at the new rate on every
sensor, over three tiers (root, collectors, sensors). The new rate's own first tick is in it: up to a tenth of a second.
Kills: SIGKILL of a collector, until all its children stand elsewhere and deliver there; SIGKILL of the root, until there
is one other and all others follow, collectors under it, with open links. Heartbeat 0.5 s, dead after 5: D = 2.5 s,
W = 0.3 s. The bounds are REC-005 (D + 1.5 s) and REC-013 (D + 4 W + 1.5 s).

    .venv/bin/python -m bench.change [--nodes 100] [--changes 6] [--kills 5] [--children 5] [--what change collector root]
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bench.hosts import Hosts, dealt, enter_own_network, load
from weft.cli.asking import order
from weft.shell.blocks import BLOCK

BEAT_S, DEAD_AFTER, WAIT_S = 0.5, 5, 0.3
D: Final = BEAT_S * DEAD_AFTER
BOUNDS: Final = {"collector": D + 1.5, "root": D + 4 * WAIT_S + 1.5}
FIRST, BEACONS = 27_500, 27_400
LINK: Final = 7
RATES: Final = ("0.1s", "0.15s")
PATIENCE_S: Final = 30.0
Documents = list[dict[str, Any]]


class Plan:
    """A fleet of groups with one collector each; the collectors are `g0-00`, `g1-00`, ..."""

    def __init__(self, nodes: int, groups: int, place: Path, rate: str) -> None:
        self.groups = groups
        names = ["root", *(f"g{n % groups}-{n // groups:02}" for n in range(nodes - 1))]
        self.ports = {name: FIRST + BLOCK * index for index, name in enumerate(names)}
        self.file = place / "fleet.toml"
        shared = {"name": "bench", "heartbeat": f"{BEAT_S}s", "dead_after": DEAD_AFTER}
        text = "[fleet]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in shared.items())
        text += f'[metric.cpu]\ndetail = "CPU"\nrate = "{rate}"\n'
        for n in range(groups):
            text += f'[group.g{n}]\ncollectors = ["127.0.0.1:{self.ports[f"g{n}-00"]}"]\n'
            text += f'members = ["g{n}-*"]\nmetrics = ["cpu"]\nfanout = 200\n'
        self.file.write_text(text)
        shared |= {"beacon_port": BEACONS, "beat_s": BEAT_S, "dead_s": D}
        self.documents = {name: {"fleet": shared, "node": self._node(name, place)} for name in names}
        self.documents["root"]["lake"] = {"path": str(place / "lake")}

    def _node(self, name: str, place: Path) -> dict[str, Any]:
        node = {"name": name, "port": self.ports[name], "state": str(place / name)}
        return {**node, "level": "root", "config": str(self.file)} if name == "root" else node

    @property
    def collectors(self) -> list[str]:
        return [f"g{n}-00" for n in range(self.groups)]

    @property
    def sensors(self) -> list[str]:
        return [name for name in self.ports if name != "root" and name not in self.collectors]

    def link_of(self, name: str) -> str:
        """Where children of a node hand over their samples."""
        return f"127.0.0.1:{self.ports[name] + LINK}"

    def start(self, hosts: Hosts, sensor_hosts: int, *, alone: bool) -> None:
        """Start the fleet and wait until it stands; `alone`: root and collectors in processes of their own."""
        leaders = ["root", *self.collectors]
        parts = [[self.documents[name]] for name in leaders] if alone else [[self.documents["root"]]]
        others = self.sensors if alone else [name for name in self.ports if name != "root"]
        for part in [*parts, *dealt([self.documents[name] for name in others], sensor_hosts)]:
            hosts.start(part)

        def all_joined() -> bool:
            return len(hosts.stands) == len(self.ports) and all(stand.is_joined for stand in hosts.stands.values())

        if not hosts.until(all_joined, 90):
            late = [name for name in self.ports if name not in hosts.stands or not hosts.stands[name].is_joined]
            raise TimeoutError(f"not joined: {late[:5]} and {len(late)} in all; see {hosts.place}")


# A change


def changes(nodes: int, rounds: int, place: Path) -> tuple[list[float], list[float]]:
    """Seconds from the answer, and from the order, to the first sample at the new rate, of every sensor and round."""
    plan = Plan(nodes, max(1, (nodes - 1) // 24), place, RATES[1])
    since_answer: list[float] = []
    since_order: list[float] = []
    with Hosts(place) as hosts:
        plan.start(hosts, 3, alone=False)
        time.sleep(2)
        for number in range(rounds):
            rate = RATES[number % 2]
            hosts.rates.clear()
            asked, answered = change(plan, rate)
            if not hosts.until(lambda rate=rate: len(under(hosts, rate)) == nodes - 1, PATIENCE_S):  # type: ignore[misc]  # bound now
                raise TimeoutError(f"{len(under(hosts, rate))} of {nodes - 1} follow")
            for name, at in under(hosts, rate).items():
                group = name.partition("-")[0]
                since_order.append(at - asked[group])
                since_answer.append(at - answered[group])
            time.sleep(1)
    return since_answer, since_order


def change(plan: Plan, rate: str) -> tuple[dict[str, float], dict[str, float]]:
    """Change the rate in every group; when it was ordered and answered."""
    asked, answered = {}, {}
    for n in range(plan.groups):
        asked[f"g{n}"] = time.monotonic()
        order(FIRST, "set", key=f"/CONFIG/g{n}/metric/cpu", value={"detail": "CPU", "rate": rate})
        answered[f"g{n}"] = time.monotonic()
    return asked, answered


def under(hosts: Hosts, rate: str) -> dict[str, float]:
    """Who has measured at this rate, and when first."""
    wanted = float(rate.removesuffix("s"))
    firsts: dict[str, float] = {}
    for told in hosts.rates:
        if told["rate"] == wanted and told["node"] != "root":
            firsts.setdefault(told["node"], told["at"])
    return firsts


# Kills


def kill_collectors(kills: int, children: int, place: Path) -> list[float]:
    """One fleet, one collector after the other; seconds until all its children deliver elsewhere."""
    plan = Plan(1 + (1 + children) * kills, kills, place, "1s")
    seconds = []
    with Hosts(place) as hosts:
        plan.start(hosts, 2, alone=True)
        for group, collector in enumerate(plan.collectors):
            time.sleep(1)
            below = [name for name in plan.sensors if name.startswith(f"g{group}-")]
            seconds.append(until_elsewhere(hosts, plan, collector, below))
    return seconds


def kill_roots(kills: int, _: int, place: Path) -> list[float]:
    """A fleet each; seconds until all others follow another root."""
    seconds = []
    for number in range(kills):
        own = place / f"fleet-{number}"
        own.mkdir()
        plan = Plan(16, 3, own, "1s")
        with Hosts(own) as hosts:
            plan.start(hosts, 1, alone=True)
            time.sleep(1)
            seconds.append(until_elsewhere(hosts, plan, "root", [name for name in plan.ports if name != "root"]))
    return seconds


def until_elsewhere(hosts: Hosts, plan: Plan, killed: str, others: list[str]) -> float:
    """Kill a node; seconds until the others have open links, none to it, and one root leads."""
    old, at = plan.link_of(killed), hosts.kill(killed)

    def is_mended() -> bool:
        stands = [hosts.stands[name] for name in others]
        roots = sum(stand.role == "ROOT" for stand in hosts.stands.values())
        return roots == 1 and all(s.is_joined and (s.role == "ROOT" or s.parent != old) for s in stands)

    if not hosts.until(is_mended, PATIENCE_S):
        return float("inf")
    return max(hosts.stands[name].at for name in others) - at


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--changes", type=int, default=6)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--children", type=int, default=5, help="of each collector that is killed")
    parser.add_argument("--what", nargs="+", default=["change", "collector", "root"])
    options = parser.parse_args()
    enter_own_network()
    if "change" in options.what:
        with tempfile.TemporaryDirectory() as place:
            answer, ordered = changes(options.nodes, options.changes, Path(place))
        print(
            f"change of a rate, {options.nodes} nodes, {options.changes} times, seconds to the first sample; {load()}"
        )
        print("| | p50 | p99 | worst | goal p50 | goal p99 |\n|---|--:|--:|--:|--:|--:|")
        for what, values in (("from the answer", answer), ("from the order", ordered)):
            p99 = statistics.quantiles(values, n=100)[98]
            print(f"| {what} | {statistics.median(values):.2f} | {p99:.2f} | {max(values):.2f} | 0.2 | 1.0 |")
        print(flush=True)
    kinds: dict[str, Callable[[int, int, Path], list[float]]] = {"collector": kill_collectors, "root": kill_roots}
    for what in (name for name in kinds if name in options.what):
        with tempfile.TemporaryDirectory() as place:
            seconds = kinds[what](options.kills, options.children, Path(place))
        told = " ".join(f"{value:.2f}" for value in sorted(seconds))
        of = f" of {options.children} children" if what == "collector" else ""
        print(f"{what}{of} killed {len(seconds)} times: {told} s; bound {BOUNDS[what]:.1f} s; {load()}", flush=True)


if __name__ == "__main__":
    main()
