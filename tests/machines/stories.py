"""The stories of the cores that talk with others, told by the nets that their tests have."""

from itertools import pairwise
from typing import Any

import pytest

from tests.carrier import test_properties as carrier
from tests.carrier.rig import joined, spans
from tests.catalog import net as catalog
from tests.chains import test_engine_properties as chains
from tests.clone import net as clone
from tests.configuration import test_properties as configuration
from tests.document import net as document
from tests.machines.admission import EnrolmentStory
from tests.machines.bag import ALONE, Bag, Bagged
from tests.store import net as store
from tests.topology import net as topology
from weft.base.now import MILLISECOND, SECOND
from weft.base.records import StreamRecord
from weft.cores.clone.messages import Wanted
from weft.cores.configuration import limits
from weft.cores.document.messages import Begin
from weft.cores.service.messages import Update

WHEN = ("now", "before", "behind")


class CarrierStory:
    """Samples and mail of a tree of four: each reaches the root exactly once, and the screens on its way (CHN-033)."""

    names = carrier.NAMES

    def __init__(self, seed: int) -> None:
        self.play = carrier.Play()

    def deliver(self, place: int, count: int) -> None:
        self.play.deliver(place, count)

    def drop(self, place: int) -> None:
        self.play.lose(place, 1)

    def double(self, place: int, to: int) -> None:
        self.play.double(place, to)

    def advance(self, span_s: float) -> None:
        self.play.advance(span_s, 0)

    def write(self, name: str, number: int) -> None:
        if name == "root":
            return
        before = dict(self.play.taken)
        (self.play.post if number % 3 == 0 else self.play.make)(name, 1 + number % 3)
        if not self.play.world.machines[name].is_up:
            self.play.taken = before  # it died before the batch was durable

    def cut(self, name: str) -> None:
        if name != "root":
            self.play.cut(name, 0)

    def heal(self) -> None:
        self.play.world.heal("a", "b", "c")

    def crash(self, name: str, how: int) -> None:
        self.play.crash(name, how > 0)

    def start(self, name: str) -> None:
        self.play.start(name, 0)

    def check(self) -> None:
        for machine in self.play.machines:
            if machine.is_up:
                carrier.check_memory(self.play, machine)

    def rest(self) -> None:
        self.play.come_to_rest()
        root, c, *_ = self.play.machines
        actual = {origin: joined(pieces) for origin, pieces in spans(root.samples()).items()}
        assert carrier.taken_of(self.play) == actual
        assert sorted(self.play.posted) == sorted(carrier.identities(root))
        assert len(set(carrier.identities(c))) == len(carrier.identities(c))


