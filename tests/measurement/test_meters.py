"""The meters give what psutil gives, on this machine and on machines made of files (MEA-001..003)."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.measurement.world import metrics
from tests.patience import PATIENCE_S
from weft.cores.measurement.details import DETAILS
from weft.cores.measurement.messages import MetricSpec, Reading, Verdict
from weft.shell.meters import METERS, Kernel, Meters, machine
from weft.shell.meters.kernel import CHUNK
from weft.shell.meters.processes import FORGET_SCANS, Sums

Values = dict[tuple[tuple[str, str], ...], Any]


@pytest.fixture
def meters() -> Iterator[Meters]:
    found = Meters()
    yield found
    found.close()


NEEDED = {"FILE_AGE": "/etc/passwd", "FILE_SIZE": "/etc/passwd", "HTTP": "http://127.0.0.1:9/"}
MAY_LACK = ("TEMP", "FAN", "PRESSURE", "GPU", "SWAP_PERCENT", "CLOCK_OFFSET", "UNITS_FAILED", "INODE_PERCENT")
"""What not every machine has."""


def spec(detail: str, **table: Any) -> MetricSpec:
    if detail in NEEDED:
        table.setdefault("param", NEEDED[detail])
    return metrics(m={"detail": detail, "rate": "1s", **table})[0]


def read(meters: Meters, detail: str, **table: Any) -> Values:
    (reading,) = meters.measure((spec(detail, **table),))
    assert (Verdict.READ, "") == (reading.verdict, reading.why)
    assert len(reading.samples) == len({labels for labels, _, _ in reading.samples}), "a series twice"
    return {labels: value for labels, value, _ in reading.samples}


def one(meters: Meters, detail: str, **table: Any) -> Any:
    (value,) = read(meters, detail, **table).values()
    return value


@pytest.mark.proves("MEA-001", "MEA-002")
@pytest.mark.parametrize("detail", sorted(DETAILS))
def test_every_detail_is_measured_or_said_to_be_unsupported(meters: Meters, detail: str) -> None:
    (reading,) = meters.measure((spec(detail),))
    assert reading.verdict in (Verdict.READ, Verdict.UNSUPPORTED), reading.why
    assert bool(reading.samples) == (reading.verdict is Verdict.READ)
    if detail not in MAY_LACK:
        assert Verdict.READ is reading.verdict, reading.why
    for labels, value, base in reading.samples:
        assert isinstance(value, int | float)
        assert (base is not None) == (DETAILS[detail].type == "percent")
        assert all(len(k) <= 64 and len(v) <= 256 for k, v in labels)


def test_tables_of_core_and_shell_name_the_same_details() -> None:
    assert sorted(DETAILS) == sorted(METERS)


def between(low: float, value: float, high: float, slack: float = 0) -> bool:
    return low - slack <= value <= high + slack


def busy(times: Any) -> tuple[int, int]:
    """What MEA-001 says, from psutil's numbers."""
    total = times.user + times.nice + times.system + times.idle + times.iowait + times.irq + times.softirq + times.steal
    return round(100 * (total - times.idle - times.iowait)), round(100 * total)


@pytest.mark.proves("MEA-001")
def test_processor_times_are_those_of_psutil(meters: Meters) -> None:
    before = busy(psutil.cpu_times())
    (reading,) = meters.measure((spec("CPU"),))
    after = busy(psutil.cpu_times())
    ((labels, value, base),) = reading.samples
    assert (("cpu", "total"),) == labels
    assert base is not None
    assert between(before[0], value, after[0], slack=2)
    assert between(before[1], base, after[1], slack=2)


@pytest.mark.proves("MEA-001")
def test_each_core_has_its_times(meters: Meters) -> None:
    before = [busy(times) for times in psutil.cpu_times(percpu=True)]
    (reading,) = meters.measure((spec("CPU", per="core"),))
    after = [busy(times) for times in psutil.cpu_times(percpu=True)]
    assert [(("cpu", str(n)),) for n in range(len(before))] == [labels for labels, _, _ in reading.samples]
    for low, (_, value, base), high in zip(before, reading.samples, after, strict=True):
        assert base is not None
        assert between(low[0], value, high[0], slack=2)
        assert between(low[1], base, high[1], slack=2)


