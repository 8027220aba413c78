"""The faults of a machine that gets an empty disk, and of one whose disk is put back to an older copy.

What is acknowledged by such a node alone is lost with its disk, and nothing else: see `weft.checks.field`. A node that is or was
a root is spared, because only its disk holds what it has called safe, and so is one whose disk is hurt or copied at that time.
"""

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from weft.base.now import SECOND
from weft.torture import limits
from weft.torture.book import Book
from weft.torture.clients import Machine
from weft.torture.plan import LOST_DISK, OLD_DISK

CLONE: Final = "clone"
IDENTITY: Final = "node.json"


Acts = Mapping[str, tuple[Callable[[str], None], Callable[[str], None]]]


class Rewinder:
    """Empties disks and puts them back, by the acts that kill and pause a node; not of nodes whose disk is in use otherwise."""

    def __init__(self, place: Path, machines: dict[str, Machine], acts: Acts, hurt: Sequence[Counter[str]]) -> None:
        self._place, self._machines, self._hurt = place, machines, hurt
        self._kill, self._let_go = acts["kill"]
        self._pause, self._resume = acts["pause"]
        self.is_root: Callable[[str], bool] = lambda _: False
        """Whether a node is the root, or does not say."""
        self.note: Callable[[str, str, float], None] = lambda *_: None
        """Called with the node, `lost` or `old`, and the seconds since the instant of which its disk is now."""
        self._images: dict[str, tuple[Path, float]] = {}
        """A copy of a node's disk, and when it was made."""
        self._lost: dict[str, None] = {}
        self.was: dict[str, str] = {}
        """The UUID that each node had before its disk was emptied last."""
        self.acts = {
            LOST_DISK: (self._lose, self._begin_anew),
            OLD_DISK: (self._copy, self._put_back),
        }
        """The functions that begin and end each fault."""

    def report(self, book: Book, say: Callable[[str], None], status: Callable[[str], dict[str, Any] | None]) -> None:
        """Write into the history and the story what happens to disks; `status` asks a node."""

        def is_root(name: str) -> bool:
            answer = status(name)
            return answer is None or answer.get("level") == "root"

        def note(name: str, how: str, age_s: float) -> None:
            say(f"  {name} starts on a disk that is {how}")
            span = round((age_s + limits.UNSENT_S) * SECOND)
            book.note(name, "info", "rewound", [how, span, self.was[name]])

        self.is_root, self.note = is_root, note

    def _is_spared(self, name: str) -> bool:
        """Whether a disk must not be emptied, because other faults need it, or the node has called something safe."""
        identity = self._machines[name].state / IDENTITY
        is_copied = CLONE in self._machines and (self._machines[CLONE].state / IDENTITY).exists()
        if is_copied or any(counted[name] for counted in self._hurt) or not identity.exists():
            return True
        uuid = json.loads(identity.read_text("utf-8"))["node"]
        return any((self._place / "lake").glob(f"drain/*/{uuid}")) or self.is_root(name)

    def _lose(self, name: str) -> None:
        if self._is_spared(name) or name in self._lost:
            return
        self._lost[name] = None
        self._kill(name)
        self._clear(name)

    def _begin_anew(self, name: str) -> None:
        if name in self._lost:
            del self._lost[name]
            self.note(name, "lost", 0.0)
            self._let_go(name)

    def _copy(self, name: str) -> None:
        """Copy the disk while the process is paused: as a crash of the process leaves it."""
        if self._is_spared(name) or name in self._images:
            return
        image = self._place / "images" / name
        shutil.rmtree(image, ignore_errors=True)
        self._pause(name)
        copy(self._machines[name].state, image)
        self._images[name] = image, time.monotonic()
        self._resume(name)

    def _put_back(self, name: str) -> None:
        image, made_at = self._images.pop(name, (None, 0.0))
        if image is None or self._is_spared(name):
            return
        self._kill(name)
        self._clear(name)
        copy(image, self._machines[name].state)
        time.sleep(limits.LOOK_S)  # tidy: clients note the answers that they got before; there is no signal for that
        self.note(name, "old", time.monotonic() - made_at)
        self._let_go(name)

    def _clear(self, name: str) -> None:
        """Remove everything from the disk; the directory stays, because it may be a mount."""
        state = self._machines[name].state
        self.was[name] = json.loads((state / IDENTITY).read_text("utf-8"))["node"]
        for path in state.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def copy(here: Path, there: Path) -> None:
    """Copy a state directory, without sockets."""
    shutil.copytree(here, there, dirs_exist_ok=True, ignore=sockets_in)


def sockets_in(directory: str, names: list[str]) -> list[str]:
    """The names of sockets in a directory, which cannot be copied."""
    return [name for name in names if Path(directory, name).is_socket()]
