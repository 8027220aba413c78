"""Netdata of this machine, on loopback; it keeps its values in memory, and asks nobody else for any."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.peers import programs

SETTLE_S: Final = 4.0
SETTINGS: Final = """
[global]
run as user = {user}
[directories]
config = {place}
log = {place}
lib = {place}
cache = {place}
web = {share}/netdata/web
plugins = {lib}/netdata/plugins.d
stock config = {lib}/netdata/conf.d
[db]
mode = ram
update every = {every}
[web]
bind to = 127.0.0.1
default port = {port}
[statsd]
enabled = no
[plugins]
enable running new plugins = no
apps = no
tc = no
python.d = no
charts.d = no
go.d = no
ebpf = no
{more}
"""
OTHERS: Final = [
    "/proc/interrupts",
    "/proc/loadavg",
    "/proc/mdstat",
    "/proc/net/ip_vs/stats",
    "/proc/net/netstat",
    "/proc/net/rpc/nfs",
    "/proc/net/rpc/nfsd",
    "/proc/net/sctp/snmp",
    "/proc/net/snmp",
    "/proc/net/snmp6",
    "/proc/net/sockstat",
    "/proc/net/sockstat6",
    "/proc/net/softnet_stat",
    "/proc/net/stat/conntrack",
    "/proc/net/stat/synproxy",
    "/proc/net/wireless",
    "/proc/pagetypeinfo",
    "/proc/pressure",
    "/proc/softirqs",
    "/proc/spl/kstat/zfs/arcstats",
    "/proc/sys/kernel/random/entropy_avail",
    "/proc/uptime",
    "/proc/vmstat",
    "/sys/block/zram",
    "/sys/class/infiniband",
    "/sys/class/power_supply",
    "/sys/devices/system/edac/mc",
    "/sys/devices/system/node",
    "/sys/fs/btrfs",
    "/sys/kernel/mm/ksm",
    "ipc",
]
FOUR_METRICS: Final = "\n".join(
    (
        *(
            f"{name} = no"
            for name in ("cgroups", "checks", "diskspace", "idlejitter", "netdata monitoring", "slabinfo")
        ),
        "timex = no\n[health]\nenabled = no\n[ml]\nenabled = no\n[plugin:proc]",
        *(f"{name} = no" for name in OTHERS),
    )
)
"""Of all that it could watch, only what /proc/stat, meminfo, diskstats and net/dev say."""


@contextlib.contextmanager
def netdata(place: Path, port: int, every: int = 1, more: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """Its process, once it listens. `every`: seconds between two looks."""
    usr = programs.unpacked("usr/share/netdata")
    share, lib = (usr.parent, usr.parents[1] / "lib") if usr else (Path("/usr/share"), Path("/usr/lib"))
    words = {"place": place, "port": port, "share": share, "lib": lib, "user": os.environ.get("USER", "root")}
    (place / "netdata.conf").write_text(SETTINGS.format(every=every, more=more, **words), "utf-8")
    (place / ".opt-out-from-anonymous-statistics").touch()
    command = ("netdata", "-D", "-c", str(place / "netdata.conf"), "-P", str(place / "pid"))
    with programs.running(command, place, port) as process:
        time.sleep(SETTLE_S)
        yield process
