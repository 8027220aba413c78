"""The columns of every table, by layer, with meaning and unit.

It holds only the definitions of tables. Start with `table.py`, then `silver.py`.
"""
