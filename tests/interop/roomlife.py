"""What the machine room of `weft torture` does to sockets and disks, said as JSON: `python -m tests.interop.roomlife`, inside a room."""

import errno
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from weft.torture.cables import FAIR, Weather
from weft.torture.room import Net, host_of, run, step_into

PATIENCE_S = 2.0
PORT = 4_000
CUT = Weather(is_cut=True)


def on(machine: str, do: Callable[[], str]) -> str:
    """Do it with the sockets of a machine."""
    said: list[str] = []

    def live() -> None:
        step_into(machine)
        try:
            said.append(do())
        except OSError as error:
            said.append(errno.errorcode.get(error.errno or 0, type(error).__name__))

    thread = threading.Thread(target=live)
    thread.start()
    thread.join()
    return said[0]


def call() -> str:
    """One connection from machine 1 to machine 2, and a word through it."""
    with socket.create_connection((host_of(2), PORT), PATIENCE_S) as there:
        return there.recv(5).decode()


def serve(server: socket.socket) -> None:
    while True:
        there, _ = server.accept()
        there.sendall(b"hello")
        there.close()


def fill(place: Path) -> str:
    with (place / "balloon").open("wb", 0) as balloon:
        for megabyte in range(8):
            if balloon.write(bytes(1 << 20)) < 1 << 20:
                return f"short after {megabyte}"
    return "never full"


def orphan() -> int:
    """A child that outlives its parent, until it has ended and is gone: its process id; a zombie is there still."""
    made = subprocess.run(("sh", "-c", "sleep 0.1 >&- & echo $!"), capture_output=True, text=True, check=True)
    return int(made.stdout)


def is_gone(process: int) -> bool:
    """Whether it is, soon."""
    for _ in range(100):
        if not Path(f"/proc/{process}").exists():
            return True
        time.sleep(PATIENCE_S / 20)  # tidy: who ends an orphan tells nobody; bounded above
    return False


def main() -> None:
    told: dict[str, str | bool] = {}
    left = orphan()
    net = Net(2, "life")
    servers: list[socket.socket] = []

    def listen() -> str:
        servers.append(socket.create_server((host_of(2), PORT)))
        return "listening"

    told["server"] = on(net.namespace(2), listen)
    threading.Thread(target=serve, args=(servers[0],), daemon=True).start()
    net.start()
    told["whole"] = on(net.namespace(1), call)
    net.weather(1, CUT, CUT)
    began = time.monotonic()
    told["blackhole"] = on(net.namespace(1), call)
    told["blackhole is silent"] = time.monotonic() - began >= PATIENCE_S
    net.weather(1, FAIR, FAIR)
    run("ip", "-n", net.namespace(1), "link", "set", "eth0", "down")
    began = time.monotonic()
    told["down"] = on(net.namespace(1), call)
    told["down is loud"] = time.monotonic() - began < PATIENCE_S
    run("ip", "-n", net.namespace(1), "link", "set", "eth0", "up")
    net.carrier(1, is_there=False)
    told["pulled is seen"] = "NO-CARRIER" in shown(net.namespace(1))
    net.carrier(1, is_there=True)
    told["whole again"] = on(net.namespace(1), call)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        run("mount", "-t", "tmpfs", "-o", "size=2m", "none", name)
        told["full"] = on("", lambda: fill(place))
        (place / "balloon").unlink()
        run("mount", "-o", "remount,ro", name)
        told["read-only"] = on("", lambda: fill(place))
        run("umount", name)
    net.end()
    told["orphan is gone"] = is_gone(left)
    sys.stdout.write(json.dumps(told))


def shown(machine: str) -> str:
    words = ["ip", "-n", machine, "link", "show", "eth0"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
