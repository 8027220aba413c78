"""Processes: one scan per tick for all metrics, and sums that never decrease (MEA-003).

A scan reads one file per process; other data of a process are read once, when a metric needs them. Processes may end
during a scan, and some may not be inspected: those are skipped and counted.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable
from typing import Final, NamedTuple

from weft.cores.measurement.settings import MetricSpec
from weft.shell.meters.kernel import Kernel, Samples, Tick
from weft.shell.meters.machine import total_hundredths
from weft.wire.samples import LABEL_VALUE_BYTES_MAX, Labels

COMM_BYTES: Final = 15  # the kernel cuts names to this length
KERNEL_THREAD: Final = 0x0020_0000  # among a process's flags
FORGET_SCANS: Final = 300  # scans for which a name without processes is still shown
Identity = tuple[int, int]
"""Process number and start time, because numbers are reused."""
Found = tuple[Identity, str, int | None]
"""A selected process, its group, and its value if it could be read."""


class Stat(NamedTuple):
    """The line of /proc/PID/stat."""

    identity: Identity
    comm: str
    is_kernel: bool
    ticks: int
    threads: int
    pages: int


class Process:
    """One process of a scan."""

    __slots__ = ("_command", "_kernel", "_name", "stat")

    def __init__(self, kernel: Kernel, stat: Stat) -> None:
        self._kernel, self.stat = kernel, stat
        self._name = ""
        self._command: list[str] | None = None

    def _file(self, name: str) -> str:
        return f"{self._kernel.proc}/{self.stat.identity[0]}/{name}"

    @property
    def name(self) -> str:
        """Its name; if the kernel has cut it, it is completed from the command line."""
        if not self._name:
            self._name = self._whole_name()
        return self._name

    def _whole_name(self) -> str:
        comm = self.stat.comm
        if len(comm.encode()) < COMM_BYTES or self.stat.is_kernel:
            return comm
        try:
            program = os.path.basename((self.command() or [""])[0])
        except OSError:
            return comm
        return program if program.startswith(comm) else comm

    def command(self) -> list[str]:
        """Its command line; empty for kernel threads and zombies."""
        if self._command is None:
            data = self._kernel.glance(self._file("cmdline"))
            self._command = data.decode("utf-8", "replace").rstrip("\0").split("\0") if data else []
        return self._command

    def user(self) -> int:
        """Its real user's number."""
        data = self._kernel.glance(self._file("status"))
        at = data.index(b"\nUid:") + 5
        return int(data[at:].split(None, 1)[0])

    def io_bytes(self) -> int:
        """Bytes read from and written to disks on its behalf."""
        counts = dict(line.split(b": ") for line in self._kernel.glance(self._file("io")).splitlines())
        return int(counts[b"read_bytes"]) + int(counts[b"write_bytes"])

    def descriptors(self) -> int:
        """The number of its open descriptors."""
        return len(os.listdir(self._file("fd")))


def scan(tick: Tick) -> list[Process]:
    """All processes of this instant."""
    kernel, found = tick.kernel, []
    for name in os.listdir(kernel.proc):
        if not name.isdecimal():
            continue
        try:
            data = kernel.glance(f"{kernel.proc}/{name}/stat")
        except OSError as error:
            kernel.skipped[_reason(error)] += 1
            continue
        found.append(Process(kernel, _parse(int(name), data)))
    return found


def identities(tick: Tick) -> dict[Identity, None]:
    """All living processes."""
    return dict.fromkeys([process.stat.identity for process in tick.once(scan)])


def _parse(pid: int, data: bytes) -> Stat:
    left, right = data.index(b"("), data.rindex(b")")
    fields = data[right + 2 :].split(None, 22)
    return Stat(
        identity=(pid, int(fields[19])),
        comm=data[left + 1 : right].decode("utf-8", "replace"),
        is_kernel=bool(int(fields[6]) & KERNEL_THREAD),
        ticks=int(fields[11]) + int(fields[12]),
        threads=int(fields[17]),
        pages=int(fields[21]),
    )


def _reason(error: OSError) -> str:
    return "forbidden" if isinstance(error, PermissionError) else "vanished"


# Which processes


def selector(param: str) -> Callable[[Process], bool]:
    """A test for processes: an empty parameter selects all, else an exact name, `re:`, `cmd:`, `user:` or `pid:`."""
    kind, colon, rest = param.partition(":")
    if not param:
        return lambda _process: True
    if colon and kind in SELECTORS:
        return SELECTORS[kind](rest)
    return lambda process: process.name == param


def _by_name(text: str) -> Callable[[Process], bool]:
    pattern = re.compile(text)
    return lambda process: pattern.search(process.name) is not None


def _by_command(text: str) -> Callable[[Process], bool]:
    pattern = re.compile(text)
    return lambda process: pattern.search(" ".join(process.command())) is not None


def _by_user(text: str) -> Callable[[Process], bool]:
    return lambda process: process.user() == user_number(text)


def user_number(text: str) -> int | None:
    """The UID for a user's name or number; None: this machine has no such user."""
    import pwd

    try:
        return int(text) if text.isdecimal() else pwd.getpwnam(text).pw_uid
    except KeyError:
        return None


def _by_number(text: str) -> Callable[[Process], bool]:
    number = int(text)
    return lambda process: process.stat.identity[0] == number


