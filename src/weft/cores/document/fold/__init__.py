"""The document of a log: a schema's genesis with all operations applied, in the same order on all nodes (DOC).

It knows no peer, socket or clock: equal operations give an equal document everywhere. Start with `order.py`, then
`engine.py`.
"""
