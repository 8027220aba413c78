"""What every core is made of: an outbox, deadlines, back-off, refusals, tickets.

It holds no protocol and no state of one, and knows no core. Start with `outbox.py`; `weft.cores.template` uses it.
"""
