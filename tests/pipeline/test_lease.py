"""One driver at a time (PIP-023)."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.base.errors import UserError, exit_code
from weft.lake.layout import Layout
from weft.pipeline import lease as leases
from weft.pipeline.lease import Lease, Silence, end_holders

pytestmark = pytest.mark.prove("drivers in processes of their own")

HOLD = """
import sys
from weft.lake.layout import Layout
from weft.pipeline.lease import Lease
with Lease(Layout(sys.argv[1]), "samples") as lease:
    print(lease.epoch, flush=True)
    sys.stdin.read()
"""


def test_the_epoch_grows_with_every_holder(tmp_path: Path) -> None:
    epochs = []
    for _ in range(3):
        with Lease(Layout(tmp_path), "samples") as lease:
            epochs.append(lease.epoch)
            held = json.loads(lease.path.read_bytes())
            assert (lease.epoch, os.getpid()) == (held["epoch"], held["pid"])
    assert [1, 2, 3] == epochs


@pytest.mark.proves("PIP-023")
def test_a_second_driver_is_refused_with_75_and_may_run_when_the_first_is_killed(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert b"1\n" == holder.stdout.readline()
        with pytest.raises(UserError) as refused, Lease(Layout(tmp_path), "samples"):
            pass
        assert ("lease-held", 75) == (refused.value.code, exit_code(refused.value.code))
        assert str(holder.pid) in refused.value.text
    finally:
        holder.kill()
        holder.communicate()
    with Lease(Layout(tmp_path), "samples") as lease:
        assert 2 == lease.epoch


@pytest.mark.proves("PIP-023")
def test_a_spare_driver_takes_over_when_the_first_ends_and_waits_no_longer_than_it_should(tmp_path: Path) -> None:
    told_to_end = threading.Event()
    told_to_end.set()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert b"1\n" == holder.stdout.readline()
        ends = threading.Timer(0.5, holder.kill)
        for wait_s, ending in ((0.2, None), (3600.0, told_to_end)):
            with pytest.raises(UserError), Lease(Layout(tmp_path), "samples", wait_s, ending):
                pass
        ends.start()
        with Lease(Layout(tmp_path), "samples", 3600.0) as lease:
            assert 2 == lease.epoch
        ends.join()


def test_the_child_of_a_dead_holder_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = "import sys; sys.stdin.read()"
    script = HOLD.replace(
        "    print(lease.epoch, flush=True)\n",
        "    import subprocess\n"
        f"    subprocess.Popen([sys.executable, '-c', {child!r}], stdin=0, pass_fds=(lease.descriptor,))\n"
        "    print(lease.epoch, flush=True)\n",
    )
    read, write = os.pipe()
    holder = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdin=read, stdout=subprocess.PIPE)
    os.close(read)
    assert holder.stdout is not None
    assert b"1\n" == holder.stdout.readline()
    holder.kill()
    holder.wait()
    holder.stdout.close()
    monkeypatch.setattr(leases, "DYING_S", 0.3)
    with pytest.raises(UserError), Lease(Layout(tmp_path), "samples"):
        pass
    os.close(write)
    monkeypatch.setattr(leases, "DYING_S", 30.0)
    with Lease(Layout(tmp_path), "samples") as lease:
        assert 2 == lease.epoch


STOPPED = """
import os, signal, subprocess, sys
from weft.lake.layout import Layout
from weft.pipeline.lease import Lease
with Lease(Layout(sys.argv[1]), "samples") as lease:
    child = "import os, signal; print('here', flush=True); os.kill(os.getpid(), signal.SIGSTOP)"
    subprocess.Popen([sys.executable, "-c", child], pass_fds=(lease.descriptor,))
    os.kill(os.getpid(), signal.SIGSTOP)
"""
"""A holder, and a child with its lock, that a terminal has stopped."""


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", STOPPED, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert b"here\n" == holder.stdout.readline()
            os.waitid(os.P_PID, holder.pid, os.WSTOPPED)
            yield holder
        finally:
            end_holders(Layout(tmp_path).lease("samples").with_suffix(".lock"))


@pytest.mark.proves("PIP-023")
@pytest.mark.usefixtures("stopped")
def test_a_holder_that_was_stopped_is_ended_with_its_java_by_who_takes_over_and_by_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "VALID_S", 0.2)
    with pytest.raises(UserError), Lease(Layout(tmp_path), "samples", 0.5):
        pass
    monkeypatch.setattr(leases, "DYING_S", 3600.0)
    with Lease(Layout(tmp_path), "samples", takes_over=True) as lease:
        assert 2 == lease.epoch


@pytest.mark.proves("PIP-023")
def test_who_waits_for_a_lock_or_looks_at_its_file_does_not_hold_it(
    tmp_path: Path, stopped: subprocess.Popen[bytes]
) -> None:
    lock = Layout(tmp_path).lease("samples").with_suffix(".lock")
    looks = "import sys; print(0, flush=True); sys.stdin.read()"
    with (
        lock.open("rb") as file,
        subprocess.Popen(
            [sys.executable, "-c", looks], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(file.fileno(),)
        ) as onlooker,
    ):
        assert onlooker.stdout is not None
        onlooker.stdout.readline()
        ended = end_holders(lock)
        assert stopped.pid in ended
        assert (2, None) == (len(ended), onlooker.poll())
        assert [] == end_holders(tmp_path / "no.lock")
        onlooker.communicate()
        assert 0 == onlooker.returncode


def test_a_lease_that_is_renewed_is_not_silent(tmp_path: Path) -> None:
    silence = Silence(tmp_path / "samples.json", 10.0)
    assert (0.0, 29.0) == (silence.seconds(10.0), silence.seconds(39.0))
    (tmp_path / "samples.json").write_bytes(b"{}")
    assert (0.0, 1.0) == (silence.seconds(39.5), silence.seconds(40.5))
