"""Doubles of `shell.files.Files`: one in memory, one that records everything, one that fails on demand (FLT-030).

They stack: `RecordingFiles(FaultyFiles(MemoryFiles()))` behaves like a disk, fails where it is told to, and from its
log `crash_images` builds what a power cut at any instant may leave. The model is that of SIM-022: of what was not
synced any subset of 512-byte sectors survives, as new bytes, old bytes, zeros, or not at all; new, moved or removed
names survive up to some point in their order, until their directory is synced. A failed sync makes nothing durable, and
no later one does so. A seed determines every image.
"""

import errno
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.base.chance import Chance
from weft.shell.files import File, Files

SECTOR: Final = 512
PLENTY: Final = 1 << 40


class _Inode:
    """The content of one file, however many names and openings it has."""

    __slots__ = ("content",)

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)


class MemoryFiles(Files):
    """A file system in memory: like a page cache without a disk, so everything written can be read at once."""

    def __init__(self, files: dict[Path, bytes] | None = None, capacity: int = PLENTY) -> None:
        self.directories: set[Path] = {Path("/")}
        self.capacity = capacity
        self._names: dict[Path, _Inode] = {}
        self._open: dict[int, _Inode] = {}
        self._writable: set[int] = set()
        self._locks: dict[int, Path] = {}
        self._next = 3
        for path, content in (files or {}).items():
            self.directories.update(path.parents)
            self._names[path] = _Inode(content)

    def content(self) -> dict[Path, bytes]:
        """All files and what they hold."""
        return {path: bytes(inode.content) for path, inode in self._names.items()}

    def flip(self, path: Path, bit: int) -> None:
        """One bit of a file changes, as on a failing disk."""
        self._names[path].content[bit // 8] ^= 1 << bit % 8

    def make_directory(self, path: Path) -> None:
        self._check_parent(path)
        self.directories.add(path)

    def list(self, path: Path) -> list[str]:
        if path not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", str(path))
        return sorted(name.name for name in (*self._names, *self.directories) if name.parent == path and name != path)

    def create(self, path: Path) -> File:
        self._check_parent(path)
        if path in self._names:
            raise FileExistsError(errno.EEXIST, "file exists", str(path))
        self._names[path] = _Inode()
        return self._opened(path, is_writable=True)

    def open(self, path: Path, *, is_writable: bool = False) -> File:
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        return self._opened(path, is_writable=is_writable)

    def append(self, file: File, data: bytes | bytearray) -> int:
        taken = min(len(data), self._free())
        if data and not taken:
            raise OSError(errno.ENOSPC, "no space left", str(file.path))
        self._to_write(file).content += data[:taken]
        return taken

    def overwrite(self, file: File, offset: int, data: bytes) -> int:
        content = self._to_write(file).content
        content[offset : offset + len(data)] = data
        return len(data)

    def sync(self, file: File) -> None:
        assert file.number in self._open, "a closed file is synced"

    def truncate(self, file: File, size: int) -> None:
        content = self._to_write(file).content
        content[size:] = b""
        content += bytes(size - len(content))

    def size(self, file: File) -> int:
        return len(self._open[file.number].content)

    def read(self, file: File, offset: int, count: int) -> bytes:
        return bytes(self._open[file.number].content[offset : offset + count])

    def close(self, file: File) -> None:
        del self._open[file.number]
        self._writable.discard(file.number)
        self._locks.pop(file.number, None)

    def rename(self, source: Path, target: Path) -> None:
        if source not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(source))
        self._names[target] = self._names.pop(source)

    def unlink(self, path: Path) -> None:
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        del self._names[path]

    def sync_directory(self, path: Path) -> None:
        if path not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", str(path))

    def lock(self, path: Path) -> File:
        if path in self._locks.values():
            raise BlockingIOError(errno.EAGAIN, "locked", str(path))
        self._check_parent(path)
        self._names.setdefault(path, _Inode()).content[:] = b"1\n"
        file = self._opened(path, is_writable=True)
        self._locks[file.number] = path
        return file

    def free_bytes(self, path: Path) -> int:
        self._check_parent(path)
        return self._free()

    def mount_point(self, path: Path) -> Path:
        self._check_parent(path)
        return Path("/")

    def kill(self) -> None:
        """The process that had files open has ended; the page cache stays."""
        self._open.clear()
        self._locks.clear()

    def _free(self) -> int:
        inodes = {id(inode): inode for inode in (*self._names.values(), *self._open.values())}
        return max(0, self.capacity - sum(len(inode.content) for inode in inodes.values()))

    def _check_parent(self, path: Path) -> None:
        if path.parent not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", str(path.parent))

    def _to_write(self, file: File) -> _Inode:
        assert file.number in self._writable, f"{file.path} was opened to be read"
        return self._open[file.number]

    def _opened(self, path: Path, *, is_writable: bool) -> File:
        self._next += 1
        self._open[self._next] = self._names[path]
        if is_writable:
            self._writable.add(self._next)
        return File(path, self._next)


