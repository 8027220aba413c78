"""The reliable link between a child and its parent: records go up, acknowledgements come down.

It never acknowledges a record before the record is on its disk. Start with `states.py` (the child's link), then
`outbox.py`.
"""
