"""Reads the kernel's counter files cheaply: descriptors stay open, and each file is read once per tick."""

import errno
import os
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from weft.cores.measurement.messages import Sample

CHUNK: Final = 1 << 16
FILE_BYTES_MAX: Final = 16 << 20  # /proc/net/tcp of a busy server is the largest
ABSENT: Final = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EOPNOTSUPP, errno.ENXIO)
HUNDREDTHS: Final = 100  # per second: the unit of all processor times (MEA-001)

Samples = list[Sample]
T = TypeVar("T")


class Unsupported(Exception):
    """This machine has no source for the metric."""


class Kernel:
    """The kernel's view of one machine. `proc` and `sys` may be directories of a test."""

    def __init__(self, proc: str = "/proc", sys: str = "/sys") -> None:
        self.proc, self.sys = proc, sys
        self.hertz: int = os.sysconf("SC_CLK_TCK")
        self.page: int = os.sysconf("SC_PAGE_SIZE")
        self.skipped: Counter[str] = Counter()
        """Processes and devices that could not be read, by reason (MEA-003)."""
        self.devices: dict[str, bool] = {}
        """Block devices seen so far, and whether each is a whole disk."""
        self._open: dict[str, int] = {}

    def read(self, name: str) -> bytes:
        """Read a file under /proc that is read repeatedly; Unsupported if there is none."""
        try:
            descriptor = self._open.get(name)
            if descriptor is None:
                descriptor = self._keep(name, os.open(f"{self.proc}/{name}", os.O_RDONLY | os.O_CLOEXEC))
            data = os.pread(descriptor, CHUNK, 0)
            # The kernel returns whole records, a page at a time: only an empty read is the end.
            while len(data) < FILE_BYTES_MAX and (more := os.pread(descriptor, CHUNK, len(data))):
                data += more
        except OSError as error:
            if error.errno not in ABSENT:
                raise
            raise Unsupported(f"{self.proc}/{name}: {error.strerror}") from error
        return data

    def _keep(self, name: str, descriptor: int) -> int:
        kept = self._open.setdefault(name, descriptor)
        if kept != descriptor:  # another thread was first
            os.close(descriptor)
        return kept

    def glance(self, path: str) -> bytes:
        """Read a small file once."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, CHUNK)
        finally:
            os.close(descriptor)

    def hundredths(self, ticks: int) -> int:
        """Kernel clock ticks in 1/100 s."""
        return ticks if self.hertz == HUNDREDTHS else ticks * HUNDREDTHS // self.hertz

    def close(self) -> None:
        """Close all descriptors."""
        while self._open:
            os.close(self._open.popitem()[1])


class Tick:
    """One instant of measuring: each file is read at most once in it."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._known: dict[Any, Any] = {}

    def read(self, name: str) -> bytes:
        """A file under /proc."""
        data: bytes | None = self._known.get(name)
        if data is None:
            data = self._known[name] = self.kernel.read(name)
        return data

    def once(self, make: Callable[["Tick"], T]) -> T:
        """The result of `make`, computed on the first call in this tick."""
        if make not in self._known:
            self._known[make] = make(self)
        return cast("T", self._known[make])
