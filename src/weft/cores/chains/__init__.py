"""Messages of programs on their way through this node: they pass filters, readers and rewriters in order, out and in.

No message is answered `spooled` before it is on disk. Start with `walk.py` and `states.py`, then `sessions.py`.
"""
