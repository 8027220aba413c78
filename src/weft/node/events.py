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
    """Event: this node has started; with the state of its journal."""

    name: str
    level: str
    version: str
    verdicts: str


class SettingsReloaded(msgspec.Struct, frozen=True, gc=False):
    """Event: somebody asked this node to apply its changed file; a new start that does so follows at once (OPS-007)."""

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
    """Stream, numbers and origin of what is lost, if the file shows it."""
    is_recorded: bool = True
    """Whether the journal already has a record about it."""


class JournalChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: the state of the journal has changed (JRN, section 5.4)."""

    state: str
    why: str
    samples: int = 0
    """How many samples of this start were not numbered, and so not kept, because there was no space."""
    events: int = 0
    """The same for events; they are in the log."""


class RoleChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: this node is the root from its next start on, or no longer the root; that start follows at once."""

    level: str
    epoch: int


class PairRefused(msgspec.Struct, frozen=True, gc=False):
    """Event: pairs of the configuration cannot be used by this node; all others are in force."""

    mistakes: tuple[str, ...]
    number: int


class FileDiffers(msgspec.Struct, frozen=True, gc=False):
    """Event, at a root: its file describes another fleet than the configuration that it has.

    The configuration counts.
    """

    keys: tuple[str, ...]
    """Some of those that differ."""
    count: int


