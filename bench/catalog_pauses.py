"""Whether 10,000 services ever hold a broker up: the longest single step of its core, by what it does (CAT-081).

    .venv/bin/python -m bench.catalog_pauses [--services 10000] [--seconds 10]

A core in this process, in virtual time; its steps are measured in processor time, which a busy machine does not stretch
much. A step is everything between two looks at the sockets: a message or a wake-up, and what follows from it.
"""

import argparse
import gc
import json
import os
import time
from array import array
from collections import defaultdict
from typing import Any, Final

from weft.base.chance import Chance
from weft.base.effects import Send, Source
from weft.base.now import SECOND, Now
from weft.cores.catalog.context import BEATS, PROBE, ROUTER
from weft.cores.catalog.core import Catalog
from weft.cores.catalog.limits import INSTANCES_MAX
from weft.cores.catalog.messages import CatalogSettings, Ports
from weft.shell.serve import COLLECT_AFTER
from weft.wire.catalog import beats
from weft.wire.catalog.messages import HEARTBEAT, PONG, Beat, Message

WALL: Final = 1_795_227_299 * SECOND
TIME: Final = b"1795227299"
BAR_MS: Final = 10.0
LINES: Final = 16  # beats in a datagram
LOOKUPS: Final = 200  # a second
UPDATES: Final = 100
TOGETHER: Final = 1_000  # registrations in one turn: of many more the broker refuses some
SILENT: Final = 2_000  # services that fall silent at once, and come back


class Steps:
    """How long each step of a kind took, ms of a processor, and when in virtual time."""

    def __init__(self) -> None:
        self.ms, self.at_s = array("d"), array("d")

    def worst(self) -> tuple[float, float]:
        """The longest, and when it was."""
        return max(zip(self.ms, self.at_s, strict=True))


class Stage:
    """The core, its clock, and how long each kind of step has taken."""

    def __init__(self, services: int) -> None:
        settings = CatalogSettings(net="bench", hold=False, per_owner_max=INSTANCES_MAX)  # all have one address
        self.core = Catalog(settings, b"n" * 16, 1, Chance("pauses"))
        self.names = [(f"kind{number % 100}", f"s{number}") for number in range(services)]
        self.mono = SECOND
        self.steps: dict[str, Steps] = defaultdict(Steps)
        self.probed: list[bytes] = []
        self.answers_probes = True
        self.core.restore([], self.now)
        self.core.command(Ports(5246, 5247, 5248, 0), self.now)
        self._effects()

    @property
    def now(self) -> Now:
        return Now(self.mono, WALL + self.mono)

    def _effects(self) -> None:
        for effect in self.core.effects():
            if isinstance(effect, Send) and effect.channel == PROBE:
                self.probed.append(effect.peer)

    def step(self, what: str, message: Any, source: Source) -> None:
        """Let the core hear one message."""
        began = time.thread_time_ns()
        self.core.receive(message, source, self.now)
        self._effects()
        self._note(what, began)

    def _note(self, what: str, began: int) -> None:
        self.core.deadline()
        spent = time.thread_time_ns() - began
        self.steps[what].ms.append(spent / 1e6)
        self.steps[what].at_s.append(self.mono / SECOND)

    def say(self, what: str, command: bytes, *body: bytes, peer: bytes = b"c", kind: str = "DEALER 127.0.0.1") -> None:
        self.step(what, Message(command, TIME, body), Source(ROUTER, peer, None, kind))

    def until(self, mono: int) -> None:
        """Time passes; whatever is due is done."""
        while (due := self.core.deadline()) is not None and due <= mono:
            self.mono = max(self.mono, due)
            began = time.thread_time_ns()
            self.core.wake(self.now)
            self._effects()
            self._note("wake-ups", began)
            probed, self.probed = self.probed, []
            for peer in probed if self.answers_probes else ():
                self.step("answers to probes", Message(PONG, TIME, (b"x",)), Source(PROBE, peer))
        self.mono = mono