def test_modes_are_seconds(meters: Meters) -> None:
    before = psutil.cpu_times()._asdict()
    found = read(meters, "CPU_MODE")
    after = psutil.cpu_times()._asdict()
    assert list(machine.MODES) == [dict(labels)["mode"] for labels in found]
    for labels, value in found.items():
        mode = dict(labels)["mode"]
        assert between(before[mode], value, after[mode], slack=0.02), mode


def near(expected: float, actual: float, share: float = 0.05, floor: float = 64 << 20) -> bool:
    return abs(expected - actual) <= max(floor, share * abs(expected))


def test_memory_is_that_of_psutil(meters: Meters) -> None:
    virtual = psutil.virtual_memory()
    assert near(virtual.total - virtual.available, one(meters, "MEMORY"))
    parts = {dict(labels)["part"]: value for labels, value in read(meters, "MEM_PART").items()}
    assert virtual.total == parts["total"]
    for part in ("available", "free", "buffers", "cached", "shared", "active", "inactive", "slab"):
        assert near(getattr(virtual, part), parts[part]), part
    assert near(psutil.swap_memory().used, one(meters, "SWAP"))


def test_disks_are_those_of_psutil(meters: Meters) -> None:
    before = psutil.disk_io_counters(perdisk=True)
    found, sums = read(meters, "DISK_IO"), read(meters, "DISK")
    after = psutil.disk_io_counters(perdisk=True)
    fields = {
        ("read", "bytes"): "read_bytes",
        ("write", "bytes"): "write_bytes",
        ("read", "operations"): "read_count",
        ("write", "operations"): "write_count",
        (None, "busy_ms"): "busy_time",
    }
    for labels, value in found.items():
        names = dict(labels)
        field, device = fields[names.get("dir"), names["unit"]], names["device"]
        assert between(getattr(before[device], field), value, getattr(after[device], field)), labels
    for labels, value in sums.items():
        low, high = before[dict(labels)["device"]], after[dict(labels)["device"]]
        assert between(low.read_bytes + low.write_bytes, value, high.read_bytes + high.write_bytes)


def test_use_of_disks_is_that_of_psutil(meters: Meters) -> None:
    found = read(meters, "DISK_USE")
    mounts = dict.fromkeys([dict(labels)["mount"] for labels in found])
    partitions = {part.mountpoint for part in psutil.disk_partitions(all=False)}
    assert mounts.keys() <= partitions
    for mount in mounts:
        use = psutil.disk_usage(mount)
        values = {dict(labels)["unit"]: value for labels, value in found.items() if dict(labels)["mount"] == mount}
        assert near(use.used, values["used"])
        assert near(use.free, values["free"])
        assert values["inodes"] >= 0


def test_one_mount_can_be_asked_for(meters: Meters, tmp_path: Path) -> None:
    found = read(meters, "DISK_USE", param=str(tmp_path))
    assert {str(tmp_path)} == {dict(labels)["mount"] for labels in found}


def test_network_is_that_of_psutil(meters: Meters) -> None:
    before = psutil.net_io_counters(pernic=True)
    found, sums = read(meters, "NET_IF"), read(meters, "NETWORK")
    after = psutil.net_io_counters(pernic=True)
    fields = {
        ("sent", "bytes"): "bytes_sent",
        ("received", "bytes"): "bytes_recv",
        ("sent", "packets"): "packets_sent",
        ("received", "packets"): "packets_recv",
        ("sent", "errors"): "errout",
        ("received", "errors"): "errin",
        ("sent", "drops"): "dropout",
        ("received", "drops"): "dropin",
    }
    assert len(before) * 8 == len(found)
    for labels, value in found.items():
        names = dict(labels)
        field = fields[names["dir"], names["unit"]]
        device = names["device"]
        assert between(getattr(before[device], field), value, getattr(after[device], field)), labels
    for labels, value in sums.items():
        low, high = before[dict(labels)["device"]], after[dict(labels)["device"]]
        assert between(low.bytes_sent + low.bytes_recv, value, high.bytes_sent + high.bytes_recv)


