"""The numbers of the configuration core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND
from weft.cores.kit.backoff import BackOff
from weft.wire.replication import PACK_PAIRS_MAX

HEARTBEAT_NS: Final = 2 * SECOND  # CFG-074
HEARTBEAT_MIN_NS: Final = 50 * MILLISECOND  # with less, a busy Raspberry Pi misses its own beat
HEARTBEAT_MAX_NS: Final = 3_600 * SECOND
DEAD_AFTER: Final = 5  # one lost beat is normal, five are not (REC-001)
ORPHAN_DEATHS: Final = (
    3  # D without a parent, after which a collector stops beating so that its children look for another parent
)

SNAPSHOT_NS: Final = 2 * SECOND  # between two answers of a snapshot (CFG-074)
RETRY: Final = BackOff(SECOND // 2, 30 * SECOND, share=0.1)  # after an attempt that failed
FAILING_AFTER: Final = 3  # failed attempts before an event is told
RESYNC_NS: Final = SECOND  # between two resyncs; doubles while they follow within CALM_NS (CFG-037)
RESYNC_MAX_NS: Final = 30 * SECOND
CALM_NS: Final = 60 * SECOND
REWINDS_MAX: Final = 3  # questions again after an older snapshot of the same epoch (CFG-044)
TIP_AFTER_NS: Final = SECOND  # after reaching RUN or a new subscription: earlier publications have arrived by then
TIP_PERIOD_BEATS: Final = 10  # heartbeats between tip questions (CFG-019)
TIP_GRACE_NS: Final = SECOND  # the answer may overtake an update
TOGETHER_NS: Final = SECOND  # writes that belong together wait this long for the last one (CFG-026)
REPORT_NS: Final = 100 * MILLISECOND  # between two reports of the number applied; CFG-047 allows 200 ms
WAITING_UPDATES_MAX: Final = 10_000  # a 2 s snapshot at 5,000 updates/s
WAITING_BYTES_MAX: Final = 8 << 20  # they are journaled in one turn, which can write 16 MiB

PORTION: Final = 1_000  # answers to one child in one turn (CFG-043)
PACKED_FROM: Final = 64  # pairs of a snapshot; fewer are sent in less time than one turn takes
PACK_PAIRS: Final = 256  # of one message: it costs some 50 us at both ends together, 0.2 for each pair
PACK_BYTES: Final = 32 << 10  # of its values, unless one has more; 1,000 messages may wait for a slow child
PACKS_BYTES: Final = 1 << 20  # of all messages of a portion, which counts as one of PORTION answers
PACKS: Final = PACKS_BYTES // PACK_BYTES
KEYS_MAX: Final = 200_000
STORE_BYTES_MAX: Final = 256 << 20  # keys and values
VALUE_BYTES_MAX: Final = 1 << 20
ORDER_BYTES_MAX: Final = 4 << 20  # keys and values of one order: each is journaled twice in the same turn
WRITES_PER_TURN: Final = PORTION  # of a large order: 70 ms of a slow core, and the root beats between
LARGE_MAX: Final = 4  # large orders that wait for one under way
KEYS_PLACED_MAX: Final = 64  # keys that came or went and are placed singly; with more, all are sorted again
PART_BYTES: Final = 256 << 10  # of one record with many pairs
PART_PAIRS: Final = 2_048  # the same
PAIR_BYTES: Final = 24  # what a pair costs in a record beyond its key and value

WAIT_NS: Final = 10 * SECOND  # a request for a snapshot waits this long for our own one (CFG-042)
REQUESTS_MAX: Final = 1_000  # snapshot requests being served or waiting
REQUESTS_PER_CHILD_MAX: Final = 8
PORTION_BYTES: Final = 4 << 20  # of them: both bounds, since a value may have 1 MiB
TURN_MAX: Final = 8 * PORTION  # answers to all children in one turn: 30 ms of encoding
PORTION_NS: Final = 10 * MILLISECOND  # before a full queue is tried again
STUCK_NS: Final = 10 * SECOND  # a child that accepts nothing for this long is dropped
BUNDLE_BYTES_MAX: Final = 8 << 20

ACK_NS: Final = 5 * SECOND  # a write waits this long for its majority (CFG-024)
PENDING_MAX: Final = 10_000  # writes that wait for it; people of a fleet type fewer in 5 s
DIGESTS_MAX: Final = 20_000  # numbers whose digest a root remembers: reports come every 100 ms, some seconds late
NODES_MAX: Final = 10_000  # voters whose number is known
HISTORY_MAX: Final = 10_000  # writes that can be listed and undone (CFG-027)
HISTORY_BYTES_MAX: Final = 64 << 20  # of their values, old and new
PAIR_COST: Final = 400  # bytes of memory of a pair besides key and value
WRITE_COST: Final = 400  # the same of a write that can be undone
PAIRS_PERCENT: Final = (
    55  # of the core's budget: beyond it, a root refuses writes; a replica accepts what its root has accepted
)
HISTORY_PERCENT: Final = 20  # beyond it, the oldest writes are dropped
WHO_BYTES_MAX: Final = 256
LIST_MAX: Final = 10_000  # pairs or writes of one answer
LIST_BYTES_MAX: Final = 4 << 20
DEAD_MAX: Final = 100  # alerts that one answer names
EXPIRING_SPARE: Final = 1_000  # ends of keys that were written again, before it is worth removing them
TTL_MAX_S: Final = 10 * 365 * 86_400  # a longer time to live means forever

assert DEAD_AFTER >= 2, "a single lost datagram must not move a node"
assert WAITING_BYTES_MAX >= 4 * VALUE_BYTES_MAX, "else one large update restarts every snapshot"
assert ORDER_BYTES_MAX >= 2 * VALUE_BYTES_MAX, "a large value must fit an order"
assert PACK_PAIRS <= PACK_PAIRS_MAX, "a child must read what is packed"
assert RESYNC_MAX_NS <= CALM_NS, "a pause must end before it is forgotten"
