"""What can be measured: one row per detail, as in the table of MEA-001 and the catalogue of MET-001.

A row has the meaning and unit of the values, the type that says how a value is calculated from two samples, the place
where the work is done, and the meaning of the keys `per` and `param`. `docs/metrics.md` and `weft metrics` are
generated from it. The functions that measure stand in the shell, in a table with the same keys.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple


class Place(Enum):
    """Where the shell does the work, so that a measurement that may hang delays nothing else (MEA-006)."""

    INLINE = "counters of the kernel: microseconds, read at once"
    PROCESSES = "one scan of all processes serves all metrics of a tick (MEA-003)"
    APART = "may hang (a network mount, a slow sensor bus): on its own, one metric at a time"


class Detail(NamedTuple):
    """One row."""

    type: str
    """How two samples become a value: `basic` as it is, `rate` per second, `delta`, `percent`, `once`."""
    says: str
    """What is measured, in one sentence."""
    unit: str
    """Of the calculated value, in the units of UCUM: `%`, `By`, `By/s`, `s`; empty: by the label `unit`, see `units`."""
    source: str
    """Where the kernel provides it."""
    place: Place = Place.INLINE
    per: tuple[str, ...] = ()
    """Allowed values of `per`."""
    param: str = ""
    """What `param` names: a device, a mount, processes, a file, an address; empty: the detail has no parameter."""
    needs_param: bool = False
    labels: tuple[str, ...] = ()
    """Labels of its series."""
    units: Mapping[str, str] = {}
    """By value of the label `unit`, if the series of one detail have several units."""
    otel: str = ""
    """The name in OpenTelemetry's semantic conventions, if there is one."""

    @property
    def kind(self) -> str:
        """Kind of the stored samples: `counter` if only differences have a meaning, else `gauge`."""
        return "counter" if self.type in ("rate", "percent", "delta") else "gauge"

    def unit_of(self, labels: Mapping[str, str]) -> str:
        """The unit of the calculated values of one series."""
        return self.units.get(labels.get("unit", ""), self.unit)


PER_CORE: Final = ("core",)
PER_NAME: Final = ("name",)
DEVICE: Final = "device"
MOUNT: Final = "mount"
PROCESS: Final = "process"
FILE: Final = "file"
ADDRESS: Final = "address"

_OF_MOUNT: Final = ("mount", "device")
_DIRECTED: Final = ("device", "dir", "unit")
_BYTES_RATE: Final = "By/s"


def _processes(kind: str, says: str, unit: str, file: str, otel: str = "") -> Detail:
    return Detail(
        kind, says, unit, f"/proc/PID/{file}", Place.PROCESSES, PER_NAME, PROCESS, labels=("process",), otel=otel
    )


def _mount(says: str, unit: str, otel: str = "") -> Detail:
    return Detail("basic", says, unit, "statvfs", Place.APART, param=MOUNT, labels=_OF_MOUNT, otel=otel)


