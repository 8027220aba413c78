"""Segments and manifests: what the drain of a node writes, and what tables and readers read.

It knows no protocol and no Spark, and never changes what is published. Start with `layout.py` (where files lie), then
`segments.py` and `reader.py`.
"""
