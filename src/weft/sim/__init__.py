"""The simulator: whole fleets on one virtual clock, drawn from a seed, with faults, and judged by `weft.checks`.

It opens no socket, waits for no real clock and reads no file of a node. Start with `swarm.py` (what a seed draws) and
`run.py` (how a plan is played).
"""
