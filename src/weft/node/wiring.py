"""Where the cores of a node meet: no core knows another, this table does, and it reads aloud."""

from typing import Any, Final

from weft.base.spool import Released
from weft.cores.carrier import messages as carrier
from weft.cores.chains import messages as chains
from weft.cores.drain import messages as drain
from weft.cores.measurement import messages as measurement
from weft.cores.topology import messages as topology
from weft.node.events import InputRefused, JournalChanged, MemoryExceeded, NodeStarted
from weft.node.wires import Orders, Wire, when

METRIC: Final = "weft.metric"


def append_event(node: Orders, event: Any) -> None:
    """Write it into the stream of events."""
    node.append_event(event)


def end_node(node: Orders, event: Any) -> None:
    """The node cannot go on."""
    node.end(event)


def walk_out_chain(node: Orders, event: measurement.BatchTaken) -> None:
    """Fresh samples go through the filters before they are numbered, so that a filter leaves no hole."""
    node.order("chains", chains.PassBatch("out", METRIC, event.batch))


def number_batch(node: Orders, event: chains.BatchPassed) -> None:
    """What came through is numbered and kept."""
    if node.is_full:
        node.unrecorded_samples += len(event.batch.rows)
    else:
        node.order("measurement", measurement.NumberBatch(event.batch))


def greet_parent(node: Orders, event: topology.ParentAssigned | topology.ParentMoved) -> None:
    """The link upward follows the tree."""
    node.order("carrier", carrier.AssignParent(event.endpoint, event.name))


def hold_back(node: Orders, event: JournalChanged) -> None:
    """Without room nothing new is taken: not from here, not from children (JRN-030, CHN-040)."""
    node.is_full = event.state != "OPEN"
    node.order("carrier", carrier.HoldBack(is_full=node.is_full))


def release_records(node: Orders, event: Released) -> None:
    """The journal may forget what nobody needs."""
    node.release(event.holder, event.upto)


WIRES: Final[list[Wire]] = [
    when(measurement.BatchTaken).then(walk_out_chain),
    when(chains.BatchPassed).then(number_batch),
    when(topology.ParentAssigned).then(greet_parent),
    when(topology.ParentMoved).then(greet_parent, append_event),
    when(topology.NameTaken).then(append_event, end_node),
    when(Released).then(release_records),
    when(JournalChanged).then(hold_back, append_event),
    when(MemoryExceeded).then(append_event, end_node),
    when(NodeStarted).then(append_event),
    when(InputRefused).then(append_event),
    when(measurement.MetricUnsupported).then(append_event),
    when(measurement.MetricFailed).then(append_event),
    when(measurement.ClockStepped).then(append_event),
    when(chains.BatchFailed).then(append_event),
    when(carrier.ParentJoined).then(append_event),
    when(carrier.ParentLost).then(append_event),
    when(carrier.ParentRefused).then(append_event),
    when(carrier.ChildJoined).then(append_event),
    when(carrier.ChildLost).then(append_event),
    when(carrier.ChildRefused).then(append_event),
    when(carrier.LoopFound).then(append_event),
    when(carrier.RolledBack).then(append_event),
    when(carrier.MessageRefused).then(append_event),
    when(carrier.SpoolDropped).then(append_event),
    when(drain.LakeFull).then(append_event),
    when(drain.LakeFailed).then(append_event),
    when(drain.LakeBack).then(append_event),
]
