"""Rows that are drained and in no table yet, as views that DuckDB reads.

It writes nothing, and its rules are held to those of Spark by a test. Start with `bridge.py`.
"""
