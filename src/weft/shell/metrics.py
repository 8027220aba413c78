"""What `/status` says, field by field, and what of it are metrics: the source of `/metrics` and docs/status.md (OBS-003).

A path names a field of the status, with `*` for the keys of a map. A metric is named
`weft_<subsystem>_<what>_<unit>[_total]`; the keys of a map become its labels.
"""

import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from weft.base.now import SECOND

if TYPE_CHECKING:
    from prometheus_client.core import Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SUBSYSTEM_MAX: Final = (
    500  # series of one subsystem: a fleet of 1,000 nodes is then 1 % of what one Prometheus holds (OBS-003)
)
NAMES_MAX: Final = 100  # label values of one metric; all others are one more, `other`
OTHER: Final = "other"
TIMED: Final = 20  # series of one histogram, at most


class Fact(NamedTuple):
    """One field of the status. `metric` ends in `_total` if it only grows; empty: the field is no metric."""

    path: str
    meaning: str
    metric: str = ""
    labels: tuple[str, ...] = ()
    """What the parts of a map's key are called; they are separated by `:`."""
    per: int = 1
    """The field's value in so many parts of the metric's unit."""


def _counters(place: str, subsystem: str, **meanings: str) -> tuple[Fact, ...]:
    return tuple(Fact(f"{place}.{name}", text, f"weft_{subsystem}_{name}_total") for name, text in meanings.items())