def register(stage: Stage) -> None:
    for number, (name, ident) in enumerate(stage.names):
        record = {"name": name, "id": ident, "ip": "127.0.0.1", "port": 1 + number % 60_000, "tags": ["lab"]}
        stage.say("registrations", b"UwU", json.dumps(record).encode(), peer=b"p%d" % number)
        if number % TOGETHER == TOGETHER - 1:
            stage.until(stage.mono + SECOND // 1_000)


def second(stage: Stage, chance: Chance, beating: list[tuple[str, str]], number: int) -> None:
    """One second: everybody beats, some look something up, some change."""
    begin, parts = stage.mono, -(-len(beating) // LINES)
    deeds = [(part * SECOND // max(1, parts), "beat", part) for part in range(parts)]
    deeds += [(each * SECOND // LOOKUPS, "lookup", each) for each in range(LOOKUPS)]
    deeds += [(each * SECOND // UPDATES, "update", each) for each in range(UPDATES)]
    for offset, what, part in sorted(deeds):
        stage.until(begin + offset)
        if what == "beat":
            lines = [
                Beat(HEARTBEAT, name, 1.0, ident, None) for name, ident in beating[part * LINES : (part + 1) * LINES]
            ]
            said = beats.decode([b"\n".join(b"".join(beats.encode(line)) for line in lines)])
            stage.step("datagrams of 16 beats", said, Source(BEATS, b"127.0.0.1:9"))
        elif what == "lookup":
            stage.say("lookups", b"u_U", chance.choice(stage.names)[0].encode(), kind="REQ 127.0.0.1")
        else:
            at = chance.randrange(len(stage.names))
            name, ident = stage.names[at]
            change = {"name": name, "id": ident, "metadata": {"n": str(number * UPDATES + part)}}
            stage.say("updates", b"UoU", json.dumps(change).encode(), peer=b"p%d" % at)
    stage.until(begin + SECOND)


def play(services: int, seconds: int) -> Stage:
    stage, chance = Stage(services), Chance("deeds")
    register(stage)
    for number in range(seconds):
        second(stage, chance, stage.names, number)
    for _ in range(5):
        stage.say("all names at once", b"u_U", kind="REQ 127.0.0.1")
        stage.say("queries of all", b"u_U", b"dbp.query", b"{}", kind="REQ 127.0.0.1")
    stage.answers_probes = False
    for number in range(8):
        second(stage, chance, stage.names[SILENT:], seconds + number)
    for number in range(3):
        second(stage, chance, stage.names, seconds + 8 + number)
    return stage


class Collector:
    """How long Python looks for cycles, and how often."""

    def __init__(self) -> None:
        self.began = 0
        self.spent: list[float] = []
        gc.callbacks.append(self._note)

    def _note(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self.began = time.thread_time_ns()
        else:
            self.spent.append((time.thread_time_ns() - self.began) / 1e6)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--services", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=10)
    given = parser.parse_args()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    collector = Collector()
    stage = play(given.services, given.seconds)
    print(f"{given.services:,} services, load {os.getloadavg()[0]:.1f}; ms of a processor a step")
    for what, steps in stage.steps.items():
        spent = sorted(steps.ms)
        worst_ms, worst_at_s = steps.worst()
        middle, late = spent[len(spent) // 2], spent[min(len(spent) - 1, len(spent) * 999 // 1000)]
        print(
            f"  {what:<24}{len(spent):>8,} steps, median {middle:.3f}, p99.9 {late:.3f}, longest {worst_ms:.2f}"
            f" at {worst_at_s:.1f} s: {'met' if worst_ms <= BAR_MS else f'MISSED, {BAR_MS:g} ms'}"
        )
    print(f"  of these, Python's collector: {len(collector.spent)} times, longest {max(collector.spent):.2f}")


if __name__ == "__main__":
    main()
