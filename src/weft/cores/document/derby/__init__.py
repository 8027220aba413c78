"""Roller derby, the example: which jam is current, and what a scoreboard shows (JAM-001 to JAM-041).

It is pure, as the fold is, and the fold does not know it. Start with `rules.py`, then `board.py`.
"""
