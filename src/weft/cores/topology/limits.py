"""The numbers of the topology core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND
from weft.cores.kit.backoff import BackOff

BEACON_YOUNG_NS: Final = 1 * SECOND  # a fleet that is being started should find itself within a second
BEACON_NS: Final = 5 * SECOND  # later one small datagram per 5 s is enough to find a newcomer's parent
BEACONS_YOUNG: Final = 10  # how many go out at the young rate
KNOWN_MAX: Final = 10_000  # beacons remembered: the nodes of one fleet
KNOWN_NS: Final = 4 * BEACON_NS  # three lost beacons are weather
KNOCK_NS: Final = 2 * SECOND  # a parent that was found by its beacon gets so long to welcome us before another is tried
WHOIS_NS: Final = 1 * SECOND  # between two questions to a node that seems to have our name
SUSPECTED_NS: Final = 60 * SECOND  # between two warnings about such a node that nobody can ask
HINTED_MAX: Final = (
    1_000  # connections to nodes of which a root knows only the beacon; whoever says POLO is called anyway
)
SUSPECTS_MAX: Final = 16  # nodes whose answer is waited for: beacons are free, so their number proves nothing

MARCO_BURST_NS: Final = tuple(tenth * 100 * MILLISECOND for tenth in (0, 1, 2, 4, 8, 16))  # TOP-005
MARCO_GAP_NS: Final = 100 * MILLISECOND  # new connections of one moment share one call
PROTOCOL: Final = 1  # the version that beacons say (TOP-003)
ANSWER_NS: Final = 2 * SECOND  # how long a POLO waits for its answer (CFG-074)
TIMEOUT_PAUSE: Final = BackOff(SECOND // 2, 30 * SECOND, share=0.1)  # after silence (TOP-001 to TOP-017)
BUSY_PAUSE: Final = BackOff(1 * SECOND, 30 * SECOND, share=0.1)  # after WTF 5 and 7
REFUSED_PAUSE: Final = BackOff(30 * SECOND, 300 * SECOND, share=0.1)  # after any other WTF: a person has to act first
REFERRALS_MAX: Final = 4  # from one node to the next; longer ways are rings

ASKED_MAX: Final = 1_000  # POLOs that wait for their write; beyond them WTF 5
NODES_MAX: Final = 10_000  # of one fleet
GROUPS_MAX: Final = 1_000  # of one fleet
PATTERNS_MAX: Final = 10_000  # members of one group, by name or pattern: no more than nodes
TIERS_MAX: Final = 8  # TOP-013
FANOUT: Final = 64  # children per collector where a group does not say
FANOUT_MAX: Final = 1_000  # children of one parent
ALTERNATES_MAX: Final = 3  # TOP-012
RECORD_BYTES_MAX: Final = 400  # one join costs one write of at most this (TOP-016)
REFUSAL_BYTES_MAX: Final = 200  # text of WTF (CFG-007)
START_BEATS: Final = 2  # a root without its disk waits so many H (REC-016)

NAMED_MAX: Final = 50  # nodes that a GROUP names; for more of them it calls the whole group
UPTIME_MS_MAX: Final = 10**12  # thirty years
UPTIME_STEP_NS: Final = 1 * SECOND  # who started within one is equally old: messages take time
SUMMONS_MAX: Final = 8  # how often a group is called before the rest is left to its own SOS
STOP_NS: Final = 10 * SECOND  # how long StopNodes waits; TOP-017 allows 30 s
SOS_WINDOW_NS: Final = 60 * SECOND  # SOS of the same minute count together (REC-003)
ELECTORATES_MAX: Final = 1_000  # sets of voters remembered while one of them is away (REC-011)
GATHER_NS: Final = 100 * MILLISECOND  # children of one collector miss the same beat: they call together
SOS_SHARE: Final = 3  # one third of the children declares a collector dead (REC-003)
SOS_TIMES_MAX: Final = 1 << 20  # then the pause and the turn do not change any more
SOS_PAUSE_BEATS_MAX: Final = 8  # SOS after H, 2H ... 8H (REC-002)
SNAPSHOT_NS: Final = 10 * SECOND  # how long a root without its disk waits for one donor's store (REC-016)

DOUBTED_EPOCHS: Final = 2  # in which a voter promises nothing after a damage of its journal (JRN-023): the one that it may have promised, and the next
EPOCH_STEP_MAX: Final = 100_000  # epochs above the own: a fleet without a majority bids one every ten seconds, so these are eleven days of it
CLAIMS_MAX: Final = 16  # roots of a higher epoch whose answer a root waits for

START_NS_MAX: Final = (
    10 * SECOND
)  # a root without its disk has heard everybody by then: calls end at 1.6 s, beacons come each 5
ELECTION_NS_MIN: Final = 300 * MILLISECOND  # W is H/2, and at least this (CFG-074)
ELECTION_TRIES: Final = 3  # calls without an answer before a candidate acts (REC-010)
WUTUP_REPEATS: Final = (0, 1, 2)  # in quarters of W: the first message of a connection is usually lost
WAIT_ELECTIONS: Final = 3  # WAITING lasts 3 W (REC-010)
ACTING_BEATS: Final = 2  # an acting root calls for votes again after so many H
IWIN_REPEATS: Final = (0, 1, 2, 4)  # in tenths of a second, as MARCO
CANDIDATES_MAX: Final = 100  # promises that may still make a root; more first-level collectors than a root has

assert BEACON_YOUNG_NS <= BEACON_NS, "a young node speaks more often, not less"
assert REFUSED_PAUSE.first_ns >= BUSY_PAUSE.first_ns, "who is refused for good must not ask more often than who is busy"
assert WUTUP_REPEATS[-1] < 4, "the last repetition must leave time for an answer within W"
