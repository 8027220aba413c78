"""The driver's work between batches: it joins small files, removes old days, and deletes unnamed files.

It changes no row that a reader may still ask for. Start with `keeper.py`, which calls the rest.
"""