FACTS: Final = (
    Fact("name", "of the node, unique in the fabric"),
    Fact("level", "root, collector or sensor"),
    Fact("node", "its UUID, hex"),
    Fact("era", "of this start: microseconds since 1970, greater than all before", "weft_node_era"),
    Fact("fleet", "name of the fabric"),
    Fact("version", "of Weft"),
    Fact("open", "true: no keys; whoever reaches a port can pose as any node", "weft_security_open"),
    Fact(
        "security.handshakes.*",
        "how often somebody knocked, by what came of it",
        "weft_security_handshakes_total",
        ("outcome",),
    ),
    Fact("security.refused_last", "the address of who was refused last"),
    Fact("security.known", "nodes and people whose keys are known", "weft_security_known"),
    Fact("security.shut.*.at", "host and port of a door that refuses this node's key"),
    Fact("security.shut.*.why", "key-refused, or other-key: nobody there has the key that is known of it"),
    Fact("security.shut.*.tries", "how often it was knocked at"),
    Fact("security.shut.*.again_s", "seconds until it is knocked at again"),
    Fact("security.doors.*.name", "of a place where it listens without asking for a key"),
    Fact("security.doors.*.at", "host and port of that"),
    Fact("security.doors.*.lets_in", "who comes in there"),
    Fact("port", "first of its ten ports"),
    Fact("uptime_s", "seconds since the start", "weft_node_uptime_seconds"),
    Fact("memory_bytes", "resident memory of the process", "weft_node_memory_bytes"),
    Fact("memory.limit_bytes", "what the process may take", "weft_node_memory_limit_bytes"),
    Fact("memory.tight", "true: near the limit, so that no core takes more than it holds", "weft_node_memory_tight"),
    Fact("memory.held_bytes", "what the cores hold, about", "weft_node_memory_held_bytes"),
    Fact("memory.cores.*.bytes", "what a core holds, about"),
    Fact("memory.cores.*.budget_bytes", "what a core may hold", "weft_node_budget_bytes", ("core",)),
    Fact("memory.cores.*.parts.*.bytes", "what it holds of one thing, about", "weft_node_held_bytes", ("core", "part")),
    Fact("memory.cores.*.parts.*.budget_bytes", "its share of the budget", "weft_node_share_bytes", ("core", "part")),
    Fact(
        "memory.cores.*.parts.*.refused",
        "what was refused because no memory was left for it",
        "weft_node_over_budget_total",
        ("core", "part"),
    ),
    Fact("open_files", "descriptors that the process has open", "weft_node_open_files"),
    Fact(
        "queues.*.items",
        "what waits, by queue: `spool` on disk, the others in memory",
        "weft_node_queue_items",
        ("queue",),
    ),
    Fact("queues.*.items_max", "its limit; absent: only bytes limit it", "weft_node_queue_items_max", ("queue",)),
    Fact("queues.*.bytes", "of what waits", "weft_node_queue_bytes", ("queue",)),
    Fact("queues.*.bytes_max", "their limit", "weft_node_queue_bytes_max", ("queue",)),
    Fact("timings.*.count", "how often it was measured"),
    Fact("timings.*.sum", "of all that was measured, in the unit of its name"),
    Fact("timings.*.buckets.*.*", "a bound, and how many were at most as large; as metrics: the table below"),
    Fact("health.state", "ok, degraded or failed: the worst of its checks"),
    Fact("health.ready", "joined, or at the root with its lake at hand", "weft_node_ready"),
    Fact("health.open", "as `open`"),
    Fact("health.era", "as `era`"),
    Fact("health.uptime_s", "as `uptime_s`"),
    Fact("health.checks.*.name", "journal, space, lake, parent, clock or memory"),
    Fact("health.checks.*.state", "ok, degraded or failed"),
    Fact("health.checks.*.since", "seconds since 1970 when it went into that state, by the node's own clock"),
    Fact("health.checks.*.text", "what was found"),
    Fact("health.checks.*.do", "what to do; empty: nothing"),
    Fact("journal.state", "OPEN, FULL, FAILED or CLOSED"),
    Fact("journal.bytes", "of segments and snapshots on disk", "weft_journal_size_bytes"),
    Fact("journal.budget_bytes", "what it may use", "weft_journal_budget_bytes"),
    Fact("journal.next_lsn", "number of the next record", "weft_journal_next_lsn"),
    *_counters(
        "journal",
        "journal",
        turns="turns written: one append, one sync each",
        records="records written",
        snapshots="snapshots written",
        forgotten="segments removed because nobody needs them any more",
        cut_back="short or refused writes that were cut back",
        refused="writes that found no room",
    ),
    Fact("journal.bytes_written", "bytes of turns written", "weft_journal_written_bytes_total"),
    Fact(
        "journal.torn_bytes", "cut off at this start: turns that a crash left half written", "weft_journal_torn_bytes"
    ),
    Fact("journal.damaged", "damaged places that nobody has accepted yet", "weft_journal_damaged_places"),
    *_counters(
        "unrecorded",
        "node_unrecorded",
        samples="samples never numbered, because the journal had no room",
        events="events never numbered, because the journal had no room; they stand in the log",
    ),
    Fact("alerts.firing", "alerts that fire at this node", "weft_alerts_firing"),
    Fact("refused.*", "messages refused, by channel and code", "weft_node_refused_total", ("channel", "code")),
    Fact(
        "dropped.*",
        "messages that a socket lost, by channel and reason",
        "weft_links_dropped_total",
        ("channel", "why"),
    ),
    Fact("http.refused", "connections and requests that got no page", "weft_http_refused_total"),
    Fact("log.collapsed", "log lines left out, because ten equal ones came before them", "weft_log_collapsed_total"),
    Fact("log.unwritten", "log lines that could not be written", "weft_log_unwritten_total"),
    Fact("cores.catalog.state", "SERVING; HELD: nobody is called dead for now, since most are silent at once"),
    Fact("cores.catalog.epoch", "of this run of the broker: a node without `[catalog]` has none"),
    Fact("cores.catalog.port", "of its ROUTER"),
    Fact("cores.catalog.beats_port", "where services beat by UDP; 0: nowhere"),
    Fact("cores.catalog.events_port", "where changes are published; 0: nowhere"),
    Fact("cores.catalog.index", "of the last change", "weft_catalog_index"),
    Fact("cores.catalog.instances.*", "registered, by state", "weft_catalog_instances", ("state",)),
    Fact("cores.catalog.changes.*", "indexed changes, by kind", "weft_catalog_changes_total", ("op",)),
    Fact("cores.catalog.dropped.*", "messages dropped, by reason", "weft_catalog_dropped_total", ("reason",)),
    Fact("cores.catalog.denied.*", "requests refused, by code", "weft_catalog_denied_total", ("code",)),
    Fact("cores.catalog.beats.*", "heartbeats, by how they came", "weft_catalog_beats_total", ("via",)),
    Fact(
        "cores.catalog.evictions.*",
        "instances that became INACTIVE, by reason",
        "weft_catalog_evictions_total",
        ("reason",),
    ),
    Fact(
        "cores.catalog.counts.*",
        "what else happened in the catalog, by kind",
        "weft_catalog_happened_total",
        ("what",),
    ),
    Fact("cores.document.state", "none: a session has no states but those of its peers"),
    Fact("cores.document.endpoint.*", "where a session hears its peers; empty: nowhere yet"),
    Fact(
        "cores.document.peers.*",
        "peers, by session and state; `alone_s`: seconds without any",
        "weft_doc_peers",
        ("session", "state"),
    ),
    Fact("cores.document.operations.*", "in the log of a session", "weft_doc_operations", ("session",)),
    Fact("cores.document.sources.*", "that ever entered something", "weft_doc_sources", ("session",)),
    Fact("cores.document.check.*", "of the log: equal on nodes that have the same"),
    Fact("cores.document.parked.*", "operations that wait for what they refer to", "weft_doc_parked", ("session",)),
    Fact("cores.document.conflicts.*", "open conflicts", "weft_doc_conflicts", ("session",)),
    Fact("cores.document.behind.*", "1: the document is being folded anew", "weft_doc_behind", ("session",)),
    Fact("cores.document.dormant", "sessions that only the journal knows", "weft_doc_dormant"),
    Fact("cores.document.counts.*", "what happened in all sessions, by name", "weft_doc_happened_total", ("what",)),
    Fact(
        "cores.store.state",
        "OFFLINE, LISTEN, JOIN, RESTORED, CATCHUP, MEMBER or READ_ONLY: a node without `[store]` has none",
    ),
    Fact("cores.store.serves", "whether clients are answered"),
    Fact("cores.store.node", "its name in the store"),
    Fact("cores.store.tick", "of its last own change", "weft_store_tick"),
    Fact("cores.store.tock", "of the latest change or message that it knows of", "weft_store_tock"),
    Fact("cores.store.read_only", "why it takes no orders; empty: it does"),
    Fact("cores.store.entries", "with a value", "weft_store_entries"),
    Fact("cores.store.tombstones", "deletions that are remembered", "weft_store_tombstones"),
    Fact("cores.store.value_bytes", "of all values", "weft_store_value_bytes"),
    Fact("cores.store.missing.*", "changes of a node that are missing", "weft_store_missing", ("node",)),
    Fact("cores.store.members", "of the mesh whose link is up", "weft_store_links"),
    Fact("cores.store.foreign", "real MoaT-KV servers that were heard", "weft_store_foreign"),
    Fact("cores.store.has_broker", "whether the MQTT link is up"),
    Fact("cores.store.links.*", "1: the link carries messages, 0: it is down", "weft_store_link_up", ("link", "peer")),
    Fact(
        "cores.store.watch_lag",
        "journal records that the slowest watcher of changes has yet to read",
        "weft_store_watch_lag",
    ),
    Fact("cores.store.replicate_seconds.count", "writes that were answered when other members had them"),
    Fact("cores.store.replicate_seconds.sum", "how long they waited for that, together"),
    Fact("cores.store.replicate_seconds.buckets.*.*", "a bound, and how many waited at most as long"),
    Fact("cores.store.conflicts", "conflicts so far", "weft_store_conflicts_total"),
    Fact("cores.store.events.*", "changes merged, by outcome", "weft_store_events_total", ("outcome",)),
    Fact("cores.store.malformed.*", "messages refused, by reason", "weft_store_malformed_total", ("reason",)),
    Fact("cores.store.pings.*", "pings heard, by outcome", "weft_store_pings_total", ("outcome",)),
    Fact("cores.store.recoveries.*", "steps of recovery taken", "weft_store_recoveries_total", ("step",)),
    Fact(
        "cores.store.acks.*",
        "writes that waited for other members, by `ack` and outcome",
        "weft_store_acks_total",
        ("level", "outcome"),
    ),
    Fact(
        "cores.store.dropped.*",
        "messages to other nodes that no link could take; they are asked for later",
        "weft_store_dropped_total",
        ("reason",),
    ),
    Fact(
        "cores.store.counts.*",
        "what else happened: sets, resent, repairs, purged",
        "weft_store_happened_total",
        ("what",),
    ),
    Fact("cores.alerts.state", "none: the alerts core has no state but those of its sinks"),
    Fact("cores.alerts.active", "alerts that fire in the fleet, at its root", "weft_alerts_active"),
    Fact("cores.alerts.waiting", "notices that were not sent yet", "weft_alerts_notices_waiting"),
    *_counters(
        "cores.alerts",
        "alerts",
        raised="alerts that were raised in the fleet",
        cleared="alerts that have ended",
        repeated="words of nodes that were known already",
        unlisted="alerts for which the list had no place; they were told all the same",
        unreadable="events of alerts that could not be read",
        sent="notices that were sent",
        failed="tries that did not succeed",
        given_up="notices that nobody will be told of",
        stale="answers that nobody waited for",
    ),
    Fact("cores.topology.state", "SEEKING or SETTLED: whether the parent's place is known"),
    Fact("cores.measurement.state", "PLANNED, RUNNING or STOPPED"),
    *_counters(
        "cores.measurement",
        "measurement",
        taken="samples that passed their threshold, and those of foreign nodes",
        numbered="samples that passed the chain, too; from here on none is lost",
        batches="batches taken",
        readings="readings of a metric that succeeded",
        skipped_ticks="ticks that found their metric still at work",
        failed="readings that failed",
        timed_out="readings that took too long",
        unsupported="readings for which this machine has no source",
        stale="answers that nobody waited for",
        refused_series="series refused by a limit",
        steps="jumps of the wall clock",
        foreign="samples of foreign nodes that were taken in",
        foreign_repeated="samples of foreign nodes that were here already",
        foreign_refused="samples of foreign nodes that no limit leaves room for; `refused` names the limit",
        foreign_beats="beats of foreign nodes",
    ),
    Fact("cores.measurement.foreign_sources", "foreign nodes that are known now", "weft_measurement_foreign_sources"),
    Fact("cores.measurement.foreign_series", "their series", "weft_measurement_foreign_series"),
    Fact("cores.configuration.state", "IDLE, SYNC (a snapshot is asked for), RUN or ROOT"),
    Fact("cores.configuration.number", "of the last write that is here", "weft_configuration_number"),
    Fact("cores.configuration.pairs", "keys and values that are here", "weft_configuration_pairs"),
    Fact(
        "cores.configuration.digest",
        "of all pairs, hex; null: this node follows only some, or has others than its parent",
    ),
    *_counters(
        "cores.configuration",
        "configuration",
        applied="updates of the parent that were applied",
        duplicate="updates that were here already",
        leftover="updates that the snapshot held already",
        late="messages of a connection that was given up",
        resync_lower="snapshots asked for because a number went down",
        resync_gap="snapshots asked for because an update was missing",
        resync_epoch="snapshots asked for because of another root",
        resync_tip="snapshots asked for because the parent had more",
        attempts="snapshots asked for",
        snapshots="snapshots adopted",
        differed="snapshots refused because other pairs came than their end spoke of",
        unproved="snapshots adopted from a parent that says no digest",
        forwarded="updates passed on to children",
        telltales="last writes said again to children after a snapshot",
        hugz="beats said",
        served="questions of children that were answered to their end",
        pairs_served="pairs in those answers",
        choked="messages that a child's full queue did not take",
        stuck="children given up because they took nothing",
        written="writes of this root",
        expired="keys deleted because their time was over",
    ),
    Fact(
        "cores.configuration.snapshot_ms",
        "from the question to the adoption of the last snapshot",
        "weft_configuration_snapshot_seconds",
        per=1_000,
    ),
    Fact("cores.configuration.snapshot_bytes", "keys and values of it", "weft_configuration_snapshot_bytes"),
    Fact(
        "cores.configuration.waiting_high",
        "most updates that have waited for a snapshot",
        "weft_configuration_waiting_high",
    ),
    *(
        Fact(f"cores.configuration.{name}.*", text, f"weft_configuration_{name}_total", ("code",))
        for name, text in {
            "wtf_heard": "refusals of the parent, by code of WTF",
            "wtf_said": "refusals said to children, by code of WTF",
            "refused": "everything refused, by code",
        }.items()
    ),
    *_counters(
        "cores.chains.mail",
        "mail",
        accepted="messages of programs and other nodes that entered a chain: delivered + ended + in flight",
        delivered="messages that reached the bottom of their chain",
        welcomed="clients that have attached",
        unsent="multiparts that a client's socket did not take at once",
        copies_lost="copies that slow readers have missed",
    ),
    Fact("cores.chains.mail.ended.*", "messages that ended before, by reason", "weft_mail_ended_total", ("reason",)),
    *(
        Fact(f"cores.chains.mail.ways.*.{name}", text, f"weft_mail_way_{name}{'' if is_now else '_total'}", ("way",))
        for name, text, is_now in (
            ("accepted", "messages that entered the chains `in` or `out`: delivered + ended + held", False),
            ("delivered", "those that reached the bottom", False),
            ("in_flight", "those that have come to no end, as counted", True),
            ("held", "those that are at a link, in line, or wait", True),
        )
    ),
    Fact(
        "cores.chains.mail.ways.*.ended.*",
        "messages of each direction that ended before, by reason",
        "weft_mail_way_ended_total",
        ("way", "reason"),
    ),
    *_counters(
        "cores.chains.mail.copies",
        "mail_copies",
        accepted="copies for readers that confirm: confirmed + ended + held",
        delivered="copies that their readers have confirmed",
    ),
    Fact(
        "cores.chains.mail.copies.ended.*",
        "copies that no reader will confirm, by reason",
        "weft_mail_copies_ended_total",
        ("reason",),
    ),
    Fact("cores.chains.mail.copies.in_flight", "copies not confirmed yet, as counted", "weft_mail_copies_in_flight"),
    Fact("cores.chains.mail.copies.held", "copies that readers hold, or that wait for them", "weft_mail_copies_held"),
    Fact("cores.chains.mail.readers", "readers that confirm and are remembered", "weft_mail_readers"),
    Fact("cores.chains.mail.readers_away", "those of them that are away", "weft_mail_readers_away"),
    *_counters(
        "cores.chains.mail.sends",
        "mail_sends",
        heard="sends of programs: into a chain + refused + repeated",
        repeated="sends said again by who had not heard of them",
    ),
    Fact(
        "cores.chains.mail.sends.refused.*",
        "sends refused at once, by reason",
        "weft_mail_sends_refused_total",
        ("reason",),
    ),
    Fact("cores.chains.mail.in_flight", "messages under way in this node", "weft_mail_in_flight"),
    Fact("cores.chains.mail.clients", "attached now", "weft_mail_clients"),
    Fact("cores.chains.mail.links", "filters and registrations that stand in chains", "weft_mail_links"),
    Fact("cores.chains.mail.parked", "messages that programs hold, or that wait for them", "weft_mail_parked"),
    Fact("cores.chains.mail.inbox_entries", "arrived messages that are kept until they end", "weft_mail_inbox_entries"),
    Fact("cores.chains.mail.inbox_bytes", "their payload", "weft_mail_inbox_bytes"),
    Fact("cores.chains.state", "nothing: a chain has no state of its own"),
    *_counters(
        "cores.chains",
        "chains",
        accepted="rows that entered a chain: delivered + dropped + refused",
        delivered="rows that left it",
        dropped="rows that a filter dropped",
        refused="rows that a filter refused",
    ),
    *(
        Fact(f"cores.chains.links.*.{name}", text, f"weft_chains_link_{name}_total", ("link",))
        for name, text in {
            "offered": "rows offered to a filter: passed + dropped",
            "passed": "rows that it let through",
            "changed": "batches that left it with fewer rows",
            "dropped": "rows that it dropped",
            "failed": "rows that it could not judge",
        }.items()
    ),
    Fact("cores.carrier.state", "the link to the parent: NONE, GREETING, OPEN or STOPPED (it has no room)"),
    *_counters(
        "cores.carrier",
        "carrier",
        sent="messages sent to a parent for the first time",
        resent="messages sent again",
        held="messages that a parent has acknowledged",
        safe="messages that are durable at the root",
        batches="multiparts sent",
        fetches="reads of the journal, for what memory does not hold",
        dropped="records given up because the spool was full, and announced as lost",
        uncarriable="own records that no message can carry, announced as lost",
        refused_above="messages that a parent refused for good",
        received="messages of children: accepted + repeated + ahead + known + expired + turned_away + held_back",
        accepted="messages of children that were kept",
        repeated="messages of children that were here already",
        ahead="messages of children behind a gap; they come again",
        known="messages of children whose identity was here already",
        expired="messages of children without content",
        turned_away="messages of children refused for good",
        held_back="messages of children not taken: no room, or filters not known yet; they come again",
        unsure="identities too old to be compared, kept",
    ),
    Fact("cores.carrier.spool_records", "records not yet safe", "weft_carrier_spool_records"),
    Fact("cores.carrier.spool_bytes", "bytes of records not yet safe", "weft_carrier_spool_bytes"),
    Fact(
        "cores.carrier.oldest_at",
        "when the oldest record in memory that is not safe was made, ns since 1970; 0: none",
        "weft_carrier_oldest_timestamp_seconds",
        per=SECOND,
    ),
    Fact("cores.carrier.children", "children with a live link", "weft_carrier_children"),
    Fact(
        "cores.carrier.refused.*", "everything refused on node links, by code", "weft_carrier_refused_total", ("code",)
    ),
    Fact("cores.drain.state", "nothing: each stream has its own"),
    Fact("cores.drain.behind_rows", "rows noted and not yet in the lake", "weft_drain_behind_rows"),
    Fact("cores.drain.behind_bytes", "bytes noted and not yet in the lake", "weft_drain_behind_bytes"),
    Fact("cores.drain.segments", "segments published", "weft_drain_segments_total"),
    Fact("cores.drain.rows", "rows published", "weft_drain_rows_total"),
    Fact("cores.enrolment.state", "none: each invitation has a state of its own (weft invite ls)"),
    *_counters(
        "cores.enrolment",
        "enrolment",
        joined="machines that have joined",
        refused="JOINs that were refused",
        offers_refused="offers of another key for a node that were refused",
    ),
    Fact("cores.clone.state", "how another server is followed: RESTING, ASKING or FOLLOWING; only where [chp] is on"),
    *_counters(
        "cores.clone",
        "clone",
        served="snapshots given to Clone clients",
        pairs_served="pairs in them",
        stuck="clients given up because they took nothing",
        published="writes published to Clone clients",
        beats="beats said into seconds of silence",
        sets="writes of clients that were allowed",
        questions="snapshots asked of a Clone server",
        snapshots="snapshots of it that were taken over",
        updates="updates of it that were written",
        leftovers="updates that the snapshot had already",
        late="messages of connections that were given up",
        holes="times that something was missing, so that all was asked for again",
        keys_refused="keys of it that can be none here, and are left out",
        writes_refused="writes that the configuration did not take",
    ),
    Fact("parent.name", "of the parent as configured; empty at the root"),
    Fact("parent.endpoint", "where it was found; empty: not yet"),
    Fact("children.*.name", "of a child with a live link"),
    Fact("children.*.node", "its UUID, hex"),
    Fact("children.*.era", "of its start"),
    Fact("children.*.kept", "messages of that start that are kept here; before its last link, too"),
    Fact("children.*.heard_s", "seconds since it was heard"),
    Fact("foreign.*.source", "endpoint of a foreign node that sends samples here"),
    Fact("foreign.*.series", "its series"),
    Fact("foreign.*.heard_s", "seconds since it was heard"),
    Fact("group", "the group it belongs to; empty: none yet"),
    Fact("root.name", "of the root that it knows"),
    Fact("root.endpoint", "where that is; empty: not known yet"),
    Fact("tree.*.node", "UUID, hex, of a node of the fleet; the root knows all of them but itself, a sensor none"),
    Fact("tree.*.name", "its name"),
    Fact("tree.*.endpoint", "its host and the first of its ports"),
    Fact("tree.*.level", "branch (a collector) or leaf"),
    Fact("tree.*.tier", "steps below the root"),
    Fact("tree.*.group", "its group"),
    Fact("tree.*.parent", "endpoint of its parent"),
    Fact("tree.*.incarnation", "its starts"),
    Fact("tree.*.number", "the write of the configuration that it has said to run; null: it has not said any"),
    Fact("tree.*.at", "when it said so, ns since 1970 by its own clock"),
    Fact("tree.*.wanted", "the last write that concerns it, at the root; a lower `number` is behind; elsewhere null"),
    Fact("unassigned.*.name", "at the root, of a node that no group wants"),
    Fact("unassigned.*.endpoint", "its host and the first of its ports"),
    Fact("neighbours.*.name", "of a node heard on this segment"),
    Fact("neighbours.*.level", "its level"),
    Fact("neighbours.*.host", "where its beacon came from"),
    Fact("neighbours.*.port", "first of its ports"),
)


