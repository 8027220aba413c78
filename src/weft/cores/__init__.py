"""The protocols as plain objects: messages and orders go in, effects come out.

A core never waits, reads a clock, opens a socket or imports another core; cores meet in `weft.node`. Start with
`template`, the smallest core, then `kit`, which all cores are built from.
"""
