"""Disks, mounts, network interfaces, sensors: one series, or a few, per device."""

import os
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from weft.cores.measurement.settings import MetricSpec
from weft.shell.meters.kernel import Samples, Tick, Unsupported
from weft.wire.samples import Labels

SECTOR: Final = 512  # bytes per sector in /proc/diskstats, whatever the disk has
LAYERED: Final = ("loop", "ram", "zram", "dm-", "md", "sr", "fd")
"""Devices whose bytes are those of another disk, or of none: they would be counted twice."""
MILLIDEGREES: Final = 1000


class Disk(NamedTuple):
    name: str
    reads: int
    read_bytes: int
    writes: int
    written_bytes: int
    busy_ms: int


class Interface(NamedTuple):
    name: str
    received: tuple[int, int, int, int]
    """Bytes, packets, errors, drops."""
    sent: tuple[int, int, int, int]


UNITS: Final = ("bytes", "packets", "errors", "drops")


def chosen(param: str) -> Callable[[str], bool]:
    """A test for device names: an empty parameter selects all, `re:` those that match, else the exact name."""
    if param.startswith("re:"):
        pattern = re.compile(param[3:])
        return lambda name: pattern.search(name) is not None
    return lambda name: not param or name == param


def disks(tick: Tick) -> list[Disk]:
    """Counters of whole disks, as the kernel has them."""
    found = []
    for line in tick.read("diskstats").splitlines():
        fields = line.split(None, 13)
        name = fields[2].decode()
        if _is_whole(tick, name):
            reads, _, read, _, writes, _, written, _, _, busy_ms = [int(field) for field in fields[3:13]]
            found.append(Disk(name, reads, read * SECTOR, writes, written * SECTOR, busy_ms))
    return found


def _is_whole(tick: Tick, name: str) -> bool:
    """Whether a block device is neither a partition nor a layer above another disk; looked up once."""
    known = tick.kernel.devices
    if name not in known:
        block = f"{tick.kernel.sys}/block/{name.replace('/', '!')}"
        known[name] = not name.startswith(LAYERED) and os.path.exists(block)
    return known[name]


def disk(tick: Tick, spec: MetricSpec) -> Samples:
    """DISK: bytes read and written."""
    is_chosen = chosen(spec.param)
    found = [one for one in tick.once(disks) if is_chosen(one.name)]
    return _some([((("device", one.name),), one.read_bytes + one.written_bytes, None) for one in found], "whole disk")


def disk_io(tick: Tick, spec: MetricSpec) -> Samples:
    """DISK_IO: bytes, operations and busy milliseconds."""
    is_chosen = chosen(spec.param)
    samples: Samples = []
    for disk in tick.once(disks):
        if is_chosen(disk.name):
            samples += [
                (_directed(disk.name, "read", "bytes"), disk.read_bytes, None),
                (_directed(disk.name, "write", "bytes"), disk.written_bytes, None),
                (_directed(disk.name, "read", "operations"), disk.reads, None),
                (_directed(disk.name, "write", "operations"), disk.writes, None),
                ((("device", disk.name), ("unit", "busy_ms")), disk.busy_ms, None),
            ]
    return _some(samples, "whole disk")


def _directed(device: str, way: str, unit: str) -> Labels:
    return (("device", device), ("dir", way), ("unit", unit))


def _some(samples: Samples, what: str) -> Samples:
    if not samples:
        raise Unsupported(f"no {what} is there")
    return samples


def mounts(tick: Tick) -> list[tuple[str, str]]:
    """Device and directory of each mounted disk; each device once, at its first mount."""
    kinds = [line.split()[-1] for line in tick.read("filesystems").splitlines() if not line.startswith(b"nodev")]
    found: dict[str, str] = {}
    for line in tick.read("self/mounts").splitlines():
        device, directory, kind, *_ = line.split(b" ")
        if (kind in kinds or kind == b"zfs") and device != b"none":
            found.setdefault(_unescaped(device), _unescaped(directory))
    return list(found.items())


def _unescaped(name: bytes) -> str:
    """A name from /proc/self/mounts, where blanks are written as backslash and octal digits."""
    plain = re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8) & 0xFF]), name)
    return plain.decode("utf-8", "replace")


def _uses(tick: Tick, spec: MetricSpec) -> Iterator[tuple[Labels, os.statvfs_result]]:
    """Labels and file system of each selected mounted disk; Unsupported if there is none."""
    found = tick.once(mounts)
    if spec.param and not spec.param.startswith("re:"):
        found = [pair for pair in found if pair[1] == spec.param] or [("", spec.param)]
    is_chosen, is_there = chosen(spec.param), False
    for device, directory in found:
        if not is_chosen(directory):
            continue
        try:
            use = os.statvfs(directory)
        except OSError as error:
            tick.kernel.skipped[f"mount: {error.strerror}"] += 1
            continue
        is_there = True
        yield (("mount", directory), ("device", device)) if device else (("mount", directory),), use
    if not is_there:
        raise Unsupported("no mounted disk is there")


def disk_use(tick: Tick, spec: MetricSpec) -> Samples:
    """DISK_USE: used and free bytes, used inodes; free is what unprivileged users may still write."""
    return [
        ((*place, ("unit", unit)), value, None)
        for place, use in _uses(tick, spec)
        for unit, value in (("used", _used(use)), ("free", _free(use)), ("inodes", use.f_files - use.f_ffree))
    ]


def disk_free(tick: Tick, spec: MetricSpec) -> Samples:
    """DISK_FREE: bytes that unprivileged users may still write."""
    return [(place, _free(use), None) for place, use in _uses(tick, spec)]


