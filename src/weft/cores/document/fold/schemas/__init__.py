"""Schemas that come with Weft (DOC-003).

The package never contains code, only data. Start with the smallest file; docs/doc.md describes the format.
"""
