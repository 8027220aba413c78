"""A segment is damaged in the middle: each core asks for what is in doubt before it serves it (JRN-023)."""

from pathlib import Path

import pytest

from tests.catalog.rig import Broker
from tests.configuration.rig import World as Configured
from tests.document.logs import Desk, body
from tests.document.rig import B, C
from tests.shell.world import World, lost_in, samples_in
from tests.topology.net import Machine, Net
from weft.base.chance import Chance
from weft.base.effects import Persist
from weft.base.now import SECOND, Now
from weft.base.records import CoreRecord, DamageRecord, Entry, LostRecord
from weft.base.spool import Span
from weft.cores.carrier.core import Carrier
from weft.cores.carrier.memory import Safe
from weft.cores.carrier.memory import to_record as carrier_record
from weft.cores.carrier.messages import AnnounceDamage, CarrierSettings
from weft.cores.topology.core import Topology
from weft.cores.topology.memory import Promised, Root, to_record
from weft.cores.topology.messages import AcceptLoss, TopologySettings
from weft.cores.topology.states import Role
from weft.node.events import JournalDamaged

ROOT = "10.0.0.1:27500"
COLLECTOR = "10.0.1.1:27500"
GAP = DamageRecord(2, 3, "0000000000000001.seg", "checksum")
ME, OTHER = b"me".ljust(16, b"."), b"other".ljust(16, b".")


def voter(*records: CoreRecord | DamageRecord) -> Topology:
    core = Topology(TopologySettings(fleet="lab", name="c1", level="auto", base_port=27_500), ME, 1, Chance("voter"))
    core.restore(list(enumerate(records, 1)), Now(0, 0))
    return core


@pytest.mark.proves("JRN-023")
def test_a_voter_promises_nothing_for_two_epochs() -> None:
    core = voter(to_record(Root(4, OTHER)), to_record(Promised(5, OTHER)), GAP)
    assert core.context.promised == Promised(7, b"")
    again = voter(*core.condense())
    assert again.context.promised == Promised(7, b"")
    behind = voter(to_record(Promised(5, OTHER)), GAP, to_record(Promised(6, OTHER)))
    assert behind.context.promised == Promised(6, OTHER)  # promises only rise: the lost ones were lower


def fleet(name: str, collectors: int = 1) -> Net:
    net = Net(name)
    net.has_digests = True
    endpoints = [COLLECTOR, "10.0.1.2:27500"][:collectors]
    net.configure(site={"members": ["10.0.0.0/16"], "collectors": endpoints})
    net.add("root", ROOT, level="root", join=(COLLECTOR,))
    for number, endpoint in enumerate(endpoints, 1):
        net.add(f"c{number}", endpoint, join=(ROOT,))
    for machine in net.machines.values():
        machine.start()
    assert net.run_until(net.is_settled, 20) is not None
    net.run(3)
    return net


def damage(machine: Machine) -> None:
    """It restarts with a journal that lacks something, and a configuration that lacks a pair of it."""
    machine.crash()
    machine.disk.append((len(machine.disk) + 1, GAP))
    lost = next(key for key in sorted(machine.kept) if key.startswith("/CONFIG/site/"))
    del machine.kept[lost]
    machine.start()


@pytest.mark.proves("JRN-023")
def test_a_root_leads_only_after_it_has_compared_and_then_it_has_what_it_had() -> None:
    net = fleet("compared")
    before = {key: value for key, value in net["root"].pairs.items() if key.startswith("/CONFIG/")}
    damage(net["root"])
    assert net.run_until(lambda: net["root"].core.role is Role.ROOT, 30) is not None
    net.run(1)
    after = {key: value for key, value in net["root"].pairs.items() if key.startswith("/CONFIG/")}
    assert before == after
    assert net["root"].epoch == 3  # nothing is written under a number that may have been used


@pytest.mark.proves("JRN-023")
def test_a_root_whose_collectors_are_away_waits_for_them_or_for_a_person() -> None:
    for is_back in (True, False):
        net = fleet(f"away/{is_back}")
        net["c1"].crash()
        damage(net["root"])
        net.run(60)
        assert net["root"].core.role is Role.STARTING
        if is_back:
            net["c1"].start()
        else:
            net["root"].order(AcceptLoss())
        net.run(30 if is_back else 1)
        assert net["root"].core.role is Role.ROOT


@pytest.mark.proves("JRN-023")
@pytest.mark.proves("MEA-028", part="a damaged middle is announced as lost, once")
def test_the_carrier_announces_the_numbers_that_are_lost_once_and_no_mail() -> None:
    def carrier(*entries: Entry) -> Carrier:
        core = Carrier(CarrierSettings(name="s", level="sensor"), ME, 2, Chance("carrier"))
        core.restore(entries, Now(0, 0))
        core.effects()
        return core

    def announced(core: Carrier) -> list[object]:
        spans = (Span(1, ME, 1, 4, 9), Span(17, ME, 1, 1, 1))
        core.command(AnnounceDamage(2, 8, spans), Now(SECOND, SECOND))
        made = [one for effect in core.effects() if isinstance(effect, Persist) for one in effect.records]
        return [one for one in made if isinstance(one, LostRecord)]

    lost = LostRecord(1, ME, 1, 4, 9, "damage")
    first = carrier()
    assert [lost] == announced(first)
    assert [] == announced(first)
    assert [] == announced(carrier((9, lost)))
    assert [lost] == announced(carrier((9, carrier_record(Safe(6, 0, 0)))))
    assert [] == announced(carrier((9, carrier_record(Safe(7, 0, 0))))), "all of it has arrived"


