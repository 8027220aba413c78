"""Measurements that no kernel file has: the clock's offset, failed services, files and addresses."""

import ctypes
import http.client
import os
import subprocess
import time
from typing import Final
from urllib.parse import urlsplit

from weft.cores.measurement.settings import MetricSpec
from weft.shell.meters.kernel import Samples, Tick, Unsupported

SYSTEMD: Final = "/run/systemd/system"  # there if and only if systemd started this machine (sd_booted)
SYSTEMCTL: Final = ("systemctl", "list-units", "--failed", "--plain", "--no-legend", "--no-pager")
SYSTEMCTL_S: Final = 5.0
HTTP_S: Final = 5.0  # a slower answer counts as none
HTTP_BYTES_MAX: Final = 1 << 16  # of an answer; the rest is not read
NANOSECONDS: Final = 0x2000  # STA_NANO of <linux/timex.h>: offsets are in ns, else in us
UNSYNCHRONISED: Final = 5  # TIME_ERROR


class Timex(ctypes.Structure):
    """The fields of `struct timex` of <linux/timex.h> that are read; the kernel writes 208 bytes."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    )


def clock_offset(_tick: Tick, _spec: MetricSpec) -> Samples:
    """CLOCK_OFFSET: seconds; Unsupported while no time service adjusts the clock."""
    found = Timex()
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(found))  # modes 0: only read
    if state < 0:
        raise Unsupported(f"adjtimex: {os.strerror(ctypes.get_errno())}")
    if state == UNSYNCHRONISED:
        raise Unsupported("nothing keeps this clock in step")
    return [((), found.offset / (1e9 if found.status & NANOSECONDS else 1e6), None)]


def units_failed(_tick: Tick, _spec: MetricSpec) -> Samples:
    """UNITS_FAILED: how many lines systemctl prints."""
    if not os.path.isdir(SYSTEMD):
        raise Unsupported("systemd did not start this machine")
    done = subprocess.run(SYSTEMCTL, capture_output=True, timeout=SYSTEMCTL_S, check=True)
    return [((), len(done.stdout.splitlines()), None)]


def file_age(_tick: Tick, spec: MetricSpec) -> Samples:
    """FILE_AGE: seconds since it was written."""
    return [((), max(0.0, time.time() - _file(spec.param).st_mtime), None)]


def file_size(_tick: Tick, spec: MetricSpec) -> Samples:
    """FILE_SIZE: bytes."""
    return [((), _file(spec.param).st_size, None)]


def _file(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except OSError as error:
        raise Unsupported(f"{path}: {error.strerror}") from error


def http_answer(_tick: Tick, spec: MetricSpec) -> Samples:
    """HTTP: up is 1 for an answer with a status below 400; without any answer there is no status and no time."""
    began = time.monotonic()
    try:
        status = _status(spec.param)
    except (OSError, http.client.HTTPException):
        return [((("unit", "up"),), 0, None)]
    seconds = time.monotonic() - began
    is_up = status < http.client.BAD_REQUEST
    return [
        (((("unit", unit),)), value, None)
        for unit, value in (("up", int(is_up)), ("status", status), ("seconds", seconds))
    ]


def _status(address: str) -> int:
    """The status of a GET; redirects are not followed."""
    parts = urlsplit(address)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    link = kind(parts.hostname or "", parts.port, timeout=HTTP_S)
    try:
        link.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        answer = link.getresponse()
        answer.read(HTTP_BYTES_MAX)
        return answer.status
    finally:
        link.close()
