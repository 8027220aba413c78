"""docs/cluster.md is typed as it stands there: a cluster of this machine, Spark Connect, and what `weft doctor` says (WEL-002)."""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.house.requirements import ROOT
from tests.interop.pageshell import Shell, opened, until
from tests.interop.programs import needed
from tests.interop.test_connect import PEERS, server_words
from tests.pages import consoles
from tests.pipeline.ground import DRAIN, MEM, taken
from tests.pipeline.test_cluster import ROWS, fill
from weft.lake.layout import Layout
from weft.lake.segments import append_segment
from weft.pipeline.session import Options, settings_of
from weft.pipeline.settings import settings_of as of_lake

WITHIN_S: Final = 500.0
"""How long Spark may take to start, on a machine that has other things to do."""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with opened(tmp_path) as made:
        yield made


def beside(shell: Shell, command: str, says: str) -> str:
    """Begin a command in a terminal of its own; what it has said when it says that."""
    shell.run(f"({command} > said.txt) &")
    until(shell, "cat said.txt", says, WITHIN_S)
    return (shell.place / "said.txt").read_text("utf-8")


def driven(shell: Shell, command: str, batches: int) -> None:
    """Let a driver run on until the tables have so many batches; then end it with Ctrl-C."""
    shell.run(f"{command} & driver=$!")
    until(shell, "ls lake/tables/meta/progress/_delta_log", f"{batches:020}.json", WITHIN_S)
    said, status = shell.run("kill -INT $driver; wait $driver")
    assert 0 == status, said


def checks(lines: list[str]) -> list[str]:
    """What `weft doctor` has looked at, of a lake and of what the jobs need."""
    names = [line.split()[1] for line in lines if line.split()[:1] in (["ok"], ["warn"], ["fail"])]
    return names[names.index("pyspark") :]


@pytest.mark.proves("WEL-002", part="the page of clusters: a cluster of this machine, Spark Connect, the doctor")
def test_the_page_of_clusters_works_as_it_is_written(shell: Shell) -> None:
    (cluster,), (run,), (install, remote), (doctor,) = consoles("cluster.md")
    lake = fill(shell.place / "lake")
    assert cluster.is_shown(beside(shell, cluster.command, "spark://"))
    driven(shell, run.command, 1)
    shell.run("kill %1; wait %1")
    more = taken(1 + ROWS, [(MEM, row, None) for row in range(500)])
    append_segment(lake, "samples", DRAIN, [(1, more)])
    (packages,) = Path(needed(str(PEERS))).glob("lib/python3.*/site-packages")
    installed = {path.name.partition("-")[0].replace("_", "-") for path in packages.glob("*.dist-info")}
    assert set(shlex.split(install.command)[2:]) <= installed
    shell.run(f"export PYTHONPATH={packages} SPARK_LOCAL_IP=127.0.0.1 PYSPARK_PYTHON={sys.executable}")
    shell.run(f"{shlex.join(server_words(15_002))} &")
    until(shell, "ss -ltn", ":15002", WITHIN_S)
    driven(shell, remote.command, 2)
    said, _ = shell.run("weft lake check")
    assert said.startswith("equal: 2 segments")
    said, status = shell.run(doctor.command)
    assert (0, checks(doctor.shown)) == (status, checks(said.splitlines())), said


def block_of(kind: str) -> str:
    """The one block of a kind on the page."""
    page = (ROOT / "docs/cluster.md").read_text("utf-8")
    (text,) = re.findall(rf"^```{kind}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return str(text)


@pytest.mark.proves("WEL-002", part="the page of clusters: a master and two workers with addresses of their own")
def test_a_cluster_of_several_addresses_works_as_it_is_written(tmp_path: Path) -> None:
    own = " && ".join(f"ip address add 10.0.0.{number}/32 dev lo" for number in (5, 6))
    with opened(tmp_path, own) as shell:
        lake = fill(shell.place / "lake")
        (lake.root / "lake.toml").write_text(block_of("toml"), "utf-8")
        *beginning, run = block_of("sh").splitlines()
        for line in beginning:
            said, status = shell.run(line)
            assert 0 == status, said
        driven(shell, run, 1)
        assert {"work-5", "work-6"} == {path.parts[-4] for path in tmp_path.glob("work-*/app-*/*/stderr")}


@pytest.mark.proves("WEL-002", part="the page of clusters: its settings are taken")
def test_the_settings_of_the_page_are_taken(tmp_path: Path) -> None:
    (tmp_path / "lake.toml").write_text(block_of("toml"), "utf-8")
    (tmp_path / "secret").write_text("s", "utf-8")
    wanted = Options(master="spark://10.0.0.7:7077", secret=tmp_path / "secret")
    found = settings_of(wanted._replace(settings=of_lake(Layout(tmp_path)).spark_texts))
    assert ("10.0.0.5", "10.0.0.5") == (found["spark.driver.host"], found["spark.driver.bindAddress"])
    assert ("4g", "16") == (found["spark.executor.memory"], found["spark.cores.max"])
