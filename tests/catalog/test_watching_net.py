"""Watchers of a whole broker in virtual time: services die, come back and change, the broker crashes, events are lost (S9, P4)."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.catalog import net as nets
from tests.catalog.net import Net
from weft.base.chance import Chance
from weft.base.effects import Source
from weft.client.catalog.following import Ask, Follower, Reopen, Subscribe
from weft.cores.catalog import context
from weft.cores.service.messages import Update
from weft.wire.catalog.messages import REQUEST, Message, Publication, Subscription

FILTERS: list[dict[str, Any]] = [
    {},
    {"tags": ["lab"]},
    {"state": "active"},
    {"state": ["suspect", "inactive"], "name": "s*"},
    {"name": "s3"},
    {"metadata": {"room": "1"}},
]
QUIET_S = 45
"""Three ticks of a filter's topic, and a little: what was lost shows by then."""


class Eye:
    """A watcher on the net: a SUB that loses a share of what it hears, and questions that are answered at once."""

    def __init__(self, net: Net, given: dict[str, Any]) -> None:
        self.net, self.given = net, given
        self.follower = Follower(given)
        self.loss = 0.0
        self.chance = Chance(f"eye/{given}")
        self.topics: list[bytes] = []
        self.resyncs = 0
        self.follower.opened(net.now)
        self.act()

    def subscribe(self, topics: Sequence[bytes]) -> None:
        """Its socket tells the broker, if there is one."""
        for topic in topics:
            source = Source(context.EVENTS, b"")
            self.net._hear(self.net.broker, Subscription(is_on=True, topic=topic), source)

    def receive(self, frames: tuple[bytes, ...]) -> None:
        """Something was published."""
        if any(frames[0].startswith(topic) for topic in self.topics) and self.chance.random() >= self.loss:
            self.follower.heard(frames, self.net.now)

    def act(self) -> None:
        """Do what it wants, until it wants nothing."""
        while actions := self.follower.actions():
            for action in actions:
                if isinstance(action, Subscribe):
                    self.topics.append(action.topic)
                    self.subscribe([action.topic])
                elif isinstance(action, Ask):
                    self.ask(action)
                else:
                    assert isinstance(action, Reopen)
                    self.topics.clear()
                    self.follower.opened(self.net.now)
        self.resyncs += sum(change.op == "resync" for change in self.follower.changes())

    def ask(self, ask: Ask) -> None:
        """The answer comes at once, or not at all."""
        if not self.net.broker.is_up or self.chance.random() < self.loss / 2:
            self.follower.failed(ask.ticket, self.net.now)
            return
        [answer] = self.net.say("10.9.9.9", Message(REQUEST, b"\0\0\0\0", ask.frames))
        self.follower.answered(ask.ticket, msgspec.json.decode(answer.body[0]), self.net.now)

    def step(self) -> None:
        """Time has passed."""
        due = self.follower.deadline()
        if due is not None and due <= self.net.now:
            self.follower.wake(self.net.now)
        self.act()

    def agrees(self) -> None:
        """It holds what the broker answers."""
        assert self.follower.is_live, self.given
        asked = (b"dbp.query", msgspec.json.encode(self.given))
        [answer] = self.net.say("10.9.9.9", Message(REQUEST, b"\0\0\0\0", asked))
        records = msgspec.json.decode(answer.body[0])["records"]
        expected = {(told["name"], told["instance"]): told["record"] for told in records}
        entries = self.follower.entries.items()
        assert expected == {key: {**entry.record, "_dbp": entry.facts} for key, entry in entries}


class Watched:
    """A net, and who watches its broker."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, net: Net) -> None:
        self.net = net
        self.eyes: list[Eye] = []
        monkeypatch.setitem(nets.SAYERS, context.EVENTS, self._publish)
        self.eyes = [Eye(net, given) for given in FILTERS]

    def _publish(self, net: Net, machine: nets.Machine, peer: bytes, said: Publication) -> None:
        Net._publish(net, machine, peer, said)
        for eye in self.eyes:
            eye.receive((said.topic, *said.body))

    def run(self, span_s: float) -> None:
        """Let time pass."""
        for _ in range(round(4 * span_s)):
            self.net.run(0.25)
            for eye in self.eyes:
                eye.step()

    def restart(self, disk: str, away_s: float) -> None:
        """The broker crashes and comes back; sockets connect again by themselves."""
        self.net.crash("broker", disk=disk)
        self.run(away_s)
        self.net.start("broker")
        for eye in self.eyes:
            eye.subscribe(sorted(eye.topics))
            eye.act()

    def lose(self, share: float) -> None:
        """From now on."""
        for eye in self.eyes:
            eye.loss = share

    def agree(self) -> None:
        """After a while without losses all hold what the broker has."""
        self.lose(0.0)
        self.run(QUIET_S)
        for eye in self.eyes:
            eye.agrees()


def services(net: Net) -> None:
    """Some of each kind."""
    for number in range(8):
        place = {"ip": f"10.0.0.{number + 1}", "port": 20_000}
        record = {**place, "tags": ["lab"] if number % 2 else [], "metadata": {"room": str(number % 3)}}
        net.add(f"s{number}", str(place["ip"]), record=record)


def order(net: Net, name: str, what: Any) -> None:
    """Tell a service to do something."""
    net[name].core.command(what, net[name].now)
    net._end_turn(net[name])


@pytest.mark.proves("CAT-017", "CAT-043")
@pytest.mark.parametrize("loss", [0.0, 0.3, 0.9])
def test_watchers_that_lose_events_hold_in_the_end_what_the_broker_has(
    monkeypatch: pytest.MonkeyPatch, loss: float
) -> None:
    net = Net(seed=3, loss=0.05)
    watched = Watched(monkeypatch, net)
    watched.lose(loss)
    services(net)
    watched.run(5)
    net.crash("s1")
    net.cut("s2", "s3")
    watched.run(6)
    net.heal()
    order(net, "s5", Update(1, {"tags": ["lab", "new"], "metadata": None}))
    net.start("s1")
    watched.run(6)
    watched.agree()
    assert {"register", "suspect", "inactive", "active", "update"} == {op for op, _ in net.ops()}
    assert 8 == len(watched.eyes[0].follower.entries)
    assert loss or 0 == sum(eye.resyncs for eye in watched.eyes)


@pytest.mark.proves("CAT-043", "CAT-051")
@pytest.mark.parametrize(("disk", "away_s"), [("kept", 1), ("lost", 1), ("kept", 12)])
def test_watchers_outlive_their_broker_with_its_disk_and_without(
    monkeypatch: pytest.MonkeyPatch, disk: str, away_s: float
) -> None:
    net = Net(seed=4)
    watched = Watched(monkeypatch, net)
    services(net)
    watched.run(4)
    watched.lose(0.3)
    net.crash("s1")
    watched.restart(disk, away_s)
    watched.run(3)
    net.crash("s6")
    watched.run(5)
    watched.agree()
    assert all(eye.resyncs for eye in watched.eyes)
