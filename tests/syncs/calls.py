"""What a real disk is asked to do, and whether it was asked to keep it (FLD-042).

`Witness` sees the calls of this process below one folder: files opened to be written, written, cut, linked, renamed and
removed, directories made, and every `fsync` and `fdatasync`. Openings, names and cuts come from the audit hook of Python, the others
from the functions of `os`, through which all of Weft goes. What a library makes past both is found at the next answer.

It judges by four rules. A file has its bytes synced before it gets its final name. A directory is synced only when
the new files in it are, and only after its own name. And whatever is there when something is answered is synced, its
bytes and its name.

`dropped` names one place in the program whose sync is left out: the planted bug that the rules must see.
"""

import ast
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

import weft
from tests.tidy.tree import parsed

SOURCE: Final = Path(weft.__file__).parent
SYNCS: Final = frozenset({"sync", "_sync", "sync_directory", "fsync", "fdatasync"})
DOORS: Final = frozenset(
    {
        ("shell/files.py", "sync"),
        ("shell/files.py", "sync_directory"),
        ("shell/journal/writer.py", "_sync"),
        ("lake/files.py", "_sync"),
        ("lake/files.py", "sync"),
        ("lake/files.py", "sync_directory"),
    }
)
"""Functions that sync for another one, which is the place that counts."""
PASSING: Final = ("*.tmp", "*.lock", "*/lock", "*/_weft/spill*", "*.json#*", "*.sha256")
"""Files that mean nothing to anybody who starts after a power cut, and lists of digests, which the next start completes."""
TO_WRITE: Final = os.O_WRONLY | os.O_RDWR

Site = tuple[str, int]
"""A file of the program and the line of a call."""

_watching: list["Witness"] = []
_is_hooked = False


