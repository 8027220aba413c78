"""Processors, memory, load, pressure: the kernel's counters of the machine as a whole."""

import os
from collections.abc import Iterator
from typing import Final

from weft.cores.measurement.settings import MetricSpec
from weft.shell.meters.kernel import Samples, Tick, Unsupported
from weft.wire.samples import LABEL_VALUE_BYTES_MAX, Labels

MODES: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
COUNTED: Final = 8  # guest times are part of user and nice already: do not count them twice
IDLE: Final = 3
IOWAIT: Final = 4
TOTAL: Final[Labels] = (("cpu", "total"),)
WINDOWS: Final = ("1m", "5m", "15m")
RESOURCES: Final = ("cpu", "io", "memory", "irq")
KIB: Final = 1024
PERCENT: Final = 100.0
PARTS: Final = {
    "total": ("MemTotal",),
    "available": ("MemAvailable",),
    "free": ("MemFree",),
    "buffers": ("Buffers",),
    "cached": ("Cached", "SReclaimable"),
    "shared": ("Shmem",),
    "active": ("Active",),
    "inactive": ("Inactive",),
    "slab": ("Slab",),
    "dirty": ("Dirty",),
}
TCP_STATES: Final = {
    b"01": "established",
    b"02": "syn_sent",
    b"03": "syn_recv",
    b"04": "fin_wait1",
    b"05": "fin_wait2",
    b"06": "time_wait",
    b"07": "close",
    b"08": "close_wait",
    b"09": "last_ack",
    b"0A": "listen",
    b"0B": "closing",
}


def processor_lines(tick: Tick, per: str) -> Iterator[tuple[Labels, list[int]]]:
    """Labels and ticks by mode: of all processors together, or of each."""
    data = tick.read("stat")
    if per != "core":
        yield TOTAL, [int(field) for field in data[: data.index(b"\n")].split()[1:]]
        return
    for line in data.split(b"\n")[1:]:
        if not line.startswith(b"cpu"):
            return
        name, *fields = line.split()
        yield (("cpu", name[3:].decode()),), [int(field) for field in fields]


def total_hundredths(tick: Tick) -> int:
    """Time of all processors together, busy or not, in 1/100 s."""
    _, modes = next(processor_lines(tick, ""))
    return tick.kernel.hundredths(sum(modes[:COUNTED]))


def processors(tick: Tick, spec: MetricSpec) -> Samples:
    """CPU: busy time over total time."""
    hundredths = tick.kernel.hundredths
    samples: Samples = []
    for labels, modes in processor_lines(tick, spec.per):
        total = sum(modes[:COUNTED])
        samples.append((labels, hundredths(total - modes[IDLE] - modes[IOWAIT]), hundredths(total)))
    return samples


def processor_modes(tick: Tick, spec: MetricSpec) -> Samples:
    """CPU_MODE: seconds in each mode, as the kernel counts them (user and nice include the guest times)."""
    hertz = tick.kernel.hertz
    return [
        ((*labels, ("mode", mode)), ticks / hertz, None)
        for labels, modes in processor_lines(tick, spec.per)
        for mode, ticks in zip(MODES, modes, strict=False)
    ]


def meminfo(tick: Tick) -> dict[str, int]:
    """Bytes by name."""
    found = {}
    for line in tick.read("meminfo").splitlines():
        name, rest = line.split(b":", 1)
        found[name.decode()] = int(rest.split(None, 1)[0]) * KIB
    return found


def _kibibytes(data: bytes, name: bytes) -> int | None:
    """One line of meminfo."""
    at = data.find(name + b":")
    return None if at < 0 else int(data[at + len(name) + 1 : data.index(b" kB", at)])


