"""What can be measured: one row per detail, as in the table of MEA-001.

The row says the type, by which two samples are calculated to one value, where the work is done, and what the keys
`per` and `param` may mean. The functions that measure stand in the shell, in a table with the same keys.
"""

from enum import Enum
from typing import Final, NamedTuple


class Place(Enum):
    """Where the shell does the work, so that nothing that may hang delays anything else (MEA-006)."""

    INLINE = "counters of the kernel: microseconds, read at once"
    PROCESSES = "one scan of all processes serves all metrics of a tick (MEA-003)"
    APART = "may hang (a network mount, a slow sensor bus): on its own, one metric at a time"


class Detail(NamedTuple):
    """One row."""

    type: str
    place: Place = Place.INLINE
    per: tuple[str, ...] = ()
    """What `per` may ask for."""
    param: str = ""
    """What `param` names: a device, a mount, processes; empty: the detail takes none."""


PER_CORE: Final = ("core",)
PER_NAME: Final = ("name",)
DEVICE: Final = "device"
MOUNT: Final = "mount"
PROCESS: Final = "process"


def _processes(kind: str) -> Detail:
    return Detail(kind, Place.PROCESSES, PER_NAME, PROCESS)


DETAILS: Final[dict[str, Detail]] = {
    "CPU": Detail("percent", per=PER_CORE),
    "CPU_MODE": Detail("rate", per=PER_CORE),
    "MEMORY": Detail("basic"),
    "SWAP": Detail("basic"),
    "MEM_PART": Detail("basic"),
    "LOAD": Detail("basic"),
    "UPTIME": Detail("basic"),
    "TCP_STATE": Detail("basic", Place.APART),
    "DISK": Detail("rate", param=DEVICE),
    "DISK_IO": Detail("rate", param=DEVICE),
    "DISK_USE": Detail("basic", Place.APART, param=MOUNT),
    "NETWORK": Detail("rate", param=DEVICE),
    "NET_IF": Detail("rate", param=DEVICE),
    "TEMP": Detail("basic", Place.APART),
    "FAN": Detail("basic", Place.APART),
    "PRESSURE": Detail("rate"),
    "CONTEXT": Detail("rate"),
    "INFO": Detail("once"),
    "PROC_CPU": _processes("percent"),
    "PROC_IO": _processes("rate"),
    "PROC_MEM": _processes("basic"),
    "PROC_COUNT": _processes("basic"),
    "PROC_FDS": _processes("basic"),
    "PROC_THREADS": _processes("basic"),
}