def test_a_device_can_be_named(meters: Meters) -> None:
    assert [(("device", "lo"),)] == list(read(meters, "NETWORK", param="lo"))
    assert [(("device", "lo"),)] == list(read(meters, "NETWORK", param="re:^l.$"))
    (reading,) = meters.measure((spec("NETWORK", param="nosuch0"),))
    assert Verdict.UNSUPPORTED is reading.verdict


def test_load_uptime_and_switches_are_those_of_psutil(meters: Meters) -> None:
    load = [value for _, value in sorted(read(meters, "LOAD").items(), key=lambda item: len(item[0][0][1]))]
    assert all(abs(a - b) <= 0.5 for a, b in zip(psutil.getloadavg(), load, strict=True))
    low = psutil.cpu_stats().ctx_switches
    assert between(low, one(meters, "CONTEXT"), psutil.cpu_stats().ctx_switches)
    assert 0 < one(meters, "UPTIME") < 1 << 32


@pytest.mark.proves("MEA-003")
def test_own_process_is_that_of_psutil(meters: Meters) -> None:
    me, param = psutil.Process(), f"pid:{os.getpid()}"
    before = me.cpu_times()
    (reading,) = meters.measure((spec("PROC_CPU", param=param),))
    after = me.cpu_times()
    ((labels, value, base),) = reading.samples
    assert () == labels
    assert base is not None
    assert between(100 * (before.user + before.system), value, 100 * (after.user + after.system), slack=3)
    assert value <= base
    assert near(me.memory_info().rss, one(meters, "PROC_MEM", param=param), share=0.2, floor=16 << 20)
    assert (me.num_threads(), 1) == (one(meters, "PROC_THREADS", param=param), one(meters, "PROC_COUNT", param=param))
    assert abs(me.num_fds() - one(meters, "PROC_FDS", param=param)) <= 1  # the listing itself
    counters = me.io_counters()
    assert between(counters.read_bytes + counters.write_bytes, one(meters, "PROC_IO", param=param), 1 << 62)


# Machines made of files


class Box:
    """A machine of a test: its /proc and /sys are directories."""

    def __init__(self, root: Path) -> None:
        self.proc, self.sys = root / "proc", root / "sys"
        for directory in (self.proc, self.sys / "block"):
            directory.mkdir(parents=True)
        self.file("stat", "cpu  100 0 50 800 50 0 0 0 0 0\nctxt 12\n")
        self.kernel = Kernel(str(self.proc), str(self.sys))
        self.meters = Meters(self.kernel, wall_ns=lambda: 1_795_000_000_000_000_000)

    def file(self, name: str, text: str) -> None:
        path = self.proc / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def process(self, pid: int, comm: str, *, ticks: int = 0, start: int = 1, **more: Any) -> None:
        """A process, with `io`, `cmdline`, `uid`, `pages`, `threads`, `flags` as wanted."""
        tail = "0 " * 30
        fields = f"{more.get('threads', 1)} 0 {start} 0 {more.get('pages', 1)}"
        flags = more.get("flags", 0)
        self.file(f"{pid}/stat", f"{pid} ({comm}) S 1 1 1 0 -1 {flags} 0 0 0 0 {ticks} 0 0 0 20 0 {fields} {tail}")
        self.file(f"{pid}/cmdline", more.get("cmdline", comm).replace(" ", "\0"))
        self.file(f"{pid}/status", f"Name:\t{comm}\nUid:\t{more.get('uid', 0)}\t0\t0\t0\n")
        if "io" in more:
            self.file(f"{pid}/io", f"rchar: 1\nread_bytes: {more['io']}\nwrite_bytes: 0\n")

    def end(self, pid: int) -> None:
        for path in (self.proc / str(pid)).iterdir():
            path.unlink()
        (self.proc / str(pid)).rmdir()

    def one(self, detail: str, **table: Any) -> Any:
        return one(self.meters, detail, **table)

    def read(self, detail: str, **table: Any) -> Values:
        return read(self.meters, detail, **table)

    def reading(self, detail: str, **table: Any) -> Reading:
        return self.meters.measure((spec(detail, **table),))[0]


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    made = Box(tmp_path)
    yield made
    made.meters.close()


