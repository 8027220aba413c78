"""What to do when a part of the lake is gone: tables are repaired, rebuilt, recalled or skipped.

It runs only when a person asks for it, and says before what it will do. Start with `repair.py`.
"""
