"""The numbers of a run, each with its unit and reason."""

from typing import Final

# The plan
FIRST_FAULT_S: Final = 3.0  # clients have written something by then, so that there is something to lose
MEAN_GAP_S: Final = 4.0  # between two faults: some end before the next one, some overlap
FAULT_S: Final = (1.0, 12.0)  # shortest: below what counts as dead; longest: everybody has noticed and moved
EVENTS_MAX: Final = 10_000  # of a plan read from a file
SPAN_S_MAX: Final = 24 * 3_600.0

# The cables
DELAY_S: Final = (0.05, 0.6)  # the longest is more than a beat, so that answers cross their repetitions
SLOW_BYTES_PER_S: Final = 10_000
QUEUE_BYTES_MAX: Final = 256 << 10  # of one direction; a full queue drops, as a router does
FLIP_ONE_IN: Final = 50  # segments with a payload: several a second, and the link still carries something
ROUGH_ONE_IN: Final = 20  # frames: 5 % lost, as many twice, as many late; TCP still carries what Weft needs
OVERTAKEN_S: Final = 0.05  # how late a late frame is: longer than a round trip, shorter than a beat
FRAME_BYTES_MAX: Final = 2_048  # an Ethernet frame and its header, with room

# The disks
STATE_MEGABYTES: Final = 256  # of the file system of one node: what it holds in an hour, and small enough to fill
FREE_MEGABYTES: Final = 4  # with less than that a node counts its disk as full

# The processes
JOIN_S: Final = 120.0  # until everybody has its place, on a machine with much else to do
RESTART_S: Final = (0.5, 3.0)  # after a kill
STOP_S: Final = 30.0
SETTLE_S: Final = 180.0  # from the healing until all replicas are equal; longer is a finding
DRAIN_S: Final = 600.0  # until the tables have taken up the last segment
LOOK_S: Final = 0.5
EXCUSED_S: Final = 5.0  # a node that met a full disk may need so long to end on a busy machine
MEMORY_EVERY_S: Final = 2.0
GROWTH: Final = 1.25  # of the last quarter over the one before; what caches fill is filled by then
GROWTH_BYTES: Final = 48 << 20  # below that nobody is harmed
ENTRY_BYTES: Final = 2_500  # of memory for each entry of the document: 2,600 to 3,600 were seen in runs of an hour
MEMORY_SPAN_S: Final = 1_200.0  # shorter runs only show the figures: they are nearly all warming up

# The clients
PAUSE_S: Final = 0.15  # between two writes of one client
ANSWER_S: Final = 8.0  # then a client gives up and comes back
CATALOG_BEAT_S: Final = 1.0
LIFE_S: Final = (8.0, 30.0)  # of a service, before it says goodbye

assert ROUGH_ONE_IN > 3, "a frame is lost, doubled, late or none of these"
assert FAULT_S[0] < FAULT_S[1]
assert RESTART_S[1] < SETTLE_S