def test_guest_times_are_not_counted_twice(box: Box) -> None:
    box.file("stat", "cpu  100 20 50 800 30 1 2 7 60 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n")
    (reading,) = box.meters.measure((spec("CPU"),))
    assert (((("cpu", "total"),), 180, 1010),) == reading.samples
    (reading,) = box.meters.measure((spec("CPU", per="core"),))
    assert (((("cpu", "0"),), 1 + 2 + 3 + 6 + 7 + 8, 36),) == reading.samples


def test_layers_and_partitions_are_not_whole_disks(box: Box) -> None:
    for name in ("sda", "dm-0", "loop0", "nvme0n1", "zram0", "md127"):
        (box.sys / "block" / name).mkdir()
    names = ("sda", "sda1", "dm-0", "loop0", "nvme0n1", "nvme0n1p1", "zram0", "md127")
    lines = [f"   8       0 {name} 1 2 {n} 4 5 6 {n} 8 9 11 12 0 0 0 0 0 0\n" for n, name in enumerate(names, 1)]
    box.file("diskstats", "".join(lines))
    assert {(("device", "sda"),): 1024, (("device", "nvme0n1"),): 5120} == box.read("DISK")
    busy = [value for labels, value in box.read("DISK_IO").items() if ("unit", "busy_ms") in labels]
    assert [11, 11] == busy


def test_files_longer_than_a_chunk_are_read_to_their_end(box: Box) -> None:
    count = CHUNK // 60 + 5
    head = "Inter-|\n face |\n"
    box.file("net/dev", head + "".join(f"{f'if{n}':>10}: {n} 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n" for n in range(count)))
    found = box.read("NETWORK")
    assert count == len(found)
    assert count == found[(("device", f"if{count - 1}"),)]


def test_sensors_of_chips_with_one_name_are_told_apart(box: Box) -> None:
    hwmon = box.sys / "class" / "hwmon"
    for n, (chip, label, value) in enumerate(
        [("nvme", "Composite", 31_850), ("nvme", "Composite", 40_000), ("x", "", 7)]
    ):
        chip_dir = hwmon / f"hwmon{n}" / ("device" if chip == "x" else "")
        chip_dir.mkdir(parents=True)
        (chip_dir / "name").write_text(f"{chip}\n")
        (chip_dir / "temp1_input").write_text(f"{value}\n")
        (chip_dir / "fan2_input").write_text("1200\n")
        if label:
            (chip_dir / "temp1_label").write_text(f"{label}\n")
    (hwmon / "hwmon0" / "temp2_input").write_text("broken")
    assert {
        (("chip", "nvme"), ("sensor", "Composite")): 31.85,
        (("chip", "nvme#2"), ("sensor", "Composite")): 40.0,
        (("chip", "x"), ("sensor", "temp1")): 0.007,
    } == box.read("TEMP")
    assert [1200] * 3 == list(box.read("FAN").values())


def test_thermal_zones_stand_in_for_chips(box: Box) -> None:
    zone = box.sys / "class" / "thermal" / "thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "type").write_text("x86_pkg_temp\n")
    (zone / "temp").write_text("52000\n")
    assert {(("chip", "x86_pkg_temp"), ("sensor", "thermal_zone0")): 52.0} == box.read("TEMP")


@pytest.mark.proves("MEA-002")
@pytest.mark.parametrize(
    "detail", ["TEMP", "FAN", "PRESSURE", "MEMORY", "DISK", "NETWORK", "LOAD", "UPTIME", "DISK_USE"]
)
def test_a_missing_source_is_unsupported_and_no_failure(box: Box, detail: str) -> None:
    assert Verdict.UNSUPPORTED is box.reading(detail).verdict


def test_pressure_is_by_resource_and_kind(box: Box) -> None:
    box.file("pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.01 total=7\nfull avg10=0.00 total=5\n")
    assert {(("resource", "io"), ("kind", "some")): 7, (("resource", "io"), ("kind", "full")): 5} == box.read(
        "PRESSURE"
    )


