"""Decides when which records of the journal become a segment of the lake (LAK-001..007).

It writes no file itself: it orders a segment from the shell, and reports the records as `drained` once it is published.
Start with `states.py`.
"""