EVENTS: Final[dict[type, Event]] = {
    **SECURITY,
    SettingsReloaded: Event(
        "node.reloaded", "info", "The node starts again, with tables of its file that are different now.", "Nothing."
    ),
    **ALERTS,
    **EXPORTS,
    NodeStarted: Event(
        "node.started", "info", "The node started; `verdicts` says how its journal was found.", "Nothing."
    ),
    InputRefused: Event(
        "node.input-refused",
        "warning",
        "A message was malformed or not allowed and changed nothing. At most one a minute, channel and code.",
        "Look at who sends to that port; `shown` holds the first bytes.",
    ),
    JournalDamaged: Event(
        "journal.damaged",
        "error",
        "Records of the journal are missing or cannot be read; what stands behind them is used. Told until accepted.",
        "weft journal verify STATE_DIR; then weft journal accept-loss STATE_DIR. Look at the disk.",
    ),
    JournalChanged: Event(
        "journal.changed",
        "warning",
        "The journal is full or has room again. While full, nothing new is numbered or taken from children.",
        "Make room on its device, or give it more [journal] megabytes.",
    ),
    MemoryExceeded: Event(
        "node.memory-exceeded",
        "error",
        "The process grew over its limit, mostly by what no core holds, and ends with 75; its journal keeps everything.",
        "Start it again; if it grows again, look at who sends to its ports, or raise [limits] memory_megabytes.",
    ),
    MemoryTight: Event(
        "node.memory-tight",
        "warning",
        "The process is near its limit: no core takes anything new. Or, with `is_tight` false, there is room again.",
        "weft status: which core holds how much. Look at who sends to its ports, or raise [limits] memory_megabytes.",
    ),
    BudgetReached: Event(
        "node.budget-reached",
        "warning",
        "A core has no memory left for more of something: it refuses it, by the answer that its protocol has.",
        "Look at who sends so much; else [limits.cores] gives this core more, or raise [limits] memory_megabytes.",
    ),
    topology.NameTaken: Event(
        "topology.name-taken", "error", "An older live node of this fleet has this name.", "Give one another --name."
    ),
    topology.TwinSuspected: Event(
        "topology.twin-suspected",
        "warning",
        "A datagram says that an older node has this node's name, and nothing proves it. At most one a minute.",
        "Look who runs at `endpoint`. If it is a node of this fabric, give one of the two another --name.",
    ),
    topology.ParentMoved: Event(
        "topology.parent-moved", "info", "The parent is heard at another endpoint.", "Nothing."
    ),
    topology.PlaceAssigned: Event(
        "topo.assigned", "info", "This node has a place in the tree, or another.", "Nothing."
    ),
    topology.PlaceLost: Event(
        "topo.unplaced", "warning", "This node has no place any more; it calls again.", "See `why`."
    ),
    topology.NodeJoined: Event("topo.joined", "info", "The root has given a node its place.", "Nothing."),
    topology.NodeLeft: Event("topo.left", "warning", "A node was stopped, or a dead collector replaced.", "See `why`."),
    topology.NodePromoted: Event(
        "topo.promoted",
        "info",
        "A node is a collector of its group from now on: the others had too many children, or one of them is dead.",
        "Nothing; [group] `fanout` says how many children are too many.",
    ),
    topology.NodeUnassigned: Event(
        "topo.unassigned", "warning", "No group wants this node.", "Add it to the members of a group."
    ),
    topology.ElectionCalled: Event(
        "root.election-called", "warning", "The root is silent; the voters are asked.", "See whether the root runs."
    ),
    topology.RootTaken: Event(
        "root.elected", "info", "This node is the root of that epoch; `is_acting`: without a majority.", "Nothing."
    ),
    topology.RootLeft: Event(
        "root.stepped-down", "warning", "This node is the root no longer: one of a higher epoch is.", "Nothing."
    ),
    RoleChanged: Event("node.role-changed", "info", "The node starts again in another role.", "Nothing."),
    FileDiffers: Event(
        "config.file-differs",
        "warning",
        "The root's file describes another fleet than its configuration, which counts: a file founds a fleet only once.",
        "weft config set brings a key in; weft config load a whole fleet's file, one without [node].",
    ),
    PairRefused: Event(
        "config.refused",
        "warning",
        "Pairs of the configuration cannot be used on this node; the others are in force.",
        "weft config check says what is wrong; mend them at the root.",
    ),
    configuration.ConfigurationApplied: Event(
        "config.applied", "info", "This node runs that number of the configuration now.", "Nothing."
    ),
    configuration.ReplicaResynced: Event(
        "config.resynced", "info", "A new snapshot was needed and is adopted.", "Nothing; often: look at the link."
    ),
    configuration.ConfigurationWiped: Event(
        "config.wiped",
        "warning",
        "A lower number was heard: all values are deleted and asked for anew. Measuring goes on.",
        "See whether two roots are alive.",
    ),
    configuration.ConfigurationDiverged: Event(
        "config.diverged",
        "error",
        "Two nodes have other pairs at one number; the lower one asks for everything anew, and has no vote until then.",
        "Nothing, if config.resynced follows; else compare weft config list of both, and keep both states.",
    ),
    configuration.SnapshotDiffers: Event(
        "config.snapshot-differs",
        "warning",
        "A snapshot was refused: other pairs came than its end speaks of. It is asked for again.",
        "Nothing; often: look at the link.",
    ),
    configuration.ConfigurationRewound: Event(
        "config.rewound",
        "error",
        "Values of this node go back: the root lost its disk, or a new root lacks writes that no majority had confirmed.",
        "Load the fleet's file again, or write again what config.lost-write names at the former root.",
    ),
    configuration.WriteLost: Event(
        "config.lost-write",
        "error",
        "A write of this former root is not in the new root's configuration.",
        "Write it again, if it is still wanted.",
    ),
    configuration.ParentSilent: Event(
        "config.parent-silent", "warning", "Nothing was heard from the parent for so long.", "See whether it runs."
    ),
    configuration.SyncFailing: Event(
        "config.sync-failing", "warning", "The parent gives no snapshot, again and again.", "See `code`."
    ),
    clone.ServerFollowed: Event(
        "clone.followed", "info", "What a Clone server has is written here, and its updates follow.", "Nothing."
    ),
    clone.ServerLost: Event(
        "clone.lost",
        "warning",
        "The Clone server is silent, or gives no snapshot; it is asked again and again.",
        "See whether it runs, and [chp] import.",
    ),
    clone.KeyRefused: Event(
        "clone.key-refused",
        "warning",
        "A key of the Clone server can be none here, and is left out. Told for the 1st, 2nd, 4th, 8th and so on.",
        "Give it another name there: letters, digits, `._:@%+=~[]-`, parts between slashes.",
    ),
    clone.WriteRefused: Event(
        "clone.write-refused",
        "warning",
        "A write of a Clone client or server was not taken. Told for the 1st, 2nd, 4th, 8th and so on.",
        "See `code`: 6 too large, 11 no quorum, 12 not root.",
    ),
    measurement.MetricUnsupported: Event(
        "measurement.unsupported", "warning", "This machine has no source for a metric.", "Take it out of the file."
    ),
    measurement.MetricFailed: Event(
        "measurement.failed", "warning", "A metric could not be measured; the others go on.", "See `why`."
    ),
    measurement.ClockStepped: Event(
        "measurement.clock-stepped",
        "warning",
        "The wall clock jumped; the next batch is marked.",
        "Look at the time service.",
    ),
    chains.ClientWelcomed: Event("chains.client-up", "info", "A program has attached to the chains.", "Nothing."),
    chains.ClientLost: Event(
        "chains.client-down",
        "info",
        "A program is no longer attached; what it held went on as its registrations say.",
        "If `why` is silent: look why it stood still.",
    ),
    chains.ClientRefused: Event(
        "chains.denied",
        "warning",
        "A program was not taken, or may not do what it asked for. At most one a minute, program and reason.",
        "See `why`.",
    ),
    chains.LinkStood: Event("chains.registered", "info", "A program stands in a chain.", "Nothing."),
    chains.LinkSickened: Event(
        "chains.sick",
        "warning",
        "A program did not hand back five messages in a row in time; it is bypassed for 30 s.",
        "Look why it is slow, or give its registration more time.",
    ),
    chains.LinkRecovered: Event("chains.recovered", "info", "It answers again and stands in the chain.", "Nothing."),
    chains.MessagesLost: Event(
        "chains.lost",
        "warning",
        "Messages ended at a registration whose policy is `closed`. At most one a minute, registration and reason.",
        "Mend the program, or let it fail `open` or `wait`.",
    ),
    chains.MessagesGivenUp: Event(
        "chains.given-up",
        "warning",
        "A reader that confirms will never get these messages; `spans`: origin, era, first and last number.",
        "`no-room`: let it come back sooner, or raise [chains] reader_messages, reader_megabytes. `time-over`: its `away`.",
    ),
    chains.ReaderForgotten: Event(
        "chains.reader-forgotten",
        "warning",
        "A reader that confirms has stayed away for too long, or was forgotten by hand: nothing is kept for it any more.",
        "Start it again, if it is wanted; it is remembered from then on.",
    ),
    chains.FiltersRefused: Event(
        "chains.config.refused", "error", "Filters were not taken; the old ones stand.", "Mend what `mistakes` says."
    ),
    chains.FiltersApplied: Event("chains.config.applied", "info", "Other filters are in force.", "Nothing."),
    chains.PressureChanged: Event(
        "chains.pressure",
        "warning",
        "Programs hold more of what has arrived than there is room for: children wait until they do not.",
        "Look which of them is slow: weft chain ls.",
    ),
    chains.BatchFailed: Event(
        "chains.batch-failed",
        "warning",
        "A filter could not judge a batch; its `on_error` decided.",
        "Mend the filter.",
    ),
    carrier.ParentJoined: Event("carrier.parent-joined", "info", "The parent takes what this node has.", "Nothing."),
    carrier.ParentLost: Event(
        "carrier.parent-lost", "warning", "The link to the parent has ended; records wait.", "See whether it runs."
    ),
    carrier.ParentRefused: Event(
        "carrier.parent-refused", "warning", "The parent does not take this node.", "See `why`: name, version, twin."
    ),
    carrier.ChildJoined: Event("carrier.child-joined", "info", "A child has joined.", "Nothing."),
    carrier.ChildLost: Event(
        "carrier.child-lost", "warning", "A child's link has ended.", "See whether the child runs."
    ),
    carrier.ChildRefused: Event("carrier.child-refused", "warning", "A node was not taken as a child.", "See `why`."),
    carrier.LoopFound: Event(
        "carrier.loop-found", "error", "The parent stands below this node.", "Mend `parent` in one of the files."
    ),
    carrier.RolledBack: Event(
        "carrier.rolled-back",
        "error",
        "This node's own disk is older than what it had acknowledged.",
        "See completeness.",
    ),
    carrier.MessageRefused: Event(
        "carrier.message-refused", "warning", "A message of a child was refused for good.", "See `why`."
    ),
    carrier.SpoolDropped: Event(
        "carrier.spool-dropped",
        "error",
        "The spool was full; its oldest records are given up and announced as lost.",
        "More [journal] megabytes, or mend the way to the parent.",
    ),
    carrier.SpoolHigh: Event(
        "carrier.spool-high",
        "warning",
        "What waits for the parent takes half of the journal's room; or, with `is_high` false, less than a quarter of it again.",
        "Mend the way to the parent, or give [journal] more megabytes; beyond nine tenths the oldest is given up.",
    ),
    carrier.CaughtUp: Event(
        "carrier.caught-up",
        "info",
        "The parent has the records that waited when it took this node (told of 64 and more).",
        "Nothing.",
    ),
    carrier.LakeUnknown: Event(
        "carrier.lake-unknown",
        "error",
        "This new root takes records without knowing what its lake holds, so what comes home may be kept twice; or, with `is_unknown` false, it knows now.",
        "See `detail`; the lake is asked again by itself.",
    ),
    store.StoreJoined: Event(
        "store.joined", "info", "The node has what the others have, and serves the store.", "Nothing."
    ),
    store.ConflictResolved: Event(
        "store.conflict",
        "warning",
        "Two changes of an entry knew nothing of each other; the greater one stands, the other is kept here.",
        "Look at both: weft store conflicts; the loser comes back with --restore.",
    ),
    store.StoreIncomplete: Event(
        "store.incomplete",
        "warning",
        "Changes are missing that nobody in reach has; the node serves without them and goes on asking.",
        "Start the nodes that made them, or drop those that will not come back: weft store node drop.",
    ),
    store.SplitFound: Event("store.split", "warning", "Nodes are heard again that had been apart.", "Nothing."),
    store.SplitHealed: Event("store.healed", "info", "Nothing of both sides is missing any more.", "Nothing."),
    store.EntryRepaired: Event("store.repaired", "info", "An entry was written anew for real servers.", "Nothing."),
    store.TombstonesPurged: Event("store.purged", "info", "Deletions that all have seen are forgotten.", "Nothing."),
    store.StaleDropped: Event(
        "store.stale-dropped",
        "warning",
        "An old copy of an entry was removed that had been deleted and forgotten; its value stands here.",
        "Write it again, if it is wanted.",
    ),
    store.ValueMistyped: Event(
        "store.mistyped", "warning", "Another node wrote what is not of its type.", "Change it."
    ),
    store.IdClash: Event(
        "store.id-clash",
        "error",
        "Two different changes have one name; the greater one is taken.",
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
        "This node's disk is older than what it had sent, and not everybody could say how far it was: it has a new name.",
        "Nothing.",
    ),
    store.NodeDropped: Event(
        "store.dropped", "warning", "A node will not come back; its later changes are refused.", "Nothing."
    ),
    store.ChangesOrphaned: Event(
        "store.orphaned",
        "warning",
        "This node had been dropped; changes that nobody took are set aside.",
        "weft store orphans lists them, and writes them anew with --replay.",
    ),
    store.StoreMalformed: Event(
        "store.malformed",
        "warning",
        "A message could not be read or may not be said, and changed nothing. At most one in ten seconds and sender.",
        "See who sends it: `peer`, `code`.",
    ),
    store.EchoMissing: Event(
        "store.no-echo",
        "warning",
        "The broker does not hand back what this node says.",
        "Look at the broker's access list and bridges.",
    ),
    store.NetworkOpen: Event(
        "store.open-network",
        "warning",
        "Beyond this machine the store asks nobody who they are, since its file has `open = true`.",
        "Let only trusted machines reach its client port and the broker.",
    ),
    store.StoreLinkUp: Event("store.link-up", "info", "A link of the store carries messages.", "Nothing."),
    store.StoreLinkDown: Event(
        "store.link-down", "warning", "A link of the store carries nothing any more; it is tried again.", "See `why`."
    ),
    store.BecameReadOnly: Event(
        "store.read-only",
        "error",
        "The store takes no orders at this node.",
        "`name-collision`: another [store] name; `dropped`: weft store orphans; `unconfirmed`: weft store accept-tick.",
    ),
    store.LimitExceeded: Event(
        "store.over-limit", "warning", "The store holds more than it should.", "Delete, or raise the limit."
    ),
    **CATALOG,
    document.SessionOpened: Event(
        "doc.opened", "info", "A session's socket listens; its log is as the journal had it.", "Nothing."
    ),
    document.SessionExposed: Event(
        "doc.insecure",
        "warning",
        "A session listens beyond this machine and has no key: whoever reaches it can edit.",
        "Bind it to loopback, or know everybody on that network.",
    ),
    document.NoPort: Event(
        "doc.no-port",
        "error",
        "No port was free for a session: others cannot reach it.",
        "Another `listen` of the session, or make a port free.",
    ),
    document.PeerActive: Event(
        "doc.peer-active", "info", "A peer is in the session: everything entered goes to it.", "Nothing."
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
        "A peer is gone; it is called again, and what it missed is sent then.",
        "Look at its machine and the network between.",
    ),
    document.PeerMismatch: Event(
        "doc.peer-mismatch",
        "info",
        "Somebody of another session called, or was called; it is left alone.",
        "Nothing, unless it should be the same session: then compare name and schema.",
    ),
    document.TimeSkew: Event(
        "doc.skew",
        "warning",
        "A peer's session time differs from ours by over two seconds.",
        "Set the clocks; `set` of the later clock wins.",
    ),
    document.TimeAhead: Event(
        "doc.time-ahead",
        "warning",
        "An operation is stamped over five minutes ahead; own ones do not follow it.",
        "Set the clock of its machine.",
    ),
    document.LogFork: Event(
        "doc.fork",
        "error",
        "Two different operations claim one number of one source; `kept` counts, everywhere the same.",
        "Find out who else uses that source: a copied disk, or a forger.",
    ),
    document.LogDiverged: Event(
        "doc.diverged",
        "error",
        "A peer has the same numbers and another check for a minute.",
        "weft doc sources on both, and compare.",
    ),
    document.LogStranded: Event(
        "doc.stranded", "warning", "What a lost node entered last cannot be adopted.", "Enter it."
    ),
    document.LogFull: Event(
        "doc.full",
        "error",
        "The session holds as many sources or operations as it may; nothing stored is lost.",
        "Begin a new session.",
    ),
    document.LogDegraded: Event(
        "doc.degraded",
        "warning",
        "The journal has no room: own entries are refused, others are served from memory; or that is over.",
        "Make room on its device, or give it more [journal] megabytes.",
    ),
    document.IdentityReused: Event(
        "doc.identity-reused",
        "warning",
        "Somebody holds more of our source than we do: this start goes on under a new one.",
        "Nothing; it happens after a disk was restored.",
    ),
    document.ConflictFound: Event(
        "doc.conflict",
        "warning",
        "Two people changed the same thing, and one of the changes is hidden now.",
        "weft doc conflicts, weft doc resolve.",
    ),
    drain.LakeFull: Event(
        "lake.full", "error", "The lake's device is full; the journal keeps what comes.", "Make room."
    ),
    drain.LakeFailed: Event(
        "lake.failed", "error", "The lake cannot be written; the journal keeps what comes.", "See `detail`."
    ),
    drain.LakeBack: Event("lake.back", "info", "The lake can be written again.", "Nothing."),
}
"""Every event that is journaled; other events are only passed between cores."""


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
