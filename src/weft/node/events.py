"""The events that are written into the journal, with level, meaning and mend: the source of docs/events.md (OBS-001)."""

from typing import Any, Final

import msgspec

from weft.cores.carrier import messages as carrier
from weft.cores.chains import messages as chains
from weft.cores.clone import messages as clone
from weft.cores.configuration import messages as configuration
from weft.cores.document import messages as document
from weft.cores.drain import messages as drain
from weft.cores.measurement import messages as measurement
from weft.cores.store import messages as store
from weft.cores.topology import messages as topology
from weft.node.alertevents import ALERTS, EXPORTS
from weft.node.catalogevents import CATALOG
from weft.node.guard import BudgetReached, MemoryExceeded, MemoryTight
from weft.node.securityevents import SECURITY, Event


class InputRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: a message on a channel was refused; nothing has changed."""

    channel: str
    code: str
    why: str
    shown: str
    """At most 256 bytes of the message, hex."""
    count: int
    """How many of this channel and code so far."""


class NodeStarted(msgspec.Struct, frozen=True, gc=False):
    """Event: this node has started; `verdicts` is the state in which it found its journal."""

    name: str
    level: str
    version: str
    verdicts: str


class SettingsReloaded(msgspec.Struct, frozen=True, gc=False):
    """Event: somebody asked this node to apply its changed file; it restarts with it at once (OPS-007)."""

    tables: tuple[str, ...]
    """The settings that differ."""


class JournalDamaged(msgspec.Struct, frozen=True, gc=False):
    """Event: records of the journal cannot be read.

    Reported at every start until somebody accepts the loss (JRN-022).
    """

    file: str
    offset: int
    to: int
    """Byte range in the file; the second is exclusive."""
    first_lsn: int
    end_lsn: int
    """Range of journal records; the second is exclusive."""
    why: str
    lost: tuple[str, ...] = ()
    """Stream, numbers and origin of the lost records, if the file shows them."""
    is_recorded: bool = True
    """Whether the journal already has a record about it."""


class JournalChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: the state of the journal has changed (JRN, section 5.4)."""

    state: str
    why: str
    samples: int = 0
    """How many samples of this start were dropped, without a number, because there was no space."""
    events: int = 0
    """How many events of this start were dropped likewise; they are in the log only."""


class RoleChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: this node becomes the root, or is the root no longer; it restarts in its new role at once."""

    level: str
    epoch: int


class PairRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: pairs of the configuration cannot be used by this node; all others are in force."""

    mistakes: tuple[str, ...]
    number: int


class FileDiffers(msgspec.Struct, frozen=True, gc=False):
    """Event, at a root: its file describes another fleet than its configuration. The configuration counts."""

    keys: tuple[str, ...]
    """Some of the keys that differ."""
    count: int
    """How many keys differ."""


