"""The columns of every table, by layer: what each means, in which unit.

No code but the tables' definitions stands here. Start with `table.py`, then `silver.py`.
"""