TIMINGS: Final = {
    "timings.turn_seconds": ("weft_node_turn_seconds", "one turn: hear, think, make durable, speak"),
    "timings.sync_seconds": ("weft_journal_sync_seconds", "one append to the journal with its sync"),
    "timings.loop_lag_seconds": (
        "weft_node_loop_lag_seconds",
        "how much later than asked the event loop woke the node",
    ),
    "timings.turn_messages": ("weft_node_turn_messages", "messages that were heard in one turn"),
    "timings.turn_records": ("weft_journal_turn_records", "records that one turn made durable"),
    "timings.safe_seconds": (
        "weft_journal_safe_seconds",
        "from durable here until nobody needs it here any more, as it is safe further up; every tenth of a second",
    ),
    "cores.store.replicate_seconds": (
        "weft_store_replicate_seconds",
        "from a write with `ack` until so many members have it on disk; the sync of the journal alone is above",
    ),
}
"""The histograms of a status: as which metric each is shown, and what it measures (OBS-004)."""


class Series(NamedTuple):
    """One number of a status, and the fact that it belongs to."""

    fact: Fact
    labels: tuple[str, ...]
    value: float


def series_of(status: dict[str, Any]) -> Iterator[Series]:
    """All numbers of a status that are metrics; what is beyond the names that a metric may have is summed as `other`."""
    for fact in FACTS:
        for labels, total in _by_name(fact, status).items() if fact.metric else ():
            yield Series(fact, labels, total / fact.per if fact.per != 1 else total)


