"""Does all input and output of a node: sockets, disk, clocks, processes, HTTP.

It never decides about a protocol: the cores do. Start with `runner.py`, one turn of a node, then `process.py`.
"""
