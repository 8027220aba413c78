"""Alerts of a real fleet arrive at real servers, whoever dies meanwhile; docs/alerts.md is what runs here (MET-004)."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fabric.fabric import FLEET, Fabric
from tests.fabric.receivers import Hook, MailServer
from tests.shell.ports import free_port
from weft.cli.asking import order, page_of
from weft.node.fleet import fleet_of

PAGE = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text("utf-8")
EXAMPLE, NOTIFY = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
HERE = """
[node]
name = "{name}"
level = "{level}"
parent = "{parent}"
port = {port}
state = "{state}"
flush_s = 0.1

[fleet]
name = "{fleet}"
beacon_port = {beacon_port}
beat_s = 0.2
dead_s = 1.0
heartbeat = "300ms"
"""
FILE = """
[metric.log]
detail = "FILE_SIZE"
param = "{path}"
rate = "100ms"

[alert.log_long]
metric = "log"
when = "> 1 KiB"
"""


class Watched(Fabric):
    """A root that has the page's alert, and a node that follows it."""

    def __init__(self, place: Path, hook: int, mail: int) -> None:
        super().__init__(place, {"root": "", "sensor-1": "root"})
        self.log = place / "watched.log"
        self.log.write_text("short", "utf-8")
        notify = NOTIFY.replace("https://chat.lab.example", f"http://127.0.0.1:{hook}")
        self.notify = notify.replace("mail.lab.example:25", f"127.0.0.1:{mail}")
        example = EXAMPLE.replace("> 90 %", "> 0 %").replace("85 %", "0 %").replace("5m", "200ms")
        self.plan = example.replace("10s", "100ms") + FILE.format(path=self.log)

    def settings(self, name: str, port: int, state: Path) -> str:
        text = HERE.format(
            fleet=FLEET,
            name=name,
            level=name.partition("-")[0],
            parent=self.parents[name],
            port=port,
            beacon_port=next(iter(self.ports.values())),
            state=state,
        )
        everybody = '\n[group.all]\nmembers = ["*"]\nmetrics = ["disk_percent", "log"]\n'
        return text + (self.plan + everybody + self.notify if name == "root" else "")

    def alerts(self, name: str) -> dict[str, Any]:
        return page_of(self.ports[name], "alerts")

    def waits(self) -> set[str]:
        """The sinks of the root whose last attempt failed: the message into the chains needs nobody outside."""
        return {sink["sink"] for sink in self.alerts("root")["sinks"] if sink["why"]}

    def firing(self, name: str, where: str = "own") -> list[tuple[str, str]]:
        return sorted((alert["node"], alert["name"]) for alert in self.alerts(name)[where])


def told(hook: Hook) -> list[tuple[str, str, str]]:
    """What was posted, each once: by its id a receiver knows what it has."""
    return sorted(
        {(one["id"], one["event"]): (one["event"], one["node"], one["alert"]) for one in hook.posted}.values()
    )


@pytest.mark.proves("CFG-070")
def test_the_files_of_the_page_can_be_used() -> None:
    assert ["disk_full"] == list(fleet_of(EXAMPLE, "the page").groups["all"].alerts)


@pytest.mark.prove("a fleet whose root is killed")
@pytest.mark.proves("MET-004", part="a webhook and a mail arrive, also when the root is killed between")
def test_a_webhook_and_a_mail_arrive_also_when_the_root_is_killed_before_it_could_send(tmp_path: Path) -> None:
    hook_port, mail_port = free_port(), free_port()
    both = [("root", "disk_full"), ("sensor-1", "disk_full")]
    with Watched(tmp_path, hook_port, mail_port) as fabric:
        fabric.until(lambda: bool(fabric.status("root")) and fabric.firing("root", "fleet") == both, "both fire")
        fabric.until(lambda: {"ops", "chat"} == fabric.waits(), "nobody outside can be told")
        shown = subprocess.run(
            [sys.executable, "-m", "weft.cli.main", "alerts", "--port", str(fabric.ports["root"])],
            capture_output=True, text=True, timeout=60, check=True,
        ).stdout  # fmt: skip
        assert "2 fire in the fleet" in shown, shown
        assert re.search(r"ops: 2 notices wait, .*refused", shown), shown
        fabric.member("root").wanted = False
        fabric.kill("root")
        fabric.log.write_text("x" * 2_000, "utf-8")
        fabric.until(lambda: ("sensor-1", "log_long") in fabric.firing("sensor-1"), "judged while the root is away")
        with Hook(hook_port) as hook, MailServer(mail_port) as mail:
            fabric.start("root")
            fabric.until(lambda: len(told(hook)) >= 2 and len(mail.mails) >= 4, "everybody is told")
            assert [("raised", *one) for one in both] == told(hook), "`severity` of this sink is critical"
            order(fabric.ports["root"], "delete", key="/CONFIG/all/alert/disk_full")
            fabric.until(lambda: len(told(hook)) >= 4, "the end is told")
            said = ("alerts", "--port", str(fabric.ports["root"]), "--forget", "0000")
            assert (
                1 == subprocess.run([sys.executable, "-m", "weft.cli.main", *said], timeout=60, check=False).returncode
            )
            ends = {one["why"]: one["event"] for one in hook.posted if one["event"] == "cleared"}
            assert {"the alert is not in the configuration any more": "cleared"} == ends
        recipients, letter = mail.mails[0]
        assert ["ops@lab.example"] == recipients
        assert f"[{FLEET}] critical raised:" in letter["Subject"]
        assert ("weft@lab.example", "ops@lab.example") == (letter["From"], letter["To"])
        subjects = " ".join(str(letter["Subject"]) for _, letter in mail.mails)
        assert "warning raised: sensor-1: log_long" in subjects, json.dumps(subjects)
