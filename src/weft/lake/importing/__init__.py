"""Logs of other tools become datasets of the lake.

It never touches what nodes have drained: a dataset has identities of its own. Start with `importer.py`; the formats
stand beside it.
"""
