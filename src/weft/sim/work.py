"""What a simulated node asks its machine to do: read the journal, measure, write the lake, dial, open a session."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from weft.base.endpoints import host_of
from weft.base.now import MILLISECOND, SECOND
from weft.base.spool import FetchRecords
from weft.cores.carrier.messages import ReadVectors
from weft.cores.catalog.messages import CheckDone, CloseRelay, OpenRelay, RunCheck
from weft.cores.document.messages import OpenSession
from weft.cores.drain.messages import InspectLake, WriteSegment
from weft.cores.enrolment.messages import MakeKey, SwitchKey
from weft.cores.measurement.details import Place
from weft.cores.measurement.messages import Measure, Measured
from weft.cores.store.messages import Dial, HangUp
from weft.sim.lake import Segment

if TYPE_CHECKING:
    from weft.sim.machine import Machine

ANSWER_NS: Final = 300_000  # a reading of kernel counters, a read of the journal: on the loop, at once
HANG_NS: Final = 10 * SECOND


def _fetch(machine: "Machine", work: FetchRecords) -> None:
    machine.later(ANSWER_NS, partial(_fetched, machine, work))


def _fetched(machine: "Machine", work: FetchRecords) -> None:
    machine.obey(work.holder, machine.disk.read(work.holder, work.after, work.bytes_max))


def _measure(machine: "Machine", work: Measure) -> None:
    hangs = machine.fabric.is_stormy and machine.chance.getrandbits(16) < machine.plan.hangs
    delay = ANSWER_NS
    if work.place is not Place.INLINE:
        delay = machine.chance.randint(MILLISECOND, 50 * MILLISECOND)
    delay = machine.chance.randint(0, HANG_NS) if hangs else delay
    machine.later(delay, partial(_measured, machine, work, is_failing=hangs))


def _measured(machine: "Machine", work: Measure, *, is_failing: bool) -> None:
    wall = machine.clocks.now(machine.world.at).wall
    read = machine.meters.fail if is_failing else machine.meters.read
    machine.obey("measurement", Measured(tuple(read(spec.name, wall) for spec in work.specs), work.number))


def _inspect(machine: "Machine", work: InspectLake) -> None:
    machine.lake.inspect(work, machine.answerer("drain"))


def _read_vectors(machine: "Machine", _work: ReadVectors) -> None:
    machine.lake.read_vectors(machine.fabric.named, machine.answerer("carrier"))


def _write_segment(machine: "Machine", work: WriteSegment) -> None:
    machine.lake.write(work, machine.disk, machine.answerer("drain"), machine.is_alive_since(machine.starts))


def publish(machine: "Machine", stream: int, segment: Segment) -> None:
    """A segment of its lake exists."""
    machine.fabric.recorder.published(machine, stream, segment)


def _check(machine: "Machine", work: RunCheck) -> None:
    """A check of a service takes as long as its answer, or its patience."""
    host = machine.fabric.host_at(host_of(work.target))
    ways = ((machine.name, host.name), (host.name, machine.name)) if host is not None else ()
    is_reached = host is not None and all(machine.fabric.streams.path(*way).is_open for way in ways)
    outcome = "passing" if is_reached and host is not None and host.is_well else "critical"
    machine.later(ANSWER_NS if is_reached else work.timeout_ns, partial(_checked, machine, work.id, outcome))


def _checked(machine: "Machine", number: int, outcome: str) -> None:
    machine.obey("catalog", CheckDone(number, outcome))


WORK: Final[dict[type, Callable[["Machine", Any], None]]] = {
    FetchRecords: _fetch,
    Dial: lambda machine, work: machine.store_clients.dial(work),
    HangUp: lambda machine, work: machine.store_clients.hang_up(work.peer),
    Measure: _measure,
    InspectLake: _inspect,
    ReadVectors: _read_vectors,
    WriteSegment: _write_segment,
    RunCheck: _check,
    OpenRelay: lambda machine, work: machine.doors.open_relay(work),
    CloseRelay: lambda machine, work: machine.doors.close_relay(work),
    MakeKey: lambda machine, _: machine.keys.make(),
    SwitchKey: lambda machine, _: machine.keys.switch(),
    OpenSession: lambda machine, work: machine.doors.open_session(work),
}
"""How each kind of work is done."""
