"""A test kit: two cores joined in one process, and disks that remember what they wrote or fail on demand.

No node imports it. Start with `dialogue.py`: what two cores say to each other, line by line.
"""
