"""Shows rows that are drained but in no table yet, as views for DuckDB.

It writes nothing; a test checks that its rules agree with those of Spark. Start with `bridge.py`.
"""