SELECTORS: Final[dict[str, Callable[[str], Callable[[Process], bool]]]] = {
    "re": _by_name,
    "cmd": _by_command,
    "user": _by_user,
    "pid": _by_number,
}


# What of them


def _hundredths(process: Process) -> int:
    return process._kernel.hundredths(process.stat.ticks)


def _resident(process: Process) -> int:
    return process.stat.pages * process._kernel.page


VALUES: Final[dict[str, Callable[[Process], int]]] = {
    "PROC_CPU": _hundredths,
    "PROC_IO": Process.io_bytes,
    "PROC_MEM": _resident,
    "PROC_COUNT": lambda _process: 1,
    "PROC_FDS": Process.descriptors,
    "PROC_THREADS": lambda process: process.stat.threads,
    "PROC_STARTS": lambda _process: 1,
}
COUNTERS: Final = ("PROC_CPU", "PROC_IO", "PROC_STARTS")


class Part(NamedTuple):
    """The share of one living process in the sum of its group."""

    group: str
    base: int
    """Its counter when it came into the group."""
    value: int


class Sums:
    """Sums of counters by group. The share of a process stays in the sum when it ends, so no sum decreases."""

    def __init__(self) -> None:
        self._parts: dict[Identity, Part] = {}
        self._left: dict[Identity, int] = {}
        """Counters of living processes that were selected before and are not now: the sums contain them already."""
        self._ended: Counter[str] = Counter()
        self._seen: dict[str, int] = {}
        self._scans = 0

    def add(self, meant: Iterable[Found], alive: Container[Identity]) -> dict[str, int]:
        """The sums after a scan. For a value of None, which could not be read, the last one is used."""
        self._scans += 1
        parts: dict[Identity, Part] = {}
        for identity, group, value in meant:
            part = self._part(identity, group, value)
            if part is not None:
                parts[identity] = part
        for identity, part in self._parts.items():
            self._end(part)
            self._left[identity] = part.value
        self._left = {identity: value for identity, value in self._left.items() if identity in alive}
        self._parts = parts
        return self._sums()

    def _part(self, identity: Identity, group: str, value: int | None) -> Part | None:
        old = self._parts.pop(identity, None)
        if old is None:
            if value is None:
                return None
            base = self._left.pop(identity, 0)
            return Part(group, base, max(value, base))
        value = old.value if value is None else max(value, old.value)
        if old.group == group:
            return Part(group, old.base, value)
        self._end(old)  # the process executes another program: its earlier share stays in the old group
        return Part(group, old.value, value)

    def _end(self, part: Part) -> None:
        self._ended[part.group] += part.value - part.base

    def _sums(self) -> dict[str, int]:
        for part in self._parts.values():
            self._seen[part.group] = self._scans
        for group, seen in list(self._seen.items()):
            if group and self._scans - seen > FORGET_SCANS:
                del self._seen[group], self._ended[group]
        sums = {group: self._ended[group] for group in self._seen}
        for part in self._parts.values():
            sums[part.group] += part.value - part.base
        return sums


class ProcessMeter:
    """One metric of processes; keeps what its sums need between scans."""

    def __init__(self, spec: MetricSpec) -> None:
        self.spec = spec
        self._is_meant = selector(spec.param)
        self._value = VALUES[spec.detail]
        self._sums = Sums() if spec.detail in COUNTERS else None
        self._shown: dict[str, int] = {}

    def __call__(self, tick: Tick) -> Samples:
        """One sample, or one per process name."""
        found = self._look(tick)
        if self._sums is None:
            values = self._gauges(found)
        else:
            values = self._sums.add(found, tick.once(identities))
            if not self.spec.per:
                values.setdefault("", 0)
        base = total_hundredths(tick) if self.spec.detail == "PROC_CPU" else None
        return [(self._labels(group), value, base) for group, value in values.items()]

    def _labels(self, group: str) -> Labels:
        return (("process", group),) if self.spec.per else ()

    def _look(self, tick: Tick) -> list[Found]:
        """Identity, group and value of every selected process."""
        found: list[Found] = []
        is_by_name = self.spec.per == "name"
        for process in tick.once(scan):
            if is_by_name and not self.spec.param and process.stat.is_kernel:
                continue  # kernel threads change their names with their work, which would make hundreds of series
            try:
                if not self._is_meant(process):
                    continue
                group = process.name[:LABEL_VALUE_BYTES_MAX] if is_by_name else ""
            except (OSError, ValueError) as error:
                self._skip(tick, error)
                continue
            found.append((process.stat.identity, group, self._measure(tick, process)))
        return found

    def _measure(self, tick: Tick, process: Process) -> int | None:
        try:
            return self._value(process)
        except (OSError, ValueError, KeyError) as error:
            self._skip(tick, error)
            return None

    def _skip(self, tick: Tick, error: Exception) -> None:
        tick.kernel.skipped[_reason(error) if isinstance(error, OSError) else "vanished"] += 1

    def _gauges(self, found: Iterable[Found]) -> dict[str, int]:
        """Present values by group; a name whose last process has ended is shown once more, as 0."""
        values = {group: 0 for group, value in self._shown.items() if value} if self.spec.per else {"": 0}
        for _, group, value in found:
            values[group] = values.get(group, 0) + (value or 0)
        self._shown = values
        return values
