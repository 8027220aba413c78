"""The role of a node: an election makes a collector the root, and a former root a collector (REC-010, REC-015).

A node changes its role by a restart: the journal has the new role, and the next start makes its cores, as after a crash.
So there is only one way into a role, and it is the best tested.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from weft.base.records import CoreRecord, Entry
from weft.node.ledger import NAME
from weft.node.settings import Role

ROLE: Final = 2  # kind of the core record: [level, epoch]


def role_of(entries: Iterable[Entry]) -> Role:
    """The newest role in the journal; an empty one if there is none, and the file decides."""
    role = Role()
    for _, record in entries:
        if isinstance(record, CoreRecord) and record.core == NAME and record.kind == ROLE:
            role = Role(*msgspec.msgpack.decode(record.data, type=tuple[str, int]))
    return role


def role_record(role: Role) -> CoreRecord:
    """The record that `role_of` reads."""
    return CoreRecord(NAME, ROLE, msgspec.msgpack.encode((role.level, role.epoch)))
