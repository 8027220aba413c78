"""A real fabric under faults: `weft torture` starts it, plays planned faults, and lets `weft.checks` judge (FLD-040).

The clients here are written from the documents of the protocols (plain sockets, ZeroMQ, MessagePack, HTTP) and share no
code with Weft's client libraries, so a fault there does not hide behind the same fault here. No node imports anything of
it. Start with `run.py`; `plan.py` says what a plan is, `judge.py` what a verdict is.
"""
