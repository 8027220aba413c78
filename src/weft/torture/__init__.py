"""A real fabric under faults: `weft torture` starts it, plays planned faults, and lets `weft.checks` judge (FLD-040).

The clients here speak the wire by its documents (plain sockets, ZeroMQ, MessagePack, HTTP) and share no code with the
client libraries that the fabric's users have, so a fault there does not hide behind the same fault here. Nothing here
is imported by a node. Start reading with `run.py`; what a plan is says `plan.py`, what a verdict is `judge.py`.
"""
