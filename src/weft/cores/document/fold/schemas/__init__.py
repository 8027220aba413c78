"""Schemas that ship (DOC-003)."""
