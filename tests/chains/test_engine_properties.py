"""What holds whatever clients do, and in whatever order."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chains.rig import ERA, Recorder, Rig, Site
from weft.base.effects import Persist
from weft.base.mail import INBOX, Mail, to_record
from weft.base.now import SECOND
from weft.base.records import Record
from weft.cores.chains import limits
from weft.cores.chains.clientlink import HolderLink
from weft.cores.chains.parcel import Parcel
from weft.cores.chains.states import LinkState
from weft.cores.kit import limits as kit
from weft.wire import clients

CLIENTS: Final = ("a", "b", "c")
TIMEOUT_MS: Final = 100
ROUNDS_MAX: Final = 20  # in which everything that is offered is confirmed


class Watched(Recorder):
    """Says on the spot when it is offered what it must not be."""

    def __init__(self, rig: Rig, node: str, name: str) -> None:
        super().__init__(rig, node, name)
        self.had: set[tuple[int, int]] = set()

    def offer(self, reg: int, parcel: Parcel, *, re: bool = False) -> None:
        link = self.links[reg]
        assert re or (link.key[-1], parcel.id) not in self.had, "offered twice, and not marked"
        self.had.add((int(link.key[-1]), parcel.id))
        self._visit(reg, parcel, re=re)
        super().offer(reg, parcel, re=re)

    def copy(self, reg: int, parcel: Parcel) -> None:
        self._visit(reg, parcel, re=parcel.is_again)
        super().copy(reg, parcel)

    def _visit(self, reg: int, parcel: Parcel, *, re: bool) -> None:
        """A message comes to links of ever greater keys; only what is marked may come again."""
        at = self.rig.places  # type: ignore[attr-defined]  # of a World
        key = self.links[reg].key
        assert re or key > at.get((self.node, parcel.id), (-1,)), "a message went back"
        at[self.node, parcel.id] = key


class World(Rig):
    """Two nodes, clients that come and go, and what must hold after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[tuple[str, int], Any] = {}
        self.tree({"A": "B", "B": None})
        self.tag = 0
        self.checks = [self.check]

    def session(self, node: str, name: str) -> Recorder:
        sessions = self.sites[node].sessions
        if name not in sessions:
            sessions[name] = Watched(self, node, name)
        return sessions[name]

    def holders(self, site: Site) -> list[HolderLink]:
        return list(site.core.engine._holders)

    def check(self) -> None:
        for site in self.sites.values():
            for link in self.holders(site):
                self.check_link(link)
            self.check_flow(site)
        tags = Counter((event[1], event[2], event[3]) for event in self.events if event[0] == "status")
        assert not tags or max(tags.values()) == 1, "two final statuses"

    def check_link(self, link: HolderLink) -> None:
        assert len(link.pending) <= link.window
        assert not link.backlog or link.state is LinkState.FULL
        assert link.state is not LinkState.FULL or not link.has_room or link.backlog
        assert link.state is not LinkState.OPEN or link.has_room

    def check_flow(self, site: Site) -> None:
        """Accepted = delivered + reasons + in flight, where what is in flight is counted by looking for it (CHN-082)."""
        held = [held for link in self.holders(site) for held in (*link.pending.values(), *link.backlog.values())]
        held += [waiter.held for room in site.core.waiting._rooms.values() for waiter in room.values()]
        walking = [one for one in held if not one.is_copy]
        chains = [*(chain.flow for chain in site.core.roster), *site.core.roster.others.values()]
        assert len(walking) == sum([flow.in_flight for flow in chains])
        assert len({(one.parcel.direction, one.parcel.id) for one in walking}) == len(walking), "held twice"
        unconfirmed = Counter(one.parcel.id for one in held if one.is_copy)
        assert all(one.parcel.unconfirmed == unconfirmed[one.parcel.id] for one in held)

    # Steps

    def register(self, draw: Callable[[int], int]) -> None:
        node, name, reg = "AB"[draw(2)], CLIENTS[draw(3)], draw(3)
        kind = ("ro", "rw", "rw", "confirm")[draw(4)]
        said: dict[str, Any] = {
            "dir": "in" if kind == "confirm" else ("in", "out")[draw(2)],
            "type": ("t", "t", "*")[draw(3)],
            "at": ("before-all", "after-all", 5, 7)[draw(4)],
            "access": "rw" if kind == "rw" else "ro",
            "confirm": kind == "confirm",
            "fail": (None, "open", "closed", "drop", "wait")[draw(5)],
            "window": 1 + draw(2),
            "timeout": TIMEOUT_MS,
            "ordered": bool(draw(2)),
            "noself": draw(4) == 0,
        }
        self.session(node, name)
        self.reg(node, name, reg, said)

    def unregister(self, draw: Callable[[int], int]) -> None:
        node, name = "AB"[draw(2)], CLIENTS[draw(3)]
        self.session(node, name)
        self.unreg(node, name, draw(3))

    def kill(self, draw: Callable[[int], int]) -> None:
        node = "AB"[draw(2)]
        names = [name for name in self.sites[node].sessions if name != "s"]
        if names:
            self.die(node, names[draw(len(names))])

    def give(self, draw: Callable[[int], int]) -> None:
        self.tag += 1
        name = ("s", *CLIENTS)[draw(4)]
        to = (["PARENTSOF"], ["DIRECT"], ["CHILDRENOF"])[draw(3)]
        node = "AB"[draw(2)]
        self.session(node, name)
        self.send(node, name, self.tag, f"m{self.tag}", to, keep=("disk", "memory")[draw(2)])

    def answer(self, draw: Callable[[int], int]) -> None:
        links = [link for site in self.sites.values() for link in self.holders(site) if link.pending]
        if not links:
            return
        link = links[draw(len(links))]
        node = "A" if link in self.holders(self.sites["A"]) else "B"
        number = list(link.pending)[draw(len(link.pending))]
        how = ("next", "next", "drop", "fail", "conf")[draw(5)]
        getattr(self, how)(node, link.name, link.reg, number)

    def babble(self, draw: Callable[[int], int]) -> None:
        """An answer about anything; nothing may come of it but an error."""
        node, name = "AB"[draw(2)], CLIENTS[draw(3)]
        session = self.session(node, name)
        reg, number = draw(3), draw(12)
        link = session.links.get(reg)
        if isinstance(link, HolderLink) and number in link.pending:
            return
        before = len(self.events)
        self.next(node, name, reg, number, "babble")
        assert ["error"] == [event[0] for event in self.events[before:]]

    def wait(self, draw: Callable[[int], int]) -> None:
        self.advance((1, 50, 99, 100, 101, 30_000, 60_000)[draw(7)])


