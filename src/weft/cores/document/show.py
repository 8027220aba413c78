"""How documents stand, for `/status` and metrics (specs/04, Observability)."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.cores.document.core import Documents
    from weft.cores.document.session import Session


def facts(documents: "Documents") -> dict[str, Any]:
    """All sessions, by name, and what happened in all of them."""
    return {
        "sessions": {name: of_session(session) for name, session in documents.sessions.items()},
        "dormant": sorted(documents.dormant),
    }


def of_session(session: "Session") -> dict[str, Any]:
    """One session."""
    station, engine, log = session.station, session.engine, session.log
    return {
        "endpoint": station.endpoint,
        "schema": session.schema.name,
        "peers": session.mesh.facts(),
        "operations": log.count,
        "sources": len(log.sources()),
        "check": f"{log.check:08x}",
        "parked": len(engine.parked()),
        "conflicts": len(engine.conflicts()),
        "is_behind": engine.is_behind,
        "counts": dict(station.counters),
    }
