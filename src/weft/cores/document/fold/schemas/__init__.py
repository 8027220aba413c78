"""Schemas of documents that Weft brings with it (DOC-003).

There is no code here, only data. Start with the smallest file; docs/doc.md says what a schema may say.
"""
