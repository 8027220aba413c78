"""The checks of the fleet by `weft doctor`: who is missing, who is behind, who runs another version (OPS-006)."""

import time
from collections.abc import Iterator
from typing import Any, Final

from weft import __version__
from weft.base.errors import UserError
from weft.cli.asking import status_of
from weft.cli.status import NO_ANSWER, Ask, Picture, picture_of
from weft.pipeline.doctor import BROKEN, FINE, WARNING, Finding

NAMED_MAX: Final = 5  # nodes in trouble that a finding lists by name


def findings(port: int, ask: Ask = status_of) -> Iterator[Finding]:
    """The findings about the fleet, from its root; one line if no node answers at this port."""
    try:
        picture = picture_of(port, ask, time.time_ns())
    except UserError:
        yield Finding("fleet", FINE, f"no node answers at port {port}, so no fleet was asked")
        return
    yield from judged(picture)
    yield degraded(picture)


def degraded(picture: Picture) -> Finding:
    """Nodes that work, and want somebody to look: a full disk, a parent that is away. An upgrade may go on beside them."""
    names = [member.name for member in picture.members if member.health == "degraded"]
    return _of("fleet: degraded", names, "work less well than they should", "weft status shows why, and what to do")


def judged(picture: Picture) -> Iterator[Finding]:
    """Each check of the console's picture of the fleet."""
    yield _root(picture)
    silent = [member.name for member in picture.members if member.health == NO_ANSWER]
    failed = [member.name for member in picture.members if member.health == "failed"]
    behind = [member.name for member in picture.members if member.is_behind]
    waiting = [str(guest.get("name") or guest["endpoint"]) for guest in picture.unassigned]
    others = sorted({f"{node['name']} {node['version']}" for node in picture.nodes if _is_other(node)})
    yield _of(
        "fleet: silent",
        silent,
        "do not answer",
        "weft doctor on that machine; its measurements wait on its disk",
        BROKEN,
    )
    yield _of("fleet: failed", failed, "say that they have failed", "weft status shows why, and what to do", BROKEN)
    yield _of(
        "fleet: behind", behind, "do not run the last write that concerns them", "weft config history; weft status"
    )
    yield _of(
        "fleet: groups", waiting, "have no place", "a group whose members match them, with room: weft config list"
    )
    yield _of("fleet: version", others, f"run another Weft than this, {__version__}", "weft upgrade check")


def _root(picture: Picture) -> Finding:
    if not picture.root:
        mend = 'weft up with a root, or [node] join = ["HOST:PORT"] where no beacon reaches'
        return Finding("fleet: root", BROKEN, "no root is known here", mend)
    if picture.is_shut:
        return Finding(
            "fleet: root", FINE, f"{picture.root} shows the fleet on its own machine only: ask there for the rest"
        )
    if not picture.has_root:
        return Finding(
            "fleet: root", BROKEN, f"the root at {picture.root} does not answer", "weft doctor on its machine"
        )
    return Finding("fleet: root", FINE, f"{picture.root}, with {len(picture.members)} nodes and write {picture.number}")


def _is_other(status: dict[str, Any]) -> bool:
    return bool(status["version"] != __version__)


def _of(what: str, names: list[str], trouble: str, mend: str, state: str = WARNING) -> Finding:
    """How many nodes have this trouble, with the names of some."""
    if not names:
        return Finding(what, FINE, f"there are none that {trouble}")
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return Finding(what, state, f"{', '.join(names[:NAMED_MAX])}{more} {trouble}", mend)
