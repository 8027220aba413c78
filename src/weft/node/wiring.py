"""Connects the cores of a node: no core knows another; this table lists which event leads to which actions."""

from typing import Any, Final

from weft.base.endpoints import LINK, shifted
from weft.base.records import DamageRecord
from weft.base.spool import Released
from weft.cores.alerts import messages as alerts
from weft.cores.carrier import messages as carrier
from weft.cores.catalog import messages as catalog
from weft.cores.chains import messages as chains
from weft.cores.clone import messages as clone
from weft.cores.configuration import messages as configuration
from weft.cores.document import messages as document
from weft.cores.drain import messages as drain
from weft.cores.enrolment import messages as enrolment
from weft.cores.export import messages as export
from weft.cores.measurement import messages as measurement
from weft.cores.store import messages as store
from weft.cores.topology import messages as topology
from weft.node.alertevents import AlertReported
from weft.node.census import NumberReported
from weft.node.events import (
    FileDiffers,
    InputRefused,
    JournalChanged,
    JournalDamaged,
    NodeStarted,
    PairRefused,
    RoleChanged,
    SettingsReloaded,
)
from weft.node.guard import BudgetReached, MemoryExceeded, MemoryTight
from weft.node.planner import RootBegun
from weft.node.securityevents import AddressChanged, DoorOpened, DoorShut, FabricOpen, KeyReported, KeySwitched
from weft.node.settings import Role
from weft.node.wires import Action, Orders, Wire, when

METRIC: Final = "weft.metric"
FILTERS_SHOWN: Final = 32  # filter errors listed in one event
DIFFERENCES_SHOWN: Final = 8
OURS: Final = ("/TOPO/", "/CONFIG/")
"""Keys that mean something to Weft itself; all others are the applications' (CFG-004)."""
KEY: Final = "/key/"
"""Part of the name of every binding (SEC-024)."""


def append_event(node: Orders, event: Any) -> None:
    """Append the event to the stream of events."""
    node.append_event(event)


def record_damage(node: Orders, event: JournalDamaged) -> None:
    """Write a record about damage that was found while the node runs; for damage found at the start there is one already.

    The configuration tells all its pairs again: a root with a damaged journal compares itself with its first-level
    collectors (JRN-023), and must know them for that.
    """
    node.order("configuration", configuration.TellPairs())
    if not event.is_recorded:
        node.keep(DamageRecord(event.first_lsn, event.end_lsn, event.file, event.why))


def end_node(node: Orders, event: Any) -> None:
    """Stop the node: it cannot continue."""
    node.end(event)


def walk_out_chain(node: Orders, event: measurement.BatchTaken) -> None:
    """Pass new samples through the filters before they are numbered, so that a filter leaves no gap in the numbers."""
    node.order("chains", chains.PassBatch("out", METRIC, event.batch))


def number_batch(node: Orders, event: chains.BatchPassed) -> None:
    """Number and keep the samples that have passed the filters."""
    if node.is_full:
        node.unrecorded_samples += len(event.batch.rows)
    else:
        node.order("measurement", measurement.NumberBatch(event.batch))


def stand(node: Orders, **changed: str) -> None:
    """Note the node's place, and tell the chains and their clients."""
    for name, value in changed.items():
        setattr(node.standing, name, value)
    node.order("chains", node.standing.placed())


def greet_parent(node: Orders, event: topology.ParentAssigned | topology.ParentMoved) -> None:
    """Connect to the parent in the tree."""
    node.order("carrier", carrier.AssignParent(event.endpoint, event.name))
    stand(node, parent=event.name)


def follow_parent(node: Orders, event: topology.PlaceAssigned) -> None:
    """Take a place in the tree: whose configuration to follow, where to send records, what to measure.

    A node that is about to restart in another role takes its place after that. A root that takes over another root's
    configuration follows that root, but sends it no records (REC-016).
    """
    if node.role != node.settings.role:
        return
    if node.settings.level == "root":
        node.order("configuration", configuration.FollowParent(event.parent, event.topics, serves=True))
        return
    node.planner.group = event.group
    serves = event.level == "collector"
    node.order("configuration", configuration.FollowParent(event.parent, event.topics, serves))
    node.order("carrier", carrier.AssignParent(shifted(event.parent, LINK), event.parent_name))
    stand(node, level=event.level, parent=event.parent_name or event.parent)
    plan_anew(node, event)


def lose_place(node: Orders, event: topology.PlaceLost) -> None:
    """Without a place: send nothing up, keep the last plan; after an order to stop, measure nothing either (TOP-017)."""
    node.order("configuration", configuration.LeaveParent())
    if event.why == "stopped":
        node.planner.stop()
        node.order("measurement", measurement.PlanMetrics(()))
    node.order("carrier", carrier.DismissParent())
    stand(node, parent="")


