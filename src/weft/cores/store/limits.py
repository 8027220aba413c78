"""The numbers of the store core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND
from weft.cores.kit.backoff import BackOff

# Identity and order
NAME_BYTES_MAX: Final = 64  # STO-001
TICK_MAX: Final = (1 << 63) - 1  # STO-002
TOCKS_AHEAD: Final = 10_000  # persisted ahead of use: a restart continues above it (STO-007)
TOCK_JUMP_MAX: Final = 1 << 32  # from a peer in one message (STO-007)
TICK_JUMP_MAX: Final = (
    1 << 32
)  # above the highest known of a node: each change takes a tock, so it is bounded as those (FLD-011)
BOOT_JUMP_MAX: Final = 1 << 58  # above the boot of the start before: a boot is an era, microseconds since 1970
TOCK_MAX: Final = 1 << 62  # that is taken by a jump: who stood at the end could say nothing that anybody reads

# Entries
LINKS_MAX: Final = 64  # of a chain that comes from elsewhere, or repairs (STO-006)
VALUE_BYTES_MAX: Final = 64 << 10  # of an order (SEC-042)
VALUE_ITEMS_MAX: Final = 16_384  # same
VALUE_DEPTH_MAX: Final = 32  # same
EVENT_BYTES_MAX: Final = 1 << 20  # of a member's event; beyond, the value is left out (STO-005)
CONFLICTS_MAX: Final = 1_000  # remembered for `weft store conflicts`; all are in the journal
CONFLICT_BYTES_MAX: Final = 16 << 20  # of the values of these: a thousand large ones are not a thousand small ones
LOSSES_MAX: Final = 10_000  # changes of which it is remembered that their loss was told (STO-013)
ENTRIES_MAX: Final = 2_000_000  # with a value; beyond, orders are refused, what comes from others is kept
STORE_BYTES_MAX: Final = 2 << 30  # of all values; same
ENTRY_COST: Final = (
    900  # bytes of memory of an entry besides its value and path, deleted or not; with a chain of five links
)
ENTRIES_PERCENT: Final = 80  # of the core's budget: beyond, orders are refused, what comes from others is kept
CONFLICTS_PERCENT: Final = 5  # the oldest make room
BACKLOG_PERCENT: Final = 10  # of what waits for watchers: beyond, it waits in the journal
CONFLICT_COST: Final = 1_200  # bytes of memory of a remembered conflict besides the values

# Nodes
TELL_NS: Final = 10 * SECOND  # between two events about malformed words of one sender (COD-007)
NODES_MAX: Final = 4_096  # ever heard of
MEMBERS_MAX: Final = 256  # of a mesh; above 64 each says too much to each, other machines are clients (LNK-023)
RANGES_MAX: Final = 100_000  # of one node
RANGES_PER_INFO: Final = 10_000

ACK_NS: Final = 5 * SECOND  # until a write that others are to have is answered as unconfirmed (STO-035)

# Links
BATCH_MESSAGES: Final = 1_000  # LNK-003
BATCH_BYTES: Final = 256 << 10
MESH_BEAT_NS: Final = SECOND
MESH_SILENCE_NS: Final = 3 * SECOND  # LNK-021
MESH_BUSY_NS: Final = 30 * SECOND  # of one that speaks and does not answer: it merges what came before the question
MESH_RETRY: Final = BackOff(SECOND, 5 * SECOND, share=0.2)  # a cut that ends is noticed soon; a hello costs nothing
MESH_TRIES_MAX: Final = 360  # half an hour of greetings in vain, of a node that no file names
REFUSED_NS: Final = 60 * SECOND

# Recovery
GAP_WAIT_NS: Final = 200 * MILLISECOND  # a message that was overtaken arrives in that time (HEA-010)
ASK_BYTES: Final = 4 << 20  # asked for and on the way at once, so in queues of both ends
ASK_WEIGHT: Final = 200  # bytes of a change that nobody has seen yet
ASK_WEIGHT_MIN: Final = 20  # of one that is only named
ASK_TICKS_MIN: Final = 64
RESEND_MESSAGES: Final = 1_000  # in one turn: an own write waits for no more
RESEND_BYTES: Final = 1 << 20
RESEND_TICKS: Final = 1 << 16  # looked at in one turn
RESEND_STRIDE: Final = 1 << 12  # looked at in one step
RESEND_RATE_MESH: Final = 50_000  # changes per second (HEA-005)
RESEND_RATE_BROKER: Final = 20_000
RESEND_RATE_FOREIGN: Final = 1_000  # real servers drop bursts (PNG-038)
HEARD_KEPT_EVERY: Final = 256  # own changes: so many, and those on their way, are said again after a crash (FLD-021)
RESEND_JOBS_MAX: Final = 64  # askers at a time; the oldest asks again

# Foreign servers
REPAIRS_PER_S: Final = 100  # STO-014
LOSERS_MAX: Final = 64  # remembered of one entry
LOSERS_NS: Final = 600 * SECOND  # and for so long
CONTESTED_MAX: Final = 10_000  # entries with losers at a time: a split of a whole fabric is healed in pieces

# Clients
CLIENTS_MAX: Final = 1_000
STREAMS_MAX: Final = 1_000  # open requests of one client; watches are some of them
STREAMS_ALL_MAX: Final = 100_000  # of all clients
TURN_STEPS: Final = 1_000  # entries or changes that all streams together look at in one turn
STREAM_STEPS: Final = 250  # the same of one stream, then it is another one's turn
STEP_BYTES: Final = 1 << 10  # of a value: a larger one counts as several steps
ANSWER_BYTES_MAX: Final = 4 << 20  # section 8
WATCH_AHEAD: Final = 64  # changes that are held for one watcher that does not take them; the rest stays in the journal
WATCH_FETCH_BYTES: Final = 256 << 10  # of the journal, read at once for watchers that are behind
BATCH_OPS_MAX: Final = 1_000  # writes of one `batch`: they are one turn
NODE_TICKS_MAX: Final = 100_000  # listed by one `enum_node`

# Joining as a client (CLN-020)
JOIN_SILENCE_NS: Final = 10 * SECOND  # of a server that is asked: then the next one
JOIN_PORT: Final = 27_586

# Entries that end by themselves (ADM-014)
UNTIL_MAX_S: Final = 9e9  # what a wall clock of 63 bits can show, in seconds
TTL_MAX_S: Final = 10 * 365 * 86_400.0
ENDINGS_TURN: Final = 1_000  # that are deleted in one turn
ENDINGS_LOOK_NS: Final = 60 * SECOND  # how late a wall clock that was set is noticed

# Deletions
HAVE_CLOCKS: Final = 20  # what a node has is said so often, if it changed (DEL-002)
HAVE_FULL: Final = 10  # and whole each so many times
BURIED_CLOCKS: Final = 40  # a tombstone is so old, and its deleters were heard in that time (DEL-003)
PURGED_MAX: Final = 10_000  # tombstones in one turn (DEL-004)