def test_connections_are_counted_by_state(box: Box) -> None:
    line = "  0: 0100007F:1F90 00000000:0000 {} 00000000:00000000 00:00000000 00000000  0 0 1 1\n"
    box.file("net/tcp", "  sl  local\n" + line.format("0A") * 3 + line.format("01"))
    box.file("net/tcp6", "  sl  local\n" + line.format("0A"))
    found = {dict(labels)["state"]: value for labels, value in box.read("TCP_STATE").items()}
    assert (4, 1, 0, 11) == (found["listen"], found["established"], found["close_wait"], len(found))


def test_mounts_with_blanks_in_their_names(box: Box, tmp_path: Path) -> None:
    strange = tmp_path / "a b"
    strange.mkdir()
    box.file("filesystems", "nodev\ttmpfs\n\text4\n")
    escaped = str(strange).replace(" ", "\\040")
    box.file("self/mounts", f"/dev/x {escaped} ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/x /else ext4 rw 0 0\n")
    assert {(("mount", str(strange)), ("device", "/dev/x"))} == {labels[:2] for labels in box.read("DISK_USE")}


@pytest.mark.proves("MEA-006")
def test_a_meter_that_breaks_spoils_no_other(box: Box) -> None:
    box.file("loadavg", "not a number at all")
    box.file("uptime", "5.25 1\n")
    specs = metrics(a={"detail": "LOAD", "rate": "1s"}, b={"detail": "UPTIME", "rate": "1s"})
    broken, fine = box.meters.measure(specs)
    assert (Verdict.FAILED, True) == (broken.verdict, "ValueError" in broken.why)
    assert (((), 5.25, None),) == fine.samples


# Processes


@pytest.mark.proves("MEA-003")
@pytest.mark.parametrize(
    "param, count",
    [
        ("", 5),
        ("nginx", 2),
        ("a-very-long-name-of-a-program", 1),
        ("a-very-long-nam", 0),
        ("re:^ngi", 2),
        ("re:x$", 2),
        ("cmd:--port 80", 1),
        ("user:7", 2),
        ("user:no such user at all", 0),
        ("pid:30", 1),
        ("pid:999", 0),
        ("a:b", 1),
    ],
)
def test_whom_a_parameter_means(box: Box, param: str, count: int) -> None:
    box.process(10, "nginx", uid=7)
    box.process(20, "nginx", cmdline="nginx --port 80", uid=7)
    box.process(30, "a-very-long-nam", cmdline="/usr/bin/a-very-long-name-of-a-program -x")
    box.process(40, "a:b")
    box.process(50, "kworker/0:1", flags=0x0020_0000, cmdline="")
    assert count == box.one("PROC_COUNT", **({"param": param} if param else {}))


def test_one_series_per_process_name_without_the_kernels_own(box: Box) -> None:
    box.process(10, "nginx", pages=2, threads=3)
    box.process(20, "nginx", pages=4)
    box.process(30, "sh ( x)", pages=1)
    box.process(50, "kworker/0:1", flags=0x0020_0000, pages=9)
    page = os.sysconf("SC_PAGE_SIZE")
    assert {(("process", "nginx"),): 6 * page, (("process", "sh ( x)"),): page} == box.read("PROC_MEM", per="name")
    assert 4 == box.one("PROC_THREADS", param="nginx")
    box.end(30)
    assert 0 == box.read("PROC_MEM", per="name")[(("process", "sh ( x)"),)]
    assert (("process", "sh ( x)"),) not in box.read("PROC_MEM", per="name")


@pytest.mark.proves("MEA-003")
def test_a_forbidden_process_is_skipped_and_counted(box: Box) -> None:
    box.process(10, "nginx", io=100)
    box.process(20, "nginx", io=1_000)
    assert 1_100 == box.one("PROC_IO", param="nginx")
    (box.proc / "20" / "io").unlink()
    (box.proc / "20" / "io").mkdir()  # now it cannot be read
    assert 1_100 == box.one("PROC_IO", param="nginx")
    assert 1 == sum(box.kernel.skipped.values())


