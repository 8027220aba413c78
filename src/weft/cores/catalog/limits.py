"""The numbers of the catalog core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND
from weft.cores.kit.backoff import BackOff

# Records
NAME_BYTES_MAX: Final = 255  # CAT-014
RECORD_BYTES_MAX: Final = 64 << 10
TAGS_MAX: Final = 64
TAG_BYTES_MAX: Final = 128
METADATA_MAX: Final = 64  # pairs
METADATA_BYTES_MAX: Final = 1 << 10  # of a value
DEPTH_MAX: Final = 32  # CAT-009
INTERVAL_MS: Final = (50, 3_600_000)
INTERVAL_DEFAULT_MS: Final = 1_000
INSTANCES_MAX: Final = 100_000
PER_NAME_MAX: Final = 1_000
PER_OWNER_MAX: Final = 20_000
LISTED_MAX: Final = 16  # full records of one name in an answer (CAT-030)
LIST_MAX: Final = 1_000  # names in one answer of `dbp.list`

INSTANCE_BYTES: Final = 2_000  # of memory that an instance costs besides its record: names, indices, its place in line
COPIES: Final = (
    4  # of a record in memory, once it was looked up: itself, its answer, that of its name, that of all names
)
TOKEN_BYTES: Final = 64  # of memory for each value of a record, however short it is

# Parts of the core's budget, in percent: what has no room is refused (records) or makes room for what is new
RECORDS_PERCENT: Final = 50
VALUES_PERCENT: Final = 20
CHANGES_PERCENT: Final = 12
LOGS_PERCENT: Final = 6  # remembered for `dbp.logs`
LOGS_WAITING_PERCENT: Final = 4  # each of: behind holes, in line for the journal, and repeated

# Messages
ENVELOPE_FRAMES_MAX: Final = 8  # CAT-005
ENVELOPE_BYTES_MAX: Final = 255
FRAMES_MAX: Final = 64
MALFORMED_MAX: Final = 20  # of one peer in `MALFORMED_NS`: then it is ignored for as long (R14)
MALFORMED_NS: Final = 60 * SECOND
TELL_NS: Final = 10 * SECOND  # at most one event per peer (CAT-080)
CLOSED_NS: Final = 600 * SECOND  # an id that was closed is remembered so long (CAT-020)
CLOSED_MAX: Final = 10_000
PEERS_MAX: Final = 100_000  # routing ids whose state or time format is remembered; the oldest is forgotten
CHANGES_BYTES: Final = 6 << 20  # of indexed changes in one turn; then who changes something waits: a turn has 16 MiB
CHANGE_BYTES: Final = 512  # of each, besides the record
DATAGRAM_BYTES_MAX: Final = 1_400
LINES_MAX: Final = 32  # of one datagram

# Liveness
BEACON_NS: Final = SECOND
LIVENESS: Final = 3  # L: intervals of silence until an instance counts as gone
PROBE_NS: Final = 500 * MILLISECOND  # or half an interval
PROBES_MAX: Final = 256  # under way at once
PROBES_TURN: Final = (
    32  # new ones in `PROBES_TURN_NS`: each may need a socket, and who looks something up waits for them
)
PROBES_TURN_NS: Final = 10 * MILLISECOND
PROBE_IDLE_NS: Final = 60 * SECOND  # between two probes of an INACTIVE instance, or ten intervals (BEA-017)
RETURN_BEATS: Final = 3  # by UDP in a row end beats over TCP (BEA-018)
RESTORED_NS: Final = 5 * SECOND  # what was restored is given so long to speak (CAT-051)
REAP_NS: Final = 600 * SECOND
HOLD_MAX_NS: Final = 60 * SECOND
HOLD_INSTANCES: Final = 10  # BEA-023
HOLD_ADDRESSES: Final = 3
HOLD_SHARE: Final = 10  # percent of all instances that go per second when a hold ends
PAUSE_NS: Final = 500 * MILLISECOND  # BEA-022

# Checks
CHECKS_AT_ONCE: Final = 64  # of one broker (BEA-024)
CHECKS_PER_INSTANCE: Final = 8

# Watches
RING_MAX: Final = 65_536  # changes that can be asked for again
RING_BYTES_MAX: Final = 64 << 20  # of them: both bounds, since a record may be 64 KiB
CHANGES_LIST_MAX: Final = 1_000  # in one answer of `dbp.changes`
CHANGES_BYTES_MAX: Final = 1 << 20  # of them; one goes in any case
CHANGE_COST: Final = 300  # bytes of memory of a change besides its text
TOPICS_MAX: Final = 1_000  # filters that are watched
TOPIC_IDLE_NS: Final = 60 * SECOND  # without a subscriber
TICK_NS: Final = SECOND
TICKS_MAX: Final = 100  # in one second, asked for by subscriptions
FILTER_TICK_NS: Final = 10 * SECOND

# Last values
VALUES_MAX: Final = 100_000
VALUES_BYTES_MAX: Final = 256 << 20
VALUE_BYTES_MAX: Final = 1 << 20
VALUE_COST: Final = 600  # bytes of memory of a value besides its frames
VALUES_LISTED_MAX: Final = 1_000
SOURCES_MAX: Final = 1_000  # publishers that are subscribed to: a socket each
PUBLISHERS_MAX: Final = 16  # of one instance: more are no service but a flood
LISTED_BYTES_MAX: Final = 16 << 20  # of values or log records in one answer: at most what a client holds at once
REPLAY_TURN: Final = 1_000  # kept values that are said again in one turn; the rest in the next ones
REPLAYS_MAX: Final = 64  # of which a rest waits; who subscribes beyond them hears live values only
GONE_BYTES_MAX: Final = 16 << 20  # of topics without a value that are not forgotten yet
SUBSCRIPTION_BYTES_MAX: Final = 1 << 10  # of each that is told apart; of a longer one only the beginning
SUBSCRIBED_TOPICS_MAX: Final = 10_000  # subscriptions that are told apart; beyond them everything is published

# Taps
TAPS_MAX: Final = 8  # at once
TAP_MEMBERS_MAX: Final = 16  # instances of one tap
TAP_SILENCE_NS: Final = 3 * SECOND  # of a member that is to report each second (MON-005)
TAP_REPORT_NS: Final = SECOND
TAP_CLOSING_NS: Final = SECOND  # until last reports are waited for no longer

# Bridges
BRIDGES_MAX: Final = 16  # a socket and a table each
IMPORTS_MAX: Final = 100_000  # entries of other networks
WINDOW_MESSAGES: Final = 1_000  # that may be said unacknowledged
WINDOW_BYTES: Final = 8 << 20
BRIDGE_BEAT_NS: Final = SECOND
BRIDGE_SILENCE_NS: Final = 3 * SECOND  # BRI-003
GREET_NS: Final = (
    SECOND  # until a greeting without an answer is said on a new connection: networks that meet agree soon (BRI-013)
)
DIAL: Final = BackOff(250 * MILLISECOND, SECOND, share=0.2)  # between two tries
REFUSED_NS: Final = 8 * SECOND  # the same after a refusal
PART_OFFERS: Final = 128  # of a part of a snapshot
PART_BYTES: Final = 1 << 20
ASK_NS: Final = 2 * SECOND  # BRI-008
CALL_NS: Final = 30 * SECOND  # until a call across has no answer
CALLS_MAX: Final = 1_000  # under way, in each direction
SEEN_MAX: Final = 10_000  # publications that are known (BRI-014)
RELAYS_MAX: Final = 32  # doors for services of other networks (BRI-011)
RELAY_IDLE_NS: Final = 600 * SECOND

# Logs
LOGS_MAX: Final = 10_000  # remembered for `dbp.logs`
LOGS_BYTES_MAX: Final = 64 << 20
LOG_COST: Final = 1_500  # bytes of memory of a record besides its text: it is taken apart, too
LOG_BYTES_MAX: Final = 64 << 10  # of a message; it is cut, and fields of a longer record are left out
LOG_TS_NS: Final = 24 * 3_600 * SECOND  # a stamp that far from ours is no time: the lake refuses such rows (PIP-031)
LOG_TURN_BYTES: Final = 4 << 20  # kept in one turn, `CHANGE_BYTES` of each included: a turn has 16 MiB; the rest waits
LOGS_LISTED: Final = 100  # records in an answer of `dbp.logs`, if nothing else is asked for
LOGS_LISTED_MAX: Final = 1_000
REFILL_MAX: Final = 1_000  # records that a service can say again (LOG-006)
HOLES_MAX: Final = 8  # of one publisher that wait for its answer; beyond them the oldest is given up
LOG_RATE_MAX: Final = 1_000  # of one source in a second (LOG-008)
EQUAL_MAX: Final = 10  # in `EQUAL_NS`; the rest becomes one with `repeated` (LOG-007)
EQUAL_NS: Final = 10 * SECOND
GAP_NS: Final = 5 * SECOND  # a hole may be filled so long (LOG-006)