def memory(tick: Tick, _spec: MetricSpec) -> Samples:
    """MEMORY: bytes that are not available."""
    data = tick.read("meminfo")
    total, available = _kibibytes(data, b"MemTotal"), _kibibytes(data, b"MemAvailable")
    if total is None:
        raise Unsupported("meminfo has no MemTotal")
    if available is None or available > total:
        available = _kibibytes(data, b"MemFree") or 0
    return [((), (total - available) * KIB, None)]


def memory_percent(tick: Tick, spec: MetricSpec) -> Samples:
    """MEMORY_PERCENT: share of memory that is not available."""
    ((_, used, _),) = memory(tick, spec)
    return [((), PERCENT * used / tick.once(meminfo)["MemTotal"], None)]


def swap(tick: Tick, _spec: MetricSpec) -> Samples:
    """SWAP: bytes that are used."""
    found = tick.once(meminfo)
    return [((), found["SwapTotal"] - found["SwapFree"], None)]


def swap_percent(tick: Tick, spec: MetricSpec) -> Samples:
    """SWAP_PERCENT: share of swap that is used."""
    total = tick.once(meminfo)["SwapTotal"]
    if not total:
        raise Unsupported("this machine has no swap")
    ((_, used, _),) = swap(tick, spec)
    return [((), PERCENT * used / total, None)]


def memory_parts(tick: Tick, _spec: MetricSpec) -> Samples:
    """MEM_PART: bytes by part."""
    found = tick.once(meminfo)
    return [
        ((("part", part),), sum([found.get(name, 0) for name in names]), None)
        for part, names in PARTS.items()
        if names[0] in found
    ]


def load(tick: Tick, _spec: MetricSpec) -> Samples:
    """LOAD: mean number of runnable threads, by window."""
    fields = tick.read("loadavg").split()
    return [((("window", window),), float(field), None) for window, field in zip(WINDOWS, fields, strict=False)]


def uptime(tick: Tick, _spec: MetricSpec) -> Samples:
    """UPTIME: seconds since the boot."""
    return [((), float(tick.read("uptime").split()[0]), None)]


def context(tick: Tick, _spec: MetricSpec) -> Samples:
    """CONTEXT: switches."""
    data = tick.read("stat")
    at = data.index(b"\nctxt ") + 6
    return [((), int(data[at : data.index(b"\n", at)]), None)]


def pressure(tick: Tick, _spec: MetricSpec) -> Samples:
    """PRESSURE: microseconds in which some, or all, tasks were stalled for lack of a resource."""
    samples: Samples = []
    for resource in RESOURCES:
        try:
            data = tick.read(f"pressure/{resource}")
        except Unsupported:
            continue  # `irq` is younger than the others
        for line in data.splitlines():
            kind, *_, total = line.split()
            labels = (("resource", resource), ("kind", kind.decode()))
            samples.append((labels, int(total.partition(b"=")[2]), None))
    if not samples:
        raise Unsupported("the kernel keeps no pressure information (PSI)")
    return samples


def tcp_states(tick: Tick, _spec: MetricSpec) -> Samples:
    """TCP_STATE: connections by state."""
    counts = dict.fromkeys(TCP_STATES.values(), 0)
    for name in ("net/tcp", "net/tcp6"):
        try:
            lines = tick.read(name).splitlines()[1:]
        except Unsupported:
            continue
        for line in lines:
            state = TCP_STATES.get(line.split(None, 4)[3])
            if state is not None:
                counts[state] += 1
    return [((("state", state),), count, None) for state, count in counts.items()]


def info(tick: Tick, _spec: MetricSpec) -> Samples:
    """INFO: facts about the machine, as labels of a sample that is always 1."""
    names = os.uname()
    facts = {
        "host": names.nodename,
        "system": names.sysname,
        "release": names.release,
        "machine": names.machine,
        "cpus": str(os.cpu_count() or 1),
        "memory_bytes": str(tick.once(meminfo)["MemTotal"]),
    }
    return [(tuple((key, value[:LABEL_VALUE_BYTES_MAX]) for key, value in facts.items()), 1, None)]
