"""Tables that need not lie in files: DuckDB computes them when they are asked for.

A view writes nothing and is as fresh as the tables below it. Start with `view.py`.
"""