def know_parent(node: Orders, event: carrier.ParentJoined) -> None:
    """Note the parent's name, which it has sent."""
    stand(node, parent=event.name)


def take_root(node: Orders, event: topology.RootTaken) -> None:
    """Become the root: by a restart, unless the node is the root already, or only acts for an absent one (REC-014)."""
    if node.settings.level != "root" and not event.is_acting:
        node.change_role(Role("root", event.epoch))
        return
    node.order("configuration", configuration.TakeRoot(event.epoch, event.is_acting))
    node.order("clone", clone.TakeRoot(event.is_acting))
    node.tell_later(RootBegun())
    node.order("enrolment", enrolment.TakeRoot(event.is_acting))


def leave_root(node: Orders, event: topology.RootLeft) -> None:
    """Another node is the root now. This one restarts as a collector, and sends up the records it has not drained."""
    node.order("configuration", configuration.StepDown())
    node.order("clone", clone.StepDown())
    node.order("enrolment", enrolment.StepDown())
    if node.settings.level == "root":
        node.change_role(Role("collector", event.epoch))


def know_root(node: Orders, event: topology.RootKnown) -> None:
    """Tell the cores who the root is: only the root may declare a record safe (FLD-012)."""
    node.order("carrier", carrier.RootIs(event.node, event.epoch))
    node.order("measurement", measurement.KnowRoot(event.node, event.epoch))


def found_fleet(node: Orders, event: configuration.ConfigurationApplied) -> None:
    """The first root of a fleet writes the configuration from its file; later the file is loaded only by order."""
    if event.why == "root" and not node.planner.pairs and node.settings.pairs:
        load = configuration.LoadTree(0, node.settings.pairs, ("/CONFIG/",), node.settings.node.name)
        node.order("configuration", load)


def settle_filters(node: Orders, _: configuration.ConfigurationApplied | RootBegun) -> None:
    """Set the filters once the configuration is in force here, even if it has none for this node."""
    filters = node.planner.settle()
    if filters is not None:
        node.order("chains", chains.PlanFilters(filters))


def open_links(node: Orders, _: chains.FiltersPlanned) -> None:
    """The filters are set: take records from other nodes from now on."""
    node.order("carrier", carrier.FiltersKnown())


def compare_file(node: Orders, _: configuration.PairsChanged) -> None:
    """At a root that had a configuration at its start: report once if its file describes another fleet."""
    have = node.planner.pairs
    if node.standing.is_compared or not have or node.settings.level != "root":
        return
    node.standing.is_compared = True
    differ = sorted(key for key, value in node.settings.pairs if have.get(key) != value)
    if differ:
        node.tell_later(FileDiffers(tuple(differ[:DIFFERENCES_SHOWN]), len(differ)))


def write_records(node: Orders, event: topology.RecordsWanted) -> None:
    """Write the records of the tree into the configuration."""
    writes = tuple(configuration.Write(key, value) for key, value in event.writes)
    order = configuration.WriteKeys(event.ticket, writes, who="topology", by="topology", ack="local")
    node.order("configuration", order)


def write_for_clone(node: Orders, event: clone.WritesWanted) -> None:
    """Write into the configuration what came in the Clone dialect."""
    writes = tuple(configuration.Write(wanted.key, wanted.value, wanted.ttl_s) for wanted in event.writes)
    node.order("configuration", configuration.WriteKeys(event.ticket, writes, who="clone", by="clone", ack="local"))


def write_binding(node: Orders, event: enrolment.BindingWanted) -> None:
    """Write into the configuration which key belongs to which node."""
    write = configuration.Write(event.key, event.value)
    order = configuration.WriteKeys(event.ticket, (write,), who="enrolment", by="enrolment", ack="local")
    node.order("configuration", order)


def answer_writer(node: Orders, event: configuration.WriteDone) -> None:
    """Tell a core the result of its write into the configuration."""
    if event.by == "topology":
        node.order("topology", topology.RecordWritten(event.ticket, event.code))
    elif event.by == "clone":
        node.order("clone", clone.WritesDone(event.ticket, event.code))
    elif event.by == "enrolment":
        node.order("enrolment", enrolment.BindingWritten(event.ticket, event.code))


