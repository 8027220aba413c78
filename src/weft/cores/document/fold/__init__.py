"""The document of a log: a schema's genesis, and all operations folded over it in one order for all (DOC).

It keeps no peer, socket or clock: the same operations give the same document everywhere. Start with `order.py`, then
`engine.py`.
"""
