"""Bytes from and to typed messages, one codec per protocol; the docstring of each module has its grammar.

A codec keeps no state, and what it cannot read is refused with a code before anything is built of it. Start with
`replication.py`; the vectors in `tests/vectors` hold the bytes.
"""