class ConfigurationStory:
    """A root and what replicates it: all as it once was, and equal in the end (CFG-031, CFG-041)."""

    names = configuration.NAMES

    def __init__(self, seed: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(limits, "PART_BYTES", 60)  # so that a snapshot of a few pairs has many parts
        self.play = configuration.Play()

    def deliver(self, place: int, count: int) -> None:
        self.play.deliver(place, count)

    def drop(self, place: int) -> None:
        self.play.lose(place, 1)

    def double(self, place: int, to: int) -> None:
        self.play.double(place, 0)

    def advance(self, span_s: float) -> None:
        self.play.advance(span_s, 0)

    def write(self, name: str, number: int) -> None:
        self.play.load(1 + number % 3, number) if number > 6 else self.play.write(
            configuration.KEYS[number % len(configuration.KEYS)], str(number % 4 or "")
        )

    def cut(self, name: str) -> None:
        if name != "root":
            self.play.cut(name, 0)

    def heal(self) -> None:
        self.play.world.heal()

    def crash(self, name: str, how: int) -> None:
        self.play.crash(name, WHEN[how])

    def start(self, name: str) -> None:
        self.play.start(name, 0)

    def check(self) -> None:
        self.play.compare()

    def rest(self) -> None:
        try:
            self.play.come_to_rest()
            self.play.world.check()
            self.play.compare()
        finally:
            self.patch.undo()


class TopologyStory(Bagged):
    """A root, two collectors that vote, a sensor: one root of an epoch, no vote before it is durable, and a tree in the end."""

    names = ("root", "c1", "c2", "s")

    def __init__(self, seed: int) -> None:
        self.net = topology.Net(f"machine/{seed}", delay_ns=(2, 80, 900)[seed % 3] * MILLISECOND)
        self.bag = Bag(
            self.net._queue,
            lambda entry: ALONE if isinstance(entry[2], topology.Posted) else None,
            lambda entry: entry[2](),
            lambda entry, after_ns: self.net.later(after_ns, entry[2]),
        )
        self.net.restart_ns = (0, 400)[seed % 2] * MILLISECOND
        here = ["10.0.1.1:27500", "10.0.1.2:27500", "10.0.2.1:27500"]
        self.net.configure(site={"members": ["10.0.0.0/16"], "collectors": here[:2]})
        self.net.add("root", "10.0.0.1:27500", level="root", join=tuple(here))
        for name, endpoint in zip(self.names[1:], here, strict=True):
            self.net.add(name, endpoint, join=("10.0.0.1:27500", here[0]))
        for name in self.names:
            self.start(name)
        self.net.run(10)

    def advance(self, span_s: float) -> None:
        self.net.run(span_s)

    def write(self, name: str, number: int) -> None:
        """What it writes are places."""

    def cut(self, name: str) -> None:
        self.net.cut([name], [other for other in self.names if other != name])

    def heal(self) -> None:
        self.net.heal()

    def crash(self, name: str, how: int) -> None:
        machine = self.net[name]
        if machine.up:
            machine.crash(disk_lost=how == 2 and name == "s")

    def start(self, name: str) -> None:
        if not self.net[name].up:
            self.net[name].start()

    def check(self) -> None:
        assert [] == self.net.wrong

    def rest(self) -> None:
        self.net.heal()
        self.net.delay_ns = 2 * MILLISECOND
        for name in self.names:
            self.start(name)
        assert self.net.run_until(self.net.is_settled, 60) is not None, self.net.unsettled()
        self.check()


class StoreStory(Bagged):
    """Three nodes of a store, by a broker or the mesh: equal in the end, and no acknowledged write unexplained (STO-012)."""

    names = ("a", "b", "c")

    def __init__(self, seed: int) -> None:
        link = ("mqtt", "mesh")[seed % 2]
        self.net = store.Net(self.names, seed=seed, link=link, delay=(0.001, 2.0), is_mixed=True)
        self.bag = Bag(
            self.net._heap,
            lambda entry: ALONE if type(entry[2]) is tuple else None,
            lambda entry: self.net._deliver(*entry[2]),
            lambda entry, after_ns: self.net._push(self.net.now + after_ns, entry[2]),
        )
        self.net.run(2)
        self.net.found("a")
        self.net.run(40)

    def advance(self, span_s: float) -> None:
        self.net.run(span_s)

    def write(self, name: str, number: int) -> None:
        node = self.net[name]
        if not node.is_up:
            return
        node.delete("pq"[number % 2]) if number > 7 else node.write(("p", "q", "p.x")[number % 3], number)

    def cut(self, name: str) -> None:
        self.net.cut({name})

    def heal(self) -> None:
        self.net.heal()

    def crash(self, name: str, how: int) -> None:
        if not how:
            self.net.kill(name)
        elif self.net[name].is_up:
            self.net.fail_at_next_write(name, ("before", "after")[how - 1])

    def start(self, name: str) -> None:
        if not self.net[name].is_up:
            self.net[name].fails = ""
            self.net.start(name)

    def check(self) -> None:
        """Nobody knows of a change that its node has not on disk."""
        for node in self.net.up():
            for name, top in node.store.replica.book.tops().items():
                disk = [record for record in self.net[name].disk if isinstance(record, StreamRecord)]
                assert top <= max((record.sequence for record in disk if record.origin == name), default=0), (
                    node.name,
                    name,
                )

    def rest(self) -> None:
        self.net.heal()
        for name in self.names:
            self.net[name].fails = ""
            self.start(name)
        self.net.settle(200.0)
        assert [] == self.net.unexplained()


def bag_of(net: catalog.Net) -> Bag:
    """Datagrams come in any order; a connection of which a message is dropped is reset."""

    def lose(entry: tuple[Any, ...]) -> None:
        if net.line_of(entry) != ALONE:
            net.break_off(entry[3][0])

    return Bag(
        net._heap,
        net.line_of,
        lambda entry: entry[2](*entry[3]),
        lambda entry, after_ns: net._push(after_ns, entry[2], *entry[3]),
        lose,
    )


class OfCatalogs(Bagged):
    """What brokers and services have in common."""

    net: catalog.Net

    def advance(self, span_s: float) -> None:
        self.net.run(span_s)

    def cut(self, name: str) -> None:
        self.net.cut(name)

    def heal(self) -> None:
        self.net.heal()


class CatalogStory(OfCatalogs):
    """A broker and two services: what was kept is back after a crash, no index comes twice, all are there in the end."""

    names = ("broker", "thermo", "door")

    def __init__(self, seed: int) -> None:
        self.net = catalog.Net(seed=seed, delay=(0.001, (0.5, 2.0)[seed % 2]))
        self.bag = bag_of(self.net)
        for name in self.names[1:]:
            self.net.add(name, interval_ms=1_000)
        self.before = 0
        """How many changes runs of the broker before this one have published."""
        self.net.run(5)

    def write(self, name: str, number: int) -> None:
        """A machine stands still for a while, or sleeps."""
        if self.net.machines[name].is_up:
            self.net.pause(name)
            self.net.run(number)
            self.net.resume(name)

    def crash(self, name: str, how: int) -> None:
        if name == "broker" and how:
            self.net.crash_after = self.net.effects_done + how  # in the midst of a turn
        elif self.net.machines[name].is_up:
            self.net.crash(name)

    def start(self, name: str) -> None:
        if not self.net.machines[name].is_up:
            if name == "broker":
                self.before = len(self.net.broker.ops)
            self.net.start(name)

    def check(self) -> None:
        """What a run of the broker has published stands on its disk, in this order."""
        broker = self.net.broker
        said = [op.index for op in broker.ops[self.before :]]
        disk = [record for record in broker.disk if isinstance(record, StreamRecord)]
        assert sorted(set(said)) == said
        assert {*said} <= {record.sequence for record in disk if record.era == broker.era}

    def rest(self) -> None:
        self.net.heal()
        self.net.delay, self.net.crash_after = (MILLISECOND, 3 * MILLISECOND), None
        for name in self.names:
            self.start(name)
        self.net.run(60)
        states = self.net.states()
        assert {"ACTIVE"} == {state for name, state in states.items() if state != "INACTIVE"}, states
        assert 2 == sum(state == "ACTIVE" for state in states.values()), states


class ServiceStory(OfCatalogs):
    """A service and the two brokers that it may call: it is with one of them, which has its record with every change (CAT-018)."""

    names = ("broker", "other", "thermo")

    def __init__(self, seed: int) -> None:
        self.net = catalog.Net(seed=seed, delay=(0.001, (0.5, 2.0)[seed % 2]))
        self.bag = bag_of(self.net)
        self.net.add_broker("other", "10.9.9.8")
        self.net.add("thermo", interval_ms=1_000, seeds=("10.9.9.9:5246", "10.9.9.8:5246"))
        self.ordered = 0
        self.net.run(5)

    def write(self, name: str, number: int) -> None:
        """The record changes."""
        host = self.net["thermo"]
        if host.is_up:
            self.ordered += 1
            host.core.command(Update(self.ordered, {"metadata": {"n": str(self.ordered)}}), host.now)
            self.net._end_turn(host)

    def crash(self, name: str, how: int) -> None:
        if self.net.machines[name].is_up:
            self.net.crash(name)

    def start(self, name: str) -> None:
        if not self.net.machines[name].is_up:
            self.net.start(name)

    def check(self) -> None:
        """No change is answered twice, and one socket at most is open."""
        host = self.net["thermo"]
        tickets = [ticket for ticket, _ in host.replies]
        assert sorted(set(tickets)) == sorted(tickets)
        assert len(self.net._open_lines) <= 1

    def rest(self) -> None:
        self.net.heal()
        self.net.delay = (MILLISECOND, 3 * MILLISECOND)
        for name in self.names:
            self.start(name)
        self.net.run(60)
        self.check()
        host = self.net["thermo"]
        broker = self.net._broker_at[host.line.endpoint] if host.line is not None else None
        assert "UP" == host.core.state.name
        assert isinstance(broker, catalog.Broker)
        kept = broker.catalog.book.get("thermo", "thermo")
        assert kept is not None
        assert ("ACTIVE", host.core.record.get("metadata")) == (kept.state.name, kept.record.get("metadata"))


class CloneStory(Bagged):
    """Three roots, each of which follows the one before: nothing that was never there, and equal in the end (CFG-064)."""

    names = ("first", "second", "third")

    def __init__(self, seed: int) -> None:
        self.net = clone.Net(seed, self.names, most_ns=(2, 300, 2_000)[seed % 3] * MILLISECOND)
        self.bag = Bag(
            self.net.heap,
            clone.line_of,
            lambda entry: entry[2](),
            lambda entry, after_ns: self.net.at(self.net.mono + after_ns, entry[2]),
        )
        self.number = 0

    def advance(self, span_s: float) -> None:
        self.net.run(span_s)

    def write(self, name: str, number: int) -> None:
        if self.net.nodes[name].core is not None:
            self.number += 1
            value = b"" if number > 7 else b"%d" % self.number
            self.net.nodes[name].write((Wanted(f"/{'ab'[number % 2]}", value),))

    def cut(self, name: str) -> None:
        self.net.cut = {name}

    def heal(self) -> None:
        self.net.cut = set()

    def crash(self, name: str, how: int) -> None:
        if self.net.nodes[name].core is not None:
            self.net.nodes[name].crash()

    def start(self, name: str) -> None:
        if self.net.nodes[name].core is None:
            self.net.nodes[name].start()

    def check(self) -> None:
        """What came from above once stood there."""
        for above, node in pairwise(self.net.nodes.values()):
            for key, value in node.below.items():
                assert value in above.been[key], (node.name, key)

    def rest(self) -> None:
        """A lost update shows at the next one, which each server therefore makes."""
        self.net.cut = set()
        for name in self.names:
            self.start(name)
        for _ in range(2):
            self.net.run(40)
            for name in self.names:
                self.write(name, 0)
        self.net.run(40)
        self.check()
        for above, node in pairwise(self.net.nodes.values()):
            assert above.pairs == node.below


class DocumentStory(Bagged):
    """Three machines of one session: one log, one document, and all that was answered is in it (DOC-012)."""

    names = ("m0", "m1", "m2")

    def __init__(self, seed: int) -> None:
        weather = document.Weather(most_ns=(5, 900)[seed % 2] * MILLISECOND, in_order=False)
        self.net = document.Net(seed, weather=weather)
        self.bag = Bag(
            self.net._queue,
            lambda entry: ALONE if isinstance(entry[2], document.Flight) else None,
            lambda entry: entry[2](),
            lambda entry, after_ns: self.net.fly(self.net.now_ns + after_ns, entry[2]),
            lambda entry: self.net.lose(entry[2]),
        )
        for name in self.names:
            self.net.machine(name, peers=list(self.net.machines))
        self.net.pass_time(5 * SECOND)
        self.number = 0

    def _machine(self, name: str) -> document.Machine:
        return self.net.machines[self.names.index(name)]

    def advance(self, span_s: float) -> None:
        self.net.pass_time(round(span_s * SECOND))

    def write(self, name: str, number: int) -> None:
        machine = self._machine(name)
        if machine.session is None:
            return
        self.number += 1
        jam = {"period": "1", "jam": str(1 + number % 3)}
        if number < 5:
            self.net.edit(machine, "add", jam, xml=f'<pass team="home" points="{self.number}"/>')
        elif number < 9:
            self.net.edit(machine, "set", jam, attributes={"duration": str(self.number)})
        else:
            self.net.edit(machine, "remove", jam)

    def cut(self, name: str) -> None:
        self.net.part([self._machine(name)], [self._machine(other) for other in self.names if other != name])

    def heal(self) -> None:
        self.net.heal()

    def crash(self, name: str, how: int) -> None:
        if self._machine(name).session is not None:
            self.net.crash(self._machine(name))

    def start(self, name: str) -> None:
        machine = self._machine(name)
        if machine.session is None:
            self.net.start(machine, [other for other in self.net.machines if other is not machine])

    def check(self) -> None:
        assert [] == self.net.faults

    def rest(self) -> None:
        self.net.heal()
        self.net.weather = document.CALM
        for name in self.names:
            self.start(name)
        self.net.until(lambda: self.net.is_mesh() and self.net.is_equal(), 180 * SECOND, SECOND)
        self.net.judge()
        for machine in self.net.machines:
            twin = self.net.restored(machine)
            twin.command(Begin(), self.net.at(machine))
            assert (machine.up.log.check, machine.up.engine.digest()) == (twin.log.check, twin.engine.digest())


class ChainsStory:
    """Clients of two nodes: what was accepted is delivered, ended for a reason, or under way; each send has one status (CHN-082)."""

    names = ("A", "B")

    def __init__(self, seed: int) -> None:
        self.world = chains.World()
        self.drawn = seed

    def _draw(self, most: int) -> int:
        self.drawn = (self.drawn * 1_103_515_245 + 12_345) % (1 << 31)
        return (self.drawn >> 8) % most

    def deliver(self, place: int, count: int) -> None:
        for _ in range(count % 4 + 1):
            self.drawn += place
            self.world.answer(self._draw)

    def drop(self, place: int) -> None:
        self.drawn += place
        self.world.unregister(self._draw)

    def double(self, place: int, to: int) -> None:
        self.drawn += place
        self.world.babble(self._draw)

    def advance(self, span_s: float) -> None:
        self.world.advance(round(span_s * 1_000))

    def write(self, name: str, number: int) -> None:
        self.drawn += number
        (self.world.register if number < 4 else self.world.give)(self._draw)

    def cut(self, name: str) -> None:
        """The tree of the rig has no links that break."""

    def heal(self) -> None:
        """As above."""

    def crash(self, name: str, how: int) -> None:
        self.drawn += how
        self.world.kill(self._draw)

    def start(self, name: str) -> None:
        """Clients come back by registering."""

    def check(self) -> None:
        self.world.check()

    def rest(self) -> None:
        chains.end(self.world)
        sent = [event[3] for event in self.world.events if event[0] == "status" and event[2] == "s"]
        assert sorted(chains.sender_tags(self.world)) == sorted(sent)


STORIES: dict[str, tuple[type[Any], int]] = {
    "carrier": (CarrierStory, 6),
    "catalog": (CatalogStory, 12),
    "chains": (ChainsStory, 20),
    "clone": (CloneStory, 15),
    "configuration": (ConfigurationStory, 10),
    "document": (DocumentStory, 12),
    "enrolment": (EnrolmentStory, 15),
    "service": (ServiceStory, 8),
    "store": (StoreStory, 15),
    "topology": (TopologyStory, 15),
}
"""By core: its story, and how many are told in every run."""
