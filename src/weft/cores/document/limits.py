"""The numbers of documents, each with its unit and its reason (docs/doc.md)."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND

# Peers
PEERS_MAX: Final = 256  # PEE-014
REMEMBERED_MAX: Final = 512
REFUSED_MAX: Final = 512
QUEUED_MAX: Final = 256  # messages of a peer that is GREETED
CALLS_NS: Final = tuple(seconds * SECOND for seconds in (1, 2, 4, 8, 16, 30))
"""Between one HELO and the next while nobody answers."""
CALLS_IN_VAIN: Final = 24  # in ten minutes: such a peer makes room for another when all places are taken
RECALLS_NS: Final = tuple(seconds * SECOND for seconds in (1, 2, 4, 5))
"""The same for a peer that was ACTIVE and is gone, for `RECALL_NS`; afterwards, if manual, every `RECALL_SLOWLY_NS`."""
RECALL_NS: Final = 600 * SECOND
RECALL_SLOWLY_NS: Final = 30 * SECOND
AFTER_BYE_NS: Final = 10 * SECOND
SESSION_SHOWN: Final = 512  # characters kept of a foreign session's string, for display
REFUSE_NS: Final = 60 * SECOND
ANSWER_NS: Final = SECOND  # a HELO or BOUT is answered at most once in this time
ANSWER_MOST_NS: Final = 30 * SECOND  # each answer doubles the pause before the next one, as each question does
ANSWERS_FORGOTTEN_NS: Final = 60 * SECOND
GREETINGS_MAX: Final = 100  # of unknown endpoints a second (PEE-034)
NEWCOMER_NS: Final = 2 * SECOND  # PEE-030 (c)
VIEW_STILL_NS: Final = SECOND  # PEE-031
VIEW_TOLD_NS: Final = 1_500 * MILLISECOND  # after our last change, a BEAT is sent, ahead of the next regular one
VIEW_SHOWN_NS: Final = 1_500 * MILLISECOND  # a peer that sees other peers has this long to tell us of them
REPAIR_NS: Final = 10 * SECOND
REPAIR_BLIND_NS: Final = 60 * SECOND

# Time
ASKS_MAX: Final = 3
ASK_TIME_NS: Final = 500 * MILLISECOND
SKEW_TOLD_NS: Final = 2 * SECOND
TOLD_NS_MAX: Final = (1 << 63) - 1  # a clock may be wrong by 8,000 years, which an event cannot express in nanoseconds

# The log
SEQUENCE_MAX: Final = (1 << 53) - 1  # GSP-012
EMITTED_BYTES_MAX: Final = 65_536  # GSP-013
HELD_MAX: Final = 10_000  # operations of one source beyond a gap (GSP-014)
HELD_BYTES_MAX: Final = 16 << 20
HELD_BYTES_ALL_MAX: Final = 64 << 20
SOURCES_MAX: Final = 4_096
OPERATIONS_MAX: Final = 2_000_000
LOG_PERCENT: Final = 75  # of the core's budget, for all logs and documents: beyond it, no operation is accepted
HELD_PERCENT: Final = 10  # for operations beyond gaps: those farthest ahead make room
QUEUED_PERCENT: Final = 10  # for messages of peers that are not ACTIVE yet: beyond it, they are ignored
OPERATION_COST: Final = 1_500  # bytes of memory of an operation besides its body: its places in log and fold
BODY_COPIES: Final = 3  # approximate copies of a body in memory: its bytes, its elements, their texts
TAG_COST: Final = 400  # bytes of memory of each tag of a body: a short one may hold many
NAMED_COST: Final = 150  # bytes of memory of each source that a waiting message names
AHEAD_NS: Final = 300 * SECOND  # GSP-002
FUTURE_NS: Final = (
    36_525 * 24 * 3_600 * SECOND
)  # 100 years: a clock that starts in 1970 accepts today's time, and none accepts the year 9999 (FLD-011)
DIVERGED_NS: Final = 60 * SECOND
COMPARE_NS: Final = 5 * SECOND  # with equal numbers and another check: operations on their way have arrived by then
COMPARED_MAX: Final = 2_000  # operations asked for again with each BEAT, to find different ones
RATE: Final = 200  # own operations a second (GSP-055)
BURST: Final = 1_000
DURABLE_NS: Final = 100 * MILLISECOND  # foreign operations, after receipt (GSP-030)
KEPT_BYTES_MAX: Final = 5 << 20  # of the log in one turn: more than a request brings; a write can take 16 MiB
PIECE_BYTES: Final = 1 << 20  # of the log in one record of a snapshot
FORKS_MAX: Final = 1_024  # remembered losers of forks; a malicious peer could make any number
WORDS_MAX: Final = 1_024  # characters of what a record has besides the body: it must fit into 64 KiB

# Adoption (GSP-040)
ADOPT_RANK_NS: Final = 5 * SECOND  # for each member ahead of us, since one adoption is enough
ADOPT_LOOK_NS: Final = 5 * SECOND
ADOPT_MAX: Final = 50  # operations per look, since own entries wait in the same queue

# Gossip
ANSWER_MAX: Final = 500  # operations in one answer (GSP-024)
PACKED_ABOVE: Final = 20  # operations of an answer that go together (GSP-027)
PACE_MAX: Final = 1_500
PACE_BYTES: Final = 1 << 20
PACE_NS: Final = 100 * MILLISECOND
REPEAT_NS: Final = 30 * SECOND  # GSP-025
ASKED_MAX: Final = 2_000  # operations that a peer owes us at once: below the 3,000 that its link to us holds
STREAM_MIN: Final = 64  # operations still to come; fewer are folded as they come
RETRY_PEER: Final = 3  # every third retry asks another peer (GSP-021)
TOLD_MAX: Final = 1_000  # GSIPs to one peer within `PACE_NS`: a session with many starts has thousands of sources
NAMED_MAX: Final = 4_096  # sources that peers name without having shown an operation of them
OWED_MAX: Final = 256  # answers to one peer that wait for its pace
NODES_PER_TELLING: Final = 16  # GSP-025

# The document
WINDOW_S: Final = 60.0  # of conflicts (DOC-002)
DEPTH_MAX: Final = 64
ELEMENTS_MAX: Final = 10_000  # of one operation
DOCUMENT_DEPTH_MAX: Final = 256
DOCUMENT_ELEMENTS_MAX: Final = 1_000_000
TWINS_MAX: Final = 64  # siblings searched for one of another maker, for a conflict (DOC-040)
UNDO_MAX: Final = 4_096  # operations that can be undone one by one, at least (DOC-051)
FOLD_WAIT_NS: Final = SECOND  # between two folds while much arrives: each piece would undo what was folded before
SLICE: Final = 2_000  # steps of a refold in one slice (DOC-053)
AT_ONCE_MAX: Final = 5_000  # steps of a refold that readers wait for
TIMESTAMP_MAX: Final = 253_402_300_799.0  # seconds: the year 9999 (DOC-011)

# Programs
PAGE: Final = 1_000  # operations in one answer
WATCHERS_MAX: Final = 256
TELL_AHEAD_MAX: Final = 8  # changes of a watch that its program has not acknowledged (JAM-020)
TELL_OPERATIONS_MAX: Final = 500  # in one change; of further ones only the number is sent
TELL_EVENTS_MAX: Final = 200
WATCH_SILENCE_NS: Final = 30 * SECOND  # a program sends a sign of life every 10 s
DELTA_NS: Final = 20 * MILLISECOND  # between two comparisons of the whole document, plus per operation in it:
DELTA_NS_PER_OPERATION: Final = 5_000  # a comparison takes about a microsecond each; a board waits at most 250 ms
ANSWER_BYTES: Final = 512 << 10  # of one answer to a program; libzmq hands over frames of a MiB
CHATS_MAX: Final = 200
CHAT_BYTES_MAX: Final = 4_096
SHOWN_MAX: Final = 4  # documents being fetched in pieces