class _Delegate(Files):
    """Hands every call on, through one method."""

    def __init__(self, inner: Files) -> None:
        self.inner = inner

    def _do(self, call: str, *arguments: Any) -> Any:
        if call == "open":
            return self.inner.open(arguments[0], is_writable=arguments[1])
        return getattr(self.inner, call)(*arguments)

    def make_directory(self, path: Path) -> None:
        self._do("make_directory", path)

    def list(self, path: Path) -> list[str]:
        names: list[str] = self._do("list", path)
        return names

    def create(self, path: Path) -> File:
        file: File = self._do("create", path)
        return file

    def open(self, path: Path, *, is_writable: bool = False) -> File:
        file: File = self._do("open", path, is_writable)
        return file

    def append(self, file: File, data: bytes | bytearray) -> int:
        return int(self._do("append", file, data))

    def overwrite(self, file: File, offset: int, data: bytes) -> int:
        return int(self._do("overwrite", file, offset, data))

    def sync(self, file: File) -> None:
        self._do("sync", file)

    def truncate(self, file: File, size: int) -> None:
        self._do("truncate", file, size)

    def size(self, file: File) -> int:
        return int(self._do("size", file))

    def read(self, file: File, offset: int, count: int) -> bytes:
        return bytes(self._do("read", file, offset, count))

    def close(self, file: File) -> None:
        self._do("close", file)

    def rename(self, source: Path, target: Path) -> None:
        self._do("rename", source, target)

    def unlink(self, path: Path) -> None:
        self._do("unlink", path)

    def sync_directory(self, path: Path) -> None:
        self._do("sync_directory", path)

    def lock(self, path: Path) -> File:
        file: File = self._do("lock", path)
        return file

    def free_bytes(self, path: Path) -> int:
        return int(self._do("free_bytes", path))

    def mount_point(self, path: Path) -> Path:
        return self.inner.mount_point(path)


class Fault(Enum):
    """How a call fails."""

    NO_ROOM = errno.ENOSPC
    SHORT = -1
    """An append writes half of its bytes; every other call passes."""
    BROKEN = errno.EIO
    READ_ONLY = errno.EROFS


CHANGES: Final = (
    "make_directory",
    "create",
    "append",
    "overwrite",
    "sync",
    "truncate",
    "rename",
    "unlink",
    "sync_directory",
    "lock",
)
READS: Final = ("list", "open", "size", "read", "free_bytes")


