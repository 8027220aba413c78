"""A test kit: two cores joined in one process, and disks that remember what they wrote or fail on demand.

No node runs it. Start with `dialogue.py`, which shows a whole conversation.
"""
