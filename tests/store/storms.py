"""Nights on the light rig (`net.py`): everything that can befall nodes, links and disks, drawn from a seed.

Then it is quiet, and what stands everywhere is compared with what was acknowledged. `python -m tests.store.storms 0 2000`
runs seeds by hand and says which are not green.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.store.net import Net, Node
from weft.base.chance import Chance
from weft.base.changes import Event
from weft.base.records import Stream, StreamRecord
from weft.cores.store import memory
from weft.cores.store.states import State

FOUNDER = "a"
QUIET_S = 600.0


class Storm:
    """One night: `go()` returns what is wrong, nothing if all is well."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = chance = Chance(f"{seed}/storm")
        self.names = "abcdefg"[: chance.choice((2, 3, 3, 4, 5, 7))]
        self.net = Net(
            self.names,
            seed=seed,
            link=chance.choice(("mesh", "mesh", "mqtt")),
            loss=chance.choice((0.0, 0.0, 0.02, 0.1, 0.3)),
            doubling=chance.choice((0.0, 0.05)),
            delay=chance.choice(((0.001, 0.003), (0.01, 0.2), (0.001, 2.0))),
            is_mixed=chance.random() < 0.3,
            settings={"chain_length": chance.choice((2, 5)), "ping_length": chance.choice((2, 4))},
        )
        self.disks: dict[str, list[Any]] = {}
        self.lost: set[tuple[str, int]] = set()
        """Changes that were nowhere but on a disk that is gone."""
        self.menu = [deed for deed in DEEDS if chance.random() < 0.5 or deed.is_work]
        self.keys = chance.choice((2, 5, 20))
        self.value = 0

    def go(self) -> list[str]:
        """The whole night."""
        net, chance = self.net, self.chance
        net.found(FOUNDER, "root")
        net.run(chance.choice((0.0, 3.0, 30.0)))
        weights = [deed.weight for deed in self.menu]
        for _ in range(chance.choice((30, 80, 200))):
            chance.choices(self.menu, weights)[0].do(self)
            net.run(chance.choice((0.0, 0.001, 0.1, 1.0, 7.0)))
        self.calm()
        took = net.run_until(self.is_quiet, QUIET_S, step_s=1.0)
        return [*self._unsettled(took), *self._unexplained(), *self._wrong_ticks(), *self._unequal_memory()]

    def calm(self) -> None:
        """All faults are over."""
        self.net.heal()
        self.net.is_deaf = lambda sender, hearer: False
        self.net.loss = min(self.net.loss, 0.1)
        for node in self.net.nodes.values():
            node.fails = ""
            if not node.is_up:
                self.net.start(node.name)
        if self.net.link == "mqtt":
            self.net.reconnect()

    # What can happen

    def one(self) -> Node:
        return self.net[self.chance.choice(self.names)]

    def path(self) -> str:
        return f"k.{self.chance.randrange(self.keys)}"

    def write(self) -> None:
        self.value += 1
        self.one().write(self.path(), self.value)

    def delete(self) -> None:
        self.one().delete(self.path())

    def race(self) -> None:
        """Everybody writes one entry at once."""
        path = self.path()
        for node in self.net.up():
            self.value += 1
            if self.chance.random() < 0.2:
                node.delete(path)
            else:
                node.write(path, self.value)

    def cut(self) -> None:
        sides: list[set[str]] = [set(), set(), set()]
        for name in self.names:
            self.chance.choice(sides[: self.chance.choice((2, 2, 3))]).add(name)
        self.net.cut(*sides)

    def deafen(self) -> None:
        pair = (self.one().name, self.one().name)
        self.net.is_deaf = lambda sender, hearer: (sender, hearer) == pair and sender != hearer

    def heal(self) -> None:
        self.net.heal()
        self.net.is_deaf = lambda sender, hearer: False

    def kill(self) -> None:
        node = self.one()
        if node.is_up and self.chance.random() < 0.5:
            self.net.fail_at_next_write(node.name, self.chance.choice(("before", "after")))
        elif node.is_up:
            self.net.kill(node.name)

    def start(self) -> None:
        node = self.one()
        if not node.is_up:
            self.net.start(node.name)

    def lose(self) -> None:
        """A machine is replaced."""
        node = self.one()
        if self._are_others(node):
            self.net.kill(node.name)
            self._forget(node, [])

    def photograph(self) -> None:
        node = self.one()
        self.disks[node.name] = list(node.disk)

    def go_back(self) -> None:
        """A disk from the past is put in; not where nobody could say so, since then ticks are taken again."""
        node = self.one()
        if node.name in self.disks and self._are_others(node):
            self.net.kill(node.name)
            self._forget(node, self.disks[node.name])
            self.calm()
            self.net.run(60.0)

    def _are_others(self, node: Node) -> bool:
        """Whether the store would go on without this node's disk: somebody else is a member, and runs."""
        others = [other for other in self.net.up() if other is not node]
        return any(other.state is State.MEMBER and other.store.context.tick for other in others)

    def _forget(self, node: Node, disk: list[Any]) -> None:
        node.disk[:] = disk
        node.fails = ""
        here = {event.chain.head for other in self.net.nodes.values() for event in changes_on(other.disk)}
        self.lost |= {event.chain.head for event in self._all_written() if event.chain.head not in here}

    def jump(self) -> None:
        self.net.jump(self.one().name, self.chance.choice((-1, 1)) * self.chance.choice((1, 3_600, 31_536_000)))

    # What has to be so in the end

    def _all_written(self) -> list[Event]:
        return [event for node in self.net.nodes.values() for event in node.written]

    def is_quiet(self) -> bool:
        """All are members and equal, and nothing is missing that anybody has (R11)."""
        net = self.net
        if not all(node.state is State.MEMBER for node in net.up()) or not net.are_equal():
            return False
        return not any(
            node.store.replica.book.is_seen(name, tick)
            for ticks in net.missing().values()
            for name, ranges in ticks.items()
            for first, last in ranges
            for tick in range(first, last + 1)
            for node in net.up()
        )

    def _unsettled(self, took: float) -> list[str]:
        return [] if self.is_quiet() else [f"not settled after {took} s: {self.net.differences()}"]

    def _unexplained(self) -> list[str]:
        net = self.net
        purged = [
            event
            for event in net.unexplained()
            if event.chain.head not in self.lost
            and not any(node.store.replica.book.deleted(event.node).covers(event.tick, event.tick) for node in net.up())
        ]
        return [f"acknowledged and lost: {event}" for event in purged]

    def _wrong_ticks(self) -> list[str]:
        """One number, one change, in all journals together."""
        known: dict[tuple[str, int], Event] = {}
        wrong = []
        for node in self.net.nodes.values():
            for event in changes_on(node.disk):
                head = event.chain.head
                other = known.setdefault(head, event)
                if (other.path, other.value) != (event.path, event.value) and head not in self.lost:
                    wrong.append(f"two changes are called {head}: {other} {event}")
        return wrong

    def _unequal_memory(self) -> list[str]:
        """A start from the disk gives what is there."""
        wrong = []
        for node in self.net.up():
            before = node.entries(), node.store.context.tick, node.store.context.name
            self.net.kill(node.name)
            self.net.start(node.name)
            after = node.entries(), node.store.context.tick, node.store.context.name
            if before != after:
                wrong.append(f"{node.name} remembers something else")
        return wrong


