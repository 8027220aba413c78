"""The documents' part of `/status` and metrics."""

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.cores.document.core import Documents  # tidy: it shows the whole core


def facts(documents: "Documents") -> dict[str, Any]:
    """All sessions by name, and the counts over all of them."""
    sessions = documents.sessions
    counts: Counter[str] = Counter()
    for session in sessions.values():
        counts += session.context.counters
    return {
        "endpoint": {name: session.context.endpoint for name, session in sessions.items()},
        "peers": {
            f"{name}:{state}": count
            for name, session in sessions.items()
            for state, count in ({"ACTIVE": 0} | session.mesh.facts()).items()
        },
        "operations": {name: session.log.count for name, session in sessions.items()},
        "sources": {name: len(session.log.sources()) for name, session in sessions.items()},
        "check": {name: f"{session.log.check:08x}" for name, session in sessions.items()},
        "parked": {name: len(session.engine.parked()) for name, session in sessions.items()},
        "conflicts": {
            name: sum(one.is_open for one in session.engine.conflicts()) for name, session in sessions.items()
        },
        "behind": {name: int(session.engine.is_behind) for name, session in sessions.items()},
        "dormant": len(documents.dormant),
        "counts": {what.replace(".", "_"): count for what, count in counts.items()},
    }
