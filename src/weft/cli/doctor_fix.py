"""What `weft doctor --fix` repairs: modes of private files, and files that a dead node left behind (OPS-006).

Nothing here touches a journal, a lake or a setting: a repair that could lose a record has a command of its own, which the
finding names. Locks need no repair, because the kernel releases them when their holder ends. Stale are only the files that
say where a node listened.
"""

import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from weft.cli.doctor_node import FIX, LOOKS, Look, Patient, runs_as
from weft.pipeline.doctor import BROKEN, FINE, WARNING, Finding
from weft.shell.keys import FOLDER, OTHERS, PUBLIC

PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600
NOTES: Final = ("*.endpoint", "*.sock", "*.new")
"""Files in the state directory by which programs of this machine find a running node."""
PARTIAL: Final = "*.tmp"
"""A temporary file whose writer died; the file that it was to replace is whole."""
TRIALS: Final = ".doctor-*"


def keys(patient: Patient) -> Finding | None:
    """Whether only the owner may read the keys: a node does not start if others may."""
    folder = patient.state / FOLDER
    if not folder.is_dir():
        return None
    open_ones = [path for path in (folder, *_secrets(folder)) if _mode(path) & OTHERS]
    if not open_ones:
        return Finding("keys", FINE, "only their owner may read them")
    listed = ", ".join(f"{path.name} (mode {_mode(path):o})" for path in open_ones)
    mend = f"{FIX}; and new keys if somebody read them: weft key revoke {patient.name}, then weft join"
    return Finding("keys", BROKEN, f"others may read {listed}: whoever did can pose as this node", mend)


def leftovers(patient: Patient) -> Finding | None:
    """Files of a dead node through which programs would look for it."""
    found = _left(patient)
    if not found:
        return None
    listed = ", ".join(path.name for path in found)
    return Finding("leftovers", WARNING, f"a node that died left {listed}: programs look for it there", FIX)


def _left(patient: Patient) -> list[Path]:
    if not patient.state.is_dir() or runs_as(patient):
        return []
    places = [path for pattern in (*NOTES, PARTIAL, TRIALS) for path in patient.state.glob(pattern)]
    return sorted([*places, *(patient.state / FOLDER).glob(PARTIAL)])


def _secrets(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.iterdir()) if path.is_file() and path.name != PUBLIC)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def close_state(patient: Patient) -> str:
    """Let nobody but the owner look into the state directory."""
    was = _mode(patient.state)
    patient.state.chmod(PRIVATE_FOLDER)
    return f"its mode was {was:o}, and is {PRIVATE_FOLDER:o}"


def close_keys(patient: Patient) -> str:
    """Let nobody but the owner read the keys."""
    folder = patient.state / FOLDER
    folder.chmod(PRIVATE_FOLDER)
    secrets = list(_secrets(folder))
    for path in secrets:
        path.chmod(PRIVATE_FILE)
    return f"{folder.name} has mode {PRIVATE_FOLDER:o}, its {len(secrets)} files {PRIVATE_FILE:o}"


def clear(patient: Patient) -> str:
    """Remove the files of a dead node."""
    found = _left(patient)
    for path in found:
        path.unlink()
    return f"took away {', '.join(path.name for path in found)}"


FIXES: Final[dict[str, Callable[[Patient], str]]] = {"state": close_state, "keys": close_keys, "leftovers": clear}
"""By the name of the check that found it; each returns what it did. OSError if the machine refuses."""
ALL_LOOKS: Final[dict[str, Look]] = {**LOOKS, "keys": keys, "leftovers": leftovers}


def mended(patient: Patient, what: str, found: Finding) -> Finding:
    """Mend what was found, if that is possible, and check again; returns the new finding, and what was done."""
    fix = FIXES.get(what)
    if found.state == FINE or fix is None or not patient.state.is_dir():
        return found
    try:
        done = fix(patient)
    except OSError as error:
        return found._replace(text=f"{found.text}; not mended: {error.strerror}")
    now = ALL_LOOKS[what](patient)
    if now is None or now.state == FINE:
        return Finding(found.what, FINE, f"mended: {done}")
    return now._replace(text=f"{now.text}; mended so far: {done}")
