"""The numbers of the clone core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND

BEAT_NS: Final = SECOND  # between two beats of a server (CFG-061)
SILENCE_NS: Final = 5 * SECOND  # the time after which the pattern's own clients consider a server lost
QUIET_NS: Final = 60 * SECOND  # the same for servers that never beat, as in model 5: they are only asked again

ANSWER_NS: Final = SECOND  # wait for the first answer; doubles. A model-6 primary does not answer for 2 s (CFG-064)
ANSWER_MAX_NS: Final = 30 * SECOND
FAILING_AFTER: Final = 4  # unanswered questions before ServerLost is told: 15 s
CALM_NS: Final = 10 * SECOND  # of following without a gap; then the pauses start small again
LEFTOVER_NS: Final = 2 * SECOND  # after a snapshot: old numbers may still arrive, and the subscription may be late

STAGE_PAIRS_MAX: Final = 200_000  # as many as the configuration may hold
STAGE_BYTES_MAX: Final = 256 << 20
WAITING_UPDATES_MAX: Final = 10_000  # a 2 s snapshot at 5,000 updates/s
WAITING_BYTES_MAX: Final = 8 << 20
ORDER_WRITES_MAX: Final = 1_000  # of one order to the configuration
ORDER_BYTES_MAX: Final = 1 << 20  # of one order, plus one value
OPEN_MAX: Final = 1_000  # writes of clients that the configuration has not answered
TTL_MAX_S: Final = 10 * 365 * 86_400  # a longer time to live means forever

PAIR_COST: Final = 400  # bytes of memory of a pair besides key and value
STAGE_PERCENT: Final = 45  # of the core's budget, for an incoming snapshot: a larger one is refused
WRITES_PERCENT: Final = 10  # for unanswered writes of clients: beyond it they are refused as `busy`

REQUESTS_MAX: Final = 1_000  # snapshots being sent
REQUESTS_PER_CLIENT_MAX: Final = 8
PORTION: Final = 500  # pairs to one client in one turn; half of its queue
TURN_MAX: Final = 4_000  # pairs to all clients in one turn
PORTION_NS: Final = 10 * MILLISECOND  # pause before a full queue is tried again
STUCK_NS: Final = 10 * SECOND  # a client that accepts nothing for this long is dropped

assert 4 * BEAT_NS < SILENCE_NS, "fewer than four lost beats must not part a client from its server"
assert LEFTOVER_NS < SILENCE_NS, "a server that began anew must be noticed before it counts as silent"
