"""The protocols as plain objects: messages and orders go in, effects come out.

No core waits, reads a clock, opens a socket or imports another core; they meet in `weft.node`. Start with `template`,
the smallest one, then `kit`, of which all are made.
"""