def learn_pairs(node: Orders, event: configuration.PairsChanged) -> None:
    """Pass changed pairs of the configuration on: to the tree, the keys, the Clone clients, and this node's plan."""
    pairs = tuple([pair for pair in event.pairs if pair[0].startswith(OURS)])
    if node.authority is not None:
        node.authority.learn(pairs, event.number)
    node.order("topology", topology.LearnPairs(pairs, event.number, event.digest, is_partial=not event.digest))
    node.order("clone", clone.LearnPairs(event.pairs, event.number, event.numbers))
    if keys := tuple(pair for pair in pairs if KEY in pair[0]):
        node.order("enrolment", enrolment.LearnPairs(keys, event.number))
    node.census.learn(pairs, event.number)
    if any(key.startswith("/TOPO/") for key, _ in pairs):
        count_voters(node, event)
        keep_leaving(node)
    if node.planner.learn(pairs):
        plan_anew(node, event)


def note_applied(node: Orders, event: NumberReported) -> None:
    """Note which write a node has applied: acknowledgements by a majority are counted from these notes (CFG-024)."""
    census = node.census
    is_voter = event.node != node.node and census.is_voter(event.node)  # the root itself is counted separately
    voters = census.voters(node.node)
    keep_leaving(node)
    note = configuration.NoteApplied(
        event.node, event.number, is_voter, voters, event.count, event.digest, event.candidates
    )
    node.order("configuration", note)
    node.order("enrolment", enrolment.NoteApplied(event.node, event.number))


def hear_key(node: Orders, event: KeyReported) -> None:
    """Tell enrolment that a node has, or will have, another key."""
    node.order("enrolment", enrolment.HearKey(event.origin, event.curve, event.is_taken, event.by))


def hear_alert(node: Orders, event: AlertReported) -> None:
    """Pass a node's alert to the core that notifies people."""
    node.order("alerts", alerts.Hear(event.origin, event.key, event.payload))


def note_promises(node: Orders, event: topology.VotePromised) -> None:
    """Report with each number to whom this node has promised its vote: the old root must not count it then (REC-012)."""
    node.order("configuration", configuration.NotePromises(event.promises))


def hold_number(node: Orders, event: configuration.ConfigurationApplied) -> None:
    """Tell topology the number and the digest that this node has: a number may also arrive without any changed pair."""
    if event.digest:
        node.order("topology", topology.LearnHolds(event.number, bytes.fromhex(event.digest)))


def lose_vote(node: Orders, event: configuration.ConfigurationDiverged) -> None:
    """Do not vote until there is a new snapshot: the pairs here differ from the parent's at the same number."""
    if event.is_here:
        node.order("topology", topology.NoteDiverged())


def note_child(node: Orders, event: carrier.ChildJoined | carrier.ChildLost) -> None:
    """Note which children have a link: from that a root sees which nodes are dead, and whether it has a majority."""
    has_joined = isinstance(event, carrier.ChildJoined)
    if has_joined:
        node.census.linked[event.node] = None
        node.standing.children[event.node] = event.name
    else:
        node.census.linked.pop(event.node, None)
        node.standing.children.pop(event.node, None)
    stand(node)
    node.order("topology", topology.ChildIs(event.node, "joined" if has_joined else "lost"))
    count_voters(node, event)


def count_voters(node: Orders, _: Any) -> None:
    """At a root: count the voters, and those with a link (REC-015)."""
    if node.settings.level == "root":
        census = node.census
        count, linked = census.voters(node.node), census.linked_voters(node.node)
        node.order("configuration", configuration.NoteVoters(count, linked, census.electorates(node.node)))


def keep_leaving(node: Orders) -> None:
    """At a root: keep which removed voters still count, so that they count after a restart, too (REC-015)."""
    if node.settings.level == "root" and (news := node.census.news_of_leaving()) is not None:
        node.order("topology", topology.NoteLeaving(*news))
        count_voters(node, None)


def recall_leaving(node: Orders, event: topology.VotersRecalled) -> None:
    """At a root that was restarted: count the removed voters again whose removal had not reached a majority."""
    node.census.recall(event.voters, event.electorates)
    count_voters(node, event)


def plan_anew(node: Orders, event: Any) -> None:
    """Measure and filter according to the current configuration."""
    change, number = node.planner.change(), getattr(event, "number", None)
    if change.metrics is not None:
        node.order("measurement", measurement.PlanMetrics(change.metrics, number, change.alerts))
    if change.filters is not None:
        node.order("chains", chains.PlanFilters(change.filters))
    if change.times is not None:
        node.order("configuration", configuration.SetTimes(*change.times))
    if change.refused:
        node.tell_later(chains.FiltersRefused(change.refused[:FILTERS_SHOWN], len(change.refused)))
    if change.mistakes:
        node.tell_later(PairRefused(change.mistakes, number or 0))


