"""The scoreboard of a document in a browser.

It is a program of its own beside a node, and keeps no data of its own. Start with `board.py`, which has the routes.
"""
