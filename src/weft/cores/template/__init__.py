"""The smallest whole core: copy it for a new protocol.

It does nothing but presence and imports no other core. Copy with it: `wire/template.py` (the codec), `tests/template/`
(table walk, dialogue, restore). Then add a row in `node/channels.py`, one row in `node/wiring.py` per event that other
cores need, and the core to the node's table of cores. Start with `core.py`.
"""