def parent_is(state: str) -> Action:
    """An action that tells topology whether the parent's heartbeats arrive."""

    def say(node: Orders, _: Any) -> None:
        node.order("topology", topology.ParentIs(state))

    return say


def link_is(is_up: bool) -> Action:  # noqa: FBT001  # the table stays readable
    """An action that tells topology whether the link to the parent is open."""

    def say(node: Orders, _: Any) -> None:
        node.order("topology", topology.LinkIs(is_up))

    return say


def hold_back(node: Orders, event: JournalChanged) -> None:
    """While the journal has no room, accept nothing new, neither from this node nor from children (JRN-030, CHN-040)."""
    if node.is_full and event.state == "OPEN":
        node.order("measurement", measurement.TellAlerts())
    node.is_full = event.state != "OPEN"
    hold_children(node, event)
    node.order("chains", chains.HoldBack(is_full=node.is_full))
    node.order("store", store.HoldBack(is_full=node.is_full))
    node.order("catalog", catalog.HoldBack(is_full=node.is_full))
    node.order("document", document.HoldBack(is_full=node.is_full))


def hold_children(node: Orders, _: Any) -> None:
    """Let children wait while the journal has no room, or while programs are too slow."""
    node.order("carrier", carrier.HoldBack(is_full=node.is_full or node.standing.is_pressed))


def feel_pressure(node: Orders, event: chains.PressureChanged) -> None:
    """Note whether programs can keep up with what arrives (CHN-040)."""
    node.standing.is_pressed = event.is_high
    hold_children(node, event)


def call_store(node: Orders, event: topology.StoreSeen) -> None:
    """Connect to another member of the store, which topology has found."""
    node.order("store", store.PeerHeard(event.endpoint))


def post_mail(node: Orders, event: chains.MailPosted) -> None:
    """Send messages to a node or to children: at once, without keeping them in the journal."""
    node.order("carrier", carrier.PostMail(event.ticket, event.mail, event.nodes))


def note_reached(node: Orders, event: carrier.MailReached) -> None:
    """Tell the chains how many nodes got a message, and how many did not."""
    node.order("chains", chains.PostReached(event.ticket, event.count, event.failed))


def note_unreached(node: Orders, event: carrier.MailFailed) -> None:
    """Tell the chains that no node got a message, and why."""
    node.order("chains", chains.PostFailed(event.ticket, event.why))


def drain_behind(node: Orders, event: carrier.TookOver) -> None:
    """At a new root: drain also records that the former root had not drained."""
    node.order("drain", drain.BeginBehind(event.after))


def release_records(node: Orders, event: Released) -> None:
    """Note that a reader needs no records up to here. Drained ones need not go up if this root becomes a collector."""
    node.release(event.holder, event.upto)
    if event.holder == "drain":
        node.order("carrier", carrier.Drained(event.upto))


