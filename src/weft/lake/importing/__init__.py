"""Imports logs of other tools as datasets of the lake.

It never touches what nodes have drained: a dataset has drains and origins of its own. Start with `importer.py`; each
format has a module beside it.
"""