EVENTS: Final[dict[type, Event]] = {
    **SECURITY,
    SettingsReloaded: Event(
        "node.reloaded", "info", "The node starts again with its changed file; `tables` are different now.", "Nothing."
    ),
    **ALERTS,
    **EXPORTS,
    NodeStarted: Event("node.started", "info", "The node started; `verdicts` is the state of its journal.", "Nothing."),
    InputRefused: Event(
        "node.input-refused",
        "warning",
        "A malformed or forbidden message was refused. At most one event a minute for each channel and code.",
        "See who sends to that port; `shown` has the first bytes.",
    ),
    JournalDamaged: Event(
        "journal.damaged",
        "error",
        "Records of the journal are missing or unreadable; later ones are used. Repeated at each start until accepted.",
        "weft journal verify STATE_DIR; then weft journal accept-loss STATE_DIR. Look at the disk.",
    ),
    JournalChanged: Event(
        "journal.changed",
        "warning",
        "The journal is full, or has room again. While it is full, nothing new is numbered or taken from children.",
        "Make room on its device, or give it more [journal] megabytes.",
    ),
    MemoryExceeded: Event(
        "node.memory-exceeded",
        "error",
        "The process exceeds its memory limit, mostly outside of its cores, and ends with status 75. Nothing is lost.",
        "Start it again; if it grows again, see who sends to its ports, or raise [limits] memory_megabytes.",
    ),
    MemoryTight: Event(
        "node.memory-tight",
        "warning",
        "The process is near its memory limit: no core takes anything new. Or, with `is_tight` false, there is room again.",
        "weft status shows how much each core holds. See who sends to its ports, or raise [limits] memory_megabytes.",
    ),
    BudgetReached: Event(
        "node.budget-reached",
        "warning",
        "A part of a core has used up its memory budget, and refuses more, with the answer that its protocol has for that.",
        "See who sends so much; or give this core more in [limits.cores], or raise [limits] memory_megabytes.",
    ),
    topology.NameTaken: Event(
        "topology.name-taken", "error", "An older live node of this fleet has this name.", "Give one another --name."
    ),
    topology.TwinSuspected: Event(
        "topology.twin-suspected",
        "warning",
        "A datagram, without proof, claims that an older node has this node's name. At most one event a minute.",
        "See who runs at `endpoint`. If it is a node of this fabric, give one of the two another --name.",
    ),
    topology.ParentMoved: Event(
        "topology.parent-moved", "info", "The parent is heard at another endpoint.", "Nothing."
    ),
    topology.PlaceAssigned: Event(
        "topo.assigned", "info", "This node has got a place in the tree, or another one.", "Nothing."
    ),
    topology.PlaceLost: Event(
        "topo.unplaced", "warning", "This node has no place in the tree any more, and asks for one.", "See `why`."
    ),
    topology.NodeJoined: Event("topo.joined", "info", "The root has given a node its place.", "Nothing."),
    topology.NodeLeft: Event("topo.left", "warning", "A node was stopped, or a dead collector replaced.", "See `why`."),
    topology.NodePromoted: Event(
        "topo.promoted",
        "info",
        "A node becomes a collector of its group: the others have too many children, or one of them is dead.",
        "Nothing; [group] `fanout` is the number of children per collector.",
    ),
    topology.NodeUnassigned: Event(
        "topo.unassigned", "warning", "A node is a member of no group.", "Add it to the members of a group."
    ),
    topology.ElectionCalled: Event(
        "root.election-called", "warning", "The root is silent: an election has begun.", "See whether the root runs."
    ),
    topology.RootTaken: Event(
        "root.elected", "info", "This node is the root of `epoch`; `is_acting`: without a majority.", "Nothing."
    ),
    topology.RootLeft: Event(
        "root.stepped-down", "warning", "This node is the root no longer: there is one of a higher epoch.", "Nothing."
    ),
    RoleChanged: Event("node.role-changed", "info", "The node starts again in another role.", "Nothing."),
    FileDiffers: Event(
        "config.file-differs",
        "warning",
        "The root's file differs from its configuration, which counts: a file is read only when the fleet is founded.",
        "weft config set changes a key; weft config load loads a whole fleet's file, one without [node].",
    ),
    PairRefused: Event(
        "config.refused",
        "warning",
        "Some pairs of the configuration cannot be used on this node; all others are in force.",
        "weft config check says what is wrong; correct them at the root.",
    ),
    configuration.ConfigurationApplied: Event(
        "config.applied", "info", "This node runs this number of the configuration now.", "Nothing."
    ),
    configuration.ReplicaResynced: Event(
        "config.resynced",
        "info",
        "This node needed a new snapshot of the configuration, and has it.",
        "Nothing; if it happens often, look at the link.",
    ),
    configuration.ConfigurationWiped: Event(
        "config.wiped",
        "warning",
        "The parent has a lower number: all values are deleted here and requested again. Measuring goes on.",
        "See whether two roots are alive.",
    ),
    configuration.ConfigurationDiverged: Event(
        "config.diverged",
        "error",
        "Parent and child have different pairs at one number; the child requests all again, and has no vote until then.",
        "Nothing, if config.resynced follows. Else compare weft config list of both, and keep both state directories.",
    ),
    configuration.SnapshotDiffers: Event(
        "config.snapshot-differs",
        "warning",
        "A snapshot was refused, because its pairs do not match its end. It is requested again.",
        "Nothing; if it happens often, look at the link.",
    ),
    configuration.ConfigurationRewound: Event(
        "config.rewound",
        "error",
        "Values go back to older ones: the root lost its disk, or a new root lacks writes that no majority had confirmed.",
        "Load the fleet's file again, or write again what config.lost-write names at the former root.",
    ),
    configuration.WriteLost: Event(
        "config.lost-write",
        "error",
        "A write of this former root is not in the new root's configuration.",
        "Write it again, if it is still wanted.",
    ),
    configuration.ParentSilent: Event(
        "config.parent-silent", "warning", "The parent has been silent for too long.", "See whether it runs."
    ),
    configuration.SyncFailing: Event(
        "config.sync-failing", "warning", "The parent has refused a snapshot several times.", "See `code`."
    ),
    clone.ServerFollowed: Event(
        "clone.followed", "info", "The values of a Clone server are written here; its updates follow.", "Nothing."
    ),
    clone.ServerLost: Event(
        "clone.lost",
        "warning",
        "The Clone server is silent, or gives no snapshot; the node keeps asking.",
        "See whether it runs, and [chp] import.",
    ),
    clone.KeyRefused: Event(
        "clone.key-refused",
        "warning",
        "A key of the Clone server is invalid here, and left out. Reported for the 1st, 2nd, 4th, 8th one and so on.",
        "Give it another name there: letters, digits, `._:@%+=~[]-`, parts between slashes.",
    ),
    clone.WriteRefused: Event(
        "clone.write-refused",
        "warning",
        "A write of a Clone client or server was refused. Reported for the 1st, 2nd, 4th, 8th one and so on.",
        "See `code`: 6 too large, 11 no quorum, 12 not root.",
    ),
    measurement.MetricUnsupported: Event(
        "measurement.unsupported", "warning", "This machine cannot measure a metric.", "Remove it from the file."
    ),
    measurement.MetricFailed: Event(
        "measurement.failed", "warning", "A metric could not be measured; the others go on.", "See `why`."
    ),
    measurement.ClockStepped: Event(
        "measurement.clock-stepped",
        "warning",
        "The wall clock jumped; the next batch of samples is marked.",
        "Look at the time service.",
    ),
    chains.ClientWelcomed: Event("chains.client-up", "info", "A program has attached to the chains.", "Nothing."),
    chains.ClientLost: Event(
        "chains.client-down",
        "info",
        "A program is detached; its unanswered messages went on as its registrations say.",
        "If `why` is `silent`: find out why it stood still.",
    ),
    chains.ClientRefused: Event(
        "chains.denied",
        "warning",
        "A program was refused, or may not do what it requested. At most one event a minute for each program and reason.",
        "See `why`.",
    ),
    chains.LinkStood: Event("chains.registered", "info", "A program has registered in a chain.", "Nothing."),
    chains.LinkSickened: Event(
        "chains.sick",
        "warning",
        "A program was late with five messages in a row; messages bypass it for 30 s.",
        "Find out why it is slow, or give its registration more time.",
    ),
    chains.LinkRecovered: Event(
        "chains.recovered", "info", "A program that was bypassed answers again, and gets messages.", "Nothing."
    ),
    chains.MessagesLost: Event(
        "chains.lost",
        "warning",
        "A program failed with messages, and `fail` is `closed`: they are lost. At most one event a minute for each reason.",
        "Mend the program, or let it fail `open` or `wait`.",
    ),
    chains.MessagesGivenUp: Event(
        "chains.given-up",
        "warning",
        "A confirming reader will never get these messages; `spans`: origin, era, first and last number.",
        "`no-room`: let it come back sooner, or raise [chains] reader_messages, reader_megabytes. `time-over`: its `away`.",
    ),
    chains.ReaderForgotten: Event(
        "chains.reader-forgotten",
        "warning",
        "A confirming reader was away for too long, or removed by an order: nothing is kept for it any more.",
        "If it is still needed, start it again; it is remembered from then on.",
    ),
    chains.FiltersRefused: Event(
        "chains.config.refused",
        "error",
        "New filters are invalid; the former ones stay in force.",
        "Correct what `mistakes` says.",
    ),
    chains.FiltersApplied: Event("chains.config.applied", "info", "Other filters are in force.", "Nothing."),
    chains.PressureChanged: Event(
        "chains.pressure",
        "warning",
        "Programs are too slow for what arrives: children have to wait. Or, with `is_high` false, no longer.",
        "weft chain ls shows which of them is slow.",
    ),
    chains.BatchFailed: Event(
        "chains.batch-failed",
        "warning",
        "A filter failed with a batch; its `on_error` decided what became of it.",
        "Mend the filter.",
    ),
    carrier.ParentJoined: Event("carrier.parent-joined", "info", "The link to the parent is open.", "Nothing."),
    carrier.ParentLost: Event(
        "carrier.parent-lost", "warning", "The link to the parent has ended; records wait.", "See whether it runs."
    ),
    carrier.ParentRefused: Event(
        "carrier.parent-refused", "warning", "The parent refuses this node.", "See `why`: name, version, twin."
    ),
    carrier.ChildJoined: Event("carrier.child-joined", "info", "A child has joined.", "Nothing."),
    carrier.ChildLost: Event(
        "carrier.child-lost", "warning", "A child's link has ended.", "See whether the child runs."
    ),
    carrier.ChildRefused: Event("carrier.child-refused", "warning", "A node was refused as a child.", "See `why`."),
    carrier.LoopFound: Event(
        "carrier.loop-found",
        "error",
        "The parent is below this node in the tree.",
        "Correct `parent` in one of the files.",
    ),
    carrier.RolledBack: Event(
        "carrier.rolled-back",
        "error",
        "This node's disk is older than what it had acknowledged, as after it was restored from a copy.",
        "weft lake missing shows what is lost.",
    ),
    carrier.MessageRefused: Event(
        "carrier.message-refused", "warning", "A message of a child was refused, and is not sent again.", "See `why`."
    ),
    carrier.SpoolDropped: Event(
        "carrier.spool-dropped",
        "error",
        "The spool was full; its oldest records are given up and reported as lost.",
        "More [journal] megabytes, or repair the connection to the parent.",
    ),
    carrier.SpoolHigh: Event(
        "carrier.spool-high",
        "warning",
        "Records for the parent fill half of the journal; or, with `is_high` false, less than a quarter of it again.",
        "Repair the connection to the parent, or give [journal] more megabytes; beyond nine tenths the oldest is given up.",
    ),
    carrier.CaughtUp: Event(
        "carrier.caught-up",
        "info",
        "The parent has all records that waited when the link opened; reported if they were 64 or more.",
        "Nothing.",
    ),
    carrier.LakeUnknown: Event(
        "carrier.lake-unknown",
        "error",
        "This new root does not know what its lake holds, so it may keep records twice; or, with `is_unknown` false, it knows.",
        "See `detail`; the node asks the lake again by itself.",
    ),
    store.StoreJoined: Event(
        "store.joined", "info", "The node has joined the store, has all entries, and serves it.", "Nothing."
    ),
    store.ConflictResolved: Event(
        "store.conflict",
        "warning",
        "Two members changed an entry without knowing of each other's change; the greater one stands, the other is kept here.",
        "weft store conflicts shows both; --restore writes the other one again.",
    ),
    store.StoreIncomplete: Event(
        "store.incomplete",
        "warning",
        "Changes are missing that no member in reach has; the node serves without them, and keeps asking.",
        "Start the nodes that made them; those that will not come back: weft store node drop.",
    ),
    store.SplitFound: Event("store.split", "warning", "Members that were apart are connected again.", "Nothing."),
    store.SplitHealed: Event("store.healed", "info", "After a split, both sides have all changes.", "Nothing."),
    store.EntryRepaired: Event(
        "store.repaired", "info", "An entry was written again so that MoaT-KV servers have it, too.", "Nothing."
    ),
    store.TombstonesPurged: Event("store.purged", "info", "Deletions that all have seen are forgotten.", "Nothing."),
    store.StaleDropped: Event(
        "store.stale-dropped",
        "warning",
        "An entry that everybody else has deleted and forgotten was removed here; `value` is what it had.",
        "Write it again, if it is still wanted.",
    ),
    store.ValueMistyped: Event(
        "store.mistyped", "warning", "Another member wrote a value that is not of its entry's type.", "Change it."
    ),
    store.IdClash: Event(
        "store.id-clash",
        "error",
        "Two different changes have the same node and tick; the greater one is taken.",
        "See whether two nodes run under one name, or from copies of one disk.",
    ),
    store.NameCollision: Event(
        "store.name-collision",
        "error",
        "Two live nodes have one name in the store; the newer one is refused.",
        "Give one of them another [store] name.",
    ),
    store.NameChanged: Event(
        "store.name-changed",
        "warning",
        "This node's disk is older than what it had sent, and not all members could say how far it was: it has a new name.",
        "Nothing.",
    ),
    store.NodeDropped: Event(
        "store.dropped", "warning", "A member was dropped; its later changes are refused.", "Nothing."
    ),
    store.ChangesOrphaned: Event(
        "store.orphaned",
        "warning",
        "This node had been dropped; its changes that no other member has are set aside.",
        "weft store orphans lists them; --replay writes them again.",
    ),
    store.StoreMalformed: Event(
        "store.malformed",
        "warning",
        "A malformed or forbidden message was refused. At most one event in ten seconds for each sender.",
        "See who sends it: `peer`, `code`.",
    ),
    store.EchoMissing: Event(
        "store.no-echo",
        "warning",
        "The MQTT broker does not send this node's own messages back to it, as it should.",
        "Look at the broker's access list and bridges.",
    ),
    store.NetworkOpen: Event(
        "store.open-network",
        "warning",
        "The store is open to other machines without authentication, because the file has `open = true`.",
        "Let only trusted machines reach its client port and the broker.",
    ),
    store.StoreLinkUp: Event("store.link-up", "info", "A link of the store is open.", "Nothing."),
    store.StoreLinkDown: Event(
        "store.link-down", "warning", "A link of the store is lost; the node tries to open it again.", "See `why`."
    ),
    store.BecameReadOnly: Event(
        "store.read-only",
        "error",
        "The store accepts no writes at this node.",
        "`name-collision`: another [store] name, or end the other node; `dropped`: weft store orphans; `unconfirmed`: weft store accept-tick.",
    ),
    store.LimitExceeded: Event(
        "store.over-limit", "warning", "The store holds more than it should.", "Delete, or raise the limit."
    ),
    **CATALOG,
    document.SessionOpened: Event(
        "doc.opened", "info", "A session is open: its log is restored, and its socket listens.", "Nothing."
    ),
    document.SessionExposed: Event(
        "doc.insecure",
        "warning",
        "A session without a key is open to other machines: whoever reaches it can edit.",
        "Bind it to loopback, give it a key, or trust everybody on that network.",
    ),
    document.NoPort: Event(
        "doc.no-port",
        "error",
        "No port was free for a session: other machines cannot reach it.",
        "Choose another `listen` for the session, or free a port.",
    ),
    document.PeerActive: Event(
        "doc.peer-active", "info", "A peer has joined the session, and gets all entries.", "Nothing."
    ),
    document.PeerEvasive: Event(
        "doc.peer-evasive",
        "info",
        "A peer has been silent for ten seconds, and was asked.",
        "Nothing, unless `doc.peer-gone` follows.",
    ),
    document.PeerGone: Event(
        "doc.peer-gone",
        "warning",
        "A peer is gone. This node tries to reach it again, and sends then what it missed.",
        "Look at its machine and the network between.",
    ),
    document.PeerMismatch: Event(
        "doc.peer-mismatch",
        "info",
        "A peer of another session has connected, or was connected to; it is ignored.",
        "Nothing, unless it should be the same session: then compare name and schema.",
    ),
    document.TimeSkew: Event(
        "doc.skew",
        "warning",
        "A peer's session time differs from this node's by more than two seconds.",
        "Set the clocks; of two edits of one value the one with the later time wins.",
    ),
    document.TimeAhead: Event(
        "doc.time-ahead",
        "warning",
        "An operation's time is more than five minutes in the future; this node's own times do not follow it.",
        "Set the clock of its machine.",
    ),
    document.LogFork: Event(
        "doc.fork",
        "error",
        "Two different operations have the same source and number; all peers keep the same one, `kept`.",
        "Find out who else uses that source: a copied disk, or a forger.",
    ),
    document.LogDiverged: Event(
        "doc.diverged",
        "error",
        "For a minute a peer has had the same operations by number, but another check of the log.",
        "Run weft doc sources on both, and compare.",
    ),
    document.LogStranded: Event(
        "doc.stranded", "warning", "The last entries of a lost node cannot be adopted.", "Enter them again."
    ),
    document.LogFull: Event(
        "doc.full",
        "error",
        "The session has reached its limit of sources or operations; nothing stored is lost.",
        "Begin a new session.",
    ),
    document.LogDegraded: Event(
        "doc.degraded",
        "warning",
        "The journal has no room: entries made here are refused, those of others are only in memory. Or that is over.",
        "Make room on its device, or give it more [journal] megabytes.",
    ),
    document.IdentityReused: Event(
        "doc.identity-reused",
        "warning",
        "A peer has more of this node's entries than the node itself: it continues under a new source.",
        "Nothing; it happens after a disk was restored from a copy.",
    ),
    document.ConflictFound: Event(
        "doc.conflict",
        "warning",
        "Two people changed the same place, and one of the changes is hidden now.",
        "weft doc conflicts shows it, weft doc resolve closes it.",
    ),
    drain.LakeFull: Event(
        "lake.full", "error", "The lake's device is full; the journal keeps new records.", "Make room."
    ),
    drain.LakeFailed: Event(
        "lake.failed", "error", "The lake cannot be written; the journal keeps new records.", "See `detail`."
    ),
    drain.SecondWriter: Event(
        "lake.second-writer",
        "error",
        "A copy of this node's disk runs elsewhere, and writes into the same lake; each writes behind the other.",
        "Stop the copy (SIGTERM) and keep its disk: what only it has taken, weft drain brings into the lake.",
    ),
    drain.LakeBack: Event("lake.back", "info", "The lake can be written again.", "Nothing."),
}
"""Every event that is written into the journal; other events are only passed between cores."""


APPLIED: Final = EVENTS[configuration.ConfigurationApplied].name


def describe(event: Any) -> tuple[str, str, dict[str, Any]]:
    """Name, level and fields of an event that has a row in the table; bytes are shown as hex."""
    row = EVENTS[type(event)]
    fields = {key: _shown(value) for key, value in msgspec.structs.asdict(event).items()}
    return row.name, row.level, fields


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (tuple, list)):
        return [_shown(item) for item in value]
    if isinstance(value, dict):
        return {key: _shown(item) for key, item in value.items()}
    return (
        {k: _shown(v) for k, v in msgspec.structs.asdict(value).items()} if isinstance(value, msgspec.Struct) else value
    )
