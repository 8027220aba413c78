"""Where this node stands: its parent, its neighbours, its name."""

from weft.cores.topology.core import Topology

__all__ = ["Topology"]
