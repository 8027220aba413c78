"""The scoreboard of a document in a browser.

It is a program of its own beside a node, and holds nothing that the document does not. Start with `board.py`, which
has the routes.
"""