@pytest.mark.proves("MEA-003")
def test_one_scan_serves_all_metrics_of_a_tick(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    box.process(10, "nginx", ticks=5)
    looked: list[str] = []
    glance = box.kernel.glance

    def note(path: str) -> bytes:
        looked.append(path)
        return glance(path)

    monkeypatch.setattr(box.kernel, "glance", note)
    box.meters.measure(metrics(**{f"m{n}": {"detail": "PROC_CPU", "rate": "1s", "param": "nginx"} for n in range(9)}))
    assert [f"{box.proc}/10/stat"] == looked


def check_sums_never_run_backwards(box: Box) -> None:
    """Processes come, count, become others, end, and their numbers come again; the sum only grows."""
    sums: list[int] = []

    def look(expected: int) -> None:
        sums.append(box.one("PROC_CPU", param="nginx"))
        by_name = box.read("PROC_CPU", per="name")[(("process", "nginx"),)]
        assert sums == sorted(sums), "a sum ran backwards"
        assert (expected, expected) == (sums[-1], by_name)

    box.process(10, "nginx", ticks=100)
    box.process(20, "nginx", ticks=50)
    look(150)
    box.process(10, "nginx", ticks=120)
    look(170)
    box.end(10)
    look(170)
    box.process(10, "nginx", ticks=1, start=99)  # the number came back
    look(171)
    box.process(20, "sleep", ticks=50)  # it became another program
    look(171)
    box.process(20, "nginx", ticks=70)  # and the old one again: its past is in the sum already
    look(191)
    box.end(10)
    look(191)
    box.end(20)
    look(191)


@pytest.mark.proves("MEA-003")
def test_sums_never_run_backwards(box: Box) -> None:
    check_sums_never_run_backwards(box)


STEP = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from("ab"), st.one_of(st.none(), st.integers(0, 50))), max_size=4
)


@pytest.mark.proves("MEA-003")
@given(st.lists(STEP, max_size=20))
def test_no_sum_ever_runs_backwards(scans: list[list[tuple[int, str, int | None]]]) -> None:
    sums, counted, before = Sums(), dict.fromkeys(range(5), 0), dict[str, int]()
    for scan in scans:
        alive: dict[tuple[int, int], tuple[str, int | None]] = {}
        for pid, group, more in scan:
            counted[pid] += more or 0
            alive[pid, 1] = (group, None if more is None else counted[pid])
        found = sums.add([(identity, group, value) for identity, (group, value) in alive.items()], alive)
        assert all(found[group] >= value for group, value in before.items())
        before = found


def test_names_long_gone_are_forgotten() -> None:
    sums = Sums()
    sums.add([((1, 1), "a", 5), ((2, 1), "", 7)], ())
    for _ in range(FORGET_SCANS):
        assert {"a": 5, "": 7} == sums.add([], ())
    assert {"": 7} == sums.add([], ())
    assert {"": 7, "a": 3} == sums.add([((3, 1), "a", 3)], ())


def test_a_changed_rate_keeps_the_sums(box: Box) -> None:
    box.process(10, "nginx", ticks=100)
    assert 100 == box.one("PROC_CPU", param="nginx")
    box.end(10)
    assert 100 == box.one("PROC_CPU", param="nginx", rate="5s")


@pytest.mark.proves("MEA-003")
def test_real_processes_that_end_stay_in_the_sum(meters: Meters, tmp_path: Path) -> None:
    program = tmp_path / "burner"
    program.symlink_to(sys.executable)
    param = f"cmd:{program}"
    burn = "import time\nwhile time.process_time() < 0.1: pass\nprint(flush=True)\ninput()"
    first = subprocess.Popen([program, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert first.stdout is not None
        first.stdout.readline()
        before = one(meters, "PROC_CPU", param=param)
        assert before >= 8
    finally:
        first.communicate(b"\n", timeout=PATIENCE_S)
    assert (before, 0) == (one(meters, "PROC_CPU", param=param), one(meters, "PROC_COUNT", param=param))


def test_a_sensor_loads_nothing_heavy_to_measure() -> None:
    program = "import sys; import weft.shell.measuring; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    heavy = ("psutil", "pyarrow", "pyspark", "pandas", "numpy", "duckdb", "rich", "cyclopts", "zmq", "hypothesis")
    assert [] == [name for name in heavy if name in loaded]
