"""The numbers of the chains core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND

PLACE_MIN: Final = 1
PLACE_MAX: Final = 4_294_967_294  # largest place number in a chain (CHN-010)
PLACE_USUAL: Final = 1_000
LINKS_MAX: Final = 10_000  # of one node
CHAINS_MAX: Final = 10_000  # remembered chains; for a further type, the links are looked up for every batch
TYPE_BYTES_MAX: Final = 64
RULES_MAX: Final = 256  # of one node: who may do what (CHN-081)
RULE_TYPES_MAX: Final = 64  # of one rule
KEYS_MAX: Final = 100_000  # states of one filter, by key; the oldest is dropped first (CHN-063)
SERIES_MAX: Final = 100_000  # last samples kept to calculate values from: five sensors with all of their 20,000 series
CONDITIONS_MAX: Final = 64  # of one `where`
COUNT_MAX: Final = 1_000_000  # of a rate limit, and of its burst

# Filters over messages
PATH_PARTS_MAX: Final = 8
PATH_CHARS_MAX: Final = 256  # of a field path, with its dots
RECORDS_MAX: Final = 16_384  # maps in one payload: 64 bytes each fill it; a payload with more is not decoded
KEY_BYTES_MAX: Final = 64  # longest key of a state that is kept as it is; a longer one is replaced by its digest
EXPRESSION_BYTES_MAX: Final = 2_048  # of CEL (CHN-061)
EXPRESSION_DEPTH_MAX: Final = 24  # open brackets; the parser itself gives up at a hundred
EXPRESSION_LIST_MAX: Final = 1_024  # elements that a macro may loop over
MACROS_MAX: Final = 1  # a macro inside another would square the time
EDITS_MAX: Final = 64  # steps of one filter
ROUTE_RULES_MAX: Final = 64  # of one filter: tried one after the other for each message (CHN-068)
EDIT_BYTES_MAX: Final = 256  # of a text to set, of a pattern, of a replacement
EDITED_CHARS_MAX: Final = 65_536  # of a text that a pattern is applied to, and of the result
SALT_BYTES_MAX: Final = 64
PLACE_HANDOVER: Final = 4_000_000_000  # of `forward` and `journal`: after all numbered places (CHN-071)

assert KEYS_MAX >= SERIES_MAX, "a filter by series keeps a state for every series that has values"
assert PLACE_MIN <= PLACE_USUAL <= PLACE_MAX, "a filter without a place has one"

# Clients' links (CHN-010 to CHN-019)
WINDOW_MAX: Final = 65_536  # offered and unanswered, of one link
BACKLOG_MAX: Final = 10_000  # messages that wait behind a full window
MISSES_MAX: Final = 5  # deadlines missed in a row: one is a slow moment, five mean that the program hangs
BYPASS_NS: Final = 30 * SECOND  # how long a sick link is bypassed before one message tries it again
RESOLVED_MAX: Final = 10_000  # messages that a link remembers as answered (CHN-017)
WAITING_MAX: Final = 100_000  # messages that wait for clients to come back (`wait`), in total: ten full backlogs
READERS_MAX: Final = 1_000  # confirming readers remembered at one node: as many as clients can be attached at once
READER_MESSAGES_MAX: Final = 100_000  # waiting for one reader: ten minutes of 160 a second
READER_BYTES_MAX: Final = (
    64 << 20
)  # bytes of payload waiting for one reader: a quarter of the inbox, so that one reader cannot block all
GROUPS_OPEN_MAX: Final = 10_000  # of one aggregate; beyond, the oldest is emitted early (CHN-067)
FRAMES_MAX: Final = 16  # payload frames of one message
NAMES_SHOWN_MAX: Final = 64  # of filters, in one event
SPANS_MAX: Final = 256  # ranges of messages in one event; more ranges make a further event
CHAINS_TRIED_MAX: Final = 8  # chains examined for one that can be forgotten, when all places are taken
LATENCY_CLASSES: Final = 16  # powers of two of a millisecond: the last begins at 16 s

# Parts of the core's budget in percent, and estimated bytes of memory besides the payload
SENDS_PERCENT: Final = 25  # messages on `out` waiting at links; beyond, sends are refused as `overload`
INBOX_PERCENT: Final = 45  # open messages on `in`; beyond, nothing is taken from children and programs
PRESSURE_PERCENT: Final = 75  # of that, beyond which children wait; the rest is for programs that answer messages
COPIES_PERCENT: Final = 20  # copies waiting for clients; clients that are behind lose their oldest
PARCEL_COST: Final = 2_000
COPY_COST: Final = 600

TRIAL_MESSAGES_MAX: Final = 10_000  # sent or expected by one test of filters

# Messages
PAYLOAD_BYTES_MAX: Final = 1 << 20  # of one message, over all its frames
DEPTH_MAX: Final = 16  # length of a chain of messages, each caused by the one before (RTE-005)
TTL_MAX: Final = 255
VIA_MAX: Final = 64  # nodes that one message has passed (RTE-004)
TO_PARTS_MAX: Final = 3  # kind, node, ttl
NAME_BYTES_MAX: Final = 256  # of a node, in a destination
CAUSES_MAX: Final = 65_536  # messages of depth above 0 that can still be named as a cause
TAGS_MAX: Final = 4_096  # sends of one client that are recognised when repeated (CHN-042)
TAGGED_CLIENTS_MAX: Final = 4_000  # clients whose tags are remembered: four times as many as can be attached at once
TRACE_MS_MAX: Final = 30_000  # of one trace: an order is answered within 35 s
TRACED_MAX: Final = 1_000  # messages of one trace
RECEIPT_NS: Final = 30 * SECOND  # volatile mail waits 10 s for each link (RTE-006)
TICKETS_MAX: Final = 100_000  # posts without an answer: more than the credit of a hundred clients
DONE_WITHIN_NS: Final = SECOND  # an ended inbox entry needs no sync of its own: at worst it comes again, marked

# Events

assert TAGS_MAX >= 1_024, "a client's credit must fit its window of tags"
assert WAITING_MAX >= BACKLOG_MAX + WINDOW_MAX, "what one client has held can wait for it"
assert READER_MESSAGES_MAX <= WAITING_MAX, "one reader's bound is no larger than that of all"
assert READERS_MAX < LINKS_MAX, "each reader that is away has a link in its chain"

# Clients

CLIENT_NAME_BYTES_MAX: Final = 64  # what a program is called (CLI-001 to CLI-008)
BATCH_MESSAGES_MAX: Final = 64  # of one multipart (CLI-008)
BATCH_BYTES_MAX: Final = 256 << 10  # of one multipart; one larger message goes alone
BATCH_FRAMES_MAX: Final = 256  # payload frames of one multipart, which has 257 at most
BATCH_NODES_MAX: Final = 1_200  # in all `via` of one multipart: at 18 bytes each, a third of its header
ITEM_HEADER_BYTES: Final = 560  # the longest item of a `rec` without its `via`
VIA_BYTES: Final = 18  # of each further node in `via`
COPIES_MAX: Final = 1_000  # copies waiting for one client that does not read them (CHN-018)
COPIES_BYTES_MAX: Final = 8 << 20
ANSWERS_MAX: Final = 65_536  # statuses and errors waiting for one client: one that sends and never reads is cut off
PORTION_MAX: Final = 1_024  # multiparts sent to one client at once: what its socket accepts
RETRY_NS: Final = 5 * MILLISECOND  # first pause for a client whose socket is full: half of it is read in 2 ms
RETRY_MAX_NS: Final = 100 * MILLISECOND  # a client that has just woken up notices no delay
SWEEP_NS: Final = SECOND // 2  # between two looks at all clients: 1,000 of them cost 0.2 ms
GARBLED_MAX: Final = 10  # unreadable multiparts in GARBLED_NS after which a client is cut off (CLI-006)
GARBLED_NS: Final = 60 * SECOND
STRANGERS_MAX: Final = 1_024  # peers that are not clients and are remembered, so that each gets one answer per second
STRANGER_NS: Final = SECOND

assert COPIES_BYTES_MAX >= 2 * BATCH_BYTES_MAX, "what comes back unsent must fit beside what is new"
assert BATCH_MESSAGES_MAX * ITEM_HEADER_BYTES + BATCH_NODES_MAX * VIA_BYTES <= 60 << 10, "a header has 64 KiB at most"
