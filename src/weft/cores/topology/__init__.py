"""Where this node stands: its parent, its neighbours, its name, and who is root.

A node votes once per epoch, and only after its promise is on the disk. Start with `states.py`, then `election.py`.
"""

from weft.cores.topology.core import Topology

__all__ = ["Topology"]
