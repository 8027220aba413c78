"""The numbers of the store core, each with unit and reason."""

from typing import Final

from weft.base.now import MILLISECOND, SECOND

# Identity and order
NAME_BYTES_MAX: Final = 64  # STO-001
TICK_MAX: Final = (1 << 63) - 1  # STO-002
TOCKS_AHEAD: Final = 10_000  # persisted ahead of use: a restart continues above it (STO-007)
TOCK_JUMP_MAX: Final = 1 << 32  # from a peer in one message (STO-007)

# Entries
LINKS_MAX: Final = 64  # of a chain that comes from elsewhere, or repairs (STO-006)
VALUE_BYTES_MAX: Final = 64 << 10  # of an order (SEC-042)
EVENT_BYTES_MAX: Final = 1 << 20  # of a member's event; beyond, the value is left out (STO-005)
CONFLICTS_MAX: Final = 1_000  # remembered for `weft store conflicts`; all are in the journal

# Nodes
NODES_MAX: Final = 4_096  # ever heard of
MEMBERS_MAX: Final = 64  # of a mesh: each says everything to each; more machines are clients (LNK-023)
RANGES_MAX: Final = 100_000  # of one node
RANGES_PER_INFO: Final = 10_000

# Links
BATCH_MESSAGES: Final = 1_000  # LNK-003
BATCH_BYTES: Final = 256 << 10
MESH_BEAT_NS: Final = SECOND
MESH_SILENCE_NS: Final = 3 * SECOND  # LNK-021
MESH_RETRY_NS: Final = (SECOND, 30 * SECOND)
MESH_TRIES_MAX: Final = 60  # half an hour of greetings in vain, of a node that no file names
REFUSED_NS: Final = 60 * SECOND

# Recovery
GAP_WAIT_NS: Final = 200 * MILLISECOND  # a message that was overtaken arrives in that time (HEA-010)
