"""The journal of a node on disk (JRN): `Journal` writes and recovers it, `JournalReader` reads it from outside.

A record is never lost once `write` has returned. Start with `journal.py`, then `segment.py`.
"""

from weft.shell.journal.damage import DamageNote
from weft.shell.journal.errors import StorageFull
from weft.shell.journal.journal import Journal, JournalStats
from weft.shell.journal.limits import Limits, for_budget
from weft.shell.journal.reader import JournalReader
from weft.shell.journal.recovery import Note, Recovery
from weft.shell.journal.states import State

__all__ = [
    "DamageNote",
    "Journal",
    "JournalReader",
    "JournalStats",
    "Limits",
    "Note",
    "Recovery",
    "State",
    "StorageFull",
    "for_budget",
]
