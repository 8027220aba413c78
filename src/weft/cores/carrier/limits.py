"""The numbers of the carrier, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND
from weft.cores.kit.backoff import BackOff

HOP_WINDOW: Final = 1_000  # messages unacknowledged: 20 s of a sensor, 2 round trips of a busy collector
HOP_WINDOW_BYTES: Final = 8 << 20  # bytes unacknowledged: what a link of 10 MB/s holds in 0.8 s
BATCH_MESSAGES_MAX: Final = 64  # per multipart (CLI-008)
BATCH_BYTES_MAX: Final = 256 << 10  # payload per multipart; one larger message goes alone
BATCH_HEADER_BYTES: Final = 48 << 10  # a batch closes at this estimated header size; the limit is 64 KiB
ITEM_HEADER_BYTES: Final = 180  # estimate of one item's header without its `via`
MAIL_HEADER_BYTES: Final = 560  # the same for mail without its format: type and destination are text
VIA_BYTES: Final = 18  # of each further node in `via`
RECORD_BYTES: Final = 100  # overhead of a record beyond its payload, on disk and on the link (CHN-039)

MEMORY_BYTES: Final = 16 << 20  # recent records kept in memory; the rest is read back from the journal
FETCH_BYTES: Final = 2 << 20  # read back at once: 10 ms of a slow disk, a quarter of the window
LATE_BYTES_MAX: Final = 4 << 20  # of records that come during a fetch; bounded, so that the fetch ends
FETCH_RETRY_NS: Final = 50 * MILLISECOND  # the journal had nothing new yet
FETCH_RETRY_MAX_NS: Final = 5 * SECOND

RECORDS_PERCENT: Final = 50  # of the core's budget, for recent records: the rest is read back from the journal
VOLATILE_PERCENT: Final = 25  # for volatile mail: beyond it, mail ends as `overload`
MET_PERCENT: Final = 20  # for the identities of mail: beyond it, the window without news for longest is dropped
WINDOW_COST: Final = 500  # bytes of memory for one origin's era, and
PAGE_COST: Final = 400  # of each page of its numbers
BACKLOG_MIN: Final = BATCH_MESSAGES_MAX  # records that waited; with fewer, one multipart is all of it
DELIVERY_NS: Final = 10 * SECOND  # volatile mail waits for a link no longer than this (CHN-031)
VOLATILE_MAX: Final = 10_000  # pieces of volatile mail waiting for one node: 1,000/s for DELIVERY_NS
VOLATILE_BYTES_MAX: Final = 16 << 20
ROUTES_MAX: Final = 10_000  # nodes below children whose route is remembered (RTE-003)
FOREVER: Final = 1 << 63

BACK_OFF: Final = BackOff(SECOND // 10, 5 * SECOND, share=0.2)  # pauses before the next `hello`
BEAT_MS: Final = 1_000  # after this silence of our own we send a beat
DEAD_MS: Final = 5_000  # after this silence the other side counts as lost (CLI-005)
BEAT_MS_MIN: Final = 100  # with less, a busy Raspberry Pi misses its own beat
DEAD_MS_MAX: Final = 600_000
SWEEP_NS: Final = SECOND // 2  # between two looks at all children: 10,000 of them cost 2 ms
SETTLE_NS: Final = SECOND // 2  # how long `safe` may wait before it is passed on
ACK_WITHIN_NS: Final = 2 * SECOND  # the safe cursor is written with the next wall, without a sync of its own
SPOOL_HIGH_PERCENT: Final = 50  # of the journal's room: as much again, and the oldest records are dropped (CHN-083)
SPOOL_LOW_PERCENT: Final = 25  # below it, the spool is no longer high: far enough from 50 not to tell of every swing
LAKE_BACK_OFF: Final = BackOff(SECOND, 60 * SECOND, share=0.2)  # before a lake that was not read is asked again
LAKE_PATIENCE_NS: Final = 30 * SECOND  # children of a new root wait no longer for its lake: they keep what they have
RELEASE_STEP: Final = 1_000  # records of other cores after which an idle carrier releases journal records

CHILDREN_MAX: Final = 10_000  # live links; one more is refused `busy`
CHILDREN_KNOWN_MAX: Final = 20_000  # nodes whose progress is kept; the one not heard for longest is dropped first
ERAS_MAX: Final = 4  # starts of one child whose `upto` is kept (CHN-032)
ERA_STEP_MAX: Final = (
    1 << 58
)  # above the highest era known of a node: microseconds, or milliseconds * 65,536 until 2109 (CHN-003)
FIRST_STEP_MAX: Final = (
    1 << 40
)  # numbers of a start that other parents made safe: 12 days of a million a second (FLD-011)
MARKS_MAX: Final = 256  # per child and era: places in our journal that are not safe yet; thinned out when full
SEEN_ERAS_MAX: Final = 16  # starts of one origin per stream whose numbers the root keeps
SEEN_RANGES_MAX: Final = 4_096  # gaps in one origin's numbers; beyond, the lowest range is forgotten
IDENTITIES: Final = 65_536  # per origin and era: mail at 10/s for two hours, in 8 KiB (CHN-035)
IDENTITY_PAIRS_MAX: Final = 10_000  # starts of nodes whose mail is remembered: at most 80 MiB
NOTES_MAX: Final = 4_096  # losses and era links remembered, so that none is kept twice

GARBLED_MAX: Final = 10  # unreadable multiparts in GARBLED_NS after which a peer is cut off (CLI-006)
GARBLED_NS: Final = 60 * SECOND
STRANGERS_MAX: Final = 1_024  # peers without a link that are remembered, so that each gets one answer per second
STRANGER_NS: Final = SECOND

assert MEMORY_BYTES >= HOP_WINDOW_BYTES + FETCH_BYTES, "a full window and the next piece must fit"
assert BATCH_BYTES_MAX <= HOP_WINDOW_BYTES, "a batch must fit the window"
assert DEAD_MS >= 3 * BEAT_MS, "a single lost beat must not end a link"
assert ERAS_MAX >= 2, "a restarted child is the common case"