class Witness:
    """One folder, watched while `watching` is entered."""

    def __init__(self, root: Path, dropped: Site | None = None, passing: tuple[str, ...] = ()) -> None:
        self.root, self.dropped = root, dropped
        self.sites: set[Site] = set()
        """Where the program asked for a sync."""
        self.broken: list[str] = []
        """Each time that a rule was broken, in words."""
        self._passing = (*PASSING, *passing)
        self._unsynced: set[Path] = set()
        self._names: dict[Path, set[Path]] = {}
        self._sizes: dict[Path, int] = {}
        self._known: set[Path] = set()
        """Whatever was there at first, or was made in sight."""
        self._kept: set[Path] = set()
        """Directories that were synced since the last answer."""

    def answered(self, what: str) -> None:
        """Something was promised: from here on it holds, whatever happens to the machine."""
        for path in sorted(self._unsynced):
            if path.exists() and not self._is_passing(path):
                self._break(f"{what} was answered while the bytes of {self._short(path)} are not synced")
        for path, size in self._sizes.items():
            if path.exists() and path.stat().st_size != size:
                self._break(f"{what} was answered while {self._short(path)} has grown since it was synced")
        for directory, names in sorted(self._names.items()):
            for path in sorted(names):
                if not self._is_passing(path):
                    self._break(f"{what} was answered while the name {self._short(path)} is not synced")
            assert directory.exists() or not names
        if self in _watching:
            self._find_made_unseen(what)
        self._kept.clear()

    def _find_made_unseen(self, what: str) -> None:
        for path in sorted(set(self.root.rglob("*")) - self._known):
            self._known.add(path)
            if self._is_passing(path):
                continue
            if path.is_file() and path not in self._sizes:
                self._break(f"{what} was answered while the bytes of {self._short(path)} are not synced")
            if path.parent not in self._kept:
                self._break(f"{what} was answered while the name {self._short(path)} is not synced")

    @contextmanager
    def watching(self) -> Iterator["Witness"]:
        """See what happens inside."""
        _hook()
        replaced = {name: getattr(os, name) for name in ("write", "pwrite", "ftruncate", "fsync", "fdatasync")}
        self._known.update(self.root.rglob("*"))
        _watching.append(self)
        for name, call in replaced.items():
            setattr(os, name, self._seen(name, call))
        try:
            yield self
        finally:
            for name, call in replaced.items():
                setattr(os, name, call)
            _watching.remove(self)

    # Calls on open files.

    def _seen(self, name: str, call: Any) -> Any:
        if name in ("fsync", "fdatasync"):
            return lambda number: self._synced(number, call)

        def changed(number: int, *rest: Any) -> Any:
            result = call(number, *rest)
            path = _path_of(number)
            if path is not None and self._is_mine(path):
                self._unsynced.add(path)
                self._sizes.pop(path, None)
            return result

        return changed

    def _synced(self, number: int, call: Any) -> None:
        path = _path_of(number)
        if path is None or not self._is_mine(path):
            call(number)
            return
        site = _site()
        self.sites.add(site)
        if site == self.dropped:
            return
        call(number)
        if path.is_dir():
            self._directory_synced(path)
        else:
            self._unsynced.discard(path)
            self._sizes[path] = path.stat().st_size

    def _directory_synced(self, directory: Path) -> None:
        self._kept.add(directory)
        if directory in self._names.get(directory.parent, set()):
            self._break(f"names in {self._short(directory)} were synced before that directory's own")
        for path in self._names.pop(directory, set()):
            if path in self._unsynced and path.exists() and not self._is_passing(path):
                self._break(f"the name {self._short(path)} was synced before its bytes")

    # Calls on names, told before they happen.

    def told(self, event: str, arguments: tuple[Any, ...]) -> None:
        """One event of the audit hook."""
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, str | os.PathLike) and isinstance(flags, int) and flags & TO_WRITE:
                self._opened(_whole(path), flags)
        elif event == "os.rename":
            self._renamed(_whole(arguments[0]), _whole(arguments[1]))
        elif event == "os.link":
            self._linked(_whole(arguments[0]), _whole(arguments[1]))
        elif event == "os.remove":
            self._removed(_whole(arguments[0]))
        elif event == "os.mkdir" and not (path := _whole(arguments[0])).exists() and self._is_mine(path):
            self._named(path)

    def _opened(self, path: Path, flags: int) -> None:
        if not self._is_mine(path):
            return
        if flags & os.O_CREAT and not path.exists():
            self._named(path)
            self._unsynced.add(path)
        elif flags & os.O_TRUNC:
            self._unsynced.add(path)
            self._sizes.pop(path, None)

    def _renamed(self, old: Path, new: Path) -> None:
        if not self._is_mine(old) or not old.exists():
            return
        if old in self._unsynced:
            self._break(f"{self._short(new)} got its name before its bytes were synced")
            self._unsynced.discard(old)
            self._unsynced.add(new)
        self._sizes.pop(new, None)
        if old in self._sizes:
            self._sizes[new] = self._sizes.pop(old)
        for path in (old, new):
            self._named(path)

    def _linked(self, old: Path, new: Path) -> None:
        if not self._is_mine(new) or not old.exists() or new.exists():
            return
        if old in self._unsynced:
            self._break(f"{self._short(new)} got its name before its bytes were synced")
        self._named(new)

    def _named(self, path: Path) -> None:
        self._known.add(path)
        self._names.setdefault(path.parent, set()).add(path)

    def _removed(self, path: Path) -> None:
        if not self._is_mine(path) or not path.exists():
            return
        self._unsynced.discard(path)
        self._sizes.pop(path, None)
        names = self._names.setdefault(path.parent, set())
        if path in names:
            names.discard(path)  # as it was never durable, so it is gone for good
        else:
            names.add(path)

    def _is_mine(self, path: Path) -> bool:
        return path.is_relative_to(self.root)

    def _is_passing(self, path: Path) -> bool:
        return any(fnmatch(str(path), pattern) for pattern in self._passing)

    def _short(self, path: Path) -> Path:
        return path.relative_to(self.root)

    def _break(self, what: str) -> None:
        self.broken.append(what)


def sites_in(*places: str) -> set[Site]:
    """Every call of a sync in these folders and files of the program."""
    found = set[Site]()
    for place in places:
        path = SOURCE / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            name = file.relative_to(SOURCE).as_posix()
            found |= {(name, line) for line in _calls(file.read_text("utf-8"), name)}
    return found


def _calls(text: str, name: str) -> Iterator[int]:
    if "sync" not in text:
        return
    module = parsed(text)
    doors = {function for file, function in DOORS if file == name}
    inside = {
        id(node) for function in module.of(ast.FunctionDef) if function.name in doors for node in ast.walk(function)
    }
    for node in module.of(ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in SYNCS and id(node) not in inside:
            yield node.lineno


def _site() -> Site:
    """The line of the program that asked for the sync which is under way."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(SOURCE):
            name = path.relative_to(SOURCE).as_posix()
            if (name, frame.f_code.co_name) not in DOORS and not name.startswith("testing/"):
                return name, frame.f_lineno
        frame = frame.f_back
    return "", 0


def _path_of(number: int) -> Path | None:
    try:
        return Path(f"/proc/self/fd/{number}").readlink()
    except OSError:
        return None


def _whole(path: Any) -> Path:
    return Path(os.fsdecode(path)).absolute()


def _hook() -> None:
    """Hooks stay for as long as the process lives; this one tells whoever is watching."""
    global _is_hooked  # noqa: PLW0603  # a hook cannot be taken out, so there is one for all
    if not _is_hooked:
        sys.addaudithook(_tell)
        _is_hooked = True


def _tell(event: str, arguments: tuple[Any, ...]) -> None:
    for witness in _watching:
        witness.told(event, arguments)
