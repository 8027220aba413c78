"""A real fabric under faults: `weft torture` starts it, plays planned faults, and lets `weft.checks` judge (FLD-040).

Its clients are written from the documents of the protocols (plain sockets, ZeroMQ, MessagePack, HTTP) and share no code
with Weft's client libraries, so that the same fault cannot be in both. No node imports this package. Start with `run.py`;
`plan.py` describes a plan, `judge.py` makes the verdict.
"""
