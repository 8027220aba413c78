"""Repairs a lake of which a part is lost: tables are repaired, rebuilt, recalled or skipped.

It runs only at a person's request, and first says what it will do. Start with `repair.py`.
"""
