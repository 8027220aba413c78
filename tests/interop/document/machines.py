"""Machines of a network of their own, each with a node that holds one session, for programs that multicast (root)."""

import os
import signal
import sys
from pathlib import Path
from typing import Any, Final, Self

from tests.house.requirements import ROOT
from tests.interop.moat.peers import Program, until
from tests.interop.netns import Net, host_of
from tests.interop.programs import needed
from weft.cli.asking import status_of
from weft.doc import DocError, SyncClient

PORT: Final = 27_500  # each has a loopback of its own
NODE: Final = """
[fleet]
name = "fleet-of-{name}-{pid}"

[node]
name = "{name}"
level = "root"
host = "127.0.0.1"
state = "{state}"
runs = []

[security]
mode = "none"
allow_insecure = true

[doc.session."{session}"]
schema = "derby"
listen = "{host}"
{more}
"""
BUS: Final = """<busconfig>
<type>system</type>
<listen>unix:path={bus}</listen>
<auth>EXTERNAL</auth>
<policy context="default">
<allow send_destination="*" eavesdrop="false"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/>
</policy>
</busconfig>
"""
AVAHI: Final = """[server]
use-ipv6=no
allow-interfaces=eth0
[publish]
disable-publishing=yes
"""
OWN_RUN: Final = "mount -t tmpfs none /run && mkdir -p /run/avahi-daemon && exec {avahi} --no-drop-root --no-chroot --no-rlimits -f {file}"
"""Its own /run: there may be a daemon of the machine's."""


class Scorer(Program):
    """A machine's node with its session."""

    def __init__(self, net: Net, number: int, place: Path, session: str, more: str = "") -> None:
        self.number, self.label, self.state = number, f"scorer-{number}", place / f"n{number}"
        file = place / f"n{number}.toml"
        text = NODE.format(
            name=self.label, state=self.state, session=session, host=host_of(number), more=more, pid=os.getpid()
        )
        file.write_text(text, "utf-8")
        words = [sys.executable, "-m", "weft.cli.main", "up", str(file)]
        self._net = net
        super().__init__(f"node-{number}", place, net.command(number, words))

    def ready(self) -> None:
        """Wait until programs are answered."""
        until(lambda: self.endpoint or not self.is_alive, self.said)
        assert self.is_alive, self.said()[-3000:]

    def client(self) -> SyncClient:
        return SyncClient(self.state)

    def asked(self, verb: str) -> Any:
        """What the node answers; nothing while it does not."""
        try:
            with self.client() as client:
                return getattr(client, verb)()
        except (DocError, OSError):
            return {}

    @property
    def endpoint(self) -> str:
        return str(self.asked("status").get("endpoint", ""))

    def counts(self) -> dict[str, int]:
        """What has happened, by its counters."""

        async def ask() -> dict[str, int]:
            return dict(status_of(PORT).get("cores", {}).get("document", {}).get("counts", {}))

        return self._net.at(self.number).call(ask())

    def end(self) -> None:
        """In order."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(20)


class Hall:
    """A network of machines; `with` ends all that was started on it."""

    def __init__(self, place: Path, count: int) -> None:
        self.net, self.place, self.session = Net(count), place, f"session {os.getpid()}"
        self._programs: list[Program] = []

    def __enter__(self) -> Self:
        self.net.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        for program in reversed(self._programs):
            program.kill()
        self.net.__exit__()

    def scorer(self, number: int, more: str = "") -> Scorer:
        """A node that works."""
        made = Scorer(self.net, number, self.place, self.session, more)
        self._begin(made)
        made.ready()
        return made

    def start(self, name: str, number: int, *words: str, **environment: str) -> Program:
        """A program at a machine."""
        made = Program(name, self.place, self.net.command(number, words), PYTHONUNBUFFERED="1", **environment)
        self._begin(made)
        return made

    def _begin(self, program: Program) -> None:
        program.start()
        self._programs.append(program)

    def browser(self, number: int) -> Program:
        """`avahi-browse`, which prints each entry that comes or goes, beside a daemon and a bus of its own."""
        bus, file, avahi = (self.place / name for name in ("bus", "bus.conf", "avahi.conf"))
        file.write_text(BUS.format(bus=bus), "ascii")
        avahi.write_text(AVAHI, "ascii")
        where = {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={bus}"}
        self.start("dbus", number, needed("dbus-daemon"), "--nofork", f"--config-file={file}")
        until(bus.exists, "a bus")
        run = OWN_RUN.format(avahi=needed("/usr/sbin/avahi-daemon"), file=avahi)
        daemon = self.start("avahi", number, needed("unshare"), "-m", needed("bash"), "-c", run, **where)
        until(lambda: "Server startup complete" in daemon.said(), daemon.said)
        return self.start("browse", number, needed("avahi-browse"), "-rp", "_nsode_derbyos_com._tcp", **where)


def pyre_python() -> str:
    """The interpreter of the ZRE peer's environment."""
    return needed(str(ROOT / "var" / "peers" / "zre" / "bin" / "python"))
