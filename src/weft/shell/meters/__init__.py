"""Measures this machine: one function per detail of MEA-001, most of them a few lines over one kernel file.

They read the kernel's files directly, import no library for it, and never change anything: the four usual metrics together
take a tenth of a millisecond. Tests compare the results with those of psutil. Start with `machine.py`.
"""

import time
from collections.abc import Callable
from typing import Final

from weft.cores.measurement.messages import MetricSpec, Reading, Verdict
from weft.shell.meters import devices, machine
from weft.shell.meters.kernel import Kernel, Samples, Tick, Unsupported
from weft.shell.meters.processes import VALUES, ProcessMeter

__all__ = ["METERS", "Kernel", "Meters", "Tick", "Unsupported"]

Meter = Callable[[Tick], Samples]
METERS_MAX: Final = 4_000  # stateful metrics; beyond that the oldest is dropped, and its sums begin anew


def _plain(measure: Callable[[Tick, MetricSpec], Samples]) -> Callable[[MetricSpec], Meter]:
    """A maker for a meter without state."""
    return lambda spec: lambda tick: measure(tick, spec)


def _rare(name: str) -> Callable[[MetricSpec], Meter]:
    """A maker for a meter of `probes`, which is imported when a node first measures such a metric."""

    def made(spec: MetricSpec) -> Meter:
        from weft.shell.meters import probes

        return _plain(getattr(probes, name))(spec)

    return made


METERS: Final[dict[str, Callable[[MetricSpec], Meter]]] = {
    "CPU": _plain(machine.processors),
    "CPU_MODE": _plain(machine.processor_modes),
    "MEMORY": _plain(machine.memory),
    "MEMORY_PERCENT": _plain(machine.memory_percent),
    "SWAP": _plain(machine.swap),
    "SWAP_PERCENT": _plain(machine.swap_percent),
    "MEM_PART": _plain(machine.memory_parts),
    "LOAD": _plain(machine.load),
    "UPTIME": _plain(machine.uptime),
    "CONTEXT": _plain(machine.context),
    "PRESSURE": _plain(machine.pressure),
    "TCP_STATE": _plain(machine.tcp_states),
    "INFO": _plain(machine.info),
    "CLOCK_OFFSET": _rare("clock_offset"),
    "UNITS_FAILED": _rare("units_failed"),
    "FILE_AGE": _rare("file_age"),
    "FILE_SIZE": _rare("file_size"),
    "HTTP": _rare("http_answer"),
    "DISK": _plain(devices.disk),
    "DISK_IO": _plain(devices.disk_io),
    "DISK_USE": _plain(devices.disk_use),
    "DISK_FREE": _plain(devices.disk_free),
    "DISK_PERCENT": _plain(devices.disk_percent),
    "INODE_PERCENT": _plain(devices.inode_percent),
    "DISK_READONLY": _plain(devices.disk_readonly),
    "NETWORK": _plain(devices.network),
    "NET_IF": _plain(devices.network_interfaces),
    "NET_ERRORS": _plain(devices.network_errors),
    "TEMP": _plain(devices.temperatures),
    "FAN": _plain(devices.fans),
    "GPU": _plain(devices.graphics),
    **dict.fromkeys(VALUES, ProcessMeter),
}


class Meters:
    """The meters of one machine. Two threads may measure at once, as long as it is not the same metric."""

    def __init__(self, kernel: Kernel | None = None, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self.kernel = kernel or Kernel()
        self._wall_ns = wall_ns
        self._meters: dict[tuple[str, ...], Meter] = {}

    def measure(self, specs: tuple[MetricSpec, ...]) -> tuple[Reading, ...]:
        """One reading per metric, in order. An error is part of the reading of its metric, and affects no other."""
        tick = Tick(self.kernel)
        return tuple([self._read(spec, tick) for spec in specs])

    def _read(self, spec: MetricSpec, tick: Tick) -> Reading:
        at_ms = max(0, self._wall_ns() // 1_000_000)
        try:
            return Reading(spec.name, at_ms, tuple(self._meter(spec)(tick)))
        except Unsupported as lack:
            return Reading(spec.name, at_ms, verdict=Verdict.UNSUPPORTED, why=str(lack))
        except Exception as error:  # noqa: BLE001  # a failing metric never stops another one (MEA-006)
            return Reading(spec.name, at_ms, verdict=Verdict.FAILED, why=f"{type(error).__name__}: {error}")

    def _meter(self, spec: MetricSpec) -> Meter:
        """The meter of a metric. A change of the rate alone keeps it, and with it the sums of its processes."""
        key = (spec.name, *spec.measures)
        meter = self._meters.get(key)
        if meter is None:
            while len(self._meters) >= METERS_MAX:
                del self._meters[next(iter(self._meters))]
            meter = self._meters[key] = METERS[spec.detail](spec)
        return meter

    def close(self) -> None:
        """Close the kernel's files that are open."""
        self.kernel.close()
