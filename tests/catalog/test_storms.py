"""A thousand services, and a broker that is killed, stopped, cut off and lied to."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.catalog.net import TIME, Net, Op
from weft.base.now import seconds
from weft.base.records import Stream, StreamRecord
from weft.cores.catalog.messages import Paused
from weft.wire.catalog import messages as wire
from weft.wire.catalog.messages import Message

pytestmark = pytest.mark.prove("a thousand services")

MANY = 1_000
I_S = 2.0


def storm(size: int = MANY, *, seed: object = 1, loss: float = 0.0, interval_s: float = I_S) -> Net:
    """So many services, forty to a host, up for two intervals; datagrams are lost from then on."""
    net = Net(seed=seed, settings={"beacon_ns": seconds(interval_s)})
    for number in range(size):
        where = f"10.1.0.{number % 25 + 1}"
        net.add(f"n{number}", where, interval_ms=round(interval_s * 1_000), beacon_ns=seconds(interval_s))
    net.run(2 * interval_s)
    assert {"ACTIVE": size} == Counter(net.states().values())
    net.loss = loss
    return net


def ops_of(net: Net, since: float) -> Counter[str]:
    return Counter(change.op for change in net.broker.ops if change.at >= since)


def last_ops(net: Net) -> dict[str, Op]:
    return {change.id: change for change in net.broker.ops}


@pytest.mark.proves("BEA-010", "BEA-018")
@pytest.mark.parametrize("loss", [0.05, 0.3])
def test_lost_datagrams_call_none_of_a_thousand_dead(loss: float) -> None:
    """S1."""
    net = storm(loss=loss)
    net.run(6 * I_S)
    assert 0 == net.count("inactive")
    assert net.count("suspect") == net.count("active") + Counter(net.states().values())["SUSPECT"]


@pytest.mark.proves("BEA-021", "CAT-051")
def test_a_broker_that_is_killed_finds_all_of_a_thousand_again_and_none_that_died_meanwhile() -> None:
    """S3."""
    net = storm()
    net.crash("broker")
    net.run(I_S / 2)
    dead = {f"n{number}" for number in range(0, MANY, 10)}
    for name in dead:
        net.crash(name)
    net.run(I_S / 2)
    net.start("broker")
    back_at = net.time
    assert {"ACTIVE": MANY} == Counter(net.states().values())
    net.run(2 * I_S)
    epoch = net.catalog.context.epoch
    assert all(net[f"n{number}"].told[-1].epoch == epoch for number in range(MANY) if f"n{number}" not in dead)
    net.run(2 * I_S)
    assert {change.id for change in net.broker.ops if change.op == "inactive"} == dead
    assert all(change.at <= back_at + 3 * I_S for change in net.broker.ops)
    assert Counter(ACTIVE=MANY - len(dead), INACTIVE=len(dead)) == Counter(net.states().values())


@pytest.mark.proves("BEA-021")
def test_a_broker_that_lost_its_disk_has_all_of_a_thousand_again_in_two_intervals() -> None:
    """S4."""
    net = storm()
    net.crash("broker", disk="lost")
    net.run(I_S)
    net.start("broker")
    assert {} == net.states()
    back_at = net.time
    net.run(2 * I_S)
    assert {"ACTIVE": MANY} == Counter(net.states().values())
    net.run(2 * I_S)
    assert Counter(register=MANY) == ops_of(net, back_at)


@pytest.mark.proves("BEA-022")
@pytest.mark.parametrize(("size", "interval_s", "span_s"), [(MANY, I_S, 8.0), (100, 1.0, 30.0)])
@pytest.mark.parametrize("is_asleep", [False, True])
def test_a_broker_that_stood_still_evicts_nobody_but_who_died_meanwhile(
    size: int, interval_s: float, span_s: float, is_asleep: bool
) -> None:
    """S5. A process that was stopped finds much in its sockets; a machine that slept finds nothing."""
    net = storm(size, interval_s=interval_s)
    net.buffer, net.do_hosts_answer = 256, False
    net.pause("broker")
    net.cut(*["broker"] * is_asleep)
    net.run(span_s / 2)
    dead = {f"n{number}" for number in range(0, size, 10)}
    for name in dead:
        net.crash(name)
    net.run(span_s / 2)
    net.heal()
    net.resume("broker")
    net.run(6 * interval_s)
    assert {change.id for change in net.broker.ops if change.op == "inactive"} == dead
    assert Counter(ACTIVE=size - len(dead), INACTIVE=len(dead)) == Counter(net.states().values())
    assert 1 == sum(isinstance(event, Paused) for event in net.broker.told)


@pytest.mark.proves("CAT-012")
def test_clocks_that_jump_and_differ_change_no_state() -> None:
    """S7."""
    net = storm(50, interval_s=1)
    year = 31_557_600
    for number in range(50):
        net[f"n{number}"].wall_offset = seconds((number % 3 - 1) * 3_600)
    for jump in (year, -2 * year, year):
        net.broker.wall_offset += seconds(jump)
        net.run(5)
    assert Counter(register=50) == ops_of(net, 0.0)


def test_doubled_and_mixed_up_beats_resurrect_nobody() -> None:
    """S8."""
    net = Net(seed=8, doubling=0.5, delay=(0.0, 1.4))
    for number in range(30):
        net.add(f"n{number}")
    net.run(20)
    died_at = net.time
    for number in range(9):
        net.crash(f"n{number}")
    net.run(20)
    assert 0 < net.catalog.context.counters["dropped", "udp-old"]
    for number in range(9):
        ops = [change.op for change in net.broker.ops if change.id == f"n{number}" and change.at > died_at + 1.4]
        assert ["inactive"] == [op for op in ops if op != "suspect"]


@pytest.mark.proves("CAT-022", "CAT-023")
def test_the_same_id_on_two_hosts_belongs_to_the_first_until_it_is_gone() -> None:
    """S11."""
    net = Net(seed=11)
    net.add("thermo", "10.0.0.1")
    net.run(1)
    rival = net.add("thermo", "10.0.0.2", key="rival", id="thermo")
    net.run(20)
    assert ["10.0.0.1"] == [instance.owner for instance in net.broker.instances()]
    assert "ACTIVE" == net.states()["thermo"]
    assert {"name-taken"} == {event.code for event in rival.told}
    net.crash("thermo")
    net.run(20)
    assert [("10.0.0.2", "ACTIVE")] == [(one.owner, one.state.name) for one in net.broker.instances()]


# Death in the midst of a turn


def play_until_death(after: int) -> Net:
    """Four come, one changes, one leaves, one dies, one is removed; the broker dies after so many effects, and comes back."""
    net = Net(seed=14, settings={"beacon_ns": 0})
    net.crash_after = after
    for number in range(4):
        net.add(f"n{number}", interval_ms=200, seeds=("10.9.9.9:5246",))
    steps: list[Callable[[], object]] = [
        lambda: net.say(net["n0"].ip, Message(wire.UPDATE, TIME, (b'{"name": "n0", "tags": ["x"]}',))),
        lambda: net.stop("n1"),
        lambda: net.crash("n2"),
        lambda: net.say("", Message(wire.REQUEST, TIME, (b"dbp.deregister", b"n2"))),
    ]
    for step in steps:
        net.run(0.4)
        step()
        if not net.broker.is_up:
            break
    net.run(0.4)
    return net


def kept_until(net: Net) -> int:
    """The index of the last change on the disk."""
    records = [record for record in net.broker.disk if isinstance(record, StreamRecord)]
    return max((record.sequence for record in records if record.stream == Stream.CATALOG), default=0)


@pytest.mark.proves("CAT-050", "CAT-051", "BEA-021")
def test_whenever_the_broker_dies_what_it_said_is_kept_and_who_lives_is_back() -> None:
    """S14."""
    whole = play_until_death(10**9)
    assert {"n0": "ACTIVE", "n1": "INACTIVE", "n3": "ACTIVE"} == whole.states()
    for after in range(whole.effects_done):
        net = play_until_death(after)
        said = [change for change in net.broker.ops if change.index > kept_until(net)]
        assert [] == said, f"published and not kept, after {after} effects"
        last = last_ops(net)
        net.start("broker")
        back = net.states()
        assert all("INACTIVE" == back.get(name, "INACTIVE") for name, change in last.items() if change.op == "inactive")
        assert all(name not in back for name, change in last.items() if change.op == "remove")
        net.run(6)
        alive = {name for name in ("n0", "n1", "n2", "n3") if net[name].is_up}
        assert alive == {name for name, state in net.states().items() if state == "ACTIVE"}, f"after {after} effects"
