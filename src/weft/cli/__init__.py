"""The command `weft`: one module per noun, which parses, asks a node or reads a file, and prints.

It decides nothing about the fabric: a noun calls an order, a client or a file, and prints the result. Start with
`main.py`, which lists the nouns, and `kit`, which all of them share.
"""
