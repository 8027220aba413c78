"""The command `weft`: one module per noun, which parses, asks a node or reads a file, and prints.

It decides nothing about the fabric: a noun calls an order, a client or a file, and prints the result. Start with
`nouns.py`, which lists them, and `kit`, which all of them share.
"""
