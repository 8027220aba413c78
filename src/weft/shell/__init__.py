"""All input and output of a node: sockets, disk, clocks, processes, HTTP.

It decides nothing about a protocol: that is the cores' part. Start with `runner.py`, one turn of a node, then
`process.py`.
"""
