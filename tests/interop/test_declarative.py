"""The example of a project of Spark's Declarative Pipelines, run as people run it: by Spark's own command (PIP-093)."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest

from tests.interop.test_connect import done, environment, run
from tests.pipeline.test_cluster import fill
from weft.pipeline.cluster import spark_home
from weft.pipeline.sql import Lake

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "declarative"
SPEC: Final = "spark-pipeline.yml"
PATIENCE_S: Final = 300.0
HOURS: Final = "SELECT count(*) FILTER (n > 0) AS hours, sum(n) AS n FROM rollup_1h"


@pytest.mark.proves("PIP-093")
def test_the_declarative_project_is_built_by_the_command_of_spark(tmp_path: Path) -> None:
    lake = fill(tmp_path / "lake")
    done(run(tmp_path, lake.root))
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE, project)
    spec = (project / SPEC).read_text("utf-8")
    (project / SPEC).write_text(spec.replace("file:///tmp/weft-declarative", f"file://{tmp_path}/storage"), "utf-8")
    ours = {"WEFT_LAKE": str(lake.root), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(
        [str(spark_home() / "bin" / "spark-pipelines"), "run", "--spec", str(project / SPEC)],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S, cwd=tmp_path, env=environment(tmp_path) | ours,
    )  # fmt: skip
    assert 0 == ended.returncode, ended.stdout[-2000:] + ended.stderr[-3000:]
    with Lake(lake.root) as asked:
        (told,) = asked.query(HOURS).to_pylist()
    named = pq.read_table(tmp_path / "spark-warehouse" / "named_hours")
    assert (told["hours"], told["n"]) == (named.num_rows, sum(named.column("n").to_pylist()))
    assert pq.read_table(tmp_path / "spark-warehouse" / "busiest").num_rows > 0