WIRES: Final[list[Wire]] = [
    when(measurement.BatchTaken).then(walk_out_chain),
    when(chains.BatchPassed).then(number_batch),
    when(topology.ParentAssigned).then(greet_parent),
    when(topology.ParentMoved).then(greet_parent, append_event),
    when(topology.PlaceAssigned).then(follow_parent, append_event),
    when(topology.PlaceLost).then(lose_place, append_event),
    when(topology.RootTaken).then(take_root, count_voters, append_event),
    when(topology.RootKnown).then(know_root),
    when(topology.RootLeft).then(leave_root, append_event),
    when(topology.RecordsWanted).then(write_records),
    when(topology.NodeJoined).then(append_event),
    when(topology.NodeLeft).then(append_event),
    when(topology.NodePromoted).then(append_event),
    when(topology.NodeUnassigned).then(append_event),
    when(topology.VotePromised).then(note_promises),
    when(topology.VotersRecalled).then(recall_leaving),
    when(topology.ElectionCalled).then(append_event),
    when(configuration.PairsChanged).then(learn_pairs, compare_file),
    when(configuration.WriteDone).then(answer_writer),
    when(configuration.ConfigurationApplied).then(append_event, hold_number, found_fleet, settle_filters),
    when(configuration.ParentHeard).then(parent_is("heard")),
    when(configuration.ParentQuiet).then(parent_is("quiet")),
    when(configuration.ParentSilent).then(parent_is("silent"), append_event),
    when(configuration.ReplicaResynced).then(append_event),
    when(configuration.ConfigurationWiped).then(append_event),
    when(configuration.ConfigurationDiverged).then(append_event, lose_vote),
    when(configuration.SnapshotDiffers).then(append_event),
    when(configuration.ConfigurationRewound).then(append_event),
    when(configuration.WriteLost).then(append_event),
    when(configuration.SyncFailing).then(append_event),
    when(clone.WritesWanted).then(write_for_clone),
    when(clone.ServerFollowed).then(append_event),
    when(clone.ServerLost).then(append_event),
    when(clone.KeyRefused).then(append_event),
    when(clone.WriteRefused).then(append_event),
    when(enrolment.BindingWanted).then(write_binding),
    when(enrolment.InvitationOpened).then(append_event),
    when(enrolment.InvitationEnded).then(append_event),
    when(enrolment.InvitationLocked).then(append_event),
    when(enrolment.MachineJoined).then(append_event),
    when(enrolment.KeyRevoked).then(append_event),
    when(enrolment.KeyOffered).then(append_event),
    when(enrolment.KeyTaken).then(append_event),
    when(FabricOpen).then(append_event),
    when(DoorShut).then(append_event),
    when(DoorOpened).then(append_event),
    when(KeyReported).then(hear_key),
    when(KeySwitched).then(append_event, end_node),
    when(RootBegun).then(settle_filters),
    when(NumberReported).then(note_applied),
    when(PairRefused).then(append_event),
    when(FileDiffers).then(append_event),
    when(RoleChanged).then(append_event, end_node),
    when(AddressChanged).then(append_event, end_node),
    when(SettingsReloaded).then(append_event, end_node),
    when(topology.NameTaken).then(append_event, end_node),
    when(topology.TwinSuspected).then(append_event),
    when(Released).then(release_records),
    when(carrier.TookOver).then(drain_behind),
    when(JournalDamaged).then(record_damage, append_event),
    when(JournalChanged).then(hold_back, append_event),
    when(MemoryExceeded).then(append_event, end_node),
    when(MemoryTight).then(append_event),
    when(BudgetReached).then(append_event),
    when(NodeStarted).then(append_event),
    when(InputRefused).then(append_event),
    when(measurement.MetricUnsupported).then(append_event),
    when(measurement.MetricFailed).then(append_event),
    when(AlertReported).then(hear_alert),
    when(alerts.AlertNotSent).then(append_event),
    when(export.ExportFailing).then(append_event),
    when(export.ExportBack).then(append_event),
    when(export.ExportGaveUp).then(append_event),
    when(measurement.AlertRaised).then(append_event),
    when(measurement.AlertCleared).then(append_event),
    when(measurement.AlertsFiring).then(append_event),
    when(measurement.ClockStepped).then(append_event),
    when(chains.BatchFailed).then(append_event),
    when(carrier.ParentJoined).then(know_parent, link_is(True), append_event),
    when(chains.FiltersPlanned).then(open_links),
    when(chains.MailPosted).then(post_mail),
    when(carrier.MailReached).then(note_reached),
    when(carrier.MailFailed).then(note_unreached),
    when(chains.ClientWelcomed).then(append_event),
    when(chains.ClientLost).then(append_event),
    when(chains.ClientRefused).then(append_event),
    when(chains.LinkStood).then(append_event),
    when(chains.LinkSickened).then(append_event),
    when(chains.LinkRecovered).then(append_event),
    when(chains.MessagesLost).then(append_event),
    when(chains.MessagesGivenUp).then(append_event),
    when(chains.ReaderForgotten).then(append_event),
    when(chains.FiltersRefused).then(append_event),
    when(chains.FiltersApplied).then(append_event),
    when(chains.PressureChanged).then(feel_pressure, append_event),
    when(carrier.ParentLost).then(link_is(False), append_event),
    when(carrier.ParentRefused).then(append_event),
    when(carrier.ChildJoined).then(note_child, append_event),
    when(carrier.ChildLost).then(note_child, append_event),
    when(carrier.ChildRefused).then(append_event),
    when(carrier.LoopFound).then(append_event),
    when(carrier.RolledBack).then(append_event),
    when(carrier.MessageRefused).then(append_event),
    when(carrier.SpoolDropped).then(append_event),
    when(carrier.SpoolHigh).then(append_event),
    when(carrier.CaughtUp).then(append_event),
    when(carrier.LakeUnknown).then(append_event),
    when(topology.StoreSeen).then(call_store),
    *(when(event).then(append_event) for event in (*store.JOURNALED, *catalog.JOURNALED, *document.JOURNALED)),
    when(drain.LakeFull).then(append_event),
    when(drain.LakeFailed).then(append_event),
    when(drain.SecondWriter).then(append_event),
    when(drain.LakeBack).then(append_event),
]