STEPS: Final = (
    World.register, World.register, World.give, World.give, World.give, World.answer, World.answer, World.answer,
    World.unregister, World.kill, World.babble, World.wait,
)  # fmt: skip


def run(world: World, numbers: list[int]) -> None:
    """Play what these numbers say."""
    left = iter(numbers)

    def draw(most: int) -> int:
        return next(left, 0) % most

    for number in left:
        STEPS[number % len(STEPS)](world, draw)


def end(world: World) -> None:
    """Everybody leaves; whoever was to confirm comes back and does; then nothing is left anywhere."""
    for name, site in world.sites.items():
        for client in [client for client in site.sessions if client != "s"]:
            world.die(name, client)
        assert [] == world.holders(site)
    world.advance(60_000)
    for name, site in world.sites.items():
        for client in CLIENTS:
            world.session(name, client)
            world.reg(name, client, 1, {"confirm": True, "type": "*", "window": 1_000, "at": "before-all"})
        for _ in range(ROUNDS_MAX):
            for client, number in [(link.name, number) for link in world.holders(site) for number in link.pending]:
                world.conf(name, client, 1, number)
        assert (0, 0, 0) == (len(site.core.waiting), site.core.engine.parked, len(site.core.inbox)), name
        assert 0 == sum([chain.flow.in_flight for chain in site.core.roster])


@pytest.mark.proves("CHN-012", "CHN-016", "CHN-017", "CHN-019", "CHN-030", "CHN-082")
@settings(deadline=None)
@given(st.integers(0, 1 << 32).map(lambda seed: random.Random(seed).choices(range(10_001), k=600)))
def test_whatever_clients_do_messages_are_conserved_and_nothing_is_left_behind(numbers: list[int]) -> None:
    world = World()
    run(world, numbers)
    end(world)
    sent = [event for event in world.events if event[0] == "status" and event[2] == "s"]
    assert len({event[3] for event in sent}) == len(sent)
    assert Counter(sender_tags(world)) == Counter([event[3] for event in sent]), "every send has its one status"


def sender_tags(world: World) -> list[int]:
    """The tags of the client that never leaves."""
    return [tag for site in world.sites.values() for tag in site.core.tags._known.get(site.session("s").id, ())]


@pytest.mark.proves("CHN-010", "CHN-011")
@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["before-all", "after-all", 1, 2, 3]), st.booleans()), max_size=25))
def test_any_sequence_of_registering_and_leaving_gives_the_order_of_the_bands(steps: list[tuple[Any, bool]]) -> None:
    rig = Rig({"A": None})
    model: list[tuple[Any, str]] = []
    for number, (at, is_left) in enumerate(steps):
        if is_left and model:
            _, name = model.pop(number % len(model))
            rig.unreg("A", name, 1)
            continue
        rig.reg("A", f"c{number}", 1, {"at": at})
        model.insert(place(model, at), (at, f"c{number}"))
    rig.send("A", "s", 1, "m", ["DIRECT"])
    assert [name for _, name in model] == [event[2] for event in rig.events if event[0] == "rec"]


