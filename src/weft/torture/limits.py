"""The numbers of a run, each with its unit and reason."""

from typing import Final

# The plan
FIRST_FAULT_S: Final = 3.0  # seconds; by then clients have written something that can be lost
MEAN_GAP_S: Final = 4.0  # between two faults: some end before the next one, some overlap
# seconds; shortest: below the limit for calling a node dead; longest: all nodes have noticed and moved
FAULT_S: Final = (1.0, 12.0)
LONG_S: Final = 1_200.0  # of a run; once in such a one all voters beside the first root lose their keys at once
EVENTS_MAX: Final = 10_000  # of a plan read from a file
SPAN_S_MAX: Final = 24 * 3_600.0

# The cables
DELAY_S: Final = (0.05, 0.6)  # the longest is more than a beat, so that answers cross their repetitions
SLOW_BYTES_PER_S: Final = 10_000
QUEUE_BYTES_MAX: Final = 256 << 10  # bytes queued per direction; a full queue drops frames, like a router
FLIP_ONE_IN: Final = 50  # segments with a payload: several a second, and the link still carries something
RESET_ONE_IN: Final = 50  # segments with a payload: connections last some beats, and are made anew
ROUGH_ONE_IN: Final = 20  # frames: 5 % lost, as many twice, as many late; TCP still carries what Weft needs
OVERTAKEN_S: Final = 0.05  # seconds of a late frame: longer than a round trip, shorter than a beat
FRAME_BYTES_MAX: Final = 2_048  # an Ethernet frame and its header, with room

# The disks
STATE_MEGABYTES: Final = 256  # size of one node's file system: enough for an hour, and small enough to fill
UNSENT_S: Final = 30.0  # longer than two faults in a row: what a node has answered by then has left it
FREE_MEGABYTES: Final = 4  # with less than that a node counts its disk as full

# The processes
JOIN_S: Final = 240.0  # seconds until all nodes are let in and have a place, on a busy machine
RESTART_S: Final = (0.5, 3.0)  # after a kill
STOP_S: Final = 30.0
SETTLE_S: Final = 180.0  # seconds from the end of faults until all replicas are equal; more is a finding
DRAIN_S: Final = 600.0  # until the tables have the last segment
LOOK_S: Final = 0.5
TYPE_S: Final = 1.0  # seconds from a command that failed to the next one
REVOKES_MAX: Final = 8  # attempts to revoke one machine's keys: they fail while that machine is the root
EXCUSED_S: Final = 5.0  # seconds that a node whose disk was full may need to end on a busy machine
MEMORY_EVERY_S: Final = 2.0
GROWTH: Final = 1.25  # growth from the third to the last quarter; caches are full by then
GROWTH_BYTES: Final = 48 << 20  # less growth does no harm
ENTRY_BYTES: Final = 2_500  # of memory for each entry of the document: runs of an hour have shown 2,600 to 3,600
SPARK_WARM_S: Final = 120.0  # after a start of the pipeline until each of its jobs has had a batch, on a busy machine
MEMORY_NOTES_MIN: Final = 100  # fewer prove nothing: a process that is always killed early is always warming up
MEMORY_SPAN_S: Final = 1_200.0  # shorter runs only show the figures: they are nearly all warming up

# The clients
PAUSE_S: Final = 0.15  # between two writes of one client
ANSWER_S: Final = 8.0  # seconds; then a client gives up and reconnects
AGAIN_S: Final = 0.3  # seconds from a failed connection to the next attempt
CATALOG_BEAT_S: Final = 1.0
BEAT_S: Final = 1.0  # seconds between two beats of a client of chains; a node waits far longer
TAP_S: Final = 5.0  # seconds of a tap, and between two: half of the time the broker has none
LIFE_S: Final = (8.0, 30.0)  # seconds of a service's life before it says goodbye

# The strangers
KNOCK_S: Final = 1.5  # seconds to wait for an answer; a handshake takes some milliseconds
KNOCK_LOOK_S: Final = 0.05
KNOCKS_PAUSE_S: Final = 0.5
FORMER_MAX: Final = 3  # rotated or revoked key pairs to try at rest: together with all others fewer than 64 connections

assert ROUGH_ONE_IN > 3, "a frame is lost, doubled, late or none of these"
assert FAULT_S[0] < FAULT_S[1]
assert RESTART_S[1] < SETTLE_S
