"""Views: tables without files that DuckDB computes when they are queried.

They write nothing and are as fresh as the tables below them. Start with `view.py`.
"""
