"""What stands beside Weft in these tests, as processes of this machine: brokers, real servers, wires that can be cut."""

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

import pytest

from tests.house.requirements import ROOT
from tests.interop.moat.speaker import Speaker
from tests.interop.programs import needed

PATIENCE_S: Final = 40.0
CYCLE_S, GAP_S = 2.0, 0.4
VERSIONS: Final = {"new": "3.13", "mid": "3.12", "old": "3.11"}
LAUNCHER: Final = Path(__file__).parent / "peer.py"
BROKER = """
listener {port} 127.0.0.1
allow_anonymous true
persistence false
max_queued_messages 0
"""
BRIDGE = """
connection br
address 127.0.0.1:{port}
topic # both 0
cleansession true
restart_timeout 1
notifications false
"""


def versions() -> list[str]:
    """Which real servers to meet: the newest, or those of the variable WEFT_MOAT (`all`, or `new,mid,old`)."""
    chosen = os.environ.get("WEFT_MOAT", "new")
    return list(VERSIONS) if chosen == "all" else chosen.split(",")


def python_of(version: str) -> str:
    """The interpreter of a real server's environment."""
    place = ROOT / "var" / "peers" / f"moat-{version}"
    if not (place / "weft.done").exists():
        pytest.fail(f"{place} is not there: run scripts/interop-install {version}", pytrace=False)
    return str(place / "bin" / "python")


def until(holds: Callable[[], Any], what: str | Callable[[], str], patience_s: float = PATIENCE_S) -> Any:
    """Wait, bounded, until something holds, and return it."""
    ends_at = time.monotonic() + patience_s
    while not (found := holds()):
        assert time.monotonic() < ends_at, f"not within {patience_s} s: {what if isinstance(what, str) else what()}"
        time.sleep(0.05)  # tidy: other programs tell nobody; bounded above
    return found


def free_ports(count: int) -> list[int]:
    """Ports that are free now, all different."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


class Program:
    """A process with a log, ended by `with`."""

    def __init__(self, name: str, place: Path, command: list[str], **environment: str) -> None:
        self.name, self.log = name, place / f"{name}.log"
        self._command, self._environment = command, {**os.environ, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def said(self) -> str:
        return self.log.read_text("utf-8", "replace")


class Mosquitto(Program):
    """A broker; `bridge`: the port where another one is, all topics both ways."""

    def __init__(self, name: str, place: Path, bridge: int = 0) -> None:
        [self.port] = free_ports(1)
        file = place / f"{name}.conf"
        file.write_text(BROKER.format(port=self.port) + (BRIDGE.format(port=bridge) if bridge else ""), "utf-8")
        super().__init__(name, place, [needed("/usr/sbin/mosquitto"), "-c", str(file)])

    def start(self) -> None:
        super().start()
        until(lambda: is_open(self.port), self.said)


class Member(Program):
    """A store node, real or Weft's, `n1` to `n9`, with its client port."""

    port: int

    def client(self) -> Speaker:
        return Speaker(self.port)

    def is_complete(self) -> bool:
        """Whether it answers clients, and lacks nothing that it knows of."""
        try:
            with self.client() as client:
                return not client.missing()
        except OSError:
            return False

    def ready(self) -> None:
        until(
            lambda: self.is_complete() or not self.is_alive, lambda: f"{self.name} is complete\n{self.said()[-3000:]}"
        )
        assert self.is_alive, self.said()[-3000:]


class Real(Member):
    """A real server. It is ready when it says so."""

    def __init__(  # tidy: who it is, where, and what it begins with
        self, name: str, place: Path, version: str, broker: int, base: int, *init: str, loads: Path | None = None
    ) -> None:
        self.port = base + int(name[1:])
        command = [python_of(version), str(LAUNCHER), name, str(broker), *init]
        timing = {"CYCLE": str(CYCLE_S), "GAP": str(GAP_S), "DCYCLE": str(CYCLE_S), "DGAP": str(GAP_S)}
        if loads is not None:
            timing["LOAD"] = str(loads)
        super().__init__(name, place, command, BASE=str(base), **timing)

    def ready(self) -> None:
        until(lambda: f"READY {self.name}" in self.said() or not self.is_alive, lambda: f"{self.name}\n{self.said()}")
        assert self.is_alive, self.said()


class Relay:
    """A wire to a port of this machine, which can be cut, and can be slow."""

    def __init__(self, target: int, delay_s: float = 0.0) -> None:
        self.target, self.delay_s = target, delay_s
        self.is_cut = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self._drop()

    def cut(self) -> None:
        """End what is connected, and let nobody connect."""
        self.is_cut = True
        self._drop()

    def mend(self) -> None:
        self.is_cut = False

    def _drop(self) -> None:
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._sockets.clear()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = None if self.is_cut else socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:
                far = None
            if far is None:
                near.close()
                continue
            far.settimeout(None)
            self._sockets += (near, far)
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        """Each piece waits by itself, so that delay does not become rate."""
        pending: list[tuple[float, bytes]] = []
        has_more, is_ended = threading.Condition(), threading.Event()

        def deliver() -> None:
            while True:
                with has_more:
                    has_more.wait_for(lambda: pending or is_ended.is_set())
                    if not pending:
                        break
                    due, data = pending.pop(0)
                time.sleep(max(0.0, due - time.monotonic()))  # tidy: a slow wire is what this is
                try:
                    sink.sendall(data)
                except OSError:
                    break
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)

        threading.Thread(target=deliver, daemon=True).start()
        try:
            while data := source.recv(1 << 16):
                with has_more:
                    pending.append((time.monotonic() + self.delay_s, data))
                    has_more.notify()
        except OSError:
            pass
        is_ended.set()
        with has_more:
            has_more.notify()


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
