"""What this node measures, when, and how samples are numbered.

It reads no meter itself: it orders measurements from the shell and processes the results. Start with `states.py`, then
`core.py`.
"""
