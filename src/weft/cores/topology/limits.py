"""The numbers of the topology core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND
from weft.cores.kit.backoff import BackOff

BEACON_YOUNG_NS: Final = 1 * SECOND  # a fleet that is being started finds itself within a second
BEACON_NS: Final = 5 * SECOND  # later, one small datagram per 5 s is enough for newcomers
BEACONS_YOUNG: Final = 10  # beacons sent at the faster rate
KNOWN_MAX: Final = 10_000  # beacons remembered: the nodes of one fleet
KNOWN_NS: Final = 4 * BEACON_NS  # three lost beacons are normal
KNOCK_NS: Final = 2 * SECOND  # a parent found by its beacon has this long to welcome us before another is tried
WHOIS_NS: Final = 1 * SECOND  # between two questions to a node that seems to have our name
SUSPECTED_NS: Final = 60 * SECOND  # between two warnings about such a node when it cannot be asked
HINTED_MAX: Final = (
    1_000  # connections to nodes that a root knows only by beacon; nodes that send POLO are called anyway
)
SUSPECTS_MAX: Final = 16  # nodes whose answer is waited for: anyone can send beacons, so their number proves nothing

MARCO_BURST_NS: Final = tuple(tenth * 100 * MILLISECOND for tenth in (0, 1, 2, 4, 8, 16))  # TOP-005
MARCO_GAP_NS: Final = 100 * MILLISECOND  # new connections within this time share one call
PROTOCOL: Final = 1  # version stated in beacons (TOP-003)
ANSWER_NS: Final = 2 * SECOND  # how long a POLO waits for its answer (CFG-074)
TIMEOUT_PAUSE: Final = BackOff(SECOND // 2, 30 * SECOND, share=0.1)  # after silence (TOP-001 to TOP-017)
BUSY_PAUSE: Final = BackOff(1 * SECOND, 30 * SECOND, share=0.1)  # after WTF 5 and 7
REFUSED_PAUSE: Final = BackOff(30 * SECOND, 300 * SECOND, share=0.1)  # after any other WTF: a person has to act first
REFERRALS_MAX: Final = 4  # from one node to the next; longer chains are circles

ASKED_MAX: Final = 1_000  # POLOs waiting for their write; beyond them WTF 5
NODES_MAX: Final = 10_000  # of one fleet
GROUPS_MAX: Final = 1_000  # of one fleet
PATTERNS_MAX: Final = 10_000  # members of one group, by name or pattern: no more than nodes
TIERS_MAX: Final = 8  # TOP-013
FANOUT: Final = 64  # children per collector, unless the group states a number
FANOUT_MAX: Final = 1_000  # children of one parent
ALTERNATES_MAX: Final = 3  # TOP-012
RECORD_BYTES_MAX: Final = 400  # a join costs one write of at most this size (TOP-016)
REFUSAL_BYTES_MAX: Final = 200  # text of WTF (CFG-007)
START_BEATS: Final = 2  # H that a root without its disk waits (REC-016)

NAMED_MAX: Final = 50  # nodes named in one GROUP; for more, the whole group is called
UPTIME_MS_MAX: Final = 10**12  # thirty years
UPTIME_STEP_NS: Final = 1 * SECOND  # start times closer than this count as equal: messages take time
SUMMONS_MAX: Final = 8  # calls to a group before the rest is left to the nodes' own SOS
STOP_NS: Final = 10 * SECOND  # how long StopNodes waits; TOP-017 allows 30 s
SOS_WINDOW_NS: Final = 60 * SECOND  # SOS within this time count together (REC-003)
ELECTORATES_MAX: Final = 1_000  # sets of voters remembered while a voter is away (REC-011)
GATHER_NS: Final = 100 * MILLISECOND  # children of one collector miss the same beat: collect their calls
SOS_SHARE: Final = 3  # one third of the children's SOS make a collector count as dead (REC-003)
SOS_TIMES_MAX: Final = 1 << 20  # beyond, neither the pause nor the target changes
SOS_PAUSE_BEATS_MAX: Final = 8  # SOS after H, 2H ... 8H (REC-002)
SNAPSHOT_NS: Final = 10 * SECOND  # a root without its disk waits this long for one donor's store (REC-016)

DOUBTED_EPOCHS: Final = 2  # epochs without a promise after damage of a voter's journal (JRN-023)
EPOCH_STEP_MAX: Final = 100_000  # above the own epoch: at one try every ten seconds, eleven days without a majority
CLAIMS_MAX: Final = 16  # roots of a higher epoch whose answer a root waits for

START_NS_MAX: Final = (
    10 * SECOND
)  # by then a root without its disk has heard all nodes: calls end at 1.6 s, beacons come every 5 s
ELECTION_NS_MIN: Final = 300 * MILLISECOND  # W is H/2, and at least this (CFG-074)
ELECTION_TRIES: Final = 3  # unanswered calls before a candidate acts (REC-010)
WUTUP_REPEATS: Final = (0, 1, 2)  # in quarters of W: the first message of a new connection is usually lost
WAIT_ELECTIONS: Final = 3  # WAITING lasts 3 W (REC-010)
ACTING_BEATS: Final = 2  # H between two calls for votes of an acting root
IWIN_REPEATS: Final = (0, 1, 2, 4)  # in tenths of a second, like MARCO
CANDIDATES_MAX: Final = 100  # promises that may still make a root: more than a root has first-level collectors

assert BEACON_YOUNG_NS <= BEACON_NS, "a young node speaks more often, not less"
assert REFUSED_PAUSE.first_ns >= BUSY_PAUSE.first_ns, "who is refused for good must not ask more often than who is busy"
assert WUTUP_REPEATS[-1] < 4, "the last repetition must leave time for an answer within W"