def _by_name(fact: Fact, status: dict[str, Any]) -> dict[tuple[str, ...], float]:
    """The numbers of one metric by their labels."""
    names: dict[tuple[str, ...], float] = {}
    for keys, value in leaves_at(status, fact.path.split(".")):
        if not isinstance(value, int):
            continue
        labels = _labels(fact, keys)
        if labels not in names and len(names) >= _NAMES[subsystem_of(fact.metric)]:
            labels = (OTHER,) * len(labels)
        names[labels] = names.get(labels, 0) + value
    return names


def subsystem_of(metric: str) -> str:
    """The part of Weft that a metric is about.

    >>> subsystem_of("weft_carrier_sent_total")
    'carrier'
    """
    return metric.split("_")[1]


def _names_of(subsystem: str) -> int:
    """How many names each of its metrics may show, so that all of them together stay below the bound."""
    mine = [fact for fact in FACTS if fact.metric and subsystem_of(fact.metric) == subsystem]
    named = sum(bool(fact.labels) for fact in mine)
    timed = TIMED * sum(subsystem_of(metric) == subsystem for metric, _ in TIMINGS.values())
    left = SUBSYSTEM_MAX - timed - (len(mine) - named)
    return min(NAMES_MAX, left // max(1, named) - 1)


_NAMES: Final = {name: _names_of(name) for name in {subsystem_of(fact.metric) for fact in FACTS if fact.metric}}


def _labels(fact: Fact, keys: tuple[str, ...]) -> tuple[str, ...]:
    parts = [part for key in keys for part in key.split(":", len(fact.labels) - 1)]
    return tuple([*parts, *[""] * len(fact.labels)][: len(fact.labels)])


def leaves_at(value: Any, path: list[str]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What stands at a path: the keys in the places of its `*`, and the value."""
    if not path:
        yield (), value
        return
    key, rest = path[0], path[1:]
    if key == "*":
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in pairs:
            for keys, leaf in leaves_at(inner, rest):
                yield (str(name), *keys), leaf
    elif isinstance(value, dict) and key in value:
        yield from leaves_at(value[key], rest)


def _histograms(status: dict[str, Any]) -> Iterator["Metric"]:
    from prometheus_client.core import HistogramMetricFamily

    for path, (metric, meaning) in TIMINGS.items():
        for _, facts in leaves_at(status, path.split(".")):
            buckets = [(f"{bound:g}", count) for bound, count in facts["buckets"]]
            yield HistogramMetricFamily(metric, meaning, [*buckets, ("+Inf", facts["count"])], facts["sum"])


def _build(version: str) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    build = GaugeMetricFamily("weft_build_info", "always 1; what this node runs", labels=("version", "python"))
    build.add_metric((version, platform.python_version()), 1)
    return build


def exposition(status: dict[str, Any]) -> bytes:
    """The metrics of a status as Prometheus text."""
    from prometheus_client import CollectorRegistry, generate_latest  # 4 MB that only a scraped node needs
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector

    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for fact, labels, value in series_of(status):
        family = families.get(fact.metric)
        if family is None:
            kind = CounterMetricFamily if fact.metric.endswith("_total") else GaugeMetricFamily
            family = families[fact.metric] = kind(fact.metric, fact.meaning, labels=fact.labels)
        family.add_metric(labels, value)

    class Once(Collector):
        def collect(self) -> Iterator[Metric]:
            yield from families.values()
            yield from _histograms(status)
            yield _build(status["version"])

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    return generate_latest(registry)
