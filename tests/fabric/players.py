"""Programs beside nodes, each a process of its own: `players.py sends|works NAME STATE-DIRECTORY LOG`.

Whoever sends numbers what it sends, by type, and writes down each number before it is sent and each status when it is
heard. It may be killed at any instant and goes on behind the last number that its log has. Whoever works stands in
chains: `out` at a sensor, `in` elsewhere.
"""

import asyncio
import random
import re
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any, TextIO

import weft
from weft.client.chain.client import ChainClient
from weft.client.chain.message import Message

SENDS: dict[str, dict[str, Any]] = {
    "app.plain": {},
    "app.mark": {},
    "app.drop": {},
    "app.hang": {},
    "app.conf": {},
    "app.wait": {"want": "dest"},
    "app.local": {"to": weft.LOCAL},
    "app.loose": {"keep": "memory"},
}
"""By type, how it is sent."""
ORDERED = ("app.plain", "app.mark", "app.drop", "app.conf", "app.local")
"""Only programs that keep the order stand in their way."""
BURST, PERIOD_S = 2, 0.1
OPEN_MAX = 2_000
TENTH, FIFTIETH = 10, 50
DROPPED = {"out": 0, "in": 5}
"""Of `app.drop`: the last digit of what is taken out."""
HANGS, FAILS = 7, 13
"""Of `app.hang`: of 50, which one is held for too long, and which one raises."""
HANG_S, ANSWER_S, PATIENT_S, THINKS_S = 3.0, 1.0, 30.0, 0.05


def number_of(text: str) -> int:
    """The number in a payload: `sensor-1 app.mark 17+a+b`."""
    found = re.match(r"\S+ \S+ (\d+)", text)
    assert found is not None, text
    return int(found[1])


class Sender:
    """Sends bursts until it is told to stop, and then waits for every status."""

    def __init__(self, chain: ChainClient, name: str, log: TextIO, numbers: Counter[str]) -> None:
        self.chain, self.name, self.log, self.numbers = chain, name, log, numbers
        self.open: set[asyncio.Future[Any]] = set()

    def send(self, kind: str) -> None:
        self.numbers[kind] += 1
        number = self.numbers[kind]
        self.log.write(f"sent {kind} {number}\n")
        sent = self.chain.send(kind, f"{self.name} {kind} {number}".encode(), **SENDS[kind])
        self.open.add(sent)
        sent.add_done_callback(lambda done: self.hear(done, kind, number))

    def hear(self, done: "asyncio.Future[Any]", kind: str, number: int) -> None:
        self.open.discard(done)
        error = done.exception()
        why = done.result().why if error is None else getattr(error, "why", repr(error))
        self.log.write(f"heard {kind} {number} {why}\n")

    def send_all(self) -> None:
        for kind in SENDS:
            for _ in range(BURST):
                self.send(kind)

    async def play(self) -> None:
        told = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
        strange = 0
        while not told.is_set() or self.open:
            if not told.is_set() and len(self.open) < OPEN_MAX:
                self.send_all()
            await asyncio.sleep(PERIOD_S)  # tidy: the pace of a sender, which ends when it is told to
            if self.chain.counts["statuses of nothing"] > strange:
                strange = self.chain.counts["statuses of nothing"]
                self.log.write(f"strange {strange}\n")
        self.log.write("end\n")


def numbers_in(log: Path) -> Counter[str]:
    """How far earlier lives have come."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return Counter({parts[1]: int(parts[2]) for parts in map(str.split, lines) if parts[:1] == ["sent"]})


async def sends(name: str, state: Path, path: Path) -> None:
    numbers = numbers_in(path)
    with path.open("a", encoding="utf-8", buffering=1) as log:
        async with weft.chain_client("sender", node=state) as chain:
            await Sender(chain, name, log, numbers).play()


async def works(name: str, state: Path, path: Path) -> None:
    """All kinds of programs in one process: they die together."""
    side = "out" if name.startswith("sensor") else "in"
    chance = random.Random(name)  # spreads the time that a program takes

    async def think() -> None:
        await asyncio.sleep(chance.uniform(0, THINKS_S))  # tidy: a program takes its time, less than its link has

    with path.open("a", encoding="utf-8", buffering=1) as log:
        async with weft.chain_client("worker", node=state) as chain:

            @chain.rewrites("app.mark", on=side, place=100, ordered=True, timeout=PATIENT_S, parallel=32)
            async def mark(message: Message) -> Message:
                await think()
                return message.replace(payload=message.payload + f"+{name}".encode())

            @chain.rewrites("app.drop", on=side, place=100, ordered=True, timeout=PATIENT_S, parallel=32)
            async def drop(message: Message) -> Any:
                await think()
                is_chosen = number_of(message.text) % TENTH == DROPPED[side]
                return weft.drop("a tenth") if is_chosen else message

            @chain.rewrites("app.hang", on=side, place=100, timeout=ANSWER_S, parallel=64)
            async def hang(message: Message) -> Message:
                rest = number_of(message.text) % FIFTIETH
                if rest == FAILS:
                    raise ValueError("a fiftieth")
                await (asyncio.sleep(HANG_S) if rest == HANGS else think())  # tidy: a program that hangs, bounded
                return message

            @chain.rewrites("app.wait", on=side, place=100, fail="wait", timeout=ANSWER_S, parallel=16)
            async def wait(message: Message) -> Message:
                await think()
                return message

            if side == "in":

                @chain.reads("app.conf", confirm=True, parallel=16, place=200)
                async def confirm(message: Message) -> None:
                    await think()
                    log.write(f"read {message.text} {message.re}\n")

            await chain.run()


if __name__ == "__main__":
    asyncio.run({"sends": sends, "works": works}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])))
