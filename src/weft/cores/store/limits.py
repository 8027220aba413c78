"""The numbers of the store core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND
from weft.cores.kit.backoff import BackOff

# Identity and order
NAME_BYTES_MAX: Final = 64  # STO-001
TICK_MAX: Final = (1 << 63) - 1  # STO-002
TOCKS_AHEAD: Final = 10_000  # written to disk ahead of use: a restart continues above it (STO-007)
TOCK_JUMP_MAX: Final = 1 << 32  # from a peer in one message (STO-007)
TICK_JUMP_MAX: Final = (
    1 << 32
)  # above the highest known tick of a node: each change takes a tock, so the same bound as for tocks (FLD-011)
BOOT_JUMP_MAX: Final = 1 << 58  # above the boot of the preceding start: a boot is an era, microseconds since 1970
TOCK_MAX: Final = 1 << 62  # highest tock accepted: above it, a node could send no readable message any more

# Entries
LINKS_MAX: Final = 64  # of a chain received, or made by a repair (STO-006)
VALUE_BYTES_MAX: Final = 64 << 10  # of an order (SEC-042)
VALUE_ITEMS_MAX: Final = 16_384  # same
VALUE_DEPTH_MAX: Final = 32  # same
EVENT_BYTES_MAX: Final = 1 << 20  # of a member's event; a larger one is kept without its value (STO-005)
CONFLICTS_MAX: Final = 1_000  # remembered for `weft store conflicts`; all are in the journal
CONFLICT_BYTES_MAX: Final = 16 << 20  # of their values: both bounds, since values differ in size
LOSSES_MAX: Final = 10_000  # changes whose loss is remembered as reported (STO-013)
ENTRIES_MAX: Final = 2_000_000  # with a value; beyond, orders are refused; changes of others are still accepted
STORE_BYTES_MAX: Final = 2 << 30  # of all values; same
ENTRY_COST: Final = (
    900  # bytes of memory of an entry besides value and path, deleted or not, with a chain of five links
)
ENTRIES_PERCENT: Final = 80  # of the core's budget; beyond, orders are refused; changes of others are still accepted
CONFLICTS_PERCENT: Final = 5  # beyond it, the oldest are dropped
BACKLOG_PERCENT: Final = 10  # of what waits for watchers; beyond it, changes wait in the journal
CONFLICT_COST: Final = 1_200  # bytes of memory of a remembered conflict besides the values

# Nodes
TELL_NS: Final = 10 * SECOND  # between two events about malformed messages of one sender (COD-007)
NODES_MAX: Final = 4_096  # ever heard of
MEMBERS_MAX: Final = 256  # of a mesh; above 64 traffic grows too much: other machines should be clients (LNK-023)
RANGES_MAX: Final = 100_000  # of one node
RANGES_PER_INFO: Final = 10_000

ACK_NS: Final = 5 * SECOND  # until a write that waits for other members is answered as unconfirmed (STO-035)

# Links
BATCH_MESSAGES: Final = 1_000  # LNK-003
BATCH_BYTES: Final = 256 << 10
MESH_BEAT_NS: Final = SECOND
MESH_SILENCE_NS: Final = 3 * SECOND  # LNK-021
MESH_BUSY_NS: Final = 30 * SECOND  # of a peer that sends but does not answer: it is still merging earlier messages
MESH_RETRY: Final = BackOff(SECOND, 5 * SECOND, share=0.2)  # the end of a cut is noticed soon; a hello costs nothing
MESH_TRIES_MAX: Final = 360  # half an hour of unanswered greetings, for a node that no file names
REFUSED_NS: Final = 60 * SECOND

# Recovery
GAP_WAIT_NS: Final = 200 * MILLISECOND  # a message that was overtaken arrives within this time (HEA-010)
ASK_BYTES: Final = 4 << 20  # asked for and on the way at once; it fills queues at both ends
ASK_WEIGHT: Final = 200  # estimated bytes of a change not seen yet
ASK_WEIGHT_MIN: Final = 20  # of one that is only named
ASK_TICKS_MIN: Final = 64
RESEND_MESSAGES: Final = 1_000  # in one turn; own writes do not wait for more
RESEND_BYTES: Final = 1 << 20
RESEND_TICKS: Final = 1 << 16  # examined in one turn
RESEND_STRIDE: Final = 1 << 12  # examined in one step
RESEND_RATE_MESH: Final = 50_000  # changes per second (HEA-005)
RESEND_RATE_BROKER: Final = 20_000
RESEND_RATE_FOREIGN: Final = 1_000  # real servers drop bursts (PNG-038)
HEARD_KEPT_EVERY: Final = 256  # own changes: this many, and those on their way, are sent again after a crash (FLD-021)
RESEND_JOBS_MAX: Final = 64  # askers at a time; the oldest has to ask again

# Foreign servers
REPAIRS_PER_S: Final = 100  # STO-014
LOSERS_MAX: Final = 64  # losers remembered per entry
LOSERS_NS: Final = 600 * SECOND  # and for this long
CONTESTED_MAX: Final = 10_000  # entries with losers at a time: the merge of a large split is repaired in pieces

# Clients
CLIENTS_MAX: Final = 1_000
STREAMS_MAX: Final = 1_000  # open requests of one client; watches are some of them
STREAMS_ALL_MAX: Final = 100_000  # of all clients
TURN_STEPS: Final = 1_000  # entries or changes that all streams together examine in one turn
STREAM_STEPS: Final = 250  # the same for one stream; then another one has its turn
STEP_BYTES: Final = 1 << 10  # of a value: a larger one counts as several steps
ANSWER_BYTES_MAX: Final = 4 << 20  # section 8
WATCH_AHEAD: Final = 64  # changes held for one watcher that does not read; the rest stays in the journal
WATCH_FETCH_BYTES: Final = 256 << 10  # of the journal, per read for watchers that are behind
BATCH_OPS_MAX: Final = 1_000  # writes of one `batch`, since all are made in one turn
NODE_TICKS_MAX: Final = 100_000  # listed by one `enum_node`

# Joining as a client (CLN-020)
JOIN_SILENCE_NS: Final = 10 * SECOND  # until a silent server is given up for the next one
JOIN_PORT: Final = 27_586

# Entries that end by themselves (ADM-014)
UNTIL_MAX_S: Final = 9e9  # what a wall clock of 63 bits can show, in seconds
TTL_MAX_S: Final = 10 * 365 * 86_400.0
ENDINGS_TURN: Final = 1_000  # deleted in one turn
ENDINGS_SPARE: Final = 1_000  # entries changed before their end, before it is worth removing them
ENDINGS_LOOK_NS: Final = 60 * SECOND  # how late a change of the wall clock is noticed

# Deletions
HAVE_CLOCKS: Final = 20  # time between two reports of what a node has, if that changed (DEL-002)
HAVE_FULL: Final = 10  # every so many reports, a complete one is sent
BURIED_CLOCKS: Final = 40  # a tombstone must be this old, and its deleters heard within this time (DEL-003)
PURGED_MAX: Final = 10_000  # tombstones in one turn (DEL-004)
BURIED_SPARE: Final = 1_000  # noted deletions that are none any more, before it is worth removing them
ORPHANS_BYTES: Final = (
    1 << 20
)  # of one record with changes that are set aside, about: a batch of the journal has 16 MiB
