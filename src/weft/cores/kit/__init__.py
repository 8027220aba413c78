"""The parts that every core is made of: outbox, timers, back-off, refusals, tickets.

The kit holds no protocol and no protocol state, and it imports no core. Start with `outbox.py`; `weft.cores.template`
uses all of it.
"""
