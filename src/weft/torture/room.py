"""A machine room of this process: its own network, mounts and process ids, which always end with it.

`enter` starts this command again under `unshare`; a user who is not root is root of the new namespaces. Inside, each
machine is a network namespace with one interface, `eth0`, whose other end is a file of this process, the switch. So nothing
outside changes, and nothing is left behind. If the system does not allow this, everything runs on loopback, and only
processes are hurt.
"""

import ctypes
import fcntl
import os
import select
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from weft.base.chance import Chance
from weft.torture import limits
from weft.torture.cables import Switch, Weather

INSIDE: Final = "WEFT_TORTURE_ROOM"
"""Environment variable that is set for the command inside."""
SPACES: Final = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
OWN: Final = ("--user", "--map-root-user")
KEEPER: Final = ("sh", "-c", '"$@"; exit $?', "room")
"""The first process of a room: a shell, because it reaps orphans. Without it they would stay as zombies."""
TRIAL_S: Final = 20.0
CLONE_NEWNET: Final = 0x4000_0000
TUNSETIFF: Final = 0x4004_54CA
TUNSETCARRIER: Final = 0x4004_54E2
TAP_WITHOUT_HEADER: Final = 0x0002 | 0x1000
IDLE_S: Final = 0.2
TUN: Final = "/dev/net/tun"


def enter(arguments: Sequence[str]) -> int | None:
    """Run the command inside a room and return its exit status; None: it is inside already, or no room is possible."""
    if INSIDE in os.environ:
        return None
    words = _unshare()
    if not words:
        return None
    command = [*words, *KEEPER, sys.executable, "-m", "weft.cli.main", *arguments]
    ran = subprocess.Popen(command, env={**os.environ, INSIDE: "1"})
    while True:
        try:
            return ran.wait()
        except KeyboardInterrupt:  # the command inside gets the signal too, and ends
            continue


def is_inside() -> bool:
    """Whether this process has a room of its own."""
    return INSIDE in os.environ


def _unshare() -> list[str]:
    """The command line that creates a room here; empty if that is impossible."""
    tools = [shutil.which(name) for name in ("unshare", "ip", "mount")]
    if None in tools or not Path(TUN).exists():
        return []
    own = () if os.geteuid() == 0 else OWN
    words = [str(tools[0]), *own, *SPACES]
    trial = "ip netns add w && ip -n w tuntap add dev eth0 mode tap && mount -t tmpfs none /mnt"
    try:
        ran = subprocess.run(
            [*words, "sh", "-c", f"mount -t tmpfs none /run && {trial}"],
            capture_output=True, timeout=TRIAL_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    return words if ran.returncode == 0 else []


def run(*words: str) -> None:
    """Run a command that must succeed."""
    ran = subprocess.run(words, capture_output=True, text=True, timeout=TRIAL_S, check=False)
    if ran.returncode:
        raise OSError(f"{' '.join(words)}: {ran.stderr.strip()}")


def step_into(namespace: str) -> None:
    """Let the sockets that this thread makes from now on belong to a machine; empty: to this process."""
    if not namespace:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with (Path("/run/netns") / namespace).open("rb") as there:
        if libc.setns(there.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


def host_of(number: int) -> str:
    """The address of a machine."""
    return f"10.77.0.{number}"


def other_host_of(number: int) -> str:
    """The address that a machine has while it is moved."""
    return f"10.77.0.{100 + number}"


def number_of(machines: Iterable[str], name: str) -> int:
    """The number of a machine: they are numbered in order, from 1."""
    return list(machines).index(name) + 1


class Net(threading.Thread):
    """Machines 1 to `count` and the switch between them; its thread carries the frames."""

    def __init__(self, count: int, seed: str) -> None:
        super().__init__(name="switch", daemon=True)
        self.numbers = tuple(range(1, count + 1))
        self.switch = Switch(self.numbers, Chance(f"{seed}/torture/bits"))
        self._lock = threading.Lock()
        self._taps: dict[int, int] = {}
        self._is_over = False
        run("mount", "-t", "tmpfs", "none", "/run")
        run("ip", "link", "set", "lo", "up")
        for number in self.numbers:
            self._plug(number)

    def namespace(self, number: int) -> str:
        """The name of a machine's network namespace."""
        return f"m{number}"

    def _plug(self, number: int) -> None:
        name = self.namespace(number)
        run("ip", "netns", "add", name)
        self._taps[number] = _elsewhere(lambda: self._tap(name))
        run("ip", "-n", name, "link", "set", "eth0", "address", f"02:00:00:00:00:{number:02x}")
        self.place(number, host_of(number))
        for device in ("lo", "eth0"):
            run("ip", "-n", name, "link", "set", device, "up")

    def place(self, number: int, host: str) -> None:
        """Give a machine this address, and no other."""
        name = self.namespace(number)
        run("ip", "-n", name, "address", "flush", "dev", "eth0")
        run("ip", "-n", name, "address", "add", f"{host}/24", "broadcast", "+", "dev", "eth0")

    @staticmethod
    def _tap(namespace: str) -> int:
        step_into(namespace)
        tap = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", b"eth0", TAP_WITHOUT_HEADER))
        return tap

    def carrier(self, number: int, *, is_there: bool) -> None:
        """Plug a cable in or pull it out, so that the machine sees it."""
        fcntl.ioctl(self._taps[number], TUNSETCARRIER, struct.pack("i", is_there))

    def run(self) -> None:
        """Carry frames until `end`."""
        poll, machines = select.epoll(), {tap: number for number, tap in self._taps.items()}
        for tap in machines:
            poll.register(tap, select.EPOLLIN)
        while not self._is_over:
            with self._lock:
                due_at = self.switch.due_at()
            wait_s = IDLE_S if due_at is None else min(IDLE_S, max(0.0, due_at - time.monotonic()))
            for tap, _ in poll.poll(wait_s):
                self._hear(tap, machines[tap])
            with self._lock:
                leaving = self.switch.leaving(time.monotonic())
            for each in leaving:
                self._say(self._taps[each.port], each.frame)

    def _hear(self, tap: int, number: int) -> None:
        for _ in range(64):
            try:
                frame = os.read(tap, limits.FRAME_BYTES_MAX)
            except OSError:  # no more frames, or the interface is down
                return
            with self._lock:
                self.switch.take(number, frame, time.monotonic())

    @staticmethod
    def _say(tap: int, frame: bytes) -> None:
        try:
            os.write(tap, frame)
        except OSError:  # the cable is unplugged, or the machine does not read: the frame is lost
            return

    def weather(self, number: int, outward: Weather, inward: Weather) -> None:
        """Set the weather of a cable."""
        with self._lock:
            self.switch.set(number, outward, inward)

    def end(self) -> None:
        """Carry no more frames."""
        self._is_over = True
        self.join(5)


def _elsewhere(make: Callable[[], int]) -> int:
    """Call `make` in a temporary thread, because it changes the thread's namespace."""
    made: list[int] = []
    worker = threading.Thread(target=lambda: made.append(make()))
    worker.start()
    worker.join()
    if not made:
        raise OSError("the machine's interface could not be made")
    return made[0]
