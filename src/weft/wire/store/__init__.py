"""The store's dialects on the wire: what MoaT-KV servers and clients say, and Weft's own mesh (docs/store.md).

A codec keeps no state. Start with `messages.py`.

path, pack, ranges   what all of them are made of: paths, values, sets of ticks
messages             what nodes tell one another, typed; bus: their bytes
actor                the coordination of real MoaT-KV servers
mesh                 links between Weft nodes, and the beacons by which these find each other
clients              what clients and nodes say over TCP
"""
