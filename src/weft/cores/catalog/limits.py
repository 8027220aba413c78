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

INSTANCE_BYTES: Final = 2_000  # of memory for an instance besides its record: names, indices, timer
COPIES: Final = 4  # copies of a record in memory after a lookup: itself, and in three answers
TOKEN_BYTES: Final = 64  # of memory for each value of a record, however short

# Parts of the core's budget, in percent. At the limit, records are refused; other memories drop their oldest entry.
RECORDS_PERCENT: Final = 50
VALUES_PERCENT: Final = 20
CHANGES_PERCENT: Final = 12
LOGS_PERCENT: Final = 6  # remembered for `dbp.logs`
LOGS_WAITING_PERCENT: Final = 4  # for each of three: behind holes, queued for the journal, repeated

# Messages
ENVELOPE_FRAMES_MAX: Final = 8  # CAT-005
ENVELOPE_BYTES_MAX: Final = 255
FRAMES_MAX: Final = 64
MALFORMED_MAX: Final = 20  # of one peer within `MALFORMED_NS`; then it is ignored for that time (R14)
MALFORMED_NS: Final = 60 * SECOND
TELL_NS: Final = 10 * SECOND  # between two events about one peer (CAT-080)
CLOSED_NS: Final = 600 * SECOND  # a closed id is remembered this long (CAT-020)
CLOSED_MAX: Final = 10_000
PEERS_MAX: Final = 100_000  # routing ids whose state or time format is remembered; the oldest is dropped
CHANGES_BYTES: Final = 6 << 20  # of indexed changes in one turn; further changes wait, as a turn has 16 MiB
CHANGE_BYTES: Final = 512  # of each, besides the record
DATAGRAM_BYTES_MAX: Final = 1_400
LINES_MAX: Final = 32  # lines of one datagram

# Liveness
BEACON_NS: Final = SECOND
LIVENESS: Final = 3  # L: intervals of silence until an instance is INACTIVE
PROBE_NS: Final = 500 * MILLISECOND  # or half an interval
PROBES_MAX: Final = 256  # under way at once
PROBES_TURN: Final = (
    32  # new ones in `PROBES_TURN_NS`: each may need a socket, and who looks something up waits for them
)
PROBES_TURN_NS: Final = 10 * MILLISECOND
PROBE_IDLE_NS: Final = 60 * SECOND  # between two probes of an INACTIVE instance, or ten intervals (BEA-017)
RETURN_BEATS: Final = 3  # by UDP in a row end beats over TCP (BEA-018)
RESTORED_NS: Final = 5 * SECOND  # restored instances get this long to send a sign of life (CAT-051)
REAP_NS: Final = 600 * SECOND
HOLD_MAX_NS: Final = 60 * SECOND
HOLD_INSTANCES: Final = 10  # BEA-023
HOLD_ADDRESSES: Final = 3
HOLD_SHARE: Final = 10  # percent of all instances evicted per second after a hold
PAUSE_NS: Final = 500 * MILLISECOND  # BEA-022

# Checks
CHECKS_AT_ONCE: Final = 64  # of one broker (BEA-024)
CHECKS_PER_INSTANCE: Final = 8

# Watches
RING_MAX: Final = 65_536  # changes that can be queried again
RING_BYTES_MAX: Final = 64 << 20  # of them; both bounds, since a record may have 64 KiB
CHANGES_LIST_MAX: Final = 1_000  # in one answer of `dbp.changes`
CHANGES_BYTES_MAX: Final = 1 << 20  # of them; at least one change is answered
CHANGE_COST: Final = 300  # bytes of memory of a change besides its text
TOPICS_MAX: Final = 1_000  # watched filters
TOPIC_IDLE_NS: Final = 60 * SECOND  # without a subscriber
TICK_NS: Final = SECOND
TICKS_MAX: Final = 100  # per second, caused by subscriptions
FILTER_TICK_NS: Final = 10 * SECOND