def disk_percent(tick: Tick, spec: MetricSpec) -> Samples:
    """DISK_PERCENT: used bytes as a share of used and free ones, as `df` shows it."""
    return [(place, _share(_used(use), _used(use) + _free(use)), None) for place, use in _uses(tick, spec)]


def inode_percent(tick: Tick, spec: MetricSpec) -> Samples:
    """INODE_PERCENT: used inodes; file systems that create inodes as needed are left out."""
    samples: Samples = [
        (place, _share(use.f_files - use.f_ffree, use.f_files), None) for place, use in _uses(tick, spec) if use.f_files
    ]
    return _some(samples, "file system with a fixed number of inodes")


def disk_readonly(tick: Tick, spec: MetricSpec) -> Samples:
    """DISK_READONLY: 1 if nothing can be written; the kernel remounts a disk read-only when it finds errors."""
    return [(place, int(bool(use.f_flag & os.ST_RDONLY)), None) for place, use in _uses(tick, spec)]


def _used(use: os.statvfs_result) -> int:
    return (use.f_blocks - use.f_bfree) * use.f_frsize


def _free(use: os.statvfs_result) -> int:
    return use.f_bavail * use.f_frsize


def _share(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


def interfaces(tick: Tick) -> list[Interface]:
    """Counters of network interfaces, the loopback included."""
    found = []
    for line in tick.read("net/dev").splitlines()[2:]:
        name, _, rest = line.rpartition(b":")
        counts = [int(field) for field in rest.split()]
        found.append(
            Interface(name.strip().decode("utf-8", "replace"), _four(counts, 0), _four(counts, 8)),
        )
    return found


def _four(counts: list[int], first: int) -> tuple[int, int, int, int]:
    return counts[first], counts[first + 1], counts[first + 2], counts[first + 3]


def network(tick: Tick, spec: MetricSpec) -> Samples:
    """NETWORK: bytes sent and received."""
    is_chosen = chosen(spec.param)
    found = [one for one in tick.once(interfaces) if is_chosen(one.name)]
    return _some([((("device", one.name),), one.received[0] + one.sent[0], None) for one in found], "interface")


def network_interfaces(tick: Tick, spec: MetricSpec) -> Samples:
    """NET_IF: bytes, packets, errors and drops of each direction."""
    is_chosen = chosen(spec.param)
    return _some(
        [
            (_directed(one.name, way, unit), value, None)
            for one in tick.once(interfaces)
            if is_chosen(one.name)
            for way, values in (("received", one.received), ("sent", one.sent))
            for unit, value in zip(UNITS, values, strict=True)
        ],
        "interface",
    )


def network_errors(tick: Tick, spec: MetricSpec) -> Samples:
    """NET_ERRORS: errors and drops of both directions."""
    is_chosen = chosen(spec.param)
    found = [one for one in tick.once(interfaces) if is_chosen(one.name)]
    return _some(
        [((("device", one.name),), sum(one.received[2:]) + sum(one.sent[2:]), None) for one in found], "interface"
    )


def graphics(tick: Tick, _spec: MetricSpec) -> Samples:
    """GPU: busy time of each graphics processor whose driver has a file for it (amdgpu has)."""
    root = f"{tick.kernel.sys}/class/drm"
    found = [(card, _number(tick, f"{root}/{card}/device/gpu_busy_percent")) for card in _listed(root)]
    return _some([((("device", card),), busy, None) for card, busy in found if busy is not None], "such processor")


def temperatures(tick: Tick, _spec: MetricSpec) -> Samples:
    """TEMP: degrees Celsius of every sensor; of the thermal zones if no chip has a sensor."""
    samples: Samples = [(labels, value / MILLIDEGREES, None) for labels, value in _chips(tick, "temp")]
    return _some(samples or _zones(tick), "temperature sensor")


def fans(tick: Tick, _spec: MetricSpec) -> Samples:
    """FAN: revolutions per minute."""
    return _some([(labels, value, None) for labels, value in _chips(tick, "fan")], "fan")


def _chips(tick: Tick, kind: str) -> Iterator[tuple[Labels, int]]:
    """Every input of one kind, by chip and sensor; further chips of the same name get a number."""
    root, input_of_kind = f"{tick.kernel.sys}/class/hwmon", re.compile(rf"({kind}\d+)_input")
    places = [f"{root}/{chip}{deeper}" for chip in _listed(root) for deeper in ("", "/device")]
    inputs = [
        (place, match[1]) for place in places for file in _listed(place) if (match := input_of_kind.fullmatch(file))
    ]
    taken: dict[Labels, int] = {}
    for place, sensor in inputs:
        value = _number(tick, f"{place}/{sensor}_input")
        if value is None:
            continue
        chip = _text(tick, f"{place}/name") or place[len(root) + 1 :].partition("/")[0]
        name = _text(tick, f"{place}/{sensor}_label") or sensor
        labels = (("chip", chip), ("sensor", name))
        taken[labels] = taken.get(labels, 0) + 1
        more = f"#{taken[labels]}" if taken[labels] > 1 else ""
        yield (("chip", chip + more), ("sensor", name)), value


def _zones(tick: Tick) -> Samples:
    root = f"{tick.kernel.sys}/class/thermal"
    samples: Samples = []
    for zone in _listed(root):
        value = _number(tick, f"{root}/{zone}/temp") if zone.startswith("thermal_zone") else None
        if value is not None:
            labels = (("chip", _text(tick, f"{root}/{zone}/type") or "thermal"), ("sensor", zone))
            samples.append((labels, value / MILLIDEGREES, None))
    return samples


def _listed(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _text(tick: Tick, path: str) -> str:
    try:
        return tick.kernel.glance(path).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _number(tick: Tick, path: str) -> int | None:
    try:
        return int(tick.kernel.glance(path))
    except (OSError, ValueError):
        return None  # a sensor that does not answer is left out this time