def place(model: list[tuple[Any, str]], at: Any) -> int:
    """Where a newcomer stands, by the words of the requirement: in front, behind all, or behind the equal and smaller."""
    if at == "before-all":
        return 0
    if at == "after-all":
        return len(model)
    return sum([1 for other, _ in model if other == "before-all" or (isinstance(other, int) and other <= at)])


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 10_000), max_size=400), st.integers(1, 3))
def test_the_same_holds_where_there_is_hardly_any_room(numbers: list[int], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "BACKLOG_MAX", most)
        patch.setattr(limits, "WAITING_MAX", most)
        patch.setattr(limits, "RESOLVED_MAX", most)
        patch.setattr(kit, "QUIET_MAX", 1)
        world = World()
        run(world, numbers)
        end(world)


class Mill:
    """One node that ends again and again, with a rewriter and a confirming client that come and go, and its journal."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.durable: list[Record] = []
        """What the journal has; `soon`: what it may not have yet."""
        self.soon: list[Record] = []
        self.offered: set[int] = set()
        """What the confirming client has been handed, at any time."""
        self.confirmed: set[int] = set()
        self.arrived = 0
        self.start(ERA)

    def start(self, era: int) -> None:
        self.era = era
        self.rig = Rig()
        self.rig.parents = {"B": None}
        self.site = self.rig.sites["B"] = Site(self.rig, "B", era)
        self.sequences: dict[int, int] = {}
        self.site.core.restore(list(enumerate(self.durable, 1)), self.rig.now)

    def follow(self) -> None:
        for effect in self.site.core.effects():
            if isinstance(effect, Persist) and effect.within_ns:
                self.soon += effect.records
            elif isinstance(effect, Persist):
                self.durable += [*self.soon, *effect.records]
                self.soon = []

    def crash(self) -> None:
        """What was to be written soon is lost, or the first part of it is not."""
        self.durable += self.soon[: self.random.randint(0, len(self.soon))]
        self.soon = []
        self.start(self.era + 1)

    def stand(self, name: str, **said: Any) -> None:
        session = self.site.session(name)
        if 1 not in session.links:
            copy_id = session.offer

            def offer(reg: int, parcel: Parcel, *, re: bool = False) -> None:
                self.sequences[parcel.id] = parcel.sequence
                self.offered |= {parcel.sequence} if name == "c" else set()
                copy_id(reg, parcel, re=re)

            session.offer = offer  # type: ignore[method-assign]  # to learn which message a number is
            self.site.core.engine.stand(session, clients.Reg(reg=1, dir="in", type="t", **said), self.rig.now)

    def answer(self, name: str) -> None:
        session = self.site.session(name)
        link = session.links.get(1)
        if not isinstance(link, HolderLink) or not link.pending:
            return
        number = self.random.choice(list(link.pending))
        if link.confirms:
            self.site.core.engine.confirm(session, 1, number, self.rig.now)
            self.confirmed.add(self.sequences[number])
        else:
            self.site.core.engine.hand_back(session, 1, clients.NextItem(id=number), (), self.rig.now)

    def arrive(self) -> None:
        self.arrived += 1
        mail = Mail(origin=b"A" * 16, era=1, sequence=self.arrived, type="t", frames=(b"x",), to=("PARENTSOF",))
        kept = self.site.core.screen(to_record(mail, INBOX, 1), self.rig.now)
        self.durable += kept

    def step(self) -> None:
        match self.random.choice(
            ["arrive", "arrive", "conf", "conf", "rw", "rw", "crash", "die", "wait", "stand", "stand"]
        ):
            case "arrive":
                self.stand("c", confirm=True, window=2)
                self.arrive()
            case "conf":
                self.answer("c")
            case "rw":
                self.answer("h")
            case "crash":
                self.crash()
            case "die":
                name = self.random.choice("ch")
                if name in self.site.sessions:
                    self.site.sessions[name].is_gone = True
                    self.site.core.engine.lose(self.site.sessions.pop(name), self.rig.now)
            case "wait":
                self.rig.mono += self.random.choice((1, 6)) * SECOND
                self.site.core.wake(self.rig.now)
            case "stand":
                self.stand("h", access="rw", at=1, window=2)
                self.stand("c", confirm=True, window=2)
        self.follow()

    def settle(self) -> None:
        """Everybody is there, and answers."""
        self.site.core.wake(self.rig.now)
        self.stand("h", access="rw", at=1)
        self.stand("c", confirm=True)
        for _ in range(4 * self.arrived):
            self.answer("h")
            self.answer("c")
            self.follow()


@pytest.mark.proves("CHN-019", "CHN-033", "CHN-034")
@settings(deadline=None)
@given(st.integers(0, 1 << 32))
def test_a_confirming_client_confirms_whatever_it_has_been_handed_whoever_crashes(seed: int) -> None:
    mill = Mill(seed)
    for _ in range(120):
        mill.step()
    mill.settle()
    assert (mill.offered, 0) == (mill.confirmed, len(mill.site.core.inbox))