# Last values
VALUES_MAX: Final = 100_000
VALUES_BYTES_MAX: Final = 256 << 20
VALUE_BYTES_MAX: Final = 1 << 20
VALUE_COST: Final = 600  # bytes of memory of a value besides its frames
VALUES_LISTED_MAX: Final = 1_000
SAVE_NS: Final = 10 * SECOND  # between two times that values are journaled (LVC-008)
SAVED_VALUE_MAX: Final = 64 << 10  # of a value that is; longer ones are pictures, and come again
SAVED_TURN_BYTES: Final = 4 << 20  # at a time: with `CHANGE_BYTES` and `LOG_TURN_BYTES` within the 16 MiB of a turn
SAVED_BYTES_MAX: Final = 16 << 20  # in a snapshot of the journal
SAVED_COST: Final = 200  # bytes of a record besides the frames
SOURCES_MAX: Final = 1_000  # publishers subscribed to, with a socket each
PUBLISHERS_MAX: Final = 16  # of one instance; more would be a flood
LISTED_BYTES_MAX: Final = 16 << 20  # of values or log records in one answer: what a client can hold at once
REPLAY_TURN: Final = 1_000  # kept values published again in one turn; the rest follow in the next turns
REPLAYS_MAX: Final = 64  # that wait to be continued; a subscriber beyond that gets live values only
GONE_BYTES_MAX: Final = 16 << 20  # of topics without values that are not cleaned up yet
SUBSCRIPTION_BYTES_MAX: Final = 1 << 10  # of one subscription; only the beginning of a longer one counts
SUBSCRIBED_TOPICS_MAX: Final = 10_000  # distinguished subscriptions; beyond that everything is published

# Taps
TAPS_MAX: Final = 8  # at once
TAP_MEMBERS_MAX: Final = 16  # instances of one tap
TAP_SILENCE_NS: Final = 3 * SECOND  # of a member, which should report every second (MON-005)
TAP_REPORT_NS: Final = SECOND
TAP_CLOSING_NS: Final = SECOND  # to wait for the last reports

# Bridges
BRIDGES_MAX: Final = 16  # a socket and a table each
IMPORTS_MAX: Final = 100_000  # entries of other networks
WINDOW_MESSAGES: Final = 1_000  # sent and not acknowledged
WINDOW_BYTES: Final = 8 << 20
BRIDGE_BEAT_NS: Final = SECOND
BRIDGE_SILENCE_NS: Final = 3 * SECOND  # BRI-003
GREET_NS: Final = (
    SECOND  # without an answer, a greeting is repeated on a new connection: networks that heal agree soon (BRI-013)
)
DIAL: Final = BackOff(250 * MILLISECOND, SECOND, share=0.2)  # between two tries
REFUSED_NS: Final = 8 * SECOND  # the same after a refusal
PART_OFFERS: Final = 128  # in one part of a snapshot
PART_BYTES: Final = 1 << 20
ASK_NS: Final = 2 * SECOND  # BRI-008
CALL_NS: Final = 30 * SECOND  # until a call across a bridge fails for lack of an answer
CALLS_MAX: Final = 1_000  # under way, in each direction
SEEN_MAX: Final = 10_000  # publications remembered as seen (BRI-014)
RELAYS_MAX: Final = 32  # ROUTERs for services of other networks (BRI-011)
RELAY_IDLE_NS: Final = 600 * SECOND

# Logs
LOGS_MAX: Final = 10_000  # remembered for `dbp.logs`
LOGS_BYTES_MAX: Final = 64 << 20
LOG_COST: Final = 1_500  # bytes of memory of a record besides its text, since it is also kept decoded
LOG_BYTES_MAX: Final = 64 << 10  # of a message, which is truncated; a longer record loses its fields
LOG_TS_NS: Final = 24 * 3_600 * SECOND  # a time this far off counts as missing: the lake refuses it (PIP-031)
LOG_TURN_BYTES: Final = 4 << 20  # to the journal in one turn, with `CHANGE_BYTES` each: a turn has 16 MiB
LOGS_LISTED: Final = 100  # records in an answer of `dbp.logs` by default
LOGS_LISTED_MAX: Final = 1_000
REFILL_MAX: Final = 1_000  # records that a service can send again (LOG-006)
HOLES_MAX: Final = 8  # of one publisher waiting for its answer; beyond, the oldest is given up
LOG_RATE_MAX: Final = 1_000  # of one source in a second (LOG-008)
EQUAL_MAX: Final = 10  # in `EQUAL_NS`; the rest becomes one with `repeated` (LOG-007)
EQUAL_NS: Final = 10 * SECOND
GAP_NS: Final = 5 * SECOND  # time for a hole to be filled (LOG-006)
