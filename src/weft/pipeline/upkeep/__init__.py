"""What the driver does between batches: small files are joined, old days go, unnamed files are cleared.

It changes no row that a reader may still ask for. Start with `keeper.py`, which calls the rest.
"""