def changes_on(disk: list[Any]) -> list[Event]:
    """All changes in a journal, of whomever."""
    found = []
    for record in disk:
        if isinstance(record, StreamRecord) and record.stream == Stream.STORE:
            found.append(memory.event_of_stream(record))
        elif not isinstance(record, StreamRecord):
            kept = memory.memory_of(record)
            if isinstance(kept, memory.EventKept):
                found.append(memory.event_of_kept(kept))
    return found


class Deed(NamedTuple):
    """Something that can happen, and how often it does."""

    do: Callable[[Storm], None]
    weight: int
    is_work: bool = False


DEEDS = (
    Deed(Storm.write, 40, is_work=True),
    Deed(Storm.delete, 10, is_work=True),
    Deed(Storm.race, 5, is_work=True),
    Deed(Storm.heal, 6, is_work=True),
    Deed(Storm.start, 12, is_work=True),
    Deed(Storm.cut, 6),
    Deed(Storm.deafen, 3),
    Deed(Storm.kill, 8),
    Deed(Storm.lose, 2),
    Deed(Storm.photograph, 3),
    Deed(Storm.go_back, 2),
    Deed(Storm.jump, 2),
)


def main(first: int, last: int) -> None:
    """Run seeds `first` to `last` - 1 and print what is wrong with them."""
    for seed in range(first, last):
        try:
            wrong = Storm(seed).go()
        except Exception as error:  # noqa: BLE001  # whatever a core raises is a finding
            wrong = [f"{type(error).__name__}: {error}"]
        if wrong:
            say("\n    ".join([str(seed), *wrong[:3]]))
    say(f"{last - first} seeds")


def say(text: str) -> None:
    """To whoever runs seeds by hand."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
