"""Random dialogues of four machines: frames lost, doubled, in any order; machines that die; disks that condense.

Whatever happens, once all is healed every identity has reached the root's journal exactly once, in the order of its
origin; nothing was counted twice or not at all; and at every step a restart would find what is there. Mail that is
forwarded at every level has been before the screen of every node on its way exactly once.
"""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.carrier.rig import Machine, World, joined, spans
from weft.base.chance import Chance
from weft.base.effects import Persist
from weft.base.identity import Origin
from weft.base.mail import INBOX, OUTBOX, of_record
from weft.base.records import Carried, Entry, Record, StreamRecord
from weft.base.vectors import VersionVector
from weft.cores.carrier.core import Carrier
from weft.cores.carrier.messages import AssignParent, HoldBack, MailFailed, MailReached

NAMES = ("root", "c", "a", "b")
step = st.one_of(
    st.tuples(st.just("make"), st.sampled_from("abc"), st.integers(1, 3)),
    st.tuples(st.just("post"), st.sampled_from("abc"), st.integers(1, 3)),
    st.tuples(st.just("send"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("deliver"), st.integers(0, 30), st.integers(1, 12)),
    st.tuples(st.just("lose"), st.integers(0, 30), st.integers(1, 3)),
    st.tuples(st.just("double"), st.integers(0, 30), st.integers(0, 30)),
    st.tuples(st.just("crash"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("start"), st.sampled_from(NAMES), st.just(0)),
    st.tuples(st.just("full"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("cut"), st.sampled_from("abc"), st.just(0)),
    st.tuples(st.just("heal"), st.sampled_from("abc"), st.just(0)),
    st.tuples(st.just("condense"), st.sampled_from(NAMES), st.just(0)),
    st.tuples(st.just("advance"), st.sampled_from([0.01, 0.5, 2, 7, 70]), st.just(0)),
)
move = st.tuples(st.just("move"), st.just("a"), st.sampled_from(["c", "root"]))
scripts = st.lists(step | move, max_size=40)
few = st.lists(step | move, max_size=12)
replacing = st.tuples(few, st.sampled_from([0.5, 2]), few, st.sampled_from(["c", "root"]), few)
dropping = st.lists(step | st.tuples(st.just("drop"), st.sampled_from("abc"), st.integers(1, 4)), max_size=40)


Identity = tuple[bytes, int, int]


def keep_and_forward(record: StreamRecord) -> tuple[Record, ...]:
    """Mail that was kept for ever stays in the inbox, as a sign that it was here; and goes on."""
    if record.stream != INBOX or "mem" in record.attributes:
        return (record,)
    deeper = record.attributes | {"depth": record.attributes.get("depth", 0) + 1}
    return (record, msgspec.structs.replace(record, stream=OUTBOX, attributes=deeper))


class Play:
    """The tree a, b under c under root (b directly under root), and what was taken of whom."""

    def __init__(self) -> None:
        self.world = World()
        self.world.root()
        self.world.collector("c", memory_bytes=2_000)
        self.world.sensor("a", "c", memory_bytes=1_000)
        self.world.sensor("b", "root")
        self.world.machines["c"].judge = keep_and_forward
        self.posted: list[Identity] = []
        """Mail whose sender has it on disk."""
        self.replaced = 0
        self.starts: dict[str, int] = {}
        """The last ticket of each node before its present start."""
        self.taken: dict[tuple[bytes, int], int] = {}
        self.images: dict[str, tuple[list[Entry], int]] = {}

    @property
    def machines(self) -> list[Machine]:
        return list(self.world.machines.values())

    def do(self, action: tuple[str, Any, Any]) -> None:
        getattr(self, action[0])(*action[1:])

    def make(self, name: str, rows: int) -> None:
        machine = self.world.machines[name]
        if machine.is_up:
            machine.make(rows)
            self.taken[machine.node, machine.era] = machine.sequence

    def post(self, name: str, count: int) -> None:
        machine = self.world.machines[name]
        for _ in range(count):
            lsn = machine.next_lsn
            if machine.is_up:
                mail = machine.post()
                self.posted += [mail.mid] if machine.next_lsn > lsn else []

    def send(self, name: str, is_down: bool) -> None:
        machine = self.world.machines[name]
        if machine.is_up:
            links = machine.core.parent.links
            machine.send(*([link.node for link in links] if is_down else ()))

    def deliver(self, index: int, count: int) -> None:
        for _ in range(count):
            if self.world.wire:
                self.world.deliver(index % len(self.world.wire))

    def lose(self, index: int, count: int) -> None:
        for _ in range(count):
            if self.world.wire:
                self.world.lose(index % len(self.world.wire))

    def double(self, index: int, to: int) -> None:
        wire = self.world.wire
        if wire:
            wire.insert(to % (len(wire) + 1), wire[index % len(wire)])

    def crash(self, name: str, at_wall: bool) -> None:
        machine = self.world.machines[name]
        if machine.is_up and at_wall:
            machine.dies_before = lambda effect: isinstance(effect, Persist)
        elif machine.is_up:
            machine.crash()

    def start(self, name: str, _: int) -> None:
        machine = self.world.machines[name]
        if not machine.is_up:
            machine.dies_before = lambda effect: False
            self.starts[name] = machine.tickets
            machine.start()

    def replace(self, name: str, _: int) -> None:
        """Another machine of that name, with an empty disk; it starts when it is told so."""
        machine = self.world.machines[name]
        machine.crash()
        self.replaced += 1
        machine.disk, machine.next_lsn, machine.node = [], 1, f"{name} {self.replaced}".encode().ljust(16)

    def move(self, name: str, parent: str) -> None:
        machine = self.world.machines[name]
        machine.parent = parent
        if machine.is_up:
            machine.order(AssignParent(parent, parent))

    def full(self, name: str, is_full: bool) -> None:
        machine = self.world.machines[name]
        if machine.is_up:
            machine.order(HoldBack(is_full=is_full))

    def drop(self, name: str, share: int) -> None:
        machine = self.world.machines[name]
        if machine.is_up and any(isinstance(record, Carried) for record in machine.archive()):
            machine.drop_oldest(share)

    def cut(self, name: str, _: int) -> None:
        self.world.cut(name)

    def heal(self, name: str, _: int) -> None:
        self.world.heal(name)

    def condense(self, name: str, _: int) -> None:
        machine = self.world.machines[name]
        if machine.is_up:
            self.images[name] = ([(0, record) for record in machine.core.condense()], machine.next_lsn)
            machine.condense()

    def advance(self, seconds: float, _: int) -> None:
        self.world.advance(seconds)

    def come_to_rest(self) -> None:
        """Everything is healed, everybody is up, and there is time."""
        self.world.heal("a", "b", "c")
        for machine in self.machines:
            machine.dies_before = lambda effect: False
            self.start(machine.name, 0)
            self.full(machine.name, False)
        self.world.advance(120)


def taken_of(play: Play) -> dict[tuple[bytes, int], list[tuple[int, int]]]:
    """What is durable anywhere counts as taken; a batch whose machine died before it was durable never was."""
    return {origin: [(1, last)] for origin, last in play.taken.items() if last}


@pytest.mark.proves("CHN-032", "CHN-033", "CHN-035", "CHN-036", "MEA-024", "MEA-027")
@given(scripts)
def test_every_identity_reaches_the_root_exactly_once_and_in_order(script: list[tuple[str, Any, Any]]) -> None:
    exactly_once(script)


def play_out(script: list[tuple[str, Any, Any]]) -> Play:
    """Follow the script, and come to rest."""
    play = Play()
    for action in script:
        undo = dict(play.taken)
        play.do(action)
        if action[0] == "make" and not play.world.machines[action[1]].is_up:
            play.taken = undo  # it died before the batch was durable
    play.come_to_rest()
    return play


def identities(machine: Machine) -> list[Identity]:
    """The mail that its screen was asked about and that it has kept since, in order."""
    return [of_record(record).mid for record in machine.inbox()]


@pytest.mark.prove("many long lives")
@pytest.mark.proves("CHN-032", "CHN-033", "CHN-035", "CHN-036", "RTE-007")
@given(scripts)
def test_mail_and_records_mixed_reach_every_screen_on_their_way_exactly_once(
    script: list[tuple[str, Any, Any]],
) -> None:
    play = play_out(script)
    root, c, a, b = play.machines
    assert sorted(play.posted) == sorted(identities(root))
    assert len(set(identities(c))) == len(identities(c))
    assert {mid[0] for mid in identities(c)} <= {a.node}
    assert [] == a.inbox() + b.inbox()
    assert [0, 0, 0] == [machine.core.counters.spool_records for machine in (a, b, c)]
    if any(action[0] == "move" for action in script):
        return
    assert [mid for mid in play.posted if mid[0] == a.node] == identities(c)
    for origin in (a.node, b.node, c.node):
        assert [mid for mid in play.posted if mid[0] == origin] == [mid for mid in identities(root) if mid[0] == origin]


@pytest.mark.prove("many long lives")
@pytest.mark.proves("CHN-031", "RTE-007")
@given(replacing)
def test_mail_outlives_the_disk_of_every_node_on_its_way(drawn: tuple[Any, Any, Any, Any, Any]) -> None:
    """What c has taken and the root has not is lost with the disk of c; a goes to the root, or to the new c."""
    before, seconds, meanwhile, parent, after = drawn
    taking = [("start", "c", 0), ("heal", "a", 0), ("cut", "c", 0), ("post", "a", 1), ("advance", seconds, 0)]
    losing = [("replace", "c", 0), ("move", "a", parent)]
    play = play_out([*before, *taking, *meanwhile, *losing, *after])
    root, _, a, b = play.machines
    posted, arrived = [
        sorted(mid for mid in mids if mid[0] in (a.node, b.node)) for mids in (play.posted, identities(root))
    ]
    assert posted == arrived
    assert [0, 0] == [machine.core.counters.spool_records for machine in (a, b)]


@pytest.mark.prove("many long lives")
@pytest.mark.proves("CHN-030", "CHN-031", "CHN-032")
@given(scripts)
def test_mail_without_a_promise_comes_at_most_once_and_in_order_and_every_order_is_answered_once(
    script: list[tuple[str, Any, Any]],
) -> None:
    play = play_out(script)
    for machine in play.machines:
        answered = [event.ticket for event in machine.told if isinstance(event, MailReached | MailFailed)]
        assert len(set(answered)) == len(answered)
        assert set(range(play.starts.get(machine.name, 0) + 1, machine.tickets + 1)) <= set(answered)
        assert machine.core.intake.dispatch.deadline() is None
        arrived: dict[tuple[int, bytes, int | None], list[int]] = {}
        for era, record in zip(machine.screened_in, machine.screened, strict=True):
            if "mem" in record.attributes:
                arrived.setdefault((era, record.origin, record.era), []).append(record.sequence)
        assert all(sorted(set(numbers)) == numbers for numbers in arrived.values())


def exactly_once(script: list[tuple[str, Any, Any]]) -> None:
    play = play_out(script)
    root = play.world.machines["root"]
    actual = {origin: joined(pieces) for origin, pieces in spans(root.samples()).items()}
    assert taken_of(play) == actual
    for machine in play.machines[1:]:
        counters = machine.core.counters
        assert (counters.sent, 0) == (counters.safe, counters.spool_records), machine.name
        assert [] == machine.samples(), machine.name


@pytest.mark.prove("many long lives")
@pytest.mark.proves("CHN-039", "MEA-025")
@given(dropping)
def test_what_is_given_up_is_announced_and_the_rest_arrives_once(script: list[tuple[str, Any, Any]]) -> None:
    play = play_out(script)
    root = play.world.machines["root"]
    arrived, lost = VersionVector(), VersionVector()
    for record in root.samples():
        assert record.last - record.sequence + 1 == arrived.add(record.source, record.sequence, record.last)
    for note in root.lost():
        lost.add(note.source, note.first, note.last)
    taken = VersionVector((Origin(*origin), pieces) for origin, pieces in taken_of(play).items())
    assert taken == arrived | lost
    assert [0, 0, 0] == [machine.core.counters.spool_records for machine in play.machines[1:]]


@given(scripts)
def test_what_came_is_what_became_of_it_at_every_step(script: list[tuple[str, Any, Any]]) -> None:
    play = Play()
    for action in script:
        play.do(action)
        for machine in play.machines:
            if machine.is_up:
                c = machine.core.counters
                became = c.accepted + c.repeated + c.ahead + c.known + c.expired + c.turned_away + c.held_back
                assert c.received == became
                assert c.safe <= c.sent
                outbox = machine.core.outbox
                assert outbox.safe <= outbox.given
                assert outbox.held <= outbox.sent <= outbox.given


def restored(machine: Machine, entries: list[Entry]) -> Carrier:
    core = Carrier(machine.settings, machine.node, machine.era, Chance("x"))
    core.restore(entries, machine.world.now)
    return core


def durable(core: Carrier, frontier: int) -> Any:
    """All that has to come back. What is safe is passed on in bundles, so both are brought to the same point."""
    core.parent.progress.pass_on(frontier)
    return core.parent.progress.state(), core.parent.seen, core.intake.met.state()


@pytest.mark.proves("JRN-042", "CHN-032")
@given(scripts)
def test_at_every_step_a_restart_would_find_what_is_there(script: list[tuple[str, Any, Any]]) -> None:
    play = Play()
    for action in script:
        play.do(action)
        for machine in play.machines:
            if machine.is_up:
                check_memory(play, machine)


def check_memory(play: Play, machine: Machine) -> None:
    live = machine.core
    frontier = live.outbox.frontier() if machine.name != "root" else 0
    condensed = restored(machine, [(0, record) for record in live.condense()])
    replayed = restored(machine, machine.disk)
    again = [replayed, condensed]
    if machine.name in play.images:
        image, lsn = play.images[machine.name]
        again.append(restored(machine, image + [entry for entry in machine.disk if entry[0] >= lsn]))
    expected = durable(live, frontier)
    for core in again:
        assert expected == durable(core, frontier)
        assert live.outbox.seen_lsn == core.outbox.seen_lsn or core is not condensed
    if machine.name != "root":
        assert frontier == condensed.outbox.safe_lsn
        assert live._written_lsn <= replayed.outbox.safe_lsn <= frontier
        assert condensed.counters.spool_records == live.counters.spool_records