class FaultyFiles(_Delegate):
    """Fails at the `at`-th counted call, from 0, once or from then on; without `at` it only counts."""

    def __init__(
        self,
        inner: Files,
        at: int | None = None,
        fault: Fault = Fault.BROKEN,
        calls: Sequence[str] = CHANGES,
        *,
        is_lasting: bool = False,
    ) -> None:
        super().__init__(inner)
        self.at, self.fault, self.is_lasting = at, fault, is_lasting
        self.log: list[str] = []
        """The counted calls so far."""
        self.hit: str | None = None
        """The first call that failed."""
        self._calls = calls

    def mend(self) -> None:
        """Nothing fails any more."""
        self.at = None

    def _do(self, call: str, *arguments: Any) -> Any:
        if call not in self._calls:
            return super()._do(call, *arguments)
        index = len(self.log)
        self.log.append(call)
        is_due = self.at is not None and (index == self.at or (self.is_lasting and index > self.at))
        if not is_due or (self.fault is Fault.SHORT and call != "append"):
            return super()._do(call, *arguments)
        self.hit = self.hit or call
        if self.fault is Fault.SHORT:
            file, data = arguments
            return super()._do("append", file, data[: len(data) // 2])
        raise OSError(self.fault.value, errno.errorcode[self.fault.value])


class Step(NamedTuple):
    """One line of a recording."""

    call: str
    """A call that changes something, `failed-sync`, or `sent`."""
    path: Path
    inode: int = 0
    offset: int = 0
    data: bytes = b""
    target: Path = Path()
    sent: Any = None


class Image(NamedTuple):
    """What a power cut before step `at` may have left."""

    name: str
    """Seed and number: the same recording gives the same image again."""
    at: int
    content: dict[Path, bytes]
    sent: tuple[Any, ...]
    """What had been sent before that instant, and therefore must hold."""

    def files(self) -> MemoryFiles:
        """The image as a disk to start on."""
        return MemoryFiles(self.content)

    def lay(self, root: Path) -> None:
        """Write the image below a directory of this machine."""
        for path, data in self.content.items():
            place = root / path.relative_to("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)


class RecordingFiles(_Delegate):
    """Records every call that changes something, with its bytes, in one order with everything that is sent."""

    def __init__(self, inner: Files, content: dict[Path, bytes] | None = None) -> None:
        super().__init__(inner)
        self.log: list[Step] = []
        self.content = content or {}
        """What was durable before the recording began."""
        self._inodes = {path: number for number, path in enumerate(self.content, 1)}
        self._open: dict[int, int] = {}
        self._next = len(self._inodes)

    def note_sent(self, message: Any) -> None:
        """Note that something has left the node: from now on it must hold."""
        self.log.append(Step("sent", Path(), sent=message))

    def _do(self, call: str, *arguments: Any) -> Any:
        try:
            result = super()._do(call, *arguments)
        except OSError:
            if call == "sync":
                self.log.append(Step("failed-sync", arguments[0].path, self._open[arguments[0].number]))
            raise
        note = self._notes.get(call)
        if note is not None:
            note(self, result, *arguments)
        return result

    def _note_make_directory(self, _: None, path: Path) -> None:
        self.log.append(Step("make_directory", path))

    def _note_create(self, file: File, path: Path) -> None:
        self._next += 1
        self._inodes[path] = self._open[file.number] = self._next
        self.log.append(Step("create", path, self._next))

    def _note_open(self, file: File, path: Path, _: bool = False) -> None:  # noqa: FBT001, FBT002  # as `open` takes it
        self._open[file.number] = self._inodes.get(path, 0)

    def _note_append(self, taken: int, file: File, data: bytes) -> None:
        offset = self.inner.size(file) - taken
        self.log.append(Step("write", file.path, self._open[file.number], offset, bytes(data[:taken])))

    def _note_overwrite(self, taken: int, file: File, offset: int, data: bytes) -> None:
        self.log.append(Step("write", file.path, self._open[file.number], offset, bytes(data[:taken])))

    def _note_truncate(self, _: None, file: File, size: int) -> None:
        self.log.append(Step("truncate", file.path, self._open[file.number], size))

    def _note_sync(self, _: None, file: File) -> None:
        self.log.append(Step("sync", file.path, self._open[file.number]))

    def _note_rename(self, _: None, source: Path, target: Path) -> None:
        self._inodes[target] = self._inodes.pop(source)
        self.log.append(Step("rename", source, self._inodes[target], target=target))

    def _note_unlink(self, _: None, path: Path) -> None:
        self.log.append(Step("unlink", path, self._inodes.pop(path, 0)))

    def _note_sync_directory(self, _: None, path: Path) -> None:
        self.log.append(Step("sync_directory", path))

    _notes: Final[dict[str, Callable[..., None]]] = {
        "make_directory": _note_make_directory,
        "create": _note_create,
        "open": _note_open,
        "lock": _note_open,
        "append": _note_append,
        "overwrite": _note_overwrite,
        "truncate": _note_truncate,
        "sync": _note_sync,
        "rename": _note_rename,
        "unlink": _note_unlink,
        "sync_directory": _note_sync_directory,
    }


class _Content:
    """What is durable of a file, and what was done to it since."""

    def __init__(self, durable: bytes = b"") -> None:
        self.durable = durable
        self.pending: list[Step] = []
        self.dropped: list[Step] = []
        """Steps before a sync that failed: they may have reached the disk, and no later sync makes them durable."""

    def sync(self) -> None:
        self.durable = _applied(self.durable, self.pending)
        self.pending = []

    def failed_sync(self) -> None:
        self.dropped += self.pending
        self.pending = []

    def after_crash(self, chance: Chance) -> bytes:
        survived = _survived(self.durable, self.pending, chance)
        for step in self.dropped:
            if chance.random() < 0.5 and step.offset + len(step.data) <= len(survived):
                survived = _applied(survived, [step])
        return survived


class _Disk:
    """Replays a recording, and determines what a crash may leave."""

    def __init__(self, content: dict[Path, bytes]) -> None:
        self._contents = {number: _Content(data) for number, data in enumerate(content.values(), 1)}
        self._names = {parent: 0 for path in content for parent in path.parents}
        self._names |= {path: number for number, path in enumerate(content, 1)}
        self._pending: dict[Path, list[Step]] = {}

    def replay(self, step: Step) -> None:
        if step.call in ("write", "truncate"):
            self._content(step).pending.append(step)
        elif step.call == "sync":
            self._content(step).sync()
        elif step.call == "failed-sync":
            self._content(step).failed_sync()
        elif step.call == "sync_directory":
            for pending in self._pending.pop(step.path, ()):
                _rename(self._names, pending)
        elif step.call != "sent":
            self._pending.setdefault(step.path.parent, []).append(step)

    def _content(self, step: Step) -> _Content:
        return self._contents.setdefault(step.inode, _Content())

    def after_crash(self, chance: Chance) -> dict[Path, bytes]:
        names = dict(self._names)
        for steps in self._pending.values():
            for step in steps[: chance.randint(0, len(steps))]:
                _rename(names, step)
        made = {step.path for steps in self._pending.values() for step in steps if step.call == "make_directory"}
        absent = made - names.keys()
        return {
            path: self._contents.setdefault(number, _Content()).after_crash(chance)
            for path, number in names.items()
            if number and not absent.intersection(path.parents)
        }


def _rename(names: dict[Path, int], step: Step) -> None:
    """What a change of names does, once it is durable; a directory is a name with number 0."""
    if step.call in ("create", "make_directory"):
        names[step.path] = step.inode
    elif step.call == "unlink":
        names.pop(step.path, None)
    elif names.pop(step.path, None) is not None:
        names[step.target] = step.inode


def _applied(data: bytes, steps: Sequence[Step]) -> bytes:
    content = bytearray(data)
    for step in steps:
        content += bytes(max(0, step.offset - len(content)))
        if step.call == "truncate":
            content[step.offset :] = b""
        else:
            content[step.offset : step.offset + len(step.data)] = step.data
    return bytes(content)


def _survived(old: bytes, steps: Sequence[Step], chance: Chance) -> bytes:
    """What is left of a file whose last `steps` were not synced (SIM-022)."""
    if not steps:
        return old
    kept = steps[: chance.randint(0, len(steps))] if chance.random() < 0.5 else steps
    new = _applied(old, kept)
    if chance.random() < 0.3:
        return _cut(old, new, chance)
    sectors = [_sector(old[at : at + SECTOR], new[at : at + SECTOR], chance) for at in range(0, len(new), SECTOR)]
    return _cut(old, b"".join(sectors), chance) if chance.random() < 0.3 else b"".join(sectors)


def _cut(old: bytes, new: bytes, chance: Chance) -> bytes:
    """The file is shorter than what was written: the length was not yet durable, or not all of it."""
    return new if len(new) <= len(old) else new[: chance.randint(len(old), len(new))]


def _sector(old: bytes, new: bytes, chance: Chance) -> bytes:
    """One sector: as written, as it was, or, where there was nothing, zeros."""
    if old == new or chance.random() < 0.5:
        return new
    return old.ljust(len(new), b"\0")[: len(new)]


def crash_images(recording: RecordingFiles, seed: int | str, count: int) -> Iterator[Image]:
    """`count` disks that a power cut may have left, each at an instant of its own, in order of the instants."""
    draw = Chance(f"{seed}/instants")
    instants = sorted(draw.randint(0, len(recording.log)) for _ in range(count))
    disk = _Disk(recording.content)
    sent: list[Any] = []
    replayed = 0
    for number, at in enumerate(instants):
        for step in recording.log[replayed:at]:
            disk.replay(step)
            if step.call == "sent":
                sent.append(step.sent)
        replayed = at
        name = f"{seed}/image/{number}"
        yield Image(name, at, disk.after_crash(Chance(name)), tuple(sent))
