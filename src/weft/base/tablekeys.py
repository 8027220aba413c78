"""Enumerations whose members are keys of tables: states, and what can happen in them."""

from enum import Enum


class TableKey(Enum):
    """Hashed by identity: an Enum hashes the name of its member in Python, for each look into a table."""

    __hash__ = object.__hash__
