"""Joins the cores of a node: routes events to orders, hands back records, and checks permissions.

It does no input or output; the shell and the simulator both run it. Start with `wiring.py`, the table where cores meet,
then `node.py`.
"""