DETAILS: Final[dict[str, Detail]] = {
    "CPU": Detail(
        "percent",
        "busy time of the processors",
        "%",
        "/proc/stat",
        per=PER_CORE,
        labels=("cpu",),
        otel="system.cpu.utilization",
    ),
    "CPU_MODE": Detail(
        "rate",
        "seconds per second in each mode",
        "s/s",
        "/proc/stat",
        per=PER_CORE,
        labels=("cpu", "mode"),
        otel="system.cpu.time",
    ),
    "MEMORY": Detail(
        "basic", "memory that is not available to programs", "By", "/proc/meminfo", otel="system.memory.usage"
    ),
    "MEMORY_PERCENT": Detail(
        "basic",
        "share of memory that is not available to programs",
        "%",
        "/proc/meminfo",
        otel="system.memory.utilization",
    ),
    "SWAP": Detail("basic", "swap in use", "By", "/proc/meminfo", otel="system.paging.usage"),
    "SWAP_PERCENT": Detail("basic", "share of swap in use", "%", "/proc/meminfo", otel="system.paging.utilization"),
    "MEM_PART": Detail("basic", "memory by part", "By", "/proc/meminfo", labels=("part",), otel="system.memory.usage"),
    "LOAD": Detail(
        "basic",
        "mean number of threads that run or wait to run",
        "{thread}",
        "/proc/loadavg",
        labels=("window",),
        otel="system.cpu.load_average.1m",
    ),
    "UPTIME": Detail("basic", "time since the machine was started", "s", "/proc/uptime", otel="system.uptime"),
    "CLOCK_OFFSET": Detail(
        "basic",
        "how far the clock is from its time server, as the kernel's clock discipline says",
        "s",
        "adjtimex",
    ),
    "TCP_STATE": Detail(
        "basic",
        "TCP connections by state",
        "{connection}",
        "/proc/net/tcp",
        Place.APART,
        labels=("state",),
        otel="system.network.connection.count",
    ),
    "DISK": Detail(
        "rate",
        "bytes read and written",
        _BYTES_RATE,
        "/proc/diskstats",
        param=DEVICE,
        labels=("device",),
        otel="system.disk.io",
    ),
    "DISK_IO": Detail(
        "rate",
        "bytes and operations by direction, and time in which the disk was busy",
        "",
        "/proc/diskstats",
        param=DEVICE,
        labels=_DIRECTED,
        units={"bytes": _BYTES_RATE, "operations": "{operation}/s", "busy_ms": "ms/s"},
        otel="system.disk.io",
    ),
    "DISK_USE": Detail(
        "basic",
        "used and free bytes, and used inodes, of mounted disks",
        "",
        "statvfs",
        Place.APART,
        param=MOUNT,
        labels=(*_OF_MOUNT, "unit"),
        units={"used": "By", "free": "By", "inodes": "{inode}"},
        otel="system.filesystem.usage",
    ),
    "DISK_FREE": _mount("bytes of mounted disks that users may still take", "By"),
    "DISK_PERCENT": _mount("share of mounted disks in use, as `df` says it", "%", "system.filesystem.utilization"),
    "INODE_PERCENT": _mount("share of the inodes of mounted disks in use", "%"),
    "DISK_READONLY": _mount("1 if a mounted disk can only be read, else 0", "1"),
    "NETWORK": Detail(
        "rate",
        "bytes sent and received",
        _BYTES_RATE,
        "/proc/net/dev",
        param=DEVICE,
        labels=("device",),
        otel="system.network.io",
    ),
    "NET_IF": Detail(
        "rate",
        "bytes, packets, errors and drops by direction",
        "",
        "/proc/net/dev",
        param=DEVICE,
        labels=_DIRECTED,
        units={"bytes": _BYTES_RATE, "packets": "{packet}/s", "errors": "{error}/s", "drops": "{packet}/s"},
        otel="system.network.io",
    ),
    "NET_ERRORS": Detail(
        "rate",
        "errors and drops of both directions",
        "{error}/s",
        "/proc/net/dev",
        param=DEVICE,
        labels=("device",),
        otel="system.network.errors",
    ),
    "TEMP": Detail(
        "basic",
        "temperatures",
        "Cel",
        "/sys/class/hwmon",
        Place.APART,
        labels=("chip", "sensor"),
        otel="hw.temperature",
    ),
    "FAN": Detail(
        "basic",
        "speeds of fans",
        "{rotation}/min",
        "/sys/class/hwmon",
        Place.APART,
        labels=("chip", "sensor"),
        otel="hw.fan_speed",
    ),
    "GPU": Detail(
        "basic",
        "share of time in which a graphics processor is busy",
        "%",
        "/sys/class/drm",
        Place.APART,
        labels=("device",),
        otel="hw.gpu.utilization",
    ),
    "PRESSURE": Detail(
        "rate",
        "time in which some or all tasks wait for a resource",
        "us/s",
        "/proc/pressure",
        labels=("resource", "kind"),
    ),
    "CONTEXT": Detail("rate", "context switches", "{switch}/s", "/proc/stat"),
    "INFO": Detail(
        "once",
        "what the machine is, as labels of a value that is always 1",
        "1",
        "uname",
        labels=("host", "system", "release", "machine", "cpus", "memory_bytes"),
    ),
    "UNITS_FAILED": Detail("basic", "systemd units that have failed", "{unit}", "systemctl", Place.APART),
    "PROC_CPU": _processes(
        "percent", "processor time, as a share of all processors", "%", "stat", "process.cpu.utilization"
    ),
    "PROC_IO": _processes("rate", "bytes to and from disks", _BYTES_RATE, "io", "process.disk.io"),
    "PROC_MEM": _processes("basic", "resident memory", "By", "stat", "process.memory.usage"),
    "PROC_COUNT": _processes("basic", "how many processes there are", "{process}", "stat", "system.process.count"),
    "PROC_FDS": _processes("basic", "open file descriptors", "{file}", "fd", "process.open_file_descriptor.count"),
    "PROC_THREADS": _processes("basic", "threads", "{thread}", "stat", "process.thread.count"),
    "PROC_STARTS": _processes(
        "delta",
        "processes that are new since the sample before; one that starts and ends between two is not seen",
        "{start}",
        "stat",
    ),
    "FILE_AGE": Detail(
        "basic", "seconds since a file was last written", "s", "stat", Place.APART, param=FILE, needs_param=True
    ),
    "FILE_SIZE": Detail("basic", "size of a file", "By", "stat", Place.APART, param=FILE, needs_param=True),
    "HTTP": Detail(
        "basic",
        "whether an address answers (1 or 0), its status and how long it takes",
        "",
        "GET",
        Place.APART,
        param=ADDRESS,
        needs_param=True,
        labels=("unit",),
        units={"up": "1", "status": "{status}", "seconds": "s"},
    ),
}