def registered(broker: Broker, name: str) -> None:
    record = {"name": name, "ip": "1.2.3.4", "port": 9, "heartbeat": 2000}
    assert [b"OwO"] == broker.req().commands(b"UwU", record)


@pytest.mark.proves("JRN-023")
def test_a_broker_shows_nobody_whose_change_may_be_lost_until_it_registers_again() -> None:
    broker = Broker()
    for name in ("before", "behind"):
        registered(broker, name)
    kept = list(broker.journal)
    place = next(place for place, record in enumerate(kept) if getattr(record, "key", "") == "behind")
    again = Broker(journal=[*kept[:place], GAP, *kept[place:]], era=2)
    assert ["behind"] == [each.name for each in again.core.registry.book.all()]
    registered(again, "before")
    assert {"before", "behind"} == {each.name for each in again.core.registry.book.all()}


@pytest.mark.proves("JRN-023")
def test_a_document_shows_no_operation_behind_a_lost_one_until_a_peer_has_said_it_again() -> None:
    desk = Desk()
    said = [body(B, number, "x") for number in (1, 2, 3)]
    desk.take(C, *said)
    records = desk.records()
    rows = [record for record in records if getattr(record, "stream", 0) == 8]
    again = desk.again([record for record in records if record is not rows[1]])
    assert (1, 3) == (again.log.latest(B), again.log.highest(B))
    assert 2 == again.log.latest(B) + 1  # what gossip asks for
    again.take(C, said[1])
    assert 3 == again.log.latest(B)


@pytest.mark.proves("JRN-023")
def test_a_replica_takes_all_anew_and_a_history_begins_behind_the_loss() -> None:
    world = Configured()
    root, sensor = world.root(), world.sensor("s")
    world.settle()
    for value in "1234":
        world.write(("/CONFIG/web/a", value))
    world.write(("/CONFIG/web/b", "1"))
    world.settle()
    for machine in (root, sensor):
        machine.crash()
        place = len(machine.disk) - 3
        machine.disk[place] = (machine.disk[place][0], GAP)
    root.start()
    history = root.core.root.history
    assert [write[0] for write in history.writes] == [5]
    assert history.reaches == 4
    sensor.start()
    world.settle()
    assert root.pairs == sensor.pairs


@pytest.mark.proves("JRN-023", part="no rollback to a number behind which writes are lost")
def test_a_history_that_damage_has_cut_begins_with_the_next_write_after_a_snapshot_too() -> None:
    world = Configured()
    root = world.root()
    world.settle()
    for value in "1234":
        world.write(("/CONFIG/web/a", value))
    root.crash()
    *kept, (last, _) = root.disk
    root.disk = [*kept[:-1], (kept[-1][0], GAP)]
    root.start()
    root.disk = [(last, record) for record in root.core.condense()]
    root.core.root.history.add((9, "", 0, "/CONFIG/web/a", b"4", b"5"))
    assert 8 == root.core.root.history.reaches
    root.crash()
    root.start()
    root.core.root.history.add((9, "", 0, "/CONFIG/web/a", b"4", b"5"))
    assert 8 == root.core.root.history.reaches


@pytest.mark.proves("JRN-023", "JRN-022", "MEA-028")
@pytest.mark.parametrize("victim", ["sensor", "root"])
def test_a_segment_is_damaged_in_the_middle_and_all_is_there_again_or_named(victim: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    root, sensor = world.host("root", "root"), world.host("sensor", "sensor", "root")
    hurt = world.hosts[victim]

    async def play() -> None:
        for host in (root, sensor):
            host.start()
        await world.pass_time(3)
        if victim == "sensor":
            world.cut.add("sensor")
        else:
            root.lake.fails = "away"
        for _ in range(20):
            sensor.take(10)
            await world.pass_time(0.5)
        hurt.kill()
        path, content = max(
            (each for each in hurt.memory.content().items() if each[0].suffix == ".seg"), key=lambda each: len(each[1])
        )
        hurt.memory.flip(path, len(content) // 2 * 8)
        root.lake.fails = ""
        hurt.start()
        world.cut.clear()
        assert [event.why for event in hurt.told if isinstance(event, JournalDamaged)] == ["checksum"]

        def missing() -> dict[object, object]:
            return dict(world.made() - samples_in(root.lake) - lost_in(root.lake))

        await world.until(lambda: not missing(), within_s=60)
        lost = sum(ranges.count for _, ranges in world.made() - samples_in(root.lake))
        assert 10 <= lost <= 40
        assert 0 == root.lake.doubled

    world.run(play())
