"""The reliable link between a child and its parent: records go up, acknowledgements come down.

It never says that it has a record before that is on its disk. Start with `states.py` (the child's link), then
`outbox.py`.
"""

from weft.cores.carrier.core import Carrier

__all__ = ["Carrier"]
