"""docs/observing.md is typed as it stands there, beside a root and a sensor; what its blocks show is what is printed (WEL-002)."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.house.requirements import ROOT
from tests.interop.pageshell import Shell, opened, until
from tests.pages import Typed, consoles
from tests.patience import PATIENCE_S
from weft.node.settings import read_document, settings_of

PAGE: Final = (ROOT / "docs/observing.md").read_text("utf-8")
SENSOR: Final = '[node]\nname = "s1"\nport = 27510\n'
RECORDED: Final = '[node]\nname = "root"\nlevel = "root"\nport = 27600\n'

KEPT: Final = '{"kind": "journal", "types": ["demo.report"], "dir": "in"}'


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with opened(tmp_path) as made:
        yield made


def block(kind: str) -> str:
    """The one block of a kind on the page."""
    (text,) = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


def told(shell: Shell, typed: Typed, status: int = 0) -> str:
    """What a command says, once it says what the page shows; its numbers are its own."""
    ends_at = time.monotonic() + PATIENCE_S
    while True:
        said, ended = shell.run(typed.command.partition("  #")[0])
        if ended == status and typed.is_like(said.strip() + "\n"):
            return said
        assert time.monotonic() < ends_at, f"{typed.command} ended with {ended}: {said}"
        time.sleep(0.5)  # tidy: what it waits for tells nobody; bounded above


def shape(value: Any) -> Any:
    """The keys of an answer, of its first check too, and the words that a program compares."""
    return {**dict.fromkeys(value), "state": value["state"], "ready": value["ready"], "checks": [*value["checks"][0]]}


@pytest.mark.proves("WEL-002", part="the page of observing: what its blocks show is what is printed")
def test_what_the_page_shows_is_what_is_printed(shell: Shell) -> None:
    (trace,), (doctor,), (record, replay) = consoles("observing.md")
    for name, text in (("s1.toml", SENSOR), ("node.toml", RECORDED)):
        (shell.place / name).write_text(text, "utf-8")
    shell.run("weft up --name root --level root --lake lake &")
    until(shell, "weft status", "root")
    told(shell, Typed(doctor.command, []))
    shell.run("weft up s1.toml & sensor=$!")
    until(shell, "weft top", "2 machines are well")
    until(shell, f"weft config set global/filter/keep '{KEPT}'; echo $?", "0")
    until(shell, "weft chain ls", "keep")
    until(shell, "weft chain send demo.report '<r/>' --port 27510; echo $?", "0")
    told(shell, trace)
    scraped(shell)
    shell.run("kill $sensor; wait $sensor; python3 -m http.server --bind 127.0.0.1 27516 & other=$!")
    until(shell, "ss -ltn", ":27516")
    told(shell, doctor, 1)
    shell.run("kill $other; weft up s1.toml &")
    until(shell, "weft top", "2 machines are well")
    shell.run("kill %1; wait %1")
    until(shell, "curl -s http://127.0.0.1:27516/healthz", '"ready": false')
    answer, shown = (
        json.loads(text) for text in (shell.run("curl -s http://127.0.0.1:27516/healthz")[0], block("json"))
    )
    assert shape(shown) == shape(answer)
    assert shown["checks"][0]["name"] in [check["name"] for check in answer["checks"] if check["state"] == "degraded"]
    shell.run(f"{record.command.partition('  #')[0]} & node=$!")
    until(shell, "weft status --port 27600", "root")
    shell.run("kill -INT $node; wait $node")
    told(shell, replay)


def scraped(shell: Shell) -> None:
    """Prometheus takes the page's configuration, and finds there the series that the page shows."""
    (shell.place / "prometheus.yml").write_text(block("yaml"), "utf-8")
    said, status = shell.run("promtool check config prometheus.yml")
    assert 0 == status, said
    (job,) = yaml.safe_load(block("yaml"))["scrape_configs"]
    ((address,),) = (target["targets"] for target in job["static_configs"])
    for line in block("text").splitlines():
        series, _, _ = line.partition("{")
        labels = re.findall(r"(\w+)=", line)
        wanted = f"{series}{{" + ",".join(f"{label}=…" for label in labels)
        until(shell, f'curl -s http://{address}{job["metrics_path"]} | sed \'s/"[^"]*"/…/g\'', wanted)


@pytest.mark.proves("WEL-002", part="the page of observing: its receivers can be told to a node")
def test_the_receivers_of_the_page_are_taken() -> None:
    made = settings_of(read_document(f'[node]\nname = "r"\nlevel = "root"\n{block("toml")}', "the page"))
    assert ["prom", "collector"] == list(made.export)
    assert made.export["collector"].headers["Authorization"].startswith("Bearer ")
