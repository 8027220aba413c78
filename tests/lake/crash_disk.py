"""A disk that forgets what was not synced: a real directory, and beside it what a power cut would leave.

Contents become durable by `sync`; creations, renames and removals of a directory by `sync_directory`, and without
it survive a prefix at a time (SIM-022). `pull_the_plug` makes the directory look as it would after the cut.
"""

import shutil
from pathlib import Path
from random import Random

from weft.lake.files import LocalFiles


class Crashed(BaseException):
    """The machine has lost its power: no handler of the program runs."""


class _File:
    def __init__(self) -> None:
        self.durable: bytes | None = None


Names = dict[Path, _File | None]
"""What a directory holds; None: a directory."""


class CrashDisk(LocalFiles):
    """Performs the calls for real, counts them, and stops dead before call number `crash_at`."""

    def __init__(self, root: Path, crash_at: int | None = None) -> None:
        self.root, self.crash_at = root, crash_at
        self.calls = 0
        self.trace: list[str] = []
        self._live: Names = {}
        self._durable: Names = {}
        self._pending: dict[Path, list[Names]] = {}
        """Per directory, the states that it went through since it was synced."""

    def make_directory(self, path: Path) -> None:
        self._count("make_directory", path)
        super().make_directory(path)
        self._live[path] = None
        self._changed(path.parent)

    def write(self, path: Path, data: bytes | memoryview) -> None:
        self._count("write", path)
        super().write(path, data)
        self._live[path] = _File()
        self._changed(path.parent)

    def sync(self, path: Path) -> None:
        self._count("sync", path)
        file = self._live[path]
        assert file is not None
        file.durable = path.read_bytes()

    def rename(self, old: Path, new: Path) -> None:
        self._count("rename", new)
        super().rename(old, new)
        self._live[new] = self._live.pop(old)
        self._changed(new.parent)

    def sync_directory(self, path: Path) -> None:
        self._count("sync_directory", path)
        self._adopt(path, self._state(path))
        self._pending.pop(path, None)

    def remove(self, path: Path) -> None:
        self._count("remove", path)
        super().remove(path)
        self._live.pop(path, None)
        self._changed(path.parent)

    def pull_the_plug(self, chance: Random) -> None:
        """Forget what is not durable, as far as `chance` has it, and go on from what is left."""
        for directory, states in self._pending.items():
            survived = chance.randrange(len(states) + 1)
            if survived:
                self._adopt(directory, states[survived - 1])
        self._pending.clear()
        self._live = {path: file for path, file in self._durable.items() if self._is_reachable(path)}
        self._durable = self._live.copy()
        for entry in self.root.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for path, file in sorted(self._live.items()):
            if file is None:
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.durable if file.durable is not None else bytes(chance.randrange(64)))

    def _is_reachable(self, path: Path) -> bool:
        """Whether all directories above survived."""
        above = [parent for parent in path.parents if parent != self.root and self.root in parent.parents]
        return all(self._durable.get(parent, ...) is None for parent in above)

    def _count(self, call: str, path: Path) -> None:
        self.calls += 1
        if self.crash_at is not None and self.calls >= self.crash_at:
            raise Crashed
        self.trace.append(f"{call} {path.relative_to(self.root) if path != self.root else '.'}")

    def _state(self, directory: Path) -> Names:
        return {path: file for path, file in self._live.items() if path.parent == directory}

    def _changed(self, directory: Path) -> None:
        self._pending.setdefault(directory, []).append(self._state(directory))

    def _adopt(self, directory: Path, state: Names) -> None:
        self._durable = {path: file for path, file in self._durable.items() if path.parent != directory} | state
