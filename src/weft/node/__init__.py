"""Joins the cores of a node: turns events of one core into orders for others, reads settings, checks permissions.

It does no input or output; the shell and the simulator both run it. Start with `wiring.py`, the table where cores meet,
then `node.py`.
"""
