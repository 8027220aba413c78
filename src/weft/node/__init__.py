"""The cores of one node, joined: whose event becomes whose order, which records each gets back, who may say what.

It does no input or output; the shell and the simulator both run it. Start with `wiring.py`, the table where cores
meet, then `node.py`.
"""
