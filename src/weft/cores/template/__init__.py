"""The smallest whole core: copy it for a new protocol.

What to copy besides: `wire/template.py` (the codec), `tests/template/` (table walk, dialogue, restore). What to add:
a row in `node/channels.py`, one in `node/wiring.py` per event that others should hear, and the node's table of cores.
"""

from weft.cores.template.core import Template

__all__ = ["Template"]
